package memos_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/http/memos"
	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// Tests of what the API asks of its host. The calls themselves are tested as adapters/http mounts them, there.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errForbidden = errors.New("forbidden")

// host lets its caller touch the user u only, unless it is for all.
type host struct {
	all    bool
	failed atomic.Int64
}

func (h *host) Allow(_ *http.Request, agents ...string) error {
	for _, agent := range agents {
		if !h.all && agent != "u" {
			return errForbidden
		}
	}
	return nil
}

func (h *host) Authorize(_ context.Context, _ core.Principal, what core.Access) error {
	return h.Allow(nil, what.Agent, what.User)
}

func (*host) Caller(*http.Request) [sha256.Size]byte { return [sha256.Size]byte{} }

func (h *host) AllowAll(*http.Request) error {
	if h.all {
		return nil
	}
	return errForbidden
}

func (*host) Answer(w http.ResponseWriter, _ *http.Request, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (h *host) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if own, ok := errors.AsType[interface {
		error
		Answer() (status int, body any)
	}](err); ok {
		status, body := own.Answer()
		h.Answer(w, r, status, body)
		return
	}
	w.WriteHeader(http.StatusTeapot) // by this the tests know that it was left to the host
}

func (h *host) Failed(*http.Request, error) { h.failed.Add(1) }

// Wait is for APIs that have no waits of their own.
func (*host) Wait(*http.Request, time.Duration, func() bool) { panic("memos waits by itself") }

// countingStore counts the calls that a request may cost, and fails reads with err if that is set.
type countingStore struct {
	storetest.Spy

	calls atomic.Int64
	err   error
}

func counting(st core.Store) *countingStore {
	s := &countingStore{Spy: storetest.Spy{Store: st}}
	s.Before = func(_ context.Context, verb string) error {
		switch verb {
		case "Get", "List", "Group":
			s.calls.Add(1)
			return s.err
		case "Submit":
			s.calls.Add(1)
		}
		return nil
	}
	return s
}

// world is the API on a store in memory.
type world struct {
	store  *countingStore
	s      *core.Scheduler
	host   *host
	stop   chan struct{}
	routes []door.Route
}

func newWorld(t *testing.T, all bool) *world {
	t.Helper()
	w := &world{store: counting(memstore.New(memstore.Config{Partitions: 8})), host: &host{all: all}, stop: make(chan struct{})}
	var err error
	w.s, err = core.New(w.store, core.Config{})
	require.NoError(t, err)
	w.routes = memos.Routes(w.s, w.host, memos.Config{Clock: core.SystemClock{}, MaxWaits: 2, Stopping: w.stop})
	return w
}

func (w *world) call(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	// The scheduler asks by itself about what is submitted.
	ctx := core.WithPrincipal(t.Context(), core.Principal{Rights: w.host})
	r := httptest.NewRequestWithContext(ctx, method, "/product/scheduler"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	for _, route := range w.routes {
		if route.Path != r.URL.Path || route.Method != method {
			continue
		}
		if route.Stream != nil {
			route.Stream(out, r)
		} else if status, answer, err := route.Respond(r); err != nil {
			w.host.Refuse(out, r, err)
		} else {
			w.host.Answer(out, r, status, answer)
		}
		res := out.Result()
		data, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return out.Code, string(data)
	}
	t.Fatalf("no route for %s %s", method, path)
	return 0, ""
}

// What a caller may not touch is refused by the host's error, before any call of the store.
func TestTheHostSaysWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false)
	for _, c := range [][3]string{
		{"GET", "/status?user_id=other", ""},
		{"GET", "/allstatus", ""},
		{"GET", "/task_queue_status?user_id=other", ""},
		{"POST", "/wait?user_name=other", ""},
		{"GET", "/wait/stream?user_name=other", ""},
		{"POST", "/submit", `{"item_id":"1","user_id":"other","label":"add","content":""}`},
		{"POST", "/submit", `{"item_id":"1","user_id":"other","agent_id":"u","label":"add","content":""}`},
	} {
		status, body := w.call(t, c[0], c[1], c[2])
		assert.GreaterOrEqual(t, status, 400, "%v: %s", c, body)
	}
	assert.Zero(t, w.store.calls.Load())
	status, body := w.call(t, "POST", "/submit", `{"item_id":"1","user_id":"u","label":"add","content":""}`)
	assert.Equal(t, 200, status, body)
}

// An error has MemOS's shape and words, and its cause is for the host's log alone.
func TestFailuresHaveTheShapeOfMemOS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	status, body := w.call(t, "GET", "/status", "")
	assert.Equal(t, 422, status)
	assert.JSONEq(t, `{"code":422,"message":"user_id: Field required","data":null}`, body)
	assert.Zero(t, w.host.failed.Load())
	w.store.err = errors.New("dial tcp: hunter2")
	status, body = w.call(t, "GET", "/status?user_id=u", "")
	assert.Equal(t, 500, status)
	assert.JSONEq(t, `{"code":500,"message":"Failed to get scheduler status","data":null}`, body)
	assert.EqualValues(t, 1, w.host.failed.Load())
}

// A wait ends when the host is about to shut down, and says that it was not idle.
func TestAWaitEndsWithItsHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, true)
		_, err := w.s.Submit(t.Context(), core.NewTask{Agent: "u", ID: "1", Kind: "add", Delay: time.Hour})
		require.NoError(t, err)
		answered := make(chan string)
		go func() {
			_, body := w.call(t, "POST", "/wait?user_name=u", "")
			answered <- body
		}()
		synctest.Wait()
		close(w.stop)
		assert.Contains(t, <-answered, `"timed_out":true`)
	})
}
