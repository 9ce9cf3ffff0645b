package pictures_test

// The stories that are drawn: short ones, in virtual time, of real schedulers over the store in memory.

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/dulytest"
	"github.com/seed-6f6f2c11/duly/internal/proof/pictures"
)

// changes are those of the status of tasks that meet everything: each outcome, the operator's commands, a stop and a crash.
func changes(t *testing.T) (seen []pictures.Change) {
	t.Helper()
	var mu sync.Mutex
	s := dulytest.New(t, core.Config{Kinds: map[string]core.KindConfig{"k": {MaxAttempts: 2, Backoff: time.Second}}, OnEvent: func(e core.Event) {
		mu.Lock()
		defer mu.Unlock()
		if by := cause(e); by != "" {
			seen = append(seen, pictures.Change{From: string(e.From), To: string(e.Status), By: by})
		}
	}})
	outcomes := map[string]error{
		"fails": errors.New("no"), "snoozes": core.Snooze(time.Hour), "yields": core.Yield(nil, time.Hour), "awaits": core.Await(core.Signal{Key: "k"}, nil),
		"cancels": core.Cancel(nil), "skips": core.SkipRetry(nil),
	}
	core.Handle(s.Scheduler, "k", func(_ context.Context, task *core.Task[any]) error { return outcomes[task.ID] })
	for _, id := range []string{"succeeds", "recurs", "fails", "snoozes", "yields", "awaits", "cancels", "skips"} {
		task := core.NewTask{Agent: "ada", ID: id, Kind: "k"}
		if id == "recurs" {
			task.Every = time.Hour
		}
		submit(t, s, task)
	}
	for range 2 { // those that fail have two attempts
		_, err := s.Scheduler.RunDue(t.Context(), core.Scope{})
		require.Error(t, err)
		s.Clock.Advance(time.Minute)
	}
	_, err := s.Replay(t.Context(), "ada", "fails")
	require.NoError(t, err)
	for _, id := range []string{"fails", "recurs"} {
		_, err = s.Cancel(t.Context(), "ada", id, core.Order{})
		require.NoError(t, err)
	}
	for _, id := range []string{"awaits", "succeeds", "skips", "cancels"} {
		require.NoError(t, s.Delete(t.Context(), "ada", id))
	}
	return append(seen, stopped(t), crashed(t), deletedWhileItRan(t))
}

// cause is what a change was made by, in the words of the reference of events and outcomes.
func cause(e core.Event) string {
	switch {
	case e.Type == model.EventFinish && e.Retried:
		return "finish: failed, will retry"
	case e.Type == model.EventFinish && e.Status == core.StatusWaiting && e.Outcome == model.OutcomeSuccess:
		return "finish: success, recurs"
	case e.Type == model.EventFinish:
		return "finish: " + string(e.Outcome)
	case e.ID == "" || e.From == e.Status:
		return ""
	}
	return string(e.Type)
}

func submit(t *testing.T, s *dulytest.Scheduler, task core.NewTask) {
	t.Helper()
	_, err := s.Submit(t.Context(), task)
	require.NoError(t, err)
}

// stopped is what becomes of a run whose process stops.
func stopped(t *testing.T) (seen pictures.Change) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := dulytest.New(t, core.Config{OnEvent: func(e core.Event) {
		if e.Type == model.EventRelease {
			seen = pictures.Change{From: string(core.StatusInProgress), By: string(e.Type)}
		}
	}})
	core.Handle(s.Scheduler, "k", func(ctx context.Context, _ *core.Task[any]) error {
		stop()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	submit(t, s, core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
	_, _ = s.Scheduler.RunDue(ctx, core.Scope{})
	require.NotEmpty(t, seen.By, "it was released")
	seen.To = status(t, s)
	return seen
}

// crashed is what becomes of a run whose process dies: nothing ends it but its lease.
func crashed(t *testing.T) (seen pictures.Change) {
	t.Helper()
	s := dulytest.New(t, core.Config{})
	core.Handle(s.Scheduler, "k", func(context.Context, *core.Task[any]) error { return nil })
	submit(t, s, core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
	claims, err := s.Store.Claim(t.Context(), []store.ClaimRequest{claim})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, 1)
	seen.From = status(t, s)
	s.Clock.Advance(time.Hour)
	_, err = s.Store.Claim(t.Context(), []store.ClaimRequest{recovery})
	require.NoError(t, err)
	seen.To, seen.By = status(t, s), string(model.EventRecover)
	return seen
}

func status(t *testing.T, s *dulytest.Scheduler) string {
	t.Helper()
	info, err := s.Task(t.Context(), "ada", "1")
	require.NoError(t, err)
	return string(info.Status)
}

// deletedWhileItRan is what an operator may do to a run.
func deletedWhileItRan(t *testing.T) (seen pictures.Change) {
	t.Helper()
	s := dulytest.New(t, core.Config{OnEvent: func(e core.Event) {
		if e.Type == model.EventDelete {
			seen = pictures.Change{From: string(e.From), By: string(e.Type)}
		}
	}})
	core.Handle(s.Scheduler, "k", func(ctx context.Context, task *core.Task[any]) error { return s.Delete(ctx, task.Agent, task.ID) })
	submit(t, s, core.NewTask{Agent: "ada", ID: "1", Kind: "k"})
	_, _ = s.Scheduler.RunDue(t.Context(), core.Scope{})
	require.NotEmpty(t, seen.By)
	return seen
}
