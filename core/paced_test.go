package core_test

// Callers whose share of the store's time is used up: what of theirs waits or is refused, and what never does.

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// empty is the pace of a caller that has nothing left.
type empty struct{ asked atomic.Int64 }

var errEmpty = errors.New("the share is used up")

func (e *empty) Take(context.Context) (func(), error) {
	e.asked.Add(1)
	return nil, errEmpty
}

// A profile is not half changed: whoever is refused is before anything is written.
func TestAProfileIsNotHalfChanged(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 9 * * *", Zone: core.ZoneOfAgent})
		before := w.task("a", "1").NextRun
		ctx := core.WithPrincipal(w.Context(), core.Principal{Pace: &empty{}})
		_, err := w.s.SetProfile(ctx, core.Profile{Agent: "a", Zone: "Asia/Tokyo"})
		require.ErrorIs(t, err, errEmpty)
		_, err = w.s.Profile(w.Context(), "a")
		require.ErrorIs(t, err, core.ErrNotFound, "nothing is stored")
		_, err = w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Zone: "Asia/Tokyo"})
		require.NoError(t, err)
		assert.NotEqual(t, before, w.task("a", "1").NextRun)
		ctx = core.WithPrincipal(w.Context(), core.Principal{Pace: &empty{}})
		require.ErrorIs(t, w.s.DeleteProfile(ctx, "a"), errEmpty)
		_, err = w.s.Profile(w.Context(), "a")
		require.NoError(t, err)
	})
}

// A pull that such a caller has asked for runs, settles and tells all that it claims, and what is about single tasks goes on.
func TestAUsedUpShareHoldsUpNoRun(t *testing.T) {
	told := &receiver{}
	virtual(t, core.Config{Callbacks: told, Concurrency: 50}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		for i := range 40 {
			w.submit(core.NewTask{Agent: "a", ID: strconv.Itoa(i), Kind: "k", Callback: hook})
		}
		pace := &empty{}
		ctx := core.WithPrincipal(w.Context(), core.Principal{Pace: pace})
		report, err := w.s.RunDueTasks(ctx, []string{"a"})
		require.NoError(t, err)
		assert.Equal(t, 80, report.Completed, "40 runs, and what tells of them")
		assert.Zero(t, pace.asked.Load())
		_, err = w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "new", Kind: "k", Delay: time.Hour})
		require.NoError(t, err)
		_, err = w.s.Cancel(ctx, "a", "new", core.Order{})
		require.NoError(t, err)
		_, err = w.s.Task(ctx, "a", "new")
		require.NoError(t, err)
		assert.Zero(t, pace.asked.Load())
		_, _, err = w.s.Tasks(ctx, core.List{Agent: "a"})
		require.ErrorIs(t, err, errEmpty)
	})
}
