package core_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A task says when it last changed, also when its run has ended, of which the store knows nothing but the state.
func TestUpdatedAt(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "poll", func(context.Context, *core.Task[json.RawMessage]) error {
			assert.Equal(t, time.Now().UnixMilli(), w.task("ann", "1").UpdatedAt.UnixMilli(), "claimed")
			time.Sleep(7 * time.Second)
			return nil
		})
		now := func(why string) {
			t.Helper()
			assert.Equal(t, time.Now().UnixMilli(), w.task("ann", "1").UpdatedAt.UnixMilli(), why)
			time.Sleep(time.Minute)
		}
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "ann", ID: "1", Kind: "poll", Every: 24 * time.Hour})
		require.NoError(t, err)
		now("submitted")
		_, err = w.s.RunDueTasks(w.Context(), []string{"ann"})
		require.NoError(t, err)
		now("its run has ended")
		target := core.Target{Agent: "ann", ID: "1"}
		require.NoError(t, w.s.Pause(w.Context(), target, core.Pause{}))
		now("paused")
		require.NoError(t, w.s.Resume(w.Context(), target))
		now("resumed")
		_, err = w.s.Edit(w.Context(), "ann", "1", []byte(`{"level": 1}`))
		require.NoError(t, err)
		now("edited")
		_, err = w.s.Cancel(w.Context(), "ann", "1", core.Order{})
		require.NoError(t, err)
		now("cancelled")
		data, err := json.Marshal(w.task("ann", "1"))
		require.NoError(t, err)
		assert.Contains(t, string(data), `"updated_at":"`)
		assert.NotContains(t, string(data), "last_activity")
	})
}

// An activity task says when its subject was last active; its runs are no activity.
func TestLastActivity(t *testing.T) {
	virtual(t, activity(core.Activity{Quiet: time.Minute}), func(w *world) {
		w.digests(fine)
		w.notice(ann)
		time.Sleep(30 * time.Second)
		n, last := w.notice(ann), time.Now()
		w.runUntil(time.Hour)
		info := w.task(n.Agent, n.ID)
		assert.EqualValues(t, 1, info.RunCount)
		assert.Equal(t, last.UnixMilli(), info.LastActivity.UnixMilli())
		data, err := json.Marshal(info)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"last_activity":"`)
	})
}
