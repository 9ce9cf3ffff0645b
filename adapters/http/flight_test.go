package http_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// gatedStore lets the first claim or look wait until the gate is opened.
type gatedStore struct {
	storetest.Spy

	claims atomic.Int64
	gate   chan struct{}
}

func gated(st core.Store) *gatedStore {
	s := &gatedStore{Spy: storetest.Spy{Store: st}, gate: make(chan struct{})}
	s.Before = func(ctx context.Context, verb string) error {
		if verb != "Claim" && verb != "Look" || s.claims.Add(1) > 1 {
			return nil
		}
		select {
		case <-s.gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s
}

// Requests for the same pull wait while one claims, and share the next.
func TestRunDueIsSharedByThoseWhoAskForTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := gated(memstore.New(memstore.Config{Partitions: 8}))
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
		f := &fixture{handler: httpadapter.New(s, httpadapter.Config{})}
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"1","kind":"ok"}`)
		reports := make(chan map[string]any, 9)
		ask := func() {
			_, body := f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
			reports <- get[map[string]any](t, body)
		}
		go ask()
		synctest.Wait()
		for range 8 {
			go ask()
		}
		synctest.Wait()
		require.EqualValues(t, 1, st.claims.Load(), "they wait")
		close(st.gate)
		ran := 0.0
		for range 9 {
			ran += (<-reports)["ran"].(float64)
		}
		assert.EqualValues(t, 1, ran, "by the first")
		assert.EqualValues(t, 2, st.claims.Load(), "the eight were answered by one claim")
	})
}

// Those who wait are not answered by a pull that was cut off, as its caller went away.
func TestRunDueIsDoneAnewWhenItsCallerGoesAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(gated(memstore.New(memstore.Config{Partitions: 8})), core.Config{})
		require.NoError(t, err)
		core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
		f := &fixture{handler: httpadapter.New(s, httpadapter.Config{})}
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"1","kind":"ok"}`)
		ctx, goAway := context.WithCancel(t.Context())
		gone := httptest.NewRequestWithContext(ctx, "POST", "/v1/run-due", strings.NewReader(`{"all":true}`))
		gone.Header.Set("Content-Type", "application/json")
		go f.do(t, gone)
		synctest.Wait()
		report := make(chan map[string]any)
		go func() {
			_, body := f.call(t, "POST", "/v1/run-due", `{"all":true}`)
			report <- get[map[string]any](t, body)
		}()
		synctest.Wait()
		goAway()
		assert.EqualValues(t, 1, (<-report)["completed"])
	})
}

// Whoever waits and goes away leaves nothing behind: neither a pull that nobody starts, nor its memory.
func TestThoseWhoWaitMayGoAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := gated(memstore.New(memstore.Config{Partitions: 8}))
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
		f := &fixture{handler: httpadapter.New(s, httpadapter.Config{})}
		first := make(chan struct{})
		go func() { f.call(t, "POST", "/v1/run-due", `{"all":true}`); close(first) }()
		synctest.Wait()
		for range 3 {
			ctx, goAway := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/run-due", strings.NewReader(`{"all":true}`))
			r.Header.Set("Content-Type", "application/json")
			gone := make(chan int)
			go func() { res, _ := f.do(t, r); gone <- res.StatusCode }()
			synctest.Wait()
			goAway()
			assert.Equal(t, 503, <-gone, "whoever is cut off, by its server perhaps, must not read that nothing is due")
		}
		close(st.gate)
		<-first
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"1","kind":"ok"}`)
		_, body := f.call(t, "POST", "/v1/run-due", `{"all":true}`)
		assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"])
	})
}

// A pull that only waits for its handlers takes nothing more: it holds up nobody who asks for the same.
func TestASlowHandlerHoldsUpNoOtherRunDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
		require.NoError(t, err)
		release := make(chan struct{})
		core.Handle(s, "slow", func(context.Context, *core.Task[any]) error { <-release; return nil })
		core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
		f := &fixture{handler: httpadapter.New(s, httpadapter.Config{})}
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","kind":"slow"}`)
		slow := make(chan map[string]any)
		go func() {
			_, body := f.call(t, "POST", "/v1/run-due", `{"all":true}`)
			slow <- get[map[string]any](t, body)
		}()
		synctest.Wait()
		for _, id := range []string{"1", "2"} {
			f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","kind":"ok","id":"`+id+`"}`)
			_, body := f.call(t, "POST", "/v1/run-due", `{"all":true}`)
			assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"])
		}
		close(release)
		assert.EqualValues(t, 1, (<-slow)["completed"], "its own report is about its own runs")
	})
}

