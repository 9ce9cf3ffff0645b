package memosstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/memosstream"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A producer that does what MemOS's does, a Redis, and an intake whose connections and store can be cut.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a Redis, and a scheduler on a store in memory that counts the runs of each item.
type world struct {
	storetest.Spy

	redis     *redis.Client
	options   *redis.Options
	scheduler *core.Scheduler
	intake    atomic.Pointer[memosstream.Intake]
	fail      atomic.Pointer[error]
	dead      string     // where messages are set aside
	clock     core.Clock // of the intake
	logs      logs

	mu   sync.Mutex
	runs map[string]int // by agent and item
	fate func(id string) error
}

// logs is a buffer for many goroutines.
type logs struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

func newWorld(t *testing.T, server *redistest.Server) *world {
	t.Helper()
	w := &world{redis: server.Client(t), clock: fastClock{time.Now()}, runs: map[string]int{}, Spy: storetest.Spy{Store: memstore.New(memstore.Config{Partitions: 1, MaxTasks: 50})}}
	w.options = &redis.Options{Addr: server.Addr, Network: "unix"}
	w.Before = func(_ context.Context, verb string) error {
		if err := w.fail.Load(); err != nil && verb == "submit" {
			return *err
		}
		return nil
	}
	var err error
	w.scheduler, err = core.New(w, core.Config{
		OnEvent: func(e core.Event) {
			if i := w.intake.Load(); i != nil {
				i.Event(e)
			}
		},
		Kinds:   map[string]core.KindConfig{"mem_archive": {Disabled: true}},
		Default: core.KindConfig{MaxAttempts: 1},
	})
	require.NoError(t, err)
	for _, kind := range []string{"query", "mem_read", "pref_add"} {
		core.Handle(w.scheduler, kind, func(_ context.Context, task *core.Task[json.RawMessage]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.runs[task.Agent+"/"+task.ID]++
			if w.fate != nil {
				return w.fate(task.ID)
			}
			return nil
		})
	}
	return w
}

// start runs an intake until the returned function is called.
func (w *world) start(t *testing.T, prefix string, options *redis.Options) (stop func()) {
	t.Helper()
	i, err := memosstream.New(memosstream.Config{Options: options, Prefix: prefix, Dead: w.dead, Clock: w.clock, Logger: slog.New(slog.NewTextHandler(&w.logs, nil))})
	require.NoError(t, err)
	w.intake.Store(i)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx, w.scheduler) }()
	return sync.OnceFunc(func() {
		cancel()
		assert.NoError(t, <-ended)
		i.Close()
	})
}

// fastClock is a hundred times as fast as the clock of the machine, so that nobody waits for a rest.
type fastClock struct{ begun time.Time }

func (c fastClock) Now() time.Time { return c.begun.Add(100 * time.Since(c.begun)) }

func (fastClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d/100, f).Stop
}

// runDue runs what is due.
func (w *world) runDue(t *testing.T) core.Report {
	t.Helper()
	report, err := w.scheduler.RunDue(t.Context(), core.Scope{})
	if _, failed := errors.AsType[*core.RunsError](err); !failed {
		require.NoError(t, err)
	}
	return report
}

// produce writes a message as MemOS's scheduler does: the record of its tracker, and then the entry.
func produce(t *testing.T, c *redis.Client, prefix, user, cube, label, item string, more ...any) (name, id string) {
	t.Helper()
	ctx := t.Context()
	record := fmt.Sprintf(`{"status": "waiting", "task_type": %q, "mem_cube_id": %q, "submitted_at": "2026-11-22T10:00:00.000000+00:00"}`, label, cube)
	require.NoError(t, c.HSet(ctx, "memos:task_meta:"+user, item, record).Err())
	name = fmt.Sprintf("%s:%s:%s:%s", prefix, user, cube, label)
	if err := c.XGroupCreateMkStream(ctx, name, "scheduler_group", "0").Err(); err != nil {
		require.ErrorContains(t, err, "BUSYGROUP")
	}
	fields := []any{
		"item_id", item, "user_id", user, "cube_id", cube, "trace_id", "trace-" + item, "session_id", "s1", "label", label,
		"cube", "Not Applicable", "content", "remember " + item, "timestamp", "2026-11-22T10:00:00.123456+00:00", "user_name", "Ann",
		"info", `{"monitor_flag": "x"}`, "task_id", "", "api_path", "", "chat_history", "[]", "user_context", "",
	}
	id, err := c.XAdd(ctx, &redis.XAddArgs{Stream: name, MaxLen: 200, Approx: true, Values: append(fields, more...)}).Result()
	require.NoError(t, err)
	return name, id
}

// drained waits until streams have neither entries nor pending ones.
func drained(t *testing.T, c *redis.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		require.Eventually(t, func() bool {
			n, err := c.XLen(context.Background(), name).Result()
			return err == nil && n == 0
		}, 10*time.Second, time.Millisecond, name)
		pending, err := c.XPending(t.Context(), name, "scheduler_group").Result()
		require.NoError(t, err)
		assert.Zero(t, pending.Count, name)
	}
}

// record is what MemOS's tracker says of an item of ann.
func record(t *testing.T, c *redis.Client, item string) map[string]any {
	t.Helper()
	text, err := c.HGet(t.Context(), "memos:task_meta:ann", item).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	require.NoError(t, err)
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	return r
}

// cutter ends a process at one of its writes to Redis: with the command, or once it was carried out.
type cutter struct {
	at     int64 // which write; none if zero
	late   bool  // the command reaches Redis, the reply does not come back
	writes atomic.Int64
	once   bool // the process lives on, with new connections
	dead   atomic.Bool
	cut    chan struct{}
}

var errCut = errors.New("cut")

func (c *cutter) options(o *redis.Options) *redis.Options {
	out := *o
	out.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if c.dead.Load() {
			return nil, errCut
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &cuttable{conn, c}, err
	}
	return &out
}

type cuttable struct {
	net.Conn

	c *cutter
}

func (c *cuttable) Write(p []byte) (int, error) {
	if c.c.dead.Load() {
		return 0, errCut
	}
	if c.c.writes.Add(1) != c.c.at {
		return c.Conn.Write(p)
	}
	c.c.dead.Store(!c.c.once)
	defer close(c.c.cut)
	if c.c.late {
		if _, err := c.Conn.Write(p); err != nil {
			return 0, err
		}
		_, _ = c.Conn.Read(make([]byte, 1)) // Redis has carried it out
	}
	_ = c.Close()
	return 0, errCut
}

func (c *cuttable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.c.dead.Load() {
		return 0, errCut
	}
	return n, err
}
