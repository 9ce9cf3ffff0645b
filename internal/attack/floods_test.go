package attack_test

// Floods: one credential takes all streams and waits that it can get, and others still get theirs.

import (
	"context"
	"fmt"
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
)

// spellings are headers that all mean the token one.
var spellings = []string{"Bearer one", "bearer one", "BEARER one", "bEARER one", "Bearer  one", "Bearer one ", "Bearer   one", "beareR one", "Bearer \tone"}

// flooded is an API whose user u is never idle.
func flooded(t *testing.T, config httpadapter.Config) http.Handler {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "u", ID: "1", Kind: "none", Delay: 24 * time.Hour})
	require.NoError(t, err)
	return httpadapter.New(s, config)
}

// asks makes a request under a header that says who asks, and returns its status and body when it ends.
func asks(ctx context.Context, h http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Header.Set("Authorization", authorization)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A credential is one however its header is spelt: by the case of the scheme or by spaces it gets no second share of the waits.
func TestACredentialHasOneShareOfTheWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := flooded(t, httpadapter.Config{Tokens: []string{"one", "two"}, MaxWaits: 3})
		var mu sync.Mutex
		var flood sync.WaitGroup
		answers := map[int]int{}
		for i := range 40 {
			flood.Go(func() {
				w := asks(t.Context(), h, http.MethodPost, "/product/scheduler/wait?user_name=u&timeout_seconds=10", spellings[i%len(spellings)])
				mu.Lock()
				defer mu.Unlock()
				answers[w.Code]++
			})
		}
		synctest.Wait()
		w := asks(t.Context(), h, http.MethodPost, "/product/scheduler/wait?user_name=u&timeout_seconds=1", "Bearer two")
		assert.Equal(t, http.StatusOK, w.Code, "somebody else waits: %s", w.Body)
		flood.Wait()
		assert.Equal(t, map[int]int{http.StatusOK: 3, http.StatusTooManyRequests: 37}, answers)
	})
}

// fresh is somebody's own verifier: it takes any bearer token, and makes a grant for each request.
type fresh struct{}

func (fresh) Verify(r *http.Request) (*httpadapter.Grant, error) {
	if _, ok := httpadapter.Bearer(r); !ok {
		return nil, httpadapter.ErrNoCredential
	}
	return &httpadapter.Grant{}, nil
}

// So it is with the tokens of somebody else's verifier.
func TestAForeignCredentialHasOneShareToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := flooded(t, httpadapter.Config{Verifiers: []httpadapter.Verifier{fresh{}}, MaxWaits: 3})
		var flood sync.WaitGroup
		var waited atomic.Int64
		for i := range 40 {
			flood.Go(func() {
				if asks(t.Context(), h, http.MethodPost, "/product/scheduler/wait?user_name=u&timeout_seconds=10", spellings[i%len(spellings)]).Code == http.StatusOK {
					waited.Add(1)
				}
			})
		}
		synctest.Wait()
		w := asks(t.Context(), h, http.MethodPost, "/product/scheduler/wait?user_name=u&timeout_seconds=1", "Bearer two")
		assert.Equal(t, http.StatusOK, w.Code, "somebody else waits: %s", w.Body)
		flood.Wait()
		assert.EqualValues(t, 3, waited.Load())
	})
}

// Where no credential is asked for, a header that nobody looks at makes nobody a caller of their own.
func TestAHeaderThatNobodyAsksForIsNoCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := flooded(t, httpadapter.Config{MaxWaits: 3})
		var mu sync.Mutex
		var flood sync.WaitGroup
		answers := map[int]int{}
		for i := range 40 {
			flood.Go(func() {
				w := asks(t.Context(), h, http.MethodPost, "/product/scheduler/wait?user_name=u&timeout_seconds=10", fmt.Sprint("Bearer ", i))
				mu.Lock()
				defer mu.Unlock()
				answers[w.Code]++
			})
		}
		flood.Wait()
		assert.Equal(t, map[int]int{http.StatusOK: 3, http.StatusTooManyRequests: 37}, answers)
	})
}

// One credential that takes all streams of events that it can get leaves some to others, and has room again when one ends.
func TestStreamsOfEventsAreBoundedForEachCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := []string{"one", "two", "three", "four", "five"}
		h := flooded(t, httpadapter.Config{Tokens: tokens, Events: httpadapter.NewEvents()})
		ctx, end := context.WithCancel(t.Context())
		defer end()
		refused := make(chan int, 1000)
		var streams sync.WaitGroup
		listen := func(ctx context.Context, authorization string) {
			streams.Go(func() {
				if w := asks(ctx, h, http.MethodGet, "/v1/events", authorization); w.Code != http.StatusOK {
					refused <- w.Code
				}
			})
		}
		one, endOne := context.WithCancel(ctx)
		listen(one, "Bearer one")
		for i := range 149 {
			listen(ctx, spellings[i%len(spellings)])
		}
		synctest.Wait()
		require.Len(t, refused, 50, "a hundred for each credential")
		listen(ctx, "Bearer two")
		synctest.Wait()
		assert.Len(t, refused, 50, "somebody else listens")
		endOne()
		synctest.Wait()
		listen(ctx, "Bearer one")
		synctest.Wait()
		assert.Len(t, refused, 50, "it has room again")
		for _, token := range tokens {
			for range 120 {
				listen(ctx, "Bearer "+token)
			}
		}
		synctest.Wait()
		assert.Len(t, refused, 50+600-(400-101), "four hundred in all")
		end()
		streams.Wait()
		close(refused)
		for code := range refused {
			assert.Equal(t, http.StatusServiceUnavailable, code)
		}
	})
}
