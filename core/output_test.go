package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// printer is a store that counts the calls that print.
type printer struct {
	*memstore.Store

	calls atomic.Int64
	fails atomic.Bool
}

func (p *printer) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	p.calls.Add(1)
	if p.fails.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.Store.Print(ctx, chunks)
}

// shop is a scheduler on such a store.
type shop struct {
	*testing.T

	p *printer
	s *core.Scheduler
}

// printing runs a test in virtual time.
func printing(t *testing.T, test func(w *shop)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &printer{Store: memstore.New(memstore.Config{})}
		s, err := core.New(p, core.Config{})
		require.NoError(t, err)
		test(&shop{t, p, s})
	})
}

// output is what is kept of ada's task t.
func (w *shop) output() inspect.Output {
	w.Helper()
	out, err := w.s.Output(w.Context(), "ada", "t", inspect.OutputFrom{})
	require.NoError(w, err)
	return out
}

// What a handler writes and logs is kept with the run, is there while it goes on, and is whole when the pull has ended.
func TestOutputIsKept(t *testing.T) {
	printing(t, func(w *shop) {
		_, err := w.s.Output(w.Context(), "ada", "t", inspect.OutputFrom{})
		require.ErrorIs(w, err, core.ErrNotFound)
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[any]) error {
			logger := task.Logger()
			fmt.Fprintln(task.Output(), "begun")
			time.Sleep(3 * time.Second)
			logger.DebugContext(ctx, "half way", slog.Int("page", 7))
			time.Sleep(3 * time.Second)
			fmt.Fprintln(task.Output(), "done")
			return nil
		})
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k"})
		require.NoError(w, err)
		assert.Equal(w, inspect.Output{Agent: "ada", ID: "t", Status: core.StatusWaiting}, w.output())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err := w.s.RunDue(w.Context(), core.Scope{})
			assert.NoError(w, err)
		}()
		time.Sleep(2 * time.Second)
		out := w.output()
		assert.Equal(w, "begun\n", out.Text)
		assert.False(w, out.Ended)
		assert.Equal(w, 1, out.Attempt)
		time.Sleep(3 * time.Second)
		next, err := w.s.Output(w.Context(), "ada", "t", inspect.OutputFrom{Run: out.Run, After: out.End})
		require.NoError(w, err)
		assert.Contains(w, next.Text, `level=DEBUG msg="half way" page=7`)
		assert.NotContains(w, next.Text, "begun")
		<-ended
		out = w.output()
		assert.True(w, out.Ended)
		assert.True(w, strings.HasPrefix(out.Text, "begun\n") && strings.HasSuffix(out.Text, "\ndone\n"), out.Text)
		assert.Equal(w, core.StatusCompleted, out.Status)
		assert.Equal(w, int64(3), w.p.calls.Load())
		_, err = w.s.Output(w.Context(), "ada", "t", inspect.OutputFrom{After: -1})
		require.ErrorContains(w, err, "after")
		err = w.s.Delete(w.Context(), "ada", "t")
		require.NoError(w, err)
		_, err = w.s.Output(w.Context(), "ada", "t", inspect.OutputFrom{})
		require.ErrorIs(w, err, core.ErrNotFound)
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k", Delay: time.Hour})
		require.NoError(w, err)
		assert.Empty(w, w.output().Text, "a task of the same id has none of it")
	})
}

// A run that prints nothing makes no call, also while others print.
func TestARunThatPrintsNothing(t *testing.T) {
	printing(t, func(w *shop) {
		core.Handle(w.s, "silent", func(context.Context, *core.Task[any]) error { return nil })
		core.Handle(w.s, "opens", func(_ context.Context, task *core.Task[any]) error { _ = task.Output(); return nil })
		core.Handle(w.s, "prints", func(_ context.Context, task *core.Task[any]) error { fmt.Fprint(task.Output(), "x"); return nil })
		for range 100 {
			_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "ada", Kind: "silent"}, core.NewTask{Agent: "ada", Kind: "opens"})
			require.NoError(w, err)
		}
		_, err := w.s.RunDue(w.Context(), core.Scope{})
		require.NoError(w, err)
		assert.Zero(w, w.p.calls.Load())
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "prints"})
		require.NoError(w, err)
		_, err = w.s.RunDue(w.Context(), core.Scope{})
		require.NoError(w, err)
		assert.Equal(w, int64(1), w.p.calls.Load())
		assert.Equal(w, "x", w.output().Text)
	})
}

