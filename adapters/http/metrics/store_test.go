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
	"github.com/seed-6f6f2c11/duly/core/store/audit"
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
	m, raw := metrics.New(metrics.Config{}), memstore.New(memstore.Config{Partitions: 8})
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
	takes := time.Duration(0)
	slow := &storetest.Spy{
		Store: memstore.New(memstore.Config{Partitions: 8}), Before: func(context.Context, string) error { clock.Advance(takes); return nil },
	}
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
		{"control", func(ctx context.Context) error { _, err := measured.Hold(ctx, nil); return err }},
		{"read", func(ctx context.Context) error { _, err := measured.Agents(ctx, store.PageOf{}); return err }},
		{"stats", func(ctx context.Context) error { _, err := measured.Stats(ctx); return err }},
	} {
		takes = time.Duration(i+1) * time.Second
		for range i + 1 {
			require.NoError(t, call.do(t.Context()), call.verb)
		}
	}
	takes = 0
	p := w.scrape()
	const late = 2 // reads of a scrape: how many tasks are late, and whether that is known
	for i, verb := range []string{"submit", "claim", "settle", "extend", "control", "read"} {
		calls := i + 1
		if verb == "read" {
			calls += late
		}
		assert.EqualValues(t, calls, p.value("duly_store_calls_total", "verb", verb), verb)
		h := p.series("duly_store_seconds", "verb", verb)[0].GetHistogram()
		assert.EqualValues(t, (i+1)*(i+1), h.GetSampleSum(), verb)
	}
	assert.Equal(t, 10.0, p.value("duly_store_calls_total", "verb", "stats"), "the scrape is three of them: counters, limits and budgets")
	assert.Equal(t, 49.0, p.series("duly_store_seconds", "verb", "stats")[0].GetHistogram().GetSampleSum())
}

// Verbs that are much alike count as one.
func TestVerbsThatAreAlikeCountAsOne(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	measured := m.Store(memstore.New(memstore.Config{Partitions: 8}))
	w := newWorldOf(t, m, measured)
	ctx := t.Context()
	calls := map[string][]func() error{
		"submit": {func() error { _, err := measured.Touch(ctx, nil); return err }},
		"claim":  {func() error { _, err := measured.Look(ctx, nil); return err }},
		"control": {
			func() error { _, err := measured.Replay(ctx, nil); return err },
			func() error { _, err := measured.RunNow(ctx, nil); return err },
			func() error { _, err := measured.Cancel(ctx, nil); return err },
			func() error { _, err := measured.Delete(ctx, nil); return err },
			func() error { _, err := measured.Unhold(ctx, nil); return err },
			func() error {
				_, err := measured.Audit(ctx, []audit.Page{{Partition: 0}, {Partition: 1}})
				return err
			},
		},
		"read": {
			func() error { _, err := measured.Get(ctx, store.Get{Agent: "a"}); return err },
			func() error { _, err := measured.List(ctx, store.List{Agent: "a"}); return err },
			func() error { _, err := measured.Group(ctx, "a", "g"); return err },
			func() error { _, err := measured.Holds(ctx, store.PageOf{}); return err },
		},
	}
	for verb, all := range calls {
		for _, call := range all {
			require.NoError(t, call(), verb)
		}
	}
	p := w.scrape()
	assert.EqualValues(t, 2, p.value("duly_audit_pages_total"))
	calls["read"] = append(calls["read"], nil, nil) // of the scrape, whether tasks are late
	for verb, all := range calls {
		assert.EqualValues(t, len(all), p.value("duly_store_calls_total", "verb", verb), verb)
	}
}
