package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
)

// The test binary is the function as well: started by a Runtime API it is main.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// world is the function, the Redis it has, and the service that it asks for digests.
type world struct {
	*testing.T

	function    *runtimeapi.Environment
	redis       *redistest.Server
	scheduler   *core.Scheduler
	connections atomic.Int32  // that the service has accepted
	asked       chan struct{} // the service has been asked for something slow
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, redis: redistest.Start(t), asked: make(chan struct{}, 1)}
	service := httptest.NewUnstartedServer(http.HandlerFunc(w.answer))
	service.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			w.connections.Add(1)
		}
	}
	service.Start()
	t.Cleanup(service.Close)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: w.redis.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	w.scheduler, err = core.New(st, core.Config{})
	require.NoError(t, err)
	w.function = start(t, "DULY_REDIS_URL="+w.redis.URL, "DIGEST_URL="+service.URL)
	return w
}

func start(t *testing.T, vars ...string) *runtimeapi.Environment {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	e, err := runtimeapi.New(20*time.Second, func(address string) *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = append([]string{"AWS_LAMBDA_RUNTIME_API=" + address, "GORACE=atexit_sleep_ms=0"}, vars...)
		return cmd
	})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// answer is the service: "slow" waits, "busy" is refused, anything else gets its length.
func (w *world) answer(res http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var order struct{ Topics []string }
	_ = json.Unmarshal(body, &order)
	switch order.Topics[0] {
	case "slow":
		w.asked <- struct{}{}
		<-r.Context().Done()
	case "busy":
		res.WriteHeader(http.StatusTooManyRequests)
	default:
		_, _ = io.WriteString(res, strconv.Itoa(len(order.Topics))+" topics")
	}
}

// invoke sends an event that has to be answered.
func (w *world) invoke(event string) map[string]any {
	w.Helper()
	r, err := w.function.Invoke(w.Context(), []byte(event))
	require.NoError(w, err)
	require.False(w, r.Failed, "%s", r.Payload)
	var answer map[string]any
	require.NoError(w, json.Unmarshal(r.Payload, &answer))
	return answer
}

func (w *world) submit(id string, payload any) {
	w.Helper()
	_, err := w.scheduler.Submit(w.Context(), core.NewTask{Agent: "ada", ID: id, Kind: "digest", Payload: payload})
	require.NoError(w, err)
}

func (w *world) task(id string) core.TaskInfo {
	w.Helper()
	task, err := w.scheduler.Task(w.Context(), "ada", id)
	require.NoError(w, err)
	return task
}

func (w *world) redisConnections() string {
	w.Helper()
	info, err := w.redis.Client(w.T).InfoMap(w.Context(), "stats").Result()
	require.NoError(w, err)
	return info["Stats"]["total_connections_received"]
}

const tick = `{"kind":"tick"}`

// What is due is run, typed; what came through SQS as well. Invocations that find the process warm open no connections.
func TestTheFunctionRunsItsHandlers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("1", Digest{Topics: []string{"go", "redis"}})
	assert.EqualValues(t, 1, w.invoke(tick)["completed"])
	assert.JSONEq(t, `"2 topics"`, string(w.task("1").Result))
	assert.Equal(t, 1, w.function.Extensions(), "it asks for SIGTERM")

	before := w.redisConnections()
	for i := range 10 {
		id := "warm-" + strconv.Itoa(i)
		w.submit(id, Digest{Topics: []string{"go"}})
		assert.EqualValues(t, 1, w.invoke(tick)["completed"])
	}
	after := w.redisConnections()
	assert.Equal(t, 1, atoi(t, after)-atoi(t, before), "but for the one that asks")
	assert.EqualValues(t, 1, w.connections.Load(), "to the service")

	w.invoke(`{"Records":[{"eventSource":"aws:sqs","messageId":"m","body":"{\"agent_id\":\"ada\",\"id\":\"q\",\"kind\":\"digest\",\"payload\":{\"topics\":[\"a\"]}}"}]}`)
	assert.Equal(t, core.StatusCompleted, w.task("q").Status)
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// What can never succeed is not tried again; what can is, when the service says.
func TestTheFunctionsErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("none", Digest{})
	w.submit("other", map[string]any{"topics": "no list"})
	w.submit("busy", Digest{Topics: []string{"busy"}})
	w.invoke(tick)
	assert.Equal(t, core.StatusFailed, w.task("none").Status)
	assert.Contains(t, w.task("none").LastError, "there has to be one")
	assert.Equal(t, core.StatusFailed, w.task("other").Status)
	busy := w.task("busy")
	assert.Equal(t, core.StatusWaiting, busy.Status)
	assert.Equal(t, 1, busy.Attempt)
	assert.Greater(t, busy.NextRun.Sub(busy.Submitted), 50*time.Second)
}

// SIGTERM gives back what is under way, uncharged.
func TestTheFunctionIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("1", Digest{Topics: []string{"slow"}})
	ended := make(chan runtimeapi.Result, 1)
	go func() {
		r, err := w.function.Invoke(t.Context(), []byte(tick))
		assert.NoError(t, err)
		ended <- r
	}()
	<-w.asked
	require.NoError(t, w.function.Signal(syscall.SIGTERM))
	r := <-ended
	assert.Contains(t, string(r.Payload), `"released":1`)
	task := w.task("1")
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Equal(t, 1, task.Attempt, "no attempt was charged")
	assert.Zero(t, task.Crashes)
}

func TestTheFunctionNeedsARedis(t *testing.T) {
	t.Parallel()
	r, err := start(t, "DULY_REDIS_URL=redis://127.0.0.1:1/0").Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.True(t, r.Failed && r.Exited)
}
