package http_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
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

// slowStore takes its time for every read.
type slowStore struct {
	storetest.Spy

	reads atomic.Int64
}

func slow(st core.Store, took time.Duration) *slowStore {
	s := &slowStore{Spy: storetest.Spy{Store: st}}
	s.Before = func(_ context.Context, verb string) error {
		if verb == "Get" || verb == "List" || verb == "Group" {
			s.reads.Add(1)
			time.Sleep(took)
		}
		return nil
	}
	return s
}

// slowFixture is a handler whose store is slow to read; its user u is not idle for an hour.
func slowFixture(t *testing.T, took time.Duration, config httpadapter.Config) (*slowStore, http.Handler, *core.Scheduler) {
	t.Helper()
	st := slow(memstore.New(memstore.Config{Partitions: 8}), took)
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[json.RawMessage]) error { return nil })
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "u", ID: "1", Kind: "ok", Delay: time.Hour})
	require.NoError(t, err)
	return st, httpadapter.New(s, config), s
}

// waitFor sends a wait and returns its answer.
func waitFor(h http.Handler, query, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/product/scheduler/wait?"+query, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Requests that wait for the same user share what is seen of it.
func TestWaitsShareTheirLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, h, _ := slowFixture(t, 0, httpadapter.Config{})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 23 * time.Millisecond)
				w := waitFor(h, "user_name=u&timeout_seconds=10&poll_interval=0.5", "")
				assert.Contains(t, w.Body.String(), `"timed_out":true`)
			})
		}
		wg.Wait()
		assert.LessOrEqual(t, st.reads.Load(), int64(20+3*21), "one each to begin with, then a few for each interval, not 400")
	})
}

// The slower it is to look at an agent, the more rarely it is looked at.
func TestSlowLooksRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, h, _ := slowFixture(t, time.Second, httpadapter.Config{})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				w := waitFor(h, "user_name=u&timeout_seconds=60&poll_interval=0.1", "")
				assert.Contains(t, w.Body.String(), `"running_tasks":1`)
			})
		}
		wg.Wait()
		assert.LessOrEqual(t, st.reads.Load(), int64(7), "a second in eleven")
	})
}

// Nor is an agent looked at more often by a request that comes after another.
func TestSlowLooksRestBetweenRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, h, _ := slowFixture(t, time.Second, httpadapter.Config{})
		begun := time.Now()
		for range 3 {
			waitFor(h, "user_name=u&timeout_seconds=12&poll_interval=100", "")
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/product/scheduler/task_queue_status?user_id=u", nil))
		}
		assert.LessOrEqual(t, st.reads.Load(), 2*int64(time.Since(begun)/(11*time.Second))+2)
	})
}

// What somebody else saw before a request came does not answer it.
func TestAWaitSeesWhatWasSubmittedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, h, s := slowFixture(t, 10*time.Millisecond, httpadapter.Config{})
		var wg sync.WaitGroup
		wg.Go(func() { waitFor(h, "user_name=u&timeout_seconds=30&poll_interval=30", "") })
		time.Sleep(time.Second) // the other has looked
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "u", ID: "2", Kind: "ok", Delay: time.Hour})
		require.NoError(t, err)
		assert.Contains(t, waitFor(h, "user_name=u&timeout_seconds=0", "").Body.String(), `"running_tasks":2`)
		wg.Wait()
	})
}

// So many requests of one credential wait at once, and no more; others have room of their own.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, h, _ := slowFixture(t, 0, httpadapter.Config{Tokens: []string{"one", "two"}, MaxWaits: 2})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { assert.Equal(t, http.StatusOK, waitFor(h, "user_name=u&timeout_seconds=10", "one").Code) })
		}
		synctest.Wait()
		w := waitFor(h, "user_name=u&timeout_seconds=10", "one")
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, "5", w.Header().Get("Retry-After"))
		assert.Contains(t, w.Body.String(), `"code":"too_many_requests"`)
		assert.Contains(t, w.Body.String(), "2 requests of this credential are already waiting")
		r := httptest.NewRequest(http.MethodGet, "/product/scheduler/wait/stream?user_name=u", nil)
		r.Header.Set("Authorization", "Bearer one")
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, http.StatusOK, waitFor(h, "user_name=u&timeout_seconds=1", "two").Code)
		wg.Wait()
		assert.Equal(t, http.StatusOK, waitFor(h, "user_name=u&timeout_seconds=0", "one").Code, "it has room again")
	})
}

// All credentials together have a bound too.
func TestAllWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}
		_, h, _ := slowFixture(t, 0, httpadapter.Config{Tokens: tokens, MaxWaits: 1})
		var wg sync.WaitGroup
		for _, token := range tokens[:8] {
			wg.Go(func() { assert.Equal(t, http.StatusOK, waitFor(h, "user_name=u&timeout_seconds=10", token).Code) })
		}
		synctest.Wait()
		w := waitFor(h, "user_name=u&timeout_seconds=1", tokens[8])
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Contains(t, w.Body.String(), "8 requests are already waiting")
		wg.Wait()
	})
}
