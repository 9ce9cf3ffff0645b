package core_test

// Saves: checkpoints that are stored while their run goes on.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// saved is the checkpoint that the store has of task a/1.
func (w *world) saved() string {
	w.Helper()
	page, err := w.store.Store.Get(w.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
	require.NoError(w, err)
	require.Len(w, page.Tasks, 1)
	var state codec.State
	require.NoError(w, state.Decode(page.Tasks[0].State))
	return string(state.Checkpoint)
}

// beatsFail has the store fail all extensions from now on, or none.
func (w *world) beatsFail(err error) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.fail = func(verb string, _ int) error {
		if verb == "extend" {
			return err
		}
		return nil
	}
}

// A checkpoint is stored when Save returns, with the progress, in one call; it stays through a failed attempt, and a new occurrence
// begins without one.
func TestASaveIsStoredAtOnce(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Hour}}, func(w *world) {
		var found []string
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			var was string
			ok, err := task.Checkpoint(&was)
			require.NoError(w, err)
			found = append(found, was)
			if ok {
				return nil
			}
			for _, at := range []string{"first", "second"} {
				calls := w.store.count("extend")
				require.NoError(w, task.SetProgress(at))
				require.NoError(w, task.Save(ctx, at))
				assert.Equal(w, 1, w.store.count("extend")-calls)
				assert.JSONEq(w, `"`+at+`"`, w.saved())
				assert.JSONEq(w, `"`+at+`"`, string(w.task("a", "1").Progress))
				_, err = task.Checkpoint(&was)
				require.NoError(w, err)
				assert.Equal(w, at, was, "the run itself reads it too")
			}
			return errors.New("an attempt that fails")
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, MaxAttempts: 3})
		w.runUntil(90 * time.Minute)
		assert.Equal(t, []string{"", "second", "", "second"}, found)
	})
}

// A run that has lost its lease to another process saves nothing.
func TestASaveWithoutALeaseIsRefused(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 30 * time.Second}}, func(w *world) {
		var saved error
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			require.NoError(w, task.Save(ctx, "mine"))
			w.steal("a")
			saved = task.Save(ctx, "late")
			<-ctx.Done()
			assert.ErrorIs(w, context.Cause(ctx), core.ErrLeaseLost)
			assert.ErrorIs(w, task.Save(context.Background(), "later"), core.ErrLeaseLost)
			return saved
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		assert.Equal(t, 1, w.run().Lost)
		require.ErrorIs(t, saved, core.ErrLeaseLost)
		assert.JSONEq(t, `"mine"`, w.saved())
	})
}

// A task that was deleted meanwhile has no checkpoint, and one that was cancelled has it: its run ends after the save.
func TestASaveHearsOfOrders(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Hour}}, func(w *world) {
		var saved, cause error
		order := func() error { _, err := w.s.Cancel(w.Context(), "a", "1", core.Order{}); return err }
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			require.NoError(w, order())
			saved = task.Save(ctx, "x")
			cause = context.Cause(ctx)
			return cause
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		require.NoError(t, saved)
		require.ErrorIs(t, cause, core.ErrCancelled)
		assert.Equal(t, core.StatusCancelled, w.task("a", "1").Status)
		order = func() error { return w.s.Delete(w.Context(), "a", "1") }
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", OnConflict: core.OnConflictReplace})
		w.run()
		require.ErrorIs(t, saved, core.ErrLeaseLost)
		require.ErrorIs(t, cause, core.ErrLeaseLost)
	})
}

// While the store is away a save fails with its error, and the checkpoint is not lost: the next heartbeat takes it along.
func TestASaveThatFailsIsTakenAlong(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Hour}}, func(w *world) {
		away := errors.New("away")
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			w.beatsFail(away)
			err := task.Save(ctx, "x")
			require.ErrorIs(w, err, away)
			require.NotErrorIs(w, err, core.ErrLeaseLost)
			assert.Empty(w, w.saved())
			w.beatsFail(nil)
			time.Sleep(2 * core.ProgressWithin)
			assert.JSONEq(w, `"x"`, w.saved())
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		assert.Equal(t, 1, w.run().Completed)
	})
}

