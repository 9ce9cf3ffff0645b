package gcf_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failingStore fails the calls that a trigger makes when FailWith says so.
type failingStore struct{ *storetest.Failing }

func failing(st core.Store) *failingStore {
	return &failingStore{storetest.NewFailing(st, "Claim", "Look", "Submit")}
}

// claims is how often the store was asked for work.
func (s *failingStore) claims() int { return s.Calls("Claim", "Look") }

// submits is how often tasks were submitted.
func (s *failingStore) submits() int { return s.Calls("Submit") }

// lockedBuffer is a buffer for many writers.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// fixture is a function on a store in memory, with the kinds ok, tick, failing and slow.
type fixture struct {
	store     *failingStore
	scheduler *core.Scheduler
	function  *gcf.Function
	logs      *lockedBuffer
	begun     chan struct{} // a slow task has begun
}

func setup(tb testing.TB, config gcf.Config) *fixture {
	tb.Helper()
	f := &fixture{
		store: failing(memstore.New(memstore.Config{MaxTasks: 50})), logs: new(lockedBuffer),
		begun: make(chan struct{}, 100),
	}
	var err error
	f.scheduler, err = core.New(f.store, core.Config{Kinds: map[string]core.KindConfig{"off": {Disabled: true}}})
	require.NoError(tb, err)
	ok := func(context.Context, *core.Task[any]) error { return nil }
	core.Handle(f.scheduler, "ok", ok)
	core.Handle(f.scheduler, "tick", ok)
	core.Handle(f.scheduler, "failing", func(context.Context, *core.Task[any]) error {
		return core.SkipRetry(errors.New("boom " + strings.Repeat("x", 9000)))
	})
	core.Handle(f.scheduler, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		f.begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if config.Verify == nil {
		config.Verify = gcf.Private
	}
	config.Logger = slog.New(slog.NewTextHandler(f.logs, nil))
	f.function, err = gcf.New(f.scheduler, config)
	require.NoError(tb, err)
	return f
}

// submit stores tasks that are due.
func (f *fixture) submit(t *testing.T, tasks ...core.NewTask) {
	t.Helper()
	_, err := f.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
}

func (f *fixture) status(t *testing.T, agent, id string) core.Status {
	t.Helper()
	task, err := f.scheduler.Task(t.Context(), agent, id)
	require.NoError(t, err)
	return task.Status
}

// request makes a request, with headers as pairs.
func request(tb testing.TB, path, body string, headers ...string) *http.Request {
	tb.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// call sends a request and reads the answer, which is JSON.
func (f *fixture) call(tb testing.TB, r *http.Request) (int, map[string]any) {
	tb.Helper()
	w := httptest.NewRecorder()
	f.function.ServeHTTP(w, r)
	var answer map[string]any
	require.NoError(tb, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return w.Code, answer
}

// scheduled is a call of Cloud Scheduler.
func (f *fixture) scheduled(t *testing.T, body, job, at string) (int, map[string]any) {
	t.Helper()
	return f.call(t, request(t, "/", body, "Content-Type", "application/octet-stream", "User-Agent", "Google-Cloud-Scheduler",
		"X-CloudScheduler", "true", "X-CloudScheduler-JobName", job, "X-CloudScheduler-ScheduleTime", at))
}

const at = "2026-11-02T07:17:00Z"

// wrap is a push that wraps a message.
func wrap(id, data string) string {
	return fmt.Sprintf(`{"message":{"data":%q,"messageId":%q,"message_id":%q,"publishTime":"2026-11-02T07:17:00Z","attributes":{"a":"b"}},
		"subscription":"projects/p/subscriptions/duly"}`, base64.StdEncoding.EncodeToString([]byte(data)), id, id)
}

// push sends a message.
func (f *fixture) push(t *testing.T, id, data string) (int, map[string]any) {
	t.Helper()
	return f.call(t, request(t, "/", wrap(id, data), "Content-Type", "application/json"))
}
