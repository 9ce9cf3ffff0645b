package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

var errBoom = errors.New("boom")

func TestSuccess(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "note", func(ctx context.Context, task *core.Task[note]) error {
			assert.Equal(t, "hi", task.Payload.Text)
			assert.Equal(t, 1, task.Attempt)
			assert.Equal(t, "trace", task.TraceID)
			assert.NotZero(t, task.Fence)
			time.Sleep(1500 * time.Millisecond)
			return task.SetResult(map[string]int{"n": 7})
		})
		submitted := time.Now()
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "note", Payload: note{"hi"}, Delay: time.Second, TraceID: "trace"})
		assert.Zero(t, w.run().Ran, "not before it is due")
		time.Sleep(time.Second)
		report := w.run()
		assert.Equal(t, 1, report.Completed)
		assert.Equal(t, 1, report.Agents)
		assert.Equal(t, 1500*time.Millisecond, report.Duration)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCompleted, info.Status)
		assert.JSONEq(t, `{"n":7}`, string(info.Result))
		assert.Equal(t, submitted.UnixMilli(), info.Submitted.UnixMilli())
		assert.Equal(t, submitted.Add(time.Second).UnixMilli(), info.Due.UnixMilli())
		assert.Equal(t, submitted.Add(time.Second).UnixMilli(), info.Started.UnixMilli())
		assert.Equal(t, submitted.Add(2500*time.Millisecond).UnixMilli(), info.Finished.UnixMilli())
		assert.Equal(t, 1500*time.Millisecond, info.LastDuration)
		assert.Equal(t, int64(1), info.RunCount)
		assert.Equal(t, model.OutcomeSuccess, info.LastOutcome)
		for _, e := range []model.EventType{model.EventEnqueue, model.EventDequeue, model.EventStart, model.EventFinish} {
			require.Len(t, w.seen(e), 1, e)
			assert.Equal(t, "trace", w.seen(e)[0].TraceID)
		}
		assert.Equal(t, 1500*time.Millisecond, w.seen(model.EventFinish)[0].Duration)
	})
}

func TestRetryThenDead(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Backoff: time.Second, MaxBackoff: 3 * time.Second}}, func(w *world) {
		var starts []time.Time
		core.Handle(w.s, "fail", func(_ context.Context, task *core.Task[note]) error {
			starts = append(starts, time.Now())
			assert.Equal(t, len(starts), task.Attempt)
			return errBoom
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "fail", Payload: note{"keep"}, Group: "g"})
		sum := w.runUntil(time.Hour)
		assert.Equal(t, model.DefaultMaxAttempts, sum.Ran)
		assert.Equal(t, model.DefaultMaxAttempts-1, sum.Retried)
		assert.Equal(t, 1, sum.Failed)
		for i := 1; i < len(starts); i++ {
			pause := starts[i].Sub(starts[i-1])
			assert.LessOrEqual(t, pause, min(time.Second<<(i-1), 3*time.Second)+2*time.Millisecond)
		}
		info := w.task("a", "1")
		assert.Equal(t, core.StatusFailed, info.Status)
		assert.Equal(t, "boom", info.LastError)
		assert.Equal(t, "attempts", info.Reason)
		assert.Equal(t, int64(5), info.ErrorCount)
		assert.Len(t, info.Runs, 5)
		assert.JSONEq(t, `{"text":"keep"}`, string(info.Payload), "a dead task keeps its payload")
		counts, err := w.s.Group(w.Context(), "a", "g")
		require.NoError(t, err)
		assert.Equal(t, core.StatusFailed, counts.Status())

		due, err := w.s.Replay(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, time.Now().UnixMilli(), due.UnixMilli())
		starts = nil
		assert.Equal(t, 1, w.runFailing().Retried, "a replayed task has all its attempts again")
		_, err = w.s.Replay(w.Context(), "a", "1")
		assert.Equal(t, core.CodeConflict, core.CodeOf(err), "it is not dead any more")
		_, err = w.s.Replay(w.Context(), "a", "2")
		assert.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestSteering(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome func() error
		every   time.Duration
		status  core.Status
		next    time.Duration // when it waits again
		last    model.Outcome
	}{
		{name: "cancel", outcome: func() error { return core.Cancel(errBoom) }, status: core.StatusCancelled, last: model.OutcomeCancelled},
		{name: "cancel a recurring task", outcome: func() error { return core.Cancel(nil) }, every: time.Minute, status: core.StatusCancelled, last: model.OutcomeCancelled},
		{name: "skip retry", outcome: func() error { return core.SkipRetry(errBoom) }, status: core.StatusFailed, last: model.OutcomeFailed},
		{name: "skip retry of a recurring task", outcome: func() error { return core.SkipRetry(nil) }, every: time.Minute, status: core.StatusWaiting, next: 2 * time.Minute, last: model.OutcomeFailed},
		{name: "snooze", outcome: func() error { return core.Snooze(time.Hour) }, status: core.StatusWaiting, next: time.Hour, last: model.OutcomeSnoozed},
		{name: "yield", outcome: func() error { return core.Yield("here", 5*time.Second) }, status: core.StatusWaiting, next: 5 * time.Second, last: model.OutcomeYielded},
		{name: "yield what is no JSON", outcome: func() error { return core.Yield(func() {}, 0) }, status: core.StatusCancelled, last: model.OutcomeCancelled},
		{name: "next in", outcome: func() error { return core.NextIn(3 * time.Hour) }, every: time.Minute, status: core.StatusWaiting, next: 3 * time.Hour, last: model.OutcomeSuccess},
		{name: "next in, once", outcome: func() error { return core.NextIn(3 * time.Hour) }, status: core.StatusCompleted, last: model.OutcomeSuccess},
		{name: "next in too soon", outcome: func() error { return core.NextIn(time.Nanosecond) }, every: time.Minute, status: core.StatusWaiting, next: time.Second, last: model.OutcomeSuccess},
		{name: "wrapped", outcome: func() error { return errors.Join(errors.New("x"), core.Snooze(time.Hour)) }, status: core.StatusWaiting, next: time.Hour, last: model.OutcomeSnoozed},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return c.outcome() })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: c.every})
				_, _ = w.s.RunDue(w.Context(), core.Scope{})
				info := w.task("a", "1")
				assert.Equal(t, c.status, info.Status)
				assert.Equal(t, 1, info.Attempt, "nothing is charged that a handler has asked for, and a last attempt was the first")
				assert.Equal(t, c.last, info.LastOutcome)
				if c.next != 0 {
					assert.Equal(t, c.next, time.Until(info.NextRun))
				}
			})
		})
	}
}

