package core_test

// Tasks that are submitted as paused: nothing starts them before they are resumed.

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A task that is stored paused is never started, neither at once nor by a pull, until it is resumed; and the same submit pauses it no more.
func TestSubmitAsPaused(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		defer w.s.AtOnce(w.Context(), core.AtOnce{})()
		ctx := core.WithPrincipal(w.Context(), core.Principal{Name: "eve"})
		held := core.NewTask{Agent: "a", ID: "1", Kind: "k", Level: core.LevelHigh, Paused: true, PausedReason: "not yet"}
		placed, err := w.s.Submit(ctx, held)
		require.NoError(w, err)
		assert.True(w, placed[0].Created)
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k", Every: time.Minute, Paused: true})
		w.runUntil(time.Hour)
		assert.Zero(w, ran)
		pauses := w.task("a", "1").Pauses
		require.Len(w, pauses, 1)
		assert.Equal(w, core.Order{By: "eve", Reason: "not yet"}, pauses[0].Order)
		events := w.seen(model.EventPause)
		require.Len(w, events, 2)
		assert.Equal(w, "1 eve not yet", events[0].ID+" "+events[0].By+" "+events[0].Reason)

		target := core.Target{Agent: "a", ID: "2"}
		require.NoError(w, w.s.Resume(w.Context(), target))
		placed, err = w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "2", Kind: "k", Every: time.Minute, Paused: true})
		require.NoError(w, err)
		assert.False(w, placed[0].Created || placed[0].Differs)
		assert.Empty(w, w.task("a", "2").Pauses, "what was resumed stays so")
		_, err = w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "2", Kind: "k", Every: time.Hour, Paused: true, OnConflict: core.OnConflictReplace})
		require.NoError(w, err)
		assert.Empty(w, w.task("a", "2").Pauses, "also if it is replaced")
		w.run()
		assert.Equal(w, 1, ran)
		_, err = w.s.RunNow(w.Context(), "a", "1")
		require.NoError(w, err)
		w.run()
		assert.Equal(w, 2, ran, "who tells it to run means it")
	})
}

// Its fields are read strictly, and a reason needs a pause.
func TestSubmitAsPausedRefuses(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "k", PausedReason: "why"})
		require.EqualError(w, err, "paused_reason needs paused")
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "k", Paused: true, PausedReason: string(make([]byte, 1))})
		require.ErrorContains(w, err, "paused_reason")
		_, err = model.ParseTasks([]byte(`{"agent_id": "a", "kind": "k", "paused": "yes"}`))
		require.EqualError(w, err, "paused must be true or false")
		in := core.NewTask{Agent: "a", Kind: "k", Paused: true, PausedReason: "why"}
		data, err := json.Marshal(in)
		require.NoError(w, err)
		out, err := model.ParseTasks(data)
		require.NoError(w, err)
		assert.Equal(w, []core.NewTask{in}, out)
	})
}
