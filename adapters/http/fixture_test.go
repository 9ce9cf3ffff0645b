package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// countingStore counts the calls of a store, and fails them with err if that is set.
type countingStore struct {
	storetest.Spy

	calls atomic.Int64
	err   error
	panic any
}

func counting(st core.Store) *countingStore {
	s := &countingStore{Spy: storetest.Spy{Store: st}}
	s.Before = func(context.Context, string) error {
		s.calls.Add(1)
		if s.panic != nil {
			panic(s.panic)
		}
		return s.err
	}
	return s
}

// fixture is a handler on a store in memory, with the kinds ok and bad.
type fixture struct {
	store     *countingStore
	scheduler *core.Scheduler
	handler   http.Handler
	logs      *bytes.Buffer
}

func setup(t *testing.T, config httpadapter.Config) *fixture {
	t.Helper()
	return setupWith(t, core.Config{}, config)
}

// setupWith is a handler on a scheduler with some settings.
func setupWith(t *testing.T, settings core.Config, config httpadapter.Config) *fixture {
	t.Helper()
	f := &fixture{store: counting(memstore.New(memstore.Config{Partitions: 1, MaxTasks: 5})), logs: new(bytes.Buffer)}
	settings.Kinds = map[string]core.KindConfig{
		"seen": {Activity: &core.Activity{Delay: time.Hour}}, "seen_by_user": {Activity: &core.Activity{Delay: time.Hour, Dimensions: 1}},
		"off": {Disabled: true},
	}
	var err error
	f.scheduler, err = core.New(f.store, settings)
	require.NoError(t, err)
	core.Handle(f.scheduler, "ok", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		return task.SetResult(task.Payload)
	})
	core.Handle(f.scheduler, "bad", func(context.Context, *core.Task[any]) error { return core.Cancel(errors.New("no")) })
	core.Handle(f.scheduler, "failing", func(context.Context, *core.Task[any]) error { return errors.New("boom") })
	config.Logger = slog.New(slog.NewTextHandler(f.logs, nil))
	f.handler = httpadapter.New(f.scheduler, config)
	return f
}

// call sends a request, with a JSON body if there is one, and returns the answer and its body.
func (f *fixture) call(t *testing.T, method, path, body string) (*reply, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return f.do(t, r)
}

func (f *fixture) do(t *testing.T, r *http.Request) (*reply, string) {
	t.Helper()
	w := httptest.NewRecorder()
	var sent bytes.Buffer
	asked := r.Clone(r.Context())
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, &sent), r.Body}
	f.handler.ServeHTTP(w, r)
	res := &reply{StatusCode: w.Code, Header: w.Header()}
	isDescribed(t, asked, sent.Bytes(), res, w.Body.String())
	return res, w.Body.String()
}

// reply is what an answer has besides its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

func get[V any](t *testing.T, text string) V {
	t.Helper()
	var v V
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// problem is the error of an answer, which has to be whole.
func problem(t *testing.T, res *reply, body string) (code, field, detail string) {
	t.Helper()
	assert.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	p := get[map[string]any](t, body)
	assert.Equal(t, "about:blank", p["type"])
	assert.Equal(t, http.StatusText(res.StatusCode), p["title"])
	assert.EqualValues(t, res.StatusCode, p["status"])
	assert.NotEmpty(t, p["detail"])
	field, _ = p["field"].(string)
	return p["code"].(string), field, p["detail"].(string)
}

// path escapes the segments of a path.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		s = url.PathEscape(s)
		if strings.Trim(s, ".") == "" {
			s = strings.ReplaceAll(s, ".", "%2E")
		}
		b.WriteString("/" + s)
	}
	return b.String()
}