// The reason of a dead task says what happened: its attempts were used up, or its handler wanted no other.
func TestTheReasonOfADeadTask(t *testing.T) {
	for name, c := range map[string]struct {
		outcome  error
		attempts int
		want     string
	}{
		"attempts used up":     {errBoom, 1, "attempts"},
		"no retry":             {core.SkipRetry(errBoom), 5, "no_retry"},
		"no retry, last of it": {core.SkipRetry(errBoom), 1, "no_retry"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return c.outcome })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: c.attempts})
				w.runFailing()
				assert.Equal(t, core.StatusFailed, w.task("a", "1").Status)
				assert.Equal(t, c.want, w.task("a", "1").Reason)
			})
		})
	}
}

func TestCheckpoint(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var steps []int
		core.Handle(w.s, "long", func(_ context.Context, task *core.Task[note]) error {
			var step int
			found, err := task.Checkpoint(&step)
			require.NoError(t, err)
			assert.Equal(t, step > 0, found)
			assert.Equal(t, 1, task.Attempt, "a step is no attempt")
			steps = append(steps, step)
			if step < 3 {
				return core.Yield(step+1, time.Minute)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "long"})
		w.runUntil(time.Hour)
		assert.Equal(t, []int{0, 1, 2, 3}, steps)
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
	})
}

func TestBadEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload any
		handler func(ctx context.Context, task *core.Task[note]) error
		status  core.Status
		error   string
	}{
		{name: "panic", handler: func(context.Context, *core.Task[note]) error { panic("help") }, status: core.StatusWaiting, error: "panic: help"},
		{name: "nil map", handler: func(context.Context, *core.Task[note]) error {
			var m map[string]int
			m["a"] = 1 //nolint:govet,staticcheck // on purpose
			return nil
		}, status: core.StatusWaiting, error: "panic: assignment to entry in nil map"},
		{name: "goexit", handler: func(context.Context, *core.Task[note]) error { runtime.Goexit(); return nil }, status: core.StatusWaiting, error: "runtime.Goexit"},
		{name: "payload", payload: []int{1}, handler: func(context.Context, *core.Task[note]) error { return nil }, status: core.StatusFailed, error: "decode payload"},
		{name: "long error", handler: func(context.Context, *core.Task[note]) error { return errors.New(strings.Repeat("é", 5000)) }, status: core.StatusWaiting, error: "..."},
		{name: "timeout", handler: func(ctx context.Context, _ *core.Task[note]) error { <-ctx.Done(); return ctx.Err() }, status: core.StatusWaiting, error: core.ErrTimeout.Error()},
		{name: "too late, but done", handler: func(ctx context.Context, _ *core.Task[note]) error { <-ctx.Done(); return nil }, status: core.StatusCompleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{Timeout: time.Minute}}, func(w *world) {
				core.Handle(w.s, "k", c.handler)
				core.Handle(w.s, "fine", func(context.Context, *core.Task[note]) error { return nil })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: c.payload},
					core.NewTask{Agent: "a", ID: "2", Kind: "fine"}, core.NewTask{Agent: "b", ID: "1", Kind: "fine"})
				_, _ = w.s.RunDue(w.Context(), core.Scope{})
				info := w.task("a", "1")
				assert.Equal(t, c.status, info.Status)
				assert.Contains(t, info.LastError, c.error)
				assert.LessOrEqual(t, len(info.LastError), 1024)
				assert.Equal(t, core.StatusCompleted, w.task("a", "2").Status, "others are not disturbed")
				assert.Equal(t, core.StatusCompleted, w.task("b", "1").Status)
			})
		})
	}
}

