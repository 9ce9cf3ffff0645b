package metrics_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// Whoever may submit can invent kinds without end. They stay out of the metrics, however they get into a run.
func TestInventedKindsAreOneSeries(t *testing.T) {
	t.Parallel()
	raw := memstore.New(memstore.Config{Partitions: 8})
	w := newWorld(t, raw, metrics.Config{}, core.Config{}, func(w *world) {
		core.Handle(w.s, "good", func(context.Context, *core.Task[any]) error { return nil })
	})
	before := len(w.scrape().series("duly_runs_total"))
	const invented = 40
	var tasks []core.NewTask
	var kinds []string
	for i := range invented {
		kinds = append(kinds, fmt.Sprintf("invented-%d", i))
		tasks = append(tasks, core.NewTask{Agent: agent, Kind: kinds[i]})
	}
	w.submit(tasks...)
	_, err := w.s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	claims, err := raw.Claim(t.Context(), []store.ClaimRequest{{
		Partition: store.PartitionOf(agent, raw.Partitions()), Nonce: rand.Text()[:store.NonceLen], Kinds: kinds, Limit: store.MaxClaim, Lease: time.Minute,
	}})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, invented)
	for i := range claims[0].Tasks { // half of them cannot even be read
		if i%2 == 0 {
			claims[0].Tasks[i].Body = []byte("?")
		}
	}
	_, err = w.s.RunTick(t.Context(), agent, claims[0].Tasks)
	require.Error(t, err)

	p := w.scrape()
	assert.NotContains(t, p.text, "invented")
	assert.Equal(t, map[string]float64{"failed": invented / 2, "released": invented / 2}, p.runs("other"))
	assert.Len(t, p.series("duly_runs_total"), before+2)

	// A handler that comes later is a kind of its own from then on.
	core.Handle(w.s, "late", func(context.Context, *core.Task[any]) error { return nil })
	w.submit(core.NewTask{Agent: agent, Kind: "late"})
	_, err = w.s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"success": 1}, w.scrape().runs("late"))
}

// However many scrape at once, the store is asked once while its answer is fresh.
func TestManyScrapesAskTheStoreOnce(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	w := newWorld(t, memstore.New(memstore.Config{Partitions: 8}), metrics.Config{Clock: clock}, core.Config{}, nil)
	const many = 20
	all := func() {
		var scrapes sync.WaitGroup
		for range many {
			scrapes.Go(func() { assert.Equal(t, 1.0, w.scrape().value("duly_store_up")) })
		}
		scrapes.Wait()
	}
	w.store.stats = func(ctx context.Context) (count.Stats, error) { // it answers when all are there
		assert.Eventually(t, func() bool { return w.requests.Load() == many }, 10*time.Second, time.Millisecond)
		return w.store.Store.Stats(ctx)
	}
	all()
	assert.EqualValues(t, 1, w.store.calls.Load())
	w.store.stats = nil
	clock.Advance(metrics.DefaultFresh - time.Millisecond)
	all()
	assert.EqualValues(t, 1, w.store.calls.Load())
	clock.Advance(time.Millisecond)
	all()
	assert.EqualValues(t, 2, w.store.calls.Load())
}

// A store that is away takes nothing from a scrape but its own figures, whether it fails or does not answer; that it is away
// is asked once, too.
func TestAScrapeWithoutTheStore(t *testing.T) {
	t.Parallel()
	for name, stats := range map[string]func(context.Context) (count.Stats, error){
		"fails": func(context.Context) (count.Stats, error) { return count.Stats{}, errors.New("away") },
		"hangs": func(ctx context.Context) (count.Stats, error) { <-ctx.Done(); return count.Stats{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock()
			c := metrics.Config{Timeout: time.Second, Clock: clock} // longer than any machine needs for an answer from memory
			w := newWorld(t, memstore.New(memstore.Config{Partitions: 8}), c, core.Config{}, func(w *world) {
				core.Handle(w.s, "good", func(context.Context, *core.Task[any]) error { return nil })
			})
			w.submit(core.NewTask{Agent: agent, Kind: "good"})
			_, err := w.s.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
			w.store.stats = stats
			for range 3 {
				p := w.scrape()
				assert.Zero(t, p.value("duly_store_up"))
				assert.Empty(t, p.series("duly_tasks"), "old figures are not told as new")
				assert.Empty(t, p.series("duly_overdue_seconds"))
				assert.Equal(t, map[string]float64{"success": 1}, p.runs("good"))
				assert.Equal(t, 1.0, p.value("duly_ticks_total"))
				assert.Positive(t, p.value("go_goroutines"))
			}
			assert.EqualValues(t, 1, w.store.calls.Load())
			assert.Contains(t, w.logs.String(), "the store's figures are missing from a scrape")
			w.store.stats = nil
			clock.Advance(metrics.DefaultFresh)
			assert.Equal(t, 1.0, w.scrape().value("duly_tasks", "status", "completed"))
		})
	}
}

