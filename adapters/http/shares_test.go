package http_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// asked is a request with a token.
func asked(ctx context.Context, h http.Handler, token, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	h.ServeHTTP(w, r)
	return w
}

// A credential for some agents has one call under way that goes through many tasks, and takes a quarter of the store's time with them, however many
// connections it has. Others, and what needs little, are not its business.
func TestACredentialTakesItsShareOfTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const call = 50 * time.Millisecond
		f := setup(t, httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
			{Token: "ann", Grant: httpadapter.Grant{Name: "ann", Agents: []string{"ann"}}},
			{Token: "ann's new one", Grant: httpadapter.Grant{Name: "ann", Agents: []string{"ann"}}},
			{Token: "bob", Grant: httpadapter.Grant{Agents: []string{"bob"}}},
		}})
		var under, most, calls atomic.Int64
		f.store.Before = func(ctx context.Context, verb string) error {
			if verb == "List" && ctx.Value(free{}) == nil {
				most.Store(max(most.Load(), under.Add(1)))
				calls.Add(1)
				time.Sleep(call)
				under.Add(-1)
			}
			return nil
		}
		_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "ann", ID: "1", Kind: "ok"})
		require.NoError(t, err)
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		var connections sync.WaitGroup
		var refused atomic.Int64
		for i := range 8 {
			token := []string{"ann", "ann's new one"}[i%2]
			connections.Go(func() {
				for ctx.Err() == nil {
					w := asked(ctx, f.handler, token, "/v1/tasks?agent_id=ann")
					if w.Code == 429 {
						refused.Add(1)
						after, err := strconv.Atoi(w.Header().Get("Retry-After"))
						assert.NoError(t, err)
						assert.Positive(t, after)
						time.Sleep(100 * time.Millisecond) // sooner than it is told
					}
				}
			})
		}
		time.Sleep(30 * time.Second)
		own := context.WithValue(t.Context(), free{}, true)
		for token, path := range map[string]string{"root": "/v1/tasks?agent_id=ann", "bob": "/v1/tasks?agent_id=bob", "ann": "/v1/agents/ann/tasks/1"} {
			begun := time.Now()
			assert.Equal(t, 200, asked(own, f.handler, token, path).Code, token)
			assert.Less(t, time.Since(begun), call, token)
		}
		connections.Wait()
		assert.EqualValues(t, 1, most.Load(), "one at a time")
		took := time.Duration(calls.Load()) * call
		assert.InDelta(t, (time.Minute/4 + time.Second).Seconds(), took.Seconds(), 1, "a quarter, and what was saved")
		assert.Positive(t, refused.Load())
		time.Sleep(time.Minute)
		assert.Equal(t, 200, asked(t.Context(), f.handler, "ann", "/v1/tasks?agent_id=ann").Code, "it comes back by itself")
	})
}

// free marks calls that take no time.
type free struct{}

// What has begun is slowed down and not refused in its middle, and a store that is away is nobody's debt.
func TestWhatHasBegunIsNotRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}}}})
		took := 200 * time.Millisecond
		f.store.Before = func(_ context.Context, verb string) error {
			if verb == "List" {
				time.Sleep(took)
			}
			return nil
		}
		_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "ann", ID: "1", Kind: "ok"})
		require.NoError(t, err)
		list := func() *httptest.ResponseRecorder {
			return asked(t.Context(), f.handler, "ann", "/v1/tasks?agent_id=ann&kind=none")
		}
		calls := 1
		for ; list().Code == 200; calls++ {
			require.Less(t, calls, 10)
		}
		assert.Greater(t, calls, 5, "a second is saved")
		time.Sleep(time.Minute)
		took = 10 * time.Second // it does not answer
		assert.Equal(t, 200, list().Code)
		took = 0
		assert.Equal(t, 200, list().Code, "that was one call, whoever was late")
	})
}

