package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// lossy loses answers of tallies.
type lossy struct {
	window.Recent

	calls int
	fails bool
}

func (l *lossy) Tally(ctx context.Context, t window.Tally) error {
	l.calls++
	err := l.Recent.Tally(ctx, t)
	if l.fails {
		return &store.Error{Verb: "stats", Err: errors.New("lost")}
	}
	return err
}

// What two processes run within a time is counted by kind, each run once: also if an answer is lost. A pull adds what it has counted, but not more
// often than every five seconds.
func TestWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{})
		recent := &lossy{Recent: st}
		process := func() *core.Scheduler {
			s, err := core.New(st, core.Config{Recent: recent})
			require.NoError(t, err)
			core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
			core.Handle(s, "bad", func(context.Context, *core.Task[any]) error { return core.SkipRetry(errors.New("no")) })
			return s
		}
		one, two := process(), process()
		run := func(s *core.Scheduler, late time.Duration, kinds ...string) {
			for _, kind := range kinds {
				_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: kind})
				require.NoError(t, err)
			}
			time.Sleep(late)
			_, _ = s.RunDue(t.Context(), core.Scope{}) // it names the runs that failed
		}
		within := func(d time.Duration) inspect.Window {
			w, err := one.Window(t.Context(), d)
			require.NoError(t, err)
			return w
		}
		recent.fails = true
		run(one, 0, "ok", "ok", "bad")
		require.Equal(t, 1, recent.calls)
		recent.fails = false
		run(two, 10*time.Second, "ok")
		run(one, 0, "ok")
		require.Equal(t, 3, recent.calls, "what was not acknowledged was sent again")
		run(one, 0, "ok")
		assert.Equal(t, 3, recent.calls, "a moment ago")
		one.Announce(t.Context())
		assert.Equal(t, 4, recent.calls, "with what it has measured")
		run(one, 0, "ok")
		one.Announce(t.Context())
		assert.Equal(t, 4, recent.calls, "a moment ago")
		one.Retire(t.Context())
		assert.Equal(t, 5, recent.calls)
		w := within(time.Hour)
		require.Len(t, w.Kinds, 2)
		assert.Equal(t, inspect.KindWindow{Kind: "bad", Runs: 1, Failures: 1, LagP50: time.Millisecond, LagP95: time.Millisecond}, w.Kinds[0])
		assert.Equal(t, int64(6), w.Kinds[1].Runs)
		assert.InDelta(t, 1, w.Kinds[0].FailureRate(), 0)
		assert.Greater(t, w.Kinds[1].LagP95, 10*time.Second-time.Millisecond)
		text, err := json.Marshal(w)
		require.NoError(t, err)
		assert.Contains(t, string(text), `{"kind":"bad","runs":1,"failures":1,"failure_rate":1,"lag_p50_ms":1,"lag_p95_ms":1}`)
		assert.Contains(t, string(text), `{"window":"1h","now":`)

		time.Sleep(2 * time.Hour)
		run(two, 0, "bad")
		assert.Len(t, within(61*time.Minute).Kinds, 1, "an hour and five minutes, and the slot of now")
		assert.Len(t, within(24*time.Hour).Kinds, 2)
		for _, bad := range []time.Duration{0, -time.Hour, time.Minute, 25 * time.Hour} {
			_, err := one.Window(t.Context(), bad)
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err), bad)
		}
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		_, err = s.Window(t.Context(), time.Hour)
		assert.ErrorContains(t, err, "Recent is not set")
	})
}