// A handler that does not end although its time is over is given up: its task goes on, its slot stays taken, and what it
// returns in the end is refused.
// A handler that ignores its context holds up no other work; too many of them stop the process, and it says so.
func TestAbandonedHandlers(t *testing.T) {
	virtual(t, core.Config{Concurrency: 2, MaxAbandoned: 2, Default: core.KindConfig{Timeout: time.Minute}}, func(w *world) {
		free := make(chan struct{})
		core.Handle(w.s, "stuck", func(context.Context, *core.Task[note]) error { <-free; return nil })
		core.Handle(w.s, "fine", nothing)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "stuck", MaxAttempts: 1})
		report := w.runFailing()
		assert.Equal(t, 65*time.Second, report.Duration, "the timeout, and some patience")
		assert.Equal(t, core.StatusFailed, w.task("a", "1").Status)
		require.Len(t, w.seen(model.EventStuck), 1)
		assert.Equal(t, model.SlotStats{Total: 2, Abandoned: 1, MaxAbandoned: 2}, w.s.Slots())
		require.NoError(t, w.s.Ready())

		w.submit(numbered("b", "fine", 20)...)
		assert.Equal(t, 20, w.run().Completed, "its slot is free")

		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "stuck", MaxAttempts: 1}, core.NewTask{Agent: "a", ID: "3", Kind: "fine", Delay: time.Second})
		w.runFailing()
		_, err := w.s.RunDue(w.Context(), core.Scope{})
		var abandoned *model.AbandonedError
		require.ErrorAs(t, err, &abandoned)
		assert.Equal(t, core.CodeAbandoned, core.CodeOf(err))
		assert.Equal(t, model.AbandonedError{Handlers: 2, Limit: 2}, *abandoned)
		assert.ErrorAs(t, w.s.Ready(), &abandoned)
		close(free)
		synctest.Wait()
		require.NoError(t, w.s.Ready(), "it is over when they return")
		assert.Equal(t, 1, w.run().Completed)
		assert.Equal(t, core.StatusFailed, w.task("a", "1").Status, "the late result is refused")
	})
}

func TestResults(t *testing.T) {
	virtual(t, core.Config{MaxResult: 10}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			assert.Equal(t, core.CodeInvalid, core.CodeOf(task.SetResult(strings.Repeat("x", 100))))
			assert.Error(t, task.SetResult(func() {}))
			assert.NoError(t, task.SetResult("small"))
			assert.Error(t, task.SetProgress(strings.Repeat("x", 100)))
			return task.SetProgress(0.5)
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		info := w.task("a", "1")
		assert.JSONEq(t, `"small"`, string(info.Result))
		assert.JSONEq(t, `0.5`, string(info.Progress))
	})
}

func TestBatchHandler(t *testing.T) {
	virtual(t, core.Config{Concurrency: 20}, func(w *world) {
		var mu sync.Mutex
		var sizes []int
		core.HandleBatch(w.s, "k", func(_ context.Context, tasks []*core.Task[note]) []error {
			mu.Lock()
			sizes = append(sizes, len(tasks))
			mu.Unlock()
			agent := tasks[0].Agent
			outcomes := make([]error, len(tasks))
			for i, task := range tasks {
				assert.Equal(t, agent, task.Agent, "one agent at a time")
				if task.ID == "002" {
					outcomes[i] = core.Cancel(errBoom)
				}
			}
			if agent == "short" {
				return outcomes[:1]
			}
			return outcomes
		})
		w.submit(numbered("a", "k", 5)...)
		w.submit(core.NewTask{Agent: "a", ID: "bad", Kind: "k", Payload: 7})
		w.submit(numbered("short", "k", 2)...)
		report := w.runFailing()
		assert.ElementsMatch(t, []int{5, 2}, sizes)
		assert.Equal(t, 4+1, report.Completed)
		assert.Equal(t, 1, report.Cancelled)
		assert.Equal(t, 1, report.Failed, "the payload that does not decode")
		assert.Equal(t, 1, report.Retried, "the task without an outcome")
	})
}

