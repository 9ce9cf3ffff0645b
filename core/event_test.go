package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Each event about a task has its session and its labels, and each the process that did it.
func TestEventsSayWhatTheyAreAbout(t *testing.T) {
	virtual(t, core.Config{Name: "worker-7"}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		core.Handle(w.s, "fails", func(context.Context, *core.Task[any]) error { return core.SkipRetry(errors.New("broken")) })
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", SessionID: "s1", TraceID: "t1", Labels: map[string]string{"tier": "gold"}}
		w.submit(task)
		w.run()
		for id, cron := range map[string]string{"2": "0 9 * * *", "3": ""} {
			task.ID, task.Cron, task.Kind = id, cron, map[string]string{"2": "k", "3": "fails"}[id]
			w.submit(task)
		}
		w.runFailing()
		_, err := w.s.Cancel(w.Context(), "a", "2", core.Order{By: "ann", Reason: "obsolete"})
		require.NoError(w, err)
		seen := map[model.EventType]bool{}
		for _, e := range w.events {
			seen[e.Type] = true
			assert.Equal(w, "worker-7", e.Process, e.Type)
			assert.Equal(w, "s1", e.SessionID, e.Type)
			assert.Equal(w, map[string]string{"tier": "gold"}, e.Labels, e.Type)
			assert.Equal(w, "t1", e.TraceID, e.Type)
		}
		for _, typ := range []model.EventType{model.EventEnqueue, model.EventDequeue, model.EventStart, model.EventFinish, model.EventCancel} {
			assert.True(w, seen[typ], typ)
		}
	})
}

// The end of a cancelled run says who cancelled it and why; a run that is given back why it was.
func TestEventsSayWhoAndWhy(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "slow", func(ctx context.Context, task *core.Task[any]) error {
			if task.ID == "cancelled" {
				_, err := w.s.Cancel(w.Context(), "a", task.ID, core.Order{By: "ann", Reason: "obsolete"})
				assert.NoError(w, err)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		w.submit(core.NewTask{Agent: "a", ID: "cancelled", Kind: "slow"})
		w.run()
		ends := w.seen(model.EventFinish)
		require.Len(w, ends, 1)
		assert.Equal(w, model.OutcomeCancelled, ends[0].Outcome)
		assert.Equal(w, []string{"ann", "obsolete"}, []string{ends[0].By, ends[0].Reason})

		w.submit(core.NewTask{Agent: "a", ID: "late", Kind: "slow"})
		_, err := w.s.RunDue(w.Context(), core.Scope{MaxDuration: 5 * time.Second})
		require.NoError(w, err)
		stopped, stop := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, stop)
		_, err = w.s.RunDue(stopped, core.Scope{})
		require.NoError(w, err)
		back := w.seen(model.EventRelease)
		require.Len(w, back, 2)
		assert.Equal(w, []string{"duly", "the time of its pull was up"}, []string{back[0].By, back[0].Reason})
		assert.Equal(w, []string{"duly", "its process stopped"}, []string{back[1].By, back[1].Reason})
	})
}

// What a run submits says which run it was.
func TestATaskOfARunSaysWhose(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[any]) error {
			_, err := w.s.Submit(ctx, core.NewTask{Agent: "b", ID: "child", Kind: "other"})
			return err
		})
		w.submit(core.NewTask{Agent: "a", ID: "parent", Kind: "k"})
		w.run()
		made := w.seen(model.EventEnqueue)
		require.Len(w, made, 2)
		assert.Empty(w, made[0].Reason)
		assert.Equal(w, "submitted by the run of a/parent", made[1].Reason)
	})
}
