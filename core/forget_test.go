package core_test

// Forgetting agents.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// Everything of the agent goes, what runs is told to end, and others keep all they have. A call that dies half way is completed by the next.
func TestForget(t *testing.T) {
	virtual(t, core.Config{Concurrency: 50}, func(w *world) {
		core.Handle(w.s, "quick", func(context.Context, *core.Task[note]) error { return nil })
		core.Handle(w.s, "boom", func(context.Context, *core.Task[note]) error { return core.SkipRetry(errBoom) })
		started, cause := make(chan struct{}), make(chan error, 1)
		core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[note]) error {
			close(started)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		})
		for _, agent := range []string{"a", "b"} {
			var tasks []core.NewTask
			for i := range 300 {
				tasks = append(tasks, core.NewTask{Agent: agent, ID: fmt.Sprint("done-", i), Kind: []string{"quick", "boom"}[i%2], Group: "g"})
			}
			w.submit(tasks...)
		}
		_, _ = w.s.RunDue(w.Context(), core.Scope{})
		for _, agent := range []string{"a", "b"} {
			var tasks []core.NewTask
			for i := range 700 {
				tasks = append(tasks, core.NewTask{Agent: agent, ID: fmt.Sprint("waits-", i), Kind: "quick", Delay: 24 * time.Hour, Group: "h"})
			}
			w.submit(tasks...)
			w.profile(core.Profile{Agent: agent, Zone: "Asia/Tokyo"})
			require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: agent, ID: "waits-7"}, core.Pause{}))
		}
		w.submit(core.NewTask{Agent: "a", ID: "runs", Kind: "slow"})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
		}()
		<-started
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		time.Sleep(time.Millisecond)

		whole := operate.Forgotten{Live: 701, Finished: 300, Profile: true}
		count, err := w.s.CountForget(w.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, whole, count)
		w.store.failing(func(verb string, n int) error {
			if verb == "control" && n > 2 { // it dies after two pages
				return errBoom
			}
			return nil
		})
		_, err = w.s.Forget(w.Context(), "a", nil)
		require.ErrorIs(t, err, errBoom)
		w.store.failing(nil)
		left, err := w.s.CountForget(w.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, 1001-2*200, left.Live+left.Finished)
		later := false
		done, err := w.s.Forget(w.Context(), "a", func(operate.Forgotten) {
			if !later { // what comes meanwhile stays
				later = true
				time.Sleep(time.Millisecond)
				w.submit(core.NewTask{Agent: "a", ID: "later", Kind: "quick"})
			}
		})
		require.NoError(t, err)
		assert.Equal(t, left, done)
		<-ended
		require.ErrorIs(t, <-cause, core.ErrLeaseLost)

		all, _, err := w.s.Tasks(w.Context(), core.List{Agent: "a"})
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, "later", all[0].ID)
		for _, group := range []string{"g", "h"} {
			_, err = w.s.Group(w.Context(), "a", group)
			require.ErrorIs(t, err, core.ErrNotFound)
			_, err = w.s.Group(w.Context(), "b", group)
			require.NoError(t, err)
		}
		_, err = w.s.Profile(w.Context(), "a")
		require.ErrorIs(t, err, core.ErrNotFound)
		pauses, _, err := w.s.Pauses(w.Context(), 0, "")
		require.NoError(t, err)
		require.Len(t, pauses, 1)
		assert.Equal(t, "b", pauses[0].Target.Agent)
		count, err = w.s.CountForget(w.Context(), "b")
		require.NoError(t, err)
		assert.Equal(t, operate.Forgotten{Live: 700, Finished: 300, Profile: true}, count)
		audit, err := w.s.Audit(w.Context(), inspect.AuditOptions{})
		require.NoError(t, err)
		assert.Zero(t, audit.Found)
		none, err := w.s.Forget(w.Context(), "nobody", nil)
		require.NoError(t, err)
		assert.Zero(t, none)
	})
}