// The second attempt begins another text, and the first one's is kept; so is that of a run which has only put itself off.
func TestEachAttemptHasItsOutput(t *testing.T) {
	printing(t, func(w *shop) {
		ends := []error{errors.New("no"), core.Snooze(time.Second), nil}
		calls := 0
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[any]) error {
			calls++
			fmt.Fprintf(task.Output(), "call %d", calls)
			return ends[calls-1]
		})
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k"})
		require.NoError(w, err)
		for range ends {
			report, _ := w.s.RunDue(w.Context(), core.Scope{})
			time.Sleep(w.s.Until(report.NextDueAt))
		}
		out := w.output()
		require.NotNil(w, out.Before)
		assert.Equal(w, [2]string{"call 3", "call 2"}, [2]string{out.Text, out.Before.Text})
		assert.Equal(w, [2]int{2, 2}, [2]int{out.Attempt, out.Before.Attempt})
		assert.True(w, out.Started.After(out.Before.Started))
	})
}

// A store that does not answer while a run prints costs the run nothing, and its pull nothing once it is known to be away.
func TestAStoreThatTakesNoOutput(t *testing.T) {
	printing(t, func(w *shop) {
		w.p.fails.Store(true)
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[any]) error {
			for range 10 {
				fmt.Fprintln(task.Output(), "line")
				time.Sleep(time.Second)
			}
			return nil
		})
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k"})
		require.NoError(w, err)
		report, err := w.s.RunDue(w.Context(), core.Scope{})
		require.NoError(w, err)
		assert.Equal(w, 1, report.Completed)
		assert.Equal(w, 10*time.Second, report.Duration.Truncate(time.Second))
		w.p.fails.Store(false)
		time.Sleep(time.Minute)
		assert.Equal(w, strings.Repeat("line\n", 10), w.output().Text, "it is sent when the store is back")
	})
}

// A task that no scheduler made prints nowhere, and can be called.
func TestOutputOfATaskMadeByHand(t *testing.T) {
	t.Parallel()
	for _, info := range []*core.RunInfo{nil, {}, core.NewTestRun(nil)} {
		n, err := fmt.Fprint(info.Output(), "x")
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		info.Logger().Info("x")
	}
	var b strings.Builder
	outside := core.Outside{Output: &b}
	fmt.Fprint(outside.Run().Output(), "x")
	assert.Equal(t, "x", b.String())
}

// What a worker says that a run has printed is kept with it, while the run has its task, and comes to an end with it; a piece that comes twice is shown once.
func TestALentRunPrints(t *testing.T) {
	printing(t, func(w *shop) {
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k"})
		require.NoError(w, err)
		l := core.NewLender(w.s)
		lends := func() core.LentRun {
			lent, err := l.Lend(w.Context(), core.Loan{Kinds: []string{"k"}, Lease: 10 * time.Second})
			require.NoError(w, err)
			require.Len(w, lent.Runs, 1)
			return lent.Runs[0]
		}
		keeps := func(t core.Ticket, sent *output.Sent) core.Kept {
			kept, err := l.Keep(w.Context(), core.Keep{Ticket: t, Output: sent})
			require.NoError(w, err)
			return kept[0]
		}
		fails := func(t core.Ticket, sent output.Sent) core.ReturnedAs {
			as, err := l.Return(w.Context(), core.Returned{Ticket: t, Output: &sent, End: func(*core.Task[json.RawMessage]) error { return core.SkipRetry(errors.New("no")) }})
			require.NoError(w, err)
			return as[0]
		}
		run := lends()
		require.True(w, run.Prints)
		assert.Zero(w, keeps(run.Ticket, nil).Printed)
		assert.Zero(w, w.p.calls.Load())
		for range 2 {
			assert.EqualValues(w, 6, keeps(run.Ticket, &output.Sent{Text: "begun\n"}).Printed)
		}
		assert.EqualValues(w, 11, keeps(run.Ticket, &output.Sent{At: 6, Text: "half\n"}).Printed)
		assert.Equal(w, "begun\nhalf\n", w.output().Text)
		assert.False(w, w.output().Ended)
		for _, wrong := range []output.Sent{{At: -1}, {Text: strings.Repeat("x", output.Most+1)}, {Text: "\xff"}} {
			_, err := l.Keep(w.Context(), core.Keep{Ticket: run.Ticket, Output: &wrong})
			require.ErrorContains(w, err, "output")
			_, err = l.Return(w.Context(), core.Returned{Ticket: run.Ticket, Output: &wrong})
			require.ErrorContains(w, err, "output")
		}
		time.Sleep(time.Minute) // its lease is over, and another worker gets the task
		again := lends()
		assert.False(w, keeps(run.Ticket, &output.Sent{At: 11, Text: "too late"}).Held)
		for range 2 { // as its answer is lost
			assert.Equal(w, core.StatusFailed, fails(again.Ticket, output.Sent{Text: "another\n"}).Status)
		}
		assert.True(w, fails(run.Ticket, output.Sent{At: 11, Text: "too late"}).Lost)
		out := w.output()
		assert.Equal(w, "another\n", out.Text)
		assert.True(w, out.Ended)
		assert.Equal(w, "begun\nhalf\n", out.Before.Text)
	})
}