// So does a Redis that has died.
func TestAScrapeWithoutRedis(t *testing.T) {
	t.Parallel()
	raw, server := redis(t)
	w := newWorld(t, raw, metrics.Config{Fresh: time.Nanosecond, Timeout: 200 * time.Millisecond}, core.Config{}, nil)
	assert.Equal(t, 1.0, w.scrape().value("duly_store_up"))
	server.Kill()
	assert.Zero(t, w.scrape().value("duly_store_up"))
	server.Restart(t)
	assert.Eventually(t, func() bool { return w.scrape().value("duly_store_up") == 1 }, 10*time.Second, 10*time.Millisecond)
}

// A scraper that goes away ends its question to the store, and says nothing of it to those who come after.
func TestAScraperThatGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New(memstore.Config{Partitions: 8}), metrics.Config{Timeout: time.Minute}, core.Config{}, nil)
	asked, ended := make(chan struct{}), make(chan struct{})
	w.store.stats = func(ctx context.Context) (count.Stats, error) {
		close(asked)
		<-ctx.Done()
		defer close(ended)
		return count.Stats{}, ctx.Err()
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-asked; leave() }()
	res, err := w.get(ctx)
	if err == nil {
		res.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
	<-ended
	w.store.stats = nil
	assert.Equal(t, 1.0, w.scrape().value("duly_store_up"))
}

// Who has no token costs nothing.
func TestAScrapeWithoutATokenAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, memstore.New(memstore.Config{Partitions: 8}), metrics.Config{}, core.Config{}, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	require.NoError(t, err)
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, res.StatusCode)
	assert.NotContains(t, string(data), "duly_")
	assert.Zero(t, w.store.calls.Load())
	assert.Zero(t, w.scrape().value("duly_store_calls_total", "verb", "claim"))
}

// What a program gathers to send it by itself is what a scrape has, and it asks the store each time.
func TestWhatIsGatheredIsWhatAScrapeHas(t *testing.T) {
	t.Parallel()
	st := &faulty{Store: memstore.New(memstore.Config{Partitions: 8})}
	m := metrics.New(metrics.Config{Version: "v1", Fresh: time.Nanosecond})
	s, err := core.New(m.Store(st), core.Config{OnEvent: m.Event, OnTick: m.Tick})
	require.NoError(t, err)
	core.Handle(s, "good", func(context.Context, *core.Task[any]) error { return nil })
	w := &world{T: t, s: s}
	w.serve(m)
	all := m.Gatherer(t.Context(), s)
	gathered := func() (names []string, up float64) {
		families, err := all.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if strings.HasPrefix(family.GetName(), "duly_") {
				names = append(names, family.GetName())
			}
			if family.GetName() == "duly_store_up" {
				up = family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return names, up
	}
	names, up := gathered()
	assert.ElementsMatch(t, w.scrape().ours(), names)
	assert.Contains(t, names, "duly_tasks")
	assert.EqualValues(t, 1, up)
	st.stats = func(context.Context) (count.Stats, error) { return count.Stats{}, errors.New("away") }
	names, up = gathered()
	assert.NotContains(t, names, "duly_tasks")
	assert.Contains(t, names, "duly_runs_total")
	assert.Zero(t, up)
}