func TestBatchHandlerWithNilOutcomes(t *testing.T) {
	virtual(t, core.Config{Concurrency: 20}, func(w *world) {
		core.HandleBatch(w.s, "k", func(context.Context, []*core.Task[note]) []error { return nil })
		core.HandleBatch(w.s, "panics", func(context.Context, []*core.Task[note]) []error { panic("help") })
		w.submit(numbered("a", "k", 5)...)
		w.submit(numbered("b", "panics", 3)...)
		report := w.runFailing()
		assert.Equal(t, 5, report.Completed)
		assert.Equal(t, 3, report.Retried)
	})
}

// A handler that returns why its context ended says it once.
func TestATimeoutIsToldOnce(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "waits", func(ctx context.Context, _ *core.Task[any]) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "waits", Timeout: time.Second, MaxAttempts: 1})
		_, err := w.s.RunDueTasks(w.Context(), []string{"ada"})
		require.Error(t, err)
		assert.Equal(t, core.ErrTimeout.Error(), w.task("ada", "1").LastError)
	})
}

// An agent has more finished tasks than are kept: those whose records had to go are known by how they ended.
func TestADroppedTaskIsKnown(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.store.Store = memstore.New(memstore.Config{Kept: 1})
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			if task.ID < "5" {
				return core.SkipRetry(errBoom)
			}
			return nil
		})
		var ended moment.Millis
		for _, id := range []string{"1", "2", "5", "6"} {
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "k"})
			if id == "1" {
				ended = moment.Of(time.Now())
			}
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
			time.Sleep(time.Millisecond)
		}
		for id, status := range map[string]core.Status{"1": core.StatusFailed, "5": core.StatusCompleted} {
			out, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: id, Kind: "k"})
			require.NoError(t, err)
			assert.Equal(t, core.Submitted{Agent: "a", ID: id, Kind: "k", Status: status}, out[0])
			info := w.task("a", id)
			assert.True(t, info.Dropped)
			assert.Equal(t, status, info.Status)
			assert.Empty(t, info.LastError)
			assert.Contains(t, info.Reason, "its record was dropped")
		}
		assert.Equal(t, ended.Time(), w.task("a", "1").Finished)
		explained, err := w.s.Explain(w.Context(), "a", "5")
		require.NoError(t, err)
		assert.Contains(t, explained.Reasons[0].Text, "its record was dropped")
		_, err = w.s.Replay(w.Context(), "a", "1")
		require.ErrorContains(t, err, "cannot be replayed: its record was dropped")
		assert.Equal(t, core.CodeConflict, core.CodeOf(err))
		out, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", OnConflict: core.OnConflictReplace})
		require.NoError(t, err)
		assert.True(t, out[0].Created, "what is replaced begins anew")
		assert.Equal(t, core.StatusWaiting, w.task("a", "1").Status)
	})
}

// A checkpoint is bounded, also that of a handler in Go: it is read with each claim. One that is too large fails the task by name, so that it can be
// replayed, and is not stored.
func TestCheckpointsAreBounded(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		large := strings.Repeat("x", core.MaxCheckpoint-1) // and two quotes
		outcomes := map[string]error{
			"yield": core.Yield(large, 0), "await": core.Await(core.Signal{Key: "k"}, large), "fits": core.Await(core.Signal{Key: "k"}, large[1:]),
		}
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error { return outcomes[t.ID] })
		for id := range outcomes {
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "k"})
		}
		_, _ = w.s.RunDue(w.Context(), core.Scope{})
		for _, id := range []string{"yield", "await"} {
			info := w.task("a", id)
			assert.Equal(w, core.StatusFailed, info.Status)
			assert.Equal(w, fmt.Sprintf("%s: checkpoint is %d bytes long: the limit is %d", id, core.MaxCheckpoint+1, core.MaxCheckpoint), info.LastError)
		}
		assert.NotNil(w, w.task("a", "fits").Awaiting)
	})
}

// No JSON is no payload, whether it is nil or not.
func TestAnEmptyPayloadIsNone(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for i, payload := range []any{json.RawMessage{}, json.RawMessage(nil), []byte{}, nil} {
			id := fmt.Sprint(i)
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "k", Payload: payload, Delay: time.Hour})
			assert.Empty(w, w.task("a", id).Payload)
		}
	})
}