// stoppable is a handler of a scheduler that runs one task at a time, and what is closed when its server is about to shut
// down. Each run of the kind slow is told to began, and takes 10 s or until it is told to end.
func stoppable(t *testing.T, grace time.Duration) (f *fixture, stop, began chan struct{}) {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{Concurrency: 1})
	require.NoError(t, err)
	stop, began = make(chan struct{}), make(chan struct{}, 3)
	core.Handle(s, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		began <- struct{}{}
		select {
		case <-time.After(10 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "slow"}, core.NewTask{Agent: "a", ID: "2", Kind: "slow"})
	require.NoError(t, err)
	return &fixture{scheduler: s, handler: httpadapter.New(s, httpadapter.Config{Stopping: stop, Grace: grace, CronSecret: "x"})}, stop, began
}

// When the server is about to shut down a pull takes nothing more, and what runs has the grace to end in, whoever asked.
func TestPullsEndWithTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path, body   string
		grace                time.Duration
		completed, givenBack float64
		took                 time.Duration
	}{
		{"POST", "/v1/run-due", `{"all":true}`, time.Minute, 1, 0, 9 * time.Second},
		{"POST", "/v1/run-due", `{"agent_ids":["a"]}`, time.Minute, 1, 0, 9 * time.Second},
		{"GET", "/v1/cron", "", time.Minute, 1, 0, 9 * time.Second},
		{"POST", "/v1/run-due", `{"all":true}`, 5 * time.Second, 0, 1, 5 * time.Second},
		{"POST", "/v1/run-due", `{"all":true}`, 0, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, stop, began := stoppable(t, c.grace)
			type answer struct {
				status int
				body   string
			}
			answered := make(chan answer)
			go func() {
				res, body := f.with(t, "x", c.method, c.path, c.body)
				answered <- answer{res.StatusCode, body}
			}()
			<-began
			time.Sleep(time.Second)
			stopped := time.Now()
			close(stop)
			got := <-answered
			assert.Equal(t, c.took, time.Since(stopped), c)
			require.Equal(t, 200, got.status, got.body)
			report := get[map[string]any](t, got.body)
			assert.Equal(t, c.completed, report["completed"], c)
			assert.Equal(t, c.givenBack, report["released"], c)
			assert.Equal(t, true, report["more"], "the other one is left: %s", got.body)
			assert.Empty(t, began, "the other one was not begun")
			next, err := f.scheduler.NextDue(t.Context())
			require.NoError(t, err)
			assert.False(t, next.After(time.Now()), "what is left is not under lease")

			res, body := f.with(t, "x", c.method, c.path, c.body)
			assert.Equal(t, 503, res.StatusCode, "whoever comes later is sent to another server: %s", body)
			assert.Empty(t, began)
		})
	}
}

// A pull whose caller went away claims no more. Its handlers have their grace, and hold up nobody who asks for the same: as
// soon as there is room that is run.
func TestTheGraceOfAPullHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{Concurrency: 2})
		require.NoError(t, err)
		core.Handle(s, "takes", func(_ context.Context, task *core.Task[time.Duration]) error {
			time.Sleep(task.Payload)
			return nil
		})
		f := &fixture{scheduler: s, handler: httpadapter.New(s, httpadapter.Config{Grace: time.Minute})}
		for i, takes := range []time.Duration{10 * time.Second, time.Second, 0} {
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "takes", Payload: takes})
			require.NoError(t, err)
		}
		ask := func(ctx context.Context) map[string]any {
			r := httptest.NewRequestWithContext(ctx, "POST", "/v1/run-due", strings.NewReader(`{"all":true}`))
			r.Header.Set("Content-Type", "application/json")
			_, body := f.do(t, r)
			return get[map[string]any](t, body)
		}
		ctx, goAway := context.WithCancel(t.Context())
		gone := make(chan map[string]any)
		go func() { gone <- ask(ctx) }()
		synctest.Wait()
		goAway()
		synctest.Wait()
		started := time.Now()
		assert.EqualValues(t, 1, ask(t.Context())["completed"])
		assert.Equal(t, time.Second, time.Since(started), "there was room once the shorter one had ended")
		assert.EqualValues(t, 2, (<-gone)["completed"], "both had the time that they take")
	})
}
