package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// Tests of pulls that several callers share.

// gatedStore answers the first claim or look, which finds what it found when it came, once the gate is opened.
type gatedStore struct {
	storetest.Spy

	claims atomic.Int64
	gate   chan struct{}
}

func gated(t *testing.T) (*core.Scheduler, *gatedStore) {
	t.Helper()
	st := &gatedStore{Spy: storetest.Spy{Store: memstore.New(memstore.Config{Partitions: 8})}, gate: make(chan struct{})}
	st.After = func(ctx context.Context, verb string, _ any) error {
		if verb != "Claim" && verb != "Look" || st.claims.Add(1) > 1 {
			return nil
		}
		select {
		case <-st.gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	core.Handle(s, "slow", func(ctx context.Context, _ *core.Task[any]) error { <-ctx.Done(); return ctx.Err() })
	return s, st
}

// Callers who ask for the same while one claims share the next pull, whatever order they name the agents in.
func TestCallersShareAPull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := gated(t)
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "ok"})
		require.NoError(t, err)
		ran := make(chan int, 9)
		ask := func(agents ...string) {
			report, err := s.RunShared(t.Context(), core.Scope{Agents: agents})
			assert.NoError(t, err)
			ran <- report.Ran
		}
		go ask("a", "b")
		synctest.Wait()
		for range 8 {
			go ask("b", "a")
		}
		synctest.Wait()
		require.EqualValues(t, 1, st.claims.Load(), "they wait")
		other, err := s.RunShared(t.Context(), core.Scope{Agents: []string{"a b"}})
		require.NoError(t, err, "whoever asks for something else waits for nobody")
		assert.Zero(t, other.Ran)
		claims := st.claims.Load()
		close(st.gate)
		sum := 0
		for range 9 {
			sum += <-ran
		}
		assert.Equal(t, 1, sum, "by the first")
		assert.Equal(t, claims+1, st.claims.Load(), "the eight were answered by one claim")
	})
}

// What a caller has waited for others is taken from the time of its pull, but for a second.
func TestWaitingForASharedPullIsPartOfItsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ most, gateAt, took time.Duration }{
		{10 * time.Second, 4 * time.Second, 10 * time.Second},
		{2 * time.Second, 1800 * time.Millisecond, 2800 * time.Millisecond},      // so little was left that it gets a second
		{500 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond}, // nobody gets more than was asked for
	} {
		synctest.Test(t, func(t *testing.T) {
			s, st := gated(t)
			_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "0", Kind: "ok"}) // all that the first takes
			require.NoError(t, err)
			scope := core.Scope{Agents: []string{"a"}, MaxTasks: 1, MaxDuration: c.most}
			first := make(chan struct{})
			go func() { _, _ = s.RunShared(t.Context(), scope); close(first) }()
			synctest.Wait()
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "slow"})
			require.NoError(t, err)
			open := time.AfterFunc(c.gateAt, func() { close(st.gate) })
			defer open.Stop()
			begun := time.Now()
			report, err := s.RunShared(t.Context(), scope)
			require.NoError(t, err)
			assert.Equal(t, 1, report.Released, "it ran until its time was over")
			assert.Equal(t, c.took, time.Since(begun))
			<-first
		})
	}
}

// A caller whose context ends while it waits is told that it knows nothing; one that leads takes nobody along.
func TestACallerOfASharedPullMayGoAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, st := gated(t)
		leads, goAway := context.WithCancel(t.Context())
		go func() { _, _ = s.RunShared(leads, core.Scope{}) }()
		synctest.Wait()
		waits, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		report, err := s.RunShared(waits, core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, core.Report{More: true}, report)

		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "ok"})
		require.NoError(t, err)
		completed := make(chan int)
		go func() {
			report, _ := s.RunShared(t.Context(), core.Scope{})
			completed <- report.Completed
		}()
		synctest.Wait()
		goAway()
		assert.Equal(t, 1, <-completed)
		assert.Greater(t, st.claims.Load(), int64(1))
	})
}

// Hooks would be told of what others asked for, and what is invalid waits for nobody and asks no st.
func TestASharedPullRefusesHooksAndNonsense(t *testing.T) {
	t.Parallel()
	s, st := gated(t)
	for _, scope := range []core.Scope{
		{Idle: func(time.Time) bool { return false }},
		{Join: func() (in, out []string) { return nil, nil }},
		{OnDue: func(string, time.Time) {}},
		{OnTick: func(core.Tick) {}},
		{MaxTasks: -1},
		{Agents: []string{""}},
	} {
		_, err := s.RunShared(t.Context(), scope)
		var invalid *core.InvalidError
		assert.True(t, errors.As(err, &invalid), "%v", err)
	}
	report, err := s.RunShared(t.Context(), core.Scope{Agents: []string{}})
	require.NoError(t, err)
	assert.Equal(t, core.Report{}, report)
	assert.Zero(t, st.claims.Load())
}
