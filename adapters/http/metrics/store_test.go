package metrics_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// A store that is measured does all that a store has to do.
func TestAMeasuredStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(_ *testing.T, clock *storetest.Clock, o storetest.Options) core.Store {
		return metrics.New(metrics.Config{}).Store(memstore.New(memstore.Config{
			Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes, Clock: clock,
		}))
	})
}

// What a store can do besides, its measured form can do too; what it cannot is not made up.
func TestAMeasuredStoreWakesIfItsStoreDoes(t *testing.T) {
	t.Parallel()
	m, raw := metrics.New(metrics.Config{}), memstore.New(memstore.Config{})
	waker, ok := m.Store(raw).(store.Waker)
	require.True(t, ok)
	ctx, cancel := context.WithCancel(t.Context())
	wakeups, err := waker.Wakeups(ctx)
	require.NoError(t, err)
	s, err := core.New(raw, core.Config{})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "k"})
	require.NoError(t, err)
	assert.NotZero(t, (<-wakeups).Due)
	cancel()
	for range wakeups { // until it is closed
	}
	_, ok = m.Store(struct{ core.Store }{raw}).(store.Waker)
	assert.False(t, ok)
}

// Each call is counted where it belongs, once it has ended, with its time.
func TestEachVerbIsCounted(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	slow := &slowStore{Store: memstore.New(memstore.Config{}), clock: clock}
	m := metrics.New(metrics.Config{Clock: clock})
	measured := m.Store(slow)
	w := newWorldOf(t, m, measured)
	for i, call := range []struct {
		verb string
		do   func(ctx context.Context) error
	}{
		{"submit", func(ctx context.Context) error { _, err := measured.Submit(ctx, nil); return err }},
		{"claim", func(ctx context.Context) error { _, err := measured.Claim(ctx, nil); return err }},
		{"settle", func(ctx context.Context) error { _, err := measured.Settle(ctx, nil); return err }},
		{"extend", func(ctx context.Context) error { _, err := measured.Extend(ctx, nil); return err }},
		{"control", func(ctx context.Context) error { _, err := measured.Control(ctx, nil); return err }},
		{"read", func(ctx context.Context) error { _, err := measured.Read(ctx, store.Query{}); return err }},
		{"stats", func(ctx context.Context) error { _, err := measured.Stats(ctx); return err }},
	} {
		slow.takes = time.Duration(i+1) * time.Second
		for range i + 1 {
			require.NoError(t, call.do(t.Context()), call.verb)
		}
	}
	slow.takes = 0
	p := w.scrape()
	for i, verb := range []string{"submit", "claim", "settle", "extend", "control", "read"} {
		assert.EqualValues(t, i+1, p.value("duly_store_calls_total", "verb", verb), verb)
		h := p.series("duly_store_seconds", "verb", verb)[0].GetHistogram()
		assert.EqualValues(t, (i+1)*(i+1), h.GetSampleSum(), verb)
	}
	assert.Equal(t, 8.0, p.value("duly_store_calls_total", "verb", "stats"), "the scrape is one of them")
	assert.Equal(t, 49.0, p.series("duly_store_seconds", "verb", "stats")[0].GetHistogram().GetSampleSum())
}

// slowStore takes its time, by a clock of the test.
type slowStore struct {
	core.Store

	clock *storetest.Clock
	takes time.Duration
}

func (s *slowStore) wait() { s.clock.Advance(s.takes) }

func (s *slowStore) Submit(ctx context.Context, tasks []store.Submission) ([]store.Placed, error) {
	s.wait()
	return s.Store.Submit(ctx, tasks)
}

func (s *slowStore) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	s.wait()
	return s.Store.Claim(ctx, requests)
}

func (s *slowStore) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	s.wait()
	return s.Store.Settle(ctx, runs)
}

func (s *slowStore) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	s.wait()
	return s.Store.Extend(ctx, leases)
}

func (s *slowStore) Control(ctx context.Context, commands []store.Command) ([]store.Effect, error) {
	s.wait()
	return s.Store.Control(ctx, commands)
}

func (s *slowStore) Read(ctx context.Context, query store.Query) (store.Page, error) {
	s.wait()
	return s.Store.Read(ctx, query)
}

func (s *slowStore) Stats(ctx context.Context) (store.Stats, error) {
	s.wait()
	return s.Store.Stats(ctx)
}
