package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Whatever a run returns once the cancel is stored, its task is cancelled, and the run stays in the history as it was.
func TestACancelIsFinal(t *testing.T) {
	for name, outcome := range map[string]struct {
		returns func() error
		run     model.Outcome
	}{
		"nil":          {func() error { return nil }, model.OutcomeSuccess},
		"last attempt": {func() error { return errBoom }, model.OutcomeFailed},
		"no retry":     {func() error { return core.SkipRetry(errBoom) }, model.OutcomeFailed},
		"panic":        {func() error { panic("oh") }, model.OutcomeFailed},
		"own cancel":   {func() error { return core.Cancel(errBoom) }, model.OutcomeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Handle(w.s, "k", func(ctx context.Context, t *core.Task[note]) error {
					require.NoError(w, t.SetResult("half"))
					status, err := w.s.Cancel(ctx, t.Agent, t.ID, core.Order{})
					require.NoError(w, err)
					assert.Equal(w, core.StatusInProgress, status)
					assert.True(w, w.task("a", "1").Ending)
					return outcome.returns()
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
				assert.Equal(t, 1, w.run().Cancelled)
				info := w.task("a", "1")
				assert.Equal(t, core.StatusCancelled, info.Status)
				assert.JSONEq(t, `"half"`, string(info.Result), "what it had done is kept")
				require.Len(t, info.Runs, 1)
				assert.Equal(t, outcome.run, info.Runs[0].Outcome)
				_, err := w.s.Replay(w.Context(), "a", "1")
				assert.ErrorContains(t, err, "is cancelled: only failed tasks can be replayed")
			})
		})
	}
}

// A task that is replaced and then cancelled while it runs is cancelled as what it had become.
func TestACancelIsAboutTheDefinitionOfItsTime(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			_, err := w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "new", Level: core.LevelHigh, OnConflict: core.OnConflictReplace})
			require.NoError(w, err)
			_, err = w.s.Cancel(ctx, "a", "1", core.Order{By: "ann"})
			require.NoError(w, err)
			for _, kind := range []string{"k", "new"} { // the same again, and another: it is to end
				_, err = w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: kind, Every: time.Hour, OnConflict: core.OnConflictReplace})
				assert.ErrorContains(w, err, `task "1" of agent "a" was cancelled and its run has not ended yet: try again once it has`)
				assert.Equal(w, core.CodeConflict, core.CodeOf(err))
			}
			_, err = w.s.RunNow(ctx, "a", "1")
			assert.ErrorContains(w, err, "was cancelled and its run has not ended yet")
			assert.Equal(w, core.CodeConflict, core.CodeOf(err))
			return core.SkipRetry(errBoom)
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCancelled, info.Status)
		assert.Equal(t, "new", info.Kind)
		assert.Equal(t, core.LevelHigh, info.Level)
		out, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, OnConflict: core.OnConflictReplace})
		require.NoError(t, err)
		assert.True(t, out[0].Created, "it has ended")
	})
}

// A recurring task that was cancelled is not left alone as if it stayed: the same definition again is refused too.
func TestTheSameDefinitionDoesNotHideACancel(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, OnConflict: core.OnConflictReplace}
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			_, err := w.s.Cancel(ctx, "a", "1", core.Order{})
			require.NoError(w, err)
			_, err = w.s.Submit(ctx, task)
			assert.ErrorContains(w, err, store.ConflictEnding)
			return nil
		})
		w.submit(task)
		w.run()
		assert.Equal(t, core.StatusCancelled, w.task("a", "1").Status)
	})
}
