package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
	main "github.com/seed-6f6f2c11/duly/sam"
)

const tick = `{"kind":"tick"}`

// From the queue to the answer, by the real loop: what SQS brings is submitted, a tick runs it, HTTP shows it.
func TestTheFunction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(20 * time.Second)
	failed := w.answer(e, `{"Records":[
		{"eventSource":"aws:sqs","messageId":"m1","body":"{\"agent_id\":\"ada\",\"id\":\"1\",\"kind\":\"note\",\"payload\":{\"n\":1}}"},
		{"eventSource":"aws:sqs","messageId":"m2","body":"nonsense"}]}`)
	assert.Equal(t, map[string]any{"batchItemFailures": []any{map[string]any{"itemIdentifier": "m2"}}}, failed)
	assert.EqualValues(t, 1, w.answer(e, tick)["completed"])
	assert.Equal(t, core.StatusCompleted, w.task("1").Status)
	answer := w.answer(e, get("/v1/agents/ada/tasks/1", true))
	assert.EqualValues(t, 200, answer["statusCode"])
	assert.Contains(t, answer["body"], `"status":"completed"`)
	for _, path := range []string{"/v1/agents/ada/tasks/1", "/v1/stats", "/product/scheduler/allstatus", "/nowhere"} {
		assert.EqualValues(t, 401, w.answer(e, get(path, false))["statusCode"], "nobody signed it, and there are no tokens")
	}
	assert.Equal(t, 1, e.Extensions(), "it asks for SIGTERM")
}

// get is a request of a Function URL, signed or not.
func get(path string, signed bool) string {
	authorizer := `null`
	if signed {
		authorizer = `{"iam":{"userArn":"arn:aws:iam::111122223333:user/ada"}}`
	}
	return fmt.Sprintf(`{"version":"2.0","rawPath":%q,"rawQueryString":"","headers":{"authorization":"Bearer right"},
		"requestContext":{"domainName":"x.lambda-url.eu-north-1.on.aws","authorizer":%s,"http":{"method":"GET","path":%q}}}`,
		path, authorizer, path)
}

func TestTokensLetRequestsIn(t *testing.T) {
	t.Parallel()
	for token, status := range map[string]int{"wrong": 401, "wrong, right": 200} {
		w := newWorld(t, "DULY_TOKEN="+token)
		e := w.environment(20 * time.Second)
		assert.EqualValues(t, status, w.answer(e, get("/v1/stats", false))["statusCode"])
		assert.EqualValues(t, 200, w.answer(e, get("/v1/stats", true))["statusCode"])
	}
}

// An event that makes no sense is an error of the function; the environment goes on.
func TestAnErrorEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(20 * time.Second)
	for event, kind := range map[string]string{`{"kind":"tock"}`: "UnknownEventError", ``: "UnknownEventError", `{"kind":"tick","max":-1}`: ""} {
		r, err := e.Invoke(t.Context(), []byte(event))
		require.NoError(t, err)
		assert.True(t, r.Failed)
		assert.False(t, r.Exited)
		var problem struct{ ErrorType, ErrorMessage string }
		require.NoError(t, json.Unmarshal(r.Payload, &problem), "%s", r.Payload)
		assert.Contains(t, problem.ErrorType, kind)
		assert.NotEmpty(t, problem.ErrorMessage)
	}
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "quick"})
	assert.EqualValues(t, 1, w.answer(e, tick)["completed"])
	w.redis.Kill()
	r, err := e.Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.True(t, r.Failed, "an alarm has to see that Redis is away")
	w.redis.Restart(t)
	w.answer(e, tick)
}

// A handler that panics is an outcome; one that panics where nobody can catch it costs the process, and the next one
// takes its task over; so does a panic in the adapter.
func TestPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(20 * time.Second)
	w.submit(core.NewTask{Agent: "ada", ID: "p", Kind: "panics", MaxAttempts: 1}, core.NewTask{Agent: "ada", ID: "q", Kind: "quick"})
	answer := w.answer(e, tick)
	assert.EqualValues(t, 1, answer["completed"])
	assert.EqualValues(t, 1, answer["failed"])
	assert.Contains(t, w.task("p").LastError, "in a handler")

	r, err := e.Invoke(t.Context(), []byte(`{"why":"panic in the adapter"}`))
	require.NoError(t, err)
	assert.True(t, r.Failed && r.Exited)
	assert.Contains(t, string(r.Payload), "in the adapter")
	assert.EqualValues(t, 0, w.answer(e, tick)["ran"], "a new process goes on")

	w.submit(core.NewTask{Agent: "ada", ID: "c", Kind: "crashes"})
	r, err = e.Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.True(t, r.Failed && r.Exited)
	assert.EqualValues(t, 1, w.stats().InProgress)
	idle := w.environment(20 * time.Second)
	w.answer(idle, `{"kind":"tick","agent_ids":["zoe"]}`)
	require.Eventually(t, func() bool { // a tick of another environment runs into the same, once the lease has run out
		r, err := idle.Invoke(t.Context(), []byte(tick))
		return err == nil && r.Exited
	}, 20*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { // the second is known to have died once its lease has run out, too: whoever looks for another agent takes it back
		w.answer(idle, `{"kind":"tick","agent_ids":["zoe"]}`)
		return w.task("c").Crashes == 2
	}, 20*time.Second, 50*time.Millisecond, "two environments")
}