// After an outage longer than the lease, no other process has begun the task: the save takes its lease back and is stored under it.
func TestASaveTakesItsLeaseBack(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 30 * time.Second}}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			w.beatsFail(errors.New("away"))
			time.Sleep(time.Minute)
			w.beatsFail(nil)
			other, err := core.New(w.store.Store, core.Config{})
			require.NoError(w, err)
			core.Handle(other, "another", nothing)
			_, err = other.RunDue(w.Context(), core.Scope{}) // it takes the lease back, and does not begin the task
			require.NoError(w, err)
			require.NoError(w, task.Save(ctx, "x"))
			assert.JSONEq(w, `"x"`, w.saved())
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		assert.Equal(t, 1, w.run().Completed)
	})
}

// What cannot be stored is refused by name before any call, and fails for good if the handler returns it.
func TestASaveIsBounded(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Hour}}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			require.Error(w, task.Save(ctx, make(chan int)))
			err := task.Save(ctx, strings.Repeat("x", core.MaxCheckpoint))
			invalid, ok := errors.AsType[*core.InvalidError](err)
			require.True(w, ok, err)
			assert.Equal(w, "checkpoint", invalid.Field)
			assert.Zero(w, w.store.count("extend"))
			return err
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 5})
		report := w.runFailing()
		assert.Equal(t, 1, report.Failed)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusFailed, info.Status)
		assert.Equal(t, int64(1), info.RunCount)
		assert.Contains(t, info.LastError, "save: checkpoint is 262146 bytes long: the limit is 262144")
	})
}

// A run whose time is up saves what it has.
func TestASaveOutlastsItsContext(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Hour, Timeout: time.Minute}}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			<-ctx.Done()
			require.NoError(w, task.Save(ctx, "x"))
			assert.JSONEq(w, `"x"`, w.saved())
			return ctx.Err()
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
		assert.Equal(t, 1, w.runFailing().Failed)
	})
}

// What a run has used is charged as it saves: one that uses its budget up ends after that save, uncharged, and goes on from there in the next period.
func TestASaveChargesBudgets(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Hour}}, func(w *world) {
		about := core.BudgetTarget{LimitTarget: core.LimitTarget{Each: core.EachAgent}, Unit: "tokens", Per: core.PerHour}
		require.NoError(t, w.s.SetBudgets(w.Context(), core.Budget{About: about, Amount: core.AmountOf(25)}))
		used := func() string {
			all, err := w.s.Budgets(w.Context())
			require.NoError(w, err)
			return all[0].Used.String()
		}
		var causes []error
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			step := 0
			_, err := task.Checkpoint(&step)
			require.NoError(w, err)
			for step < 5 {
				if ctx.Err() != nil {
					causes = append(causes, context.Cause(ctx))
					return ctx.Err()
				}
				step++
				require.NoError(w, task.Use(core.Usage{"tokens": 10}))
				require.NoError(w, task.Save(ctx, step))
				assert.Equal(w, fmt.Sprint(10*((step-1)%3+1)), used())
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
		w.runUntil(time.Minute)
		assert.Equal(t, []error{core.ErrBudgetSpent}, causes)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, info.Status)
		assert.Zero(t, info.ErrorCount)
		assert.Equal(t, "30", used())
		w.runUntil(time.Hour)
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status, w.task("a", "1").LastError)
		assert.Equal(t, "20", used())
	})
}

// A handler that a test calls by itself saves in memory.
func TestASaveInATest(t *testing.T) {
	t.Parallel()
	run := core.NewTestRun(json.RawMessage(`"old"`))
	require.NoError(t, run.Save(t.Context(), "new"))
	var got string
	ok, err := run.Checkpoint(&got)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, "new", got)
	require.Error(t, (*core.RunInfo)(nil).Save(t.Context(), "x"))
}
