package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
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

// fixture is a function on a store in memory, with the kinds ok, failing and panicking.
type fixture struct {
	store     *failingStore
	scheduler *core.Scheduler
	function  *lambdaadapter.Function
	logs      *lockedBuffer
}

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

func setup(tb testing.TB, config lambdaadapter.Config) *fixture {
	tb.Helper()
	f := &fixture{store: failing(memstore.New(memstore.Config{MaxTasks: 50})), logs: new(lockedBuffer)}
	var err error
	f.scheduler, err = core.New(f.store, core.Config{Kinds: map[string]core.KindConfig{"off": {Disabled: true}}})
	require.NoError(tb, err)
	core.Handle(f.scheduler, "ok", func(context.Context, *core.Task[any]) error { return nil })
	core.Handle(f.scheduler, "failing", func(context.Context, *core.Task[any]) error {
		return core.SkipRetry(errors.New("boom " + strings.Repeat("x", 9000)))
	})
	core.Handle(f.scheduler, "panicking", func(context.Context, *core.Task[any]) error { panic("oh") })
	config.Logger = slog.New(slog.NewTextHandler(f.logs, nil))
	f.function, err = lambdaadapter.New(f.scheduler, config)
	require.NoError(tb, err)
	return f
}

// submit stores tasks that are due.
func (f *fixture) submit(t *testing.T, tasks ...core.NewTask) {
	t.Helper()
	_, err := f.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
}

// invoke sends an event that has to be answered.
func (f *fixture) invoke(t *testing.T, event string) map[string]any {
	t.Helper()
	data, err := f.function.Invoke(t.Context(), json.RawMessage(event))
	require.NoError(t, err)
	var answer map[string]any
	require.NoError(t, json.Unmarshal(data, &answer), string(data))
	return answer
}

func (f *fixture) status(t *testing.T, agent, id string) core.Status {
	t.Helper()
	task, err := f.scheduler.Task(t.Context(), agent, id)
	require.NoError(t, err)
	return task.Status
}

// known is an event of testdata/known.
func known(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "known", name+".json"))
	require.NoError(tb, err)
	return string(data)
}

// alter is an event of testdata/known with members replaced, at the top level.
func alter(tb testing.TB, name string, members map[string]any) string {
	tb.Helper()
	var event map[string]any
	require.NoError(tb, json.Unmarshal([]byte(known(tb, name)), &event))
	maps.Copy(event, members)
	data, err := json.Marshal(event)
	require.NoError(tb, err)
	return string(data)
}