// Before the deadline less the margin everything that was claimed is settled or given back, and no invocation times out.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(time.Second + 200*time.Millisecond)
	w.answer(e, tick) // the start of the process is not part of the budget
	tasks := []core.NewTask{{Agent: "z", ID: "hangs", Kind: "waits"}}
	for i := range core.MaxSubmit - 1 {
		tasks = append(tasks, core.NewTask{Agent: fmt.Sprintf("a%d", i%7), ID: fmt.Sprint(i), Kind: "steady"})
	}
	w.submit(tasks...)
	var completed int64
	for range 3 {
		r, err := e.Invoke(t.Context(), []byte(tick))
		require.NoError(t, err)
		require.False(t, r.Failed, "%s timed out: %v", r.Payload, r.TimedOut)
		var report struct {
			Ran, Completed, Failed, Retried, Released int
			More                                      bool
		}
		require.NoError(t, json.Unmarshal(r.Payload, &report))
		assert.Positive(t, report.Completed)
		assert.Zero(t, report.Failed+report.Retried)
		assert.GreaterOrEqual(t, report.Completed+report.Released, report.Ran, "claimed = finished or given back")
		assert.True(t, report.More)
		completed += int64(report.Completed)
		stats := w.stats()
		assert.Zero(t, stats.InProgress, "nothing is left under lease")
		assert.Equal(t, completed, stats.Completed, "what was told is what was recorded")
		assert.EqualValues(t, core.MaxSubmit-completed, stats.Waiting)
	}
}

// What does not heed its context is cut off with the process. Its lease runs out, and it is not lost.
func TestATimeoutKillsAndNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(2 * time.Second)
	w.answer(e, tick)
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "quick"})
	require.NoError(t, e.Freeze(t.Context()))
	r, err := e.Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.True(t, r.TimedOut && r.Exited)
	assert.EqualValues(t, 1, w.answer(e, tick)["completed"])
}

// SIGTERM ends what is under way: its tasks are given back, uncharged, within the half second that there is.
func TestSIGTERMDrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(30 * time.Second)
	w.answer(e, tick)
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "waits"}, core.NewTask{Agent: "bob", ID: "2", Kind: "waits"})
	ended := make(chan runtimeapi.Result, 1)
	go func() {
		r, err := e.Invoke(t.Context(), []byte(tick))
		assert.NoError(t, err)
		ended <- r
	}()
	w.running(2)
	require.NoError(t, e.Signal(syscall.SIGTERM))
	r := <-ended
	require.False(t, r.Failed, "%s", r.Payload)
	assert.Less(t, r.Took, 20*time.Second)
	assert.Contains(t, string(r.Payload), `"released":2`)
	assert.Zero(t, w.stats().InProgress)
	task := w.task("1")
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Equal(t, 1, task.Attempt, "no attempt was charged")
	assert.Zero(t, task.Crashes)
	begun := time.Now()
	e.Shutdown()
	assert.Less(t, time.Since(begun), 10*time.Second)
}

// Environments that overlap share the work: each task runs once.
func TestEnvironmentsOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.environment(60*time.Second), w.environment(60*time.Second)
	w.answer(a, tick)
	w.answer(b, tick)
	const tasks = 300
	for i := range tasks {
		w.submit(core.NewTask{Agent: fmt.Sprintf("a%d", i%30), ID: fmt.Sprint(i), Kind: "count"})
	}
	var both sync.WaitGroup
	ran := make([]float64, 2)
	for i, e := range []*runtimeapi.Environment{a, b} {
		both.Go(func() {
			ran[i] = w.answer(e, `{"version":"0","detail-type":"Scheduled Event","source":"aws.scheduler","time":"2026-11-02T07:16:00Z",
				"resources":["arn:aws:scheduler:eu-north-1:111122223333:schedule/default/duly"],"detail":"{}"}`)["completed"].(float64)
		})
	}
	both.Wait()
	assert.EqualValues(t, tasks, ran[0]+ran[1])
	counts, err := w.redis.Client(t).HGetAll(t.Context(), "ran").Result()
	require.NoError(t, err)
	assert.Len(t, counts, tasks)
	for id, n := range counts {
		assert.Equal(t, "1", n, id)
	}
	assert.Zero(t, w.stats().InProgress)
}

