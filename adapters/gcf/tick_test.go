package gcf_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func TestCloudSchedulerRunsWhatIsDue(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", " \n", "{}", `{"all":true}`, `{"kind":"tick"}`, `{"kind":"tick","all":true,"agent_ids":null}`} {
		f := setup(t, gcf.Config{})
		f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "zoe", ID: "2", Kind: "ok"},
			core.NewTask{Agent: "zoe", ID: "later", Kind: "ok", Delay: time.Hour})
		status, answer := f.scheduled(t, body, "duly", at)
		assert.Equal(t, 200, status, body)
		assert.EqualValues(t, 2, answer["completed"], body)
		assert.NotNil(t, answer["next_due_at"], body)
		assert.Equal(t, core.StatusWaiting, f.status(t, "zoe", "later"))
		assert.Contains(t, f.logs.String(), "msg=tick agents=2 ran=2 completed=2")
	}
}

// The job's own header is enough, whatever the method, and wherever it points.
func TestCloudSchedulerIsKnownByItsHeaders(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{{"X-CloudScheduler", "true"}, {"X-CloudScheduler", "True"}, {"X-CloudScheduler-JobName", "duly"}, {"X-CloudTasks-QueueName", "alarms"}} {
		f := setup(t, gcf.Config{})
		f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"})
		r := request(t, "/somewhere", "", headers...)
		r.Method = http.MethodGet
		status, answer := f.call(t, r)
		assert.Equal(t, 200, status)
		assert.EqualValues(t, 1, answer["completed"])
	}
	f := setup(t, gcf.Config{})
	status, _ := f.call(t, request(t, "/", "{}", "X-CloudScheduler", "false", "User-Agent", "Google-Cloud-Scheduler"))
	assert.Equal(t, 404, status)
	assert.Zero(t, f.store.claims())
}

func TestATickForSomeAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "ada", ID: "2", Kind: "ok"},
		core.NewTask{Agent: "zoe", ID: "1", Kind: "ok"})
	_, answer := f.scheduled(t, `{"agent_ids":["ada"],"max":1}`, "", "")
	assert.EqualValues(t, 1, answer["completed"])
	assert.Equal(t, true, answer["more"])
	_, answer = f.scheduled(t, `{"agent_ids":["ada"]}`, "", "")
	assert.EqualValues(t, 1, answer["completed"])
	assert.Equal(t, core.StatusWaiting, f.status(t, "zoe", "1"))
	before := f.store.claims()
	_, answer = f.scheduled(t, `{"agent_ids":[]}`, "", "")
	assert.EqualValues(t, 0, answer["ran"])
	assert.Equal(t, before, f.store.claims(), "no agents, no call of the store")
}

// What a tick says is read strictly, wherever it comes from.
func TestATickIsReadStrictly(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{DeadLetter: true})
	for members, field := range map[string]string{
		`"agents":["a"]`:                        "agents",
		`"Max":1`:                               "Max",
		`"agent_ids":"a"`:                       "agent_ids",
		`"agent_ids":["a",""]`:                  "agent_ids[1]",
		`"agent_ids":["a\u0000b"]`:              "agent_ids[0]",
		`"agent_ids":["a"],"all":true`:          "all",
		`"all":false`:                           "agent_ids",
		`"all":1`:                               "all",
		`"max":-1`:                              "max",
		`"max":1.5`:                             "max",
		`"timeout_ms":-1`:                       "timeout_ms",
		`"timeout_ms":"5s"`:                     "timeout_ms",
		`"schedule-arn":"arn:aws:scheduler:::"`: "schedule-arn",
	} {
		tick := `{"kind":"tick",` + members + `}`
		status, answer := f.scheduled(t, tick, "duly", at)
		assert.Equal(t, 400, status, tick)
		assert.Contains(t, answer["detail"], field+" ", tick)
		status, answer = f.push(t, "1", tick)
		assert.Equal(t, 400, status, tick)
		assert.Contains(t, answer["detail"], field+" ", tick)
	}
	for _, body := range []string{`[]`, `tick`, `null`, `"tick"`, `{"kind":"tock"}`, `{"kind":1}`, `{"agent_id":"a","kind":"ok"}`, "{\"a\":\"\xff\"}"} {
		status, answer := f.scheduled(t, body, "duly", at)
		assert.Equal(t, 400, status, body)
		assert.Equal(t, "invalid", answer["code"])
	}
	assert.Zero(t, f.store.claims())
	assert.Zero(t, f.store.submits())
}

func TestFailedRunsAreToldInTheAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	for i := range 20 {
		f.submit(t, core.NewTask{Agent: "ada", ID: fmt.Sprintf("f%02d", i), Kind: "failing"})
	}
	f.submit(t, core.NewTask{Agent: "ada", ID: "ok", Kind: "ok"})
	status, answer := f.scheduled(t, "", "duly", at)
	assert.Equal(t, 200, status)
	assert.EqualValues(t, 1, answer["completed"])
	assert.EqualValues(t, 20, answer["failed"])
	failures, _ := answer["failures"].([]any)
	require.Len(t, failures, 5)
	first, _ := failures[0].(map[string]any)
	assert.Equal(t, "ada", first["agent_id"])
	assert.LessOrEqual(t, len(first["error"].(string)), 1024)
	assert.Contains(t, f.logs.String(), "a run failed")
}

func TestARepeatedScheduleIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	f.scheduled(t, "", "duly", at)
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"})
	claims := f.store.claims()
	for _, same := range []string{at, "2026-11-02T08:17:00+01:00"} {
		status, answer := f.scheduled(t, "", "duly", same)
		assert.Equal(t, 200, status)
		assert.Equal(t, map[string]any{"duplicate": true, "job": "duly", "time": at}, answer)
	}
	assert.Equal(t, claims, f.store.claims(), "a repeat calls no store")
	for _, other := range [][2]string{{"duly", "2026-11-02T07:18:00Z"}, {"other", at}, {"", at}, {"", at}, {"duly", ""}, {"duly", "soon"}, {"duly", "soon"}} {
		_, answer := f.scheduled(t, "", other[0], other[1])
		assert.NotContains(t, answer, "duplicate", other)
	}
	assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))
}

// A job's header is its name within a project and region only: two jobs of one name are told apart by what they ask for.
func TestJobsOfOneNameAreToldApart(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "bob", ID: "1", Kind: "ok"})
	for _, agent := range []string{"ada", "bob"} {
		body := `{"agent_ids":["` + agent + `"]}`
		_, answer := f.scheduled(t, body, "duly", at)
		assert.EqualValues(t, 1, answer["completed"], agent)
		_, answer = f.scheduled(t, body, "duly", at)
		assert.Equal(t, map[string]any{"duplicate": true, "job": "duly", "time": at}, answer)
	}
	r := request(t, "/other", `{"agent_ids":["ada"]}`, "X-CloudScheduler-JobName", "duly", "X-CloudScheduler-ScheduleTime", at)
	_, answer := f.call(t, r)
	assert.NotContains(t, answer, "duplicate", "another URL is another job")
}

// A tick that failed, or that left something due, is not remembered: its repeat has work to do.
func TestATickThatDidNotDoAllIsRepeated(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "ada", ID: "2", Kind: "ok"})
	f.store.FailWith(&store.Error{Verb: "claim", Err: errors.New("away: secret")})
	status, answer := f.scheduled(t, `{"max":1}`, "duly", at)
	assert.Equal(t, 503, status)
	assert.NotContains(t, answer["detail"], "secret")
	assert.Contains(t, f.logs.String(), "secret")
	f.store.FailWith(nil)
	for range 2 {
		_, answer = f.scheduled(t, `{"max":1}`, "duly", at)
		assert.EqualValues(t, 1, answer["completed"])
	}
	_, answer = f.scheduled(t, `{"max":1}`, "duly", at)
	assert.Equal(t, true, answer["duplicate"])
}

func TestTheMemoryOfSchedulesIsBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	send := func(i int) map[string]any {
		_, answer := f.scheduled(t, "", "duly", time.Date(2026, 11, 2, 8, i, 0, 0, time.UTC).Format(time.RFC3339))
		return answer
	}
	for i := range 65 {
		assert.NotContains(t, send(i), "duplicate")
	}
	assert.Contains(t, send(1), "duplicate", "the latest 64 are known")
	assert.NotContains(t, send(0), "duplicate", "the oldest was forgotten")
}

// Before the deadline everything that was claimed is settled or given back.
func TestNothingIsLeftAtTheDeadline(t *testing.T) {
	t.Setenv("CLOUD_RUN_TIMEOUT_SECONDS", "1")
	f := setup(t, gcf.Config{Timeout: time.Hour})
	for i := range 8 {
		f.submit(t, core.NewTask{Agent: "ada", ID: fmt.Sprint(i), Kind: "slow"})
	}
	begun := time.Now()
	status, answer := f.scheduled(t, "", "duly", at)
	assert.Less(t, time.Since(begun), time.Second, "answered before the deadline")
	assert.Equal(t, 200, status)
	assert.NotZero(t, answer["ran"])
	assert.Equal(t, answer["ran"], answer["released"])
	assert.Equal(t, true, answer["more"])
	stats, err := f.scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, stats.InProgress)
	assert.EqualValues(t, 8, stats.Waiting)
}

func TestConfigIsChecked(t *testing.T) {
	t.Setenv("CLOUD_RUN_TIMEOUT_SECONDS", "")
	_, err := gcf.New(nil, gcf.Config{Verify: gcf.Private})
	require.EqualError(t, err, "gcf: a scheduler is required")
	f := setup(t, gcf.Config{})
	_, err = gcf.New(f.scheduler, gcf.Config{})
	require.ErrorContains(t, err, "gcf: Verify is required")
	_, err = gcf.New(f.scheduler, gcf.Config{Verify: gcf.Private, Timeout: -1})
	require.EqualError(t, err, "gcf: Timeout must not be negative, got -1ns")
	_, err = gcf.New(f.scheduler, gcf.Config{Verify: gcf.Private, Margin: -1})
	require.EqualError(t, err, "gcf: Margin must not be negative, got -1ns")
	_, err = gcf.New(f.scheduler, gcf.Config{Verify: gcf.Private, MaxBody: -1})
	require.EqualError(t, err, "gcf: MaxBody must not be negative, got -1")
	for _, text := range []string{"0", "-1", "1m", "soon"} {
		t.Setenv("CLOUD_RUN_TIMEOUT_SECONDS", text)
		_, err = gcf.New(f.scheduler, gcf.Config{Verify: gcf.Private})
		require.EqualError(t, err, fmt.Sprintf("gcf: CLOUD_RUN_TIMEOUT_SECONDS must be a number of seconds, not %q", text))
	}
}