// What strangers wait for while a tenant of 10,000 tasks does what takes longest, with and without shares: figures for docs/operations.md, where
// DULY_FIGURES is set.
func TestStrangersBesideAGreedyTenant(t *testing.T) { //nolint:paralleltest // it measures
	if os.Getenv("DULY_FIGURES") == "" {
		t.Skip("DULY_FIGURES is not set: this measures, for some minutes")
	}
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
	require.NoError(t, err)
	defer func() { _ = st.Close() }()
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	for from := 0; from < 10_000; from += 500 {
		tasks := make([]core.NewTask, 500)
		for i := range tasks {
			tasks[i] = core.NewTask{Agent: "greedy", ID: strconv.Itoa(from + i), Kind: "ok", Cron: "0 9 * * *", Zone: core.ZoneOfAgent}
		}
		_, err := s.Submit(t.Context(), tasks...)
		require.NoError(t, err)
	}
	zones := []string{"Asia/Tokyo", "Europe/Paris", "America/Lima"}
	greed := map[string]func(h http.Handler, i int) *http.Request{
		"nothing": nil,
		"profiles": func(_ http.Handler, i int) *http.Request {
			return with(http.MethodPut, "/v1/agents/greedy", fmt.Sprintf(`{"zone":%q}`, zones[i%3]))
		},
		"exports": func(http.Handler, int) *http.Request { return with(http.MethodGet, "/v1/agents/greedy/export", "") },
		"filters": func(http.Handler, int) *http.Request {
			return with(http.MethodGet, "/v1/tasks?agent_id=greedy&kind=none", "")
		},
		"bulk": func(http.Handler, int) *http.Request {
			return with(http.MethodPost, "/v1/tasks/cancel", `{"agent_id":"greedy","kind":"none","dry_run":true}`)
		},
	}
	for _, part := range []float64{-1, 0} {
		h := httpadapter.New(s, httpadapter.Config{Tokens: []string{"root"}, Shares: httpadapter.NewShares(part, nil), Scoped: []httpadapter.Token{
			{Token: "greedy", Grant: httpadapter.Grant{Agents: []string{"greedy"}}}, {Token: "stranger", Grant: httpadapter.Grant{Agents: []string{"stranger"}}},
		}})
		for name, request := range greed {
			ctx, end := context.WithTimeout(t.Context(), 12*time.Second)
			var codes sync.Map
			var under sync.WaitGroup
			for i := 0; i < 8 && request != nil; i++ {
				under.Go(func() {
					for k := i; ctx.Err() == nil; k++ {
						w := httptest.NewRecorder()
						r := request(h, k).WithContext(ctx)
						r.Header.Set("Authorization", "Bearer greedy")
						func() {
							defer func() { _ = recover() }() // an export that the end of the test cuts off
							h.ServeHTTP(w, r)
						}()
						n, _ := codes.LoadOrStore(w.Code, new(atomic.Int64))
						n.(*atomic.Int64).Add(1)
						if w.Code == 429 {
							time.Sleep(100 * time.Millisecond)
						}
					}
				})
			}
			var waits []time.Duration
			for i := 0; ctx.Err() == nil; i++ {
				begun := time.Now()
				r := with(http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"agent_id":"stranger","id":"%s-%v-%d","kind":"ok","delay":"1h"}`, name, part, i%100))
				r.Header.Set("Authorization", "Bearer stranger")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				require.Less(t, w.Code, 300, w.Body)
				waits = append(waits, time.Since(begun))
				time.Sleep(5 * time.Millisecond)
			}
			end()
			under.Wait()
			slices.Sort(waits)
			at := func(p float64) time.Duration { return waits[int(p*float64(len(waits)-1))].Round(10 * time.Microsecond) }
			said := map[int]int64{}
			codes.Range(func(code, n any) bool { said[code.(int)] = n.(*atomic.Int64).Load(); return true })
			t.Logf("share %v, beside %s: p50 %s, p99 %s, most %s; answers %v", part, name, at(0.5), at(0.99), at(1), said)
		}
	}
}

// with is a request with a body, if there is one.
func with(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}
