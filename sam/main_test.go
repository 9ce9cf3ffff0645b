package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
	main "github.com/seed-6f6f2c11/duly/sam"
)

// The test binary is its own Lambda function: started by a Runtime API it does what main does, with the real loop and a
// few more handlers.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if os.Getenv("DULY_TEST_HELLO") != "" {
		lambda.Start(func(context.Context, json.RawMessage) (string, error) { return "hello", nil })
	}
	c := main.Settings()
	c.Logger = lambdacontext.NewLogger()
	c.Default.Lease = time.Second // so that what a crash leaves is soon taken over
	f, err := main.Build(context.Background(), c, childHandlers)
	if err != nil {
		main.ReportInit(err)
		os.Exit(1)
	}
	main.Serve(func(ctx context.Context, event json.RawMessage) (json.RawMessage, error) {
		if bytes.Contains(event, []byte("panic in the adapter")) {
			panic("in the adapter")
		}
		return f.Invoke(ctx, event)
	})
}

// childHandlers are those of main and some that a test needs. What they tell they tell through Redis.
func childHandlers(s *core.Scheduler, get func(string) string) error {
	if kind, set := os.LookupEnv("DULY_TEST_KIND"); set {
		core.Handle(s, kind, func(context.Context, *core.Task[any]) error { return nil })
	}
	o, err := redis.ParseURL(strings.Replace(get("DULY_REDIS_URL"), "+cluster", "", 1))
	if err != nil {
		return err
	}
	client := func() *redis.Client { return redis.NewClient(o) } // for one call, so that it keeps no connection
	core.Handle(s, "count", func(ctx context.Context, t *core.Task[json.RawMessage]) error {
		c := client()
		defer c.Close()
		return c.HIncrBy(ctx, "ran", t.ID, 1).Err()
	})
	core.Handle(s, "once", func(ctx context.Context, t *core.Task[json.RawMessage]) error { // an effect that is made once, however often it is tried
		c := client()
		defer c.Close()
		return c.HSetNX(ctx, "ran", t.ID, 1).Err()
	})
	core.Handle(s, "leaves", func(context.Context, *core.Task[json.RawMessage]) error { os.Exit(1); return nil })
	core.Handle(s, "quick", func(context.Context, *core.Task[json.RawMessage]) error { return nil })
	core.Handle(s, "panics", func(context.Context, *core.Task[any]) error { panic("in a handler") })
	core.Handle(s, "crashes", func(context.Context, *core.Task[any]) error {
		go func() { panic("in a goroutine") }()
		select {}
	})
	core.Handle(s, "steady", func(ctx context.Context, _ *core.Task[any]) error {
		timer := time.NewTimer(60 * time.Millisecond) // of work
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	core.Handle(s, "asks", func(_ context.Context, t *core.Task[any]) error {
		if _, waited := t.Heard(); waited {
			return nil
		}
		return core.Await(core.Signal{Key: "may", From: core.FromApproval}, nil)
	})
	core.Handle(s, "waits", func(ctx context.Context, _ *core.Task[any]) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	return main.Handlers(s, get)
}

// world is a Redis, and environments of the function that share it.
type world struct {
	testing.TB

	redis     *redistest.Server
	scheduler *core.Scheduler
	vars      []string
	logs      *lockedBuffer
}

func newWorld(tb testing.TB, vars ...string) *world {
	tb.Helper()
	w := &world{TB: tb, redis: redistest.Start(tb), logs: new(lockedBuffer)}
	w.vars = append([]string{"DULY_REDIS_URL=" + w.redis.URL}, vars...)
	st, err := redisstore.Open(tb.Context(), redisstore.Config{URL: w.redis.URL})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = st.Close() })
	w.scheduler, err = core.New(st, core.Config{})
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NotContains(tb, w.logs.String(), "DATA RACE")
		if tb.Failed() {
			tb.Log(w.logs.String())
		}
	})
	return w
}

// environment is one environment of the function, with a timeout for its invocations.
func (w *world) environment(timeout time.Duration) *runtimeapi.Environment {
	w.Helper()
	self, err := os.Executable()
	require.NoError(w, err)
	e, err := runtimeapi.New(timeout, func(address string) *exec.Cmd {
		cmd := exec.Command(self)
		// A child of the race detector would take a second to end.
		cmd.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + address, "GORACE=atexit_sleep_ms=0"}, w.vars...)
		cmd.Stdout, cmd.Stderr = w.logs, w.logs
		return cmd
	})
	require.NoError(w, err)
	w.Cleanup(e.Close)
	return e
}

// answer sends an event that has to be answered.
func (w *world) answer(e *runtimeapi.Environment, event string) map[string]any {
	w.Helper()
	r, err := e.Invoke(w.Context(), []byte(event))
	require.NoError(w, err)
	require.False(w, r.Failed, "%s", r.Payload)
	var answer map[string]any
	require.NoError(w, json.Unmarshal(r.Payload, &answer), "%s", r.Payload)
	return answer
}

func (w *world) submit(tasks ...core.NewTask) {
	w.Helper()
	_, err := w.scheduler.Submit(w.Context(), tasks...)
	require.NoError(w, err)
}

func (w *world) task(id string) core.TaskInfo {
	w.Helper()
	task, err := w.scheduler.Task(w.Context(), "ada", id)
	require.NoError(w, err)
	return task
}

func (w *world) stats() inspect.Stats {
	w.Helper()
	stats, err := w.scheduler.Stats(w.Context())
	require.NoError(w, err)
	return stats
}

// running waits until so many tasks are under lease.
func (w *world) running(n int64) {
	w.Helper()
	require.Eventually(w, func() bool { return w.stats().InProgress >= n }, 20*time.Second, 2*time.Millisecond)
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

// redisCluster is the URL of a cluster of one node.
func redisCluster(t *testing.T) string {
	t.Helper()
	return "redis+cluster://" + redistest.StartCluster(t).Addr
}
