package core_test

// The number of an attempt: the same in each place that has one.

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// trial is what a run of the story does, and the attempt of the run after it.
type trial struct {
	outcome func() error
	next    int
}

// A task fails, snoozes, is asked to come later, leaves a checkpoint, waits for a signal, loses its process, fails again and succeeds. The
// handler, the task, its JSON, its history, its export and the events count from 1, and one more for each failure alone.
func TestAnAttemptIsTheSameEverywhere(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{MaxAttempts: 4, Backoff: time.Second}}, func(w *world) {
		boom := fmt.Errorf("boom")
		steps := []trial{
			{func() error { return boom }, 2},
			{func() error { return core.Snooze(time.Minute) }, 2},
			{func() error { return core.RetryAfter(time.Now().Add(time.Minute), boom) }, 2},
			{func() error { return core.Yield(1, time.Minute) }, 2},
			{func() error { return core.Await(core.Signal{Key: "go"}, 2) }, 2},
			{func() error { return boom }, 3},
			{func() error { return nil }, 3},
		}
		told, want := []int{}, []int{1, 2, 2, 2, 2, 2, 3}
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			told = append(told, task.Attempt)
			now := w.task("a", "1")
			assert.Equal(t, core.StatusInProgress, now.Status)
			assert.Equal(t, task.Attempt, now.Attempt, "while it runs")
			if task.Crashes > 0 {
				last := now.Runs[len(now.Runs)-1]
				assert.Equal(t, model.OutcomeCrashed, last.Outcome)
				assert.Equal(t, task.Attempt, last.Attempt, "the run that died")
			}
			return steps[len(told)-1].outcome()
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		assert.Equal(t, 1, w.task("a", "1").Attempt, "before its first")
		for i, s := range steps {
			if i == 5 {
				_, err := w.s.Signal(t.Context(), "a", "go", nil)
				require.NoError(t, err)
				w.dies("a", "k")
				assert.Equal(t, 2, w.task("a", "1").Attempt, "a lease that ran out")
			}
			for len(told) == i {
				w.runUntil(time.Second)
			}
			w.says("1", s.next)
		}
		assert.Equal(t, want, told)
		var history, events []int
		for _, r := range w.task("a", "1").Runs {
			history = append(history, r.Attempt)
		}
		assert.Equal(t, []int{1, 2, 2, 2, 2, 2, 2, 3}, history, "with the run that crashed")
		for _, e := range w.seen(model.EventFinish) {
			events = append(events, e.Attempt)
		}
		assert.Equal(t, want, events)
		for i, e := range w.seen(model.EventStart) {
			assert.Equal(t, want[i], e.Attempt)
		}
	})
}

// says demands that a task has an attempt, in Go, as JSON and in an export, where a copy of it goes on with the same.
func (w *world) says(id string, attempt int) {
	w.Helper()
	info := w.task("a", id)
	assert.Equal(w, attempt, info.Attempt, info.LastOutcome)
	data, err := json.Marshal(info)
	require.NoError(w, err)
	assert.Contains(w, string(data), fmt.Sprintf(`"attempt":%d,`, attempt))
	if info.Status != core.StatusWaiting || info.Awaiting != nil {
		return
	}
	lines := w.export()
	assert.Contains(w, lines, fmt.Sprintf(`"attempt":%d`, attempt))
	to := newWorld(w.T, core.Config{})
	to.imports("a", lines)
	assert.Equal(w, attempt, to.task("a", id).Attempt)
	if info.LastOutcome == model.OutcomeFailed {
		why, err := w.s.Explain(w.Context(), "a", id)
		require.NoError(w, err)
		assert.Contains(w, why.Reasons[0].Text, fmt.Sprintf("attempt %d failed", attempt-1))
	}
}

// A task that has ended has the attempt that was its last, whatever ended it; what has not begun has the first.
func TestTheLastAttempt(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{MaxAttempts: 2, Backoff: time.Second}}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			switch {
			case task.ID == "gives up" && task.Attempt == 2:
				return core.Cancel(nil)
			case task.ID == "every" && task.Attempt == 2:
				return nil
			}
			return fmt.Errorf("boom")
		})
		for _, id := range []string{"dies", "gives up", "stopped", "unbegun"} {
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "k"})
		}
		w.submit(core.NewTask{Agent: "a", ID: "every", Kind: "k", Every: time.Hour, MaxAttempts: 2})
		_, err := w.s.Cancel(t.Context(), "a", "unbegun", core.Order{})
		require.NoError(t, err)
		w.runFailing()
		_, err = w.s.Cancel(t.Context(), "a", "stopped", core.Order{})
		require.NoError(t, err)
		assert.Equal(t, 2, w.task("a", "every").Attempt)
		w.runUntil(time.Minute)
		assert.Equal(t, 1, w.task("a", "every").Attempt, "the next occurrence begins anew")
		for id, want := range map[string]int{"dies": 2, "gives up": 2, "stopped": 1, "unbegun": 1} {
			info := w.task("a", id)
			assert.True(t, info.Status.Finished(), id)
			assert.Equal(t, want, info.Attempt, id)
		}
		_, err = w.s.Replay(t.Context(), "a", "dies")
		require.NoError(t, err)
		assert.Equal(t, 1, w.task("a", "dies").Attempt, "it has all attempts again")
	})
}