// One environment has one event at a time.
func TestAnEnvironmentIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(30 * time.Second)
	w.answer(e, tick)
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "waits"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = e.Invoke(t.Context(), []byte(tick))
	}()
	w.running(1)
	_, err := e.Invoke(t.Context(), []byte(tick))
	require.ErrorIs(t, err, runtimeapi.ErrBusy)
	e.Shutdown()
	<-ended
}

// A list is answered in pages that Lambda takes, however large its tasks are.
func TestAListOfLargeTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(60 * time.Second)
	for i := range 100 {
		w.submit(core.NewTask{
			Agent: "ada", ID: fmt.Sprint(i), Kind: "quick", Delay: time.Hour, Payload: strings.Repeat("x", 100_000),
		})
	}
	answer := w.answer(e, strings.Replace(get("/v1/tasks", true), `"rawQueryString":""`, `"rawQueryString":"agent_id=ada&limit=100"`, 1))
	assert.EqualValues(t, 200, answer["statusCode"])
	assert.Contains(t, answer["body"], `"next_cursor":"`)
	assert.NotContains(t, answer["body"], `"next_cursor":""`)
	r, err := e.Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.False(t, r.Failed || r.Exited, "the same process goes on")
}

// All invocations of an environment share its connections to Redis.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.environment(20 * time.Second)
	w.answer(e, tick)
	client := w.redis.Client(t)
	opened := func() string {
		info, err := client.InfoMap(t.Context(), "stats").Result()
		require.NoError(t, err)
		return info["Stats"]["total_connections_received"]
	}
	before := opened()
	for i := range 20 {
		w.submit(core.NewTask{Agent: "ada", ID: fmt.Sprint(i), Kind: "quick"})
		assert.EqualValues(t, 1, w.answer(e, tick)["completed"])
	}
	assert.Equal(t, before, opened(), "20 warm invocations opened no connection")
}

// A cold start tries the scripts once a day, not each time: with alarms nearly each call is one.
func TestAColdStartRemembersThatTheScriptsRan(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // whose own store has tried them, on this server
	client := w.redis.Client(t)
	before := redistest.Commands(t, client)
	w.answer(w.environment(20*time.Second), tick)
	sent := redistest.Commands(t, client) - before
	t.Logf("figure: %d commands, with those of scripts", sent)
	assert.Less(t, sent, 20)
}

// A function that cannot start says why, and does not tell the password.
func TestAStartThatFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ vars, want string }{
		{"DULY_REDIS_URL=", "DULY_REDIS_URL is not set"},
		{"DULY_REDIS_URL=redis://user:hunter2@127.0.0.1:1/0", "cannot reach"},
		{"DULY_REDIS_URL=http://user:hunter2@127.0.0.1", "URL"},
		{"DULY_RUN_SUBMITTED=perhaps", "DULY_RUN_SUBMITTED must be true or false"},
		{"DULY_REDIS_CA=/nowhere/ca.pem", "CAFile is for TLS"},
		{"DULY_WEBHOOKS=[]", "DULY_WEBHOOKS must be JSON"},
		{"DULY_WEBHOOKS={\"x\":\"http://agents.example\"}", "must begin with https://"},
	} {
		w := newWorld(t, c.vars)
		r, err := w.environment(20*time.Second).Invoke(t.Context(), []byte(tick))
		require.NoError(t, err)
		assert.True(t, r.Failed && r.Exited)
		assert.Contains(t, string(r.Payload), c.want)
		assert.NotContains(t, string(r.Payload)+w.logs.String(), "hunter2")
	}
}

// A cluster, which is what ElastiCache Serverless is, is one setting.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redisCluster(t)
	w := newWorld(t, "DULY_REDIS_URL="+cluster)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: cluster})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	w.scheduler, err = core.New(st, core.Config{})
	require.NoError(t, err)
	w.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "note"})
	assert.EqualValues(t, 1, w.answer(w.environment(20*time.Second), tick)["completed"])
}

func TestTheEnvironmentIsRead(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"DULY_REDIS_URL": " redis://x \n", "DULY_PREFIX": "p:", "DULY_TOKEN": " , ", "DULY_RUN_SUBMITTED": "true"}
	e, err := main.ReadEnvironment(func(name string) string { return vars[name] })
	require.NoError(t, err)
	read := fmt.Sprintf("%+v", e)
	assert.Contains(t, read, "redis:{URL:redis://x CAFile: CertFile: KeyFile: Options:<nil> Credentials:<nil> Prefix:p: ")
	assert.Contains(t, read, " tokens:[] runSubmitted:true ", "tokens that are blank are none, and let nobody in")
}
