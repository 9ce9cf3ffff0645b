package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestEveryKindOfTickRunsWhatIsDue(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rule", "scheduler", "tick", "tick-scheduler", "input-scheduler"} {
		f := setup(t, lambdaadapter.Config{})
		f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "zoe", ID: "2", Kind: "ok"},
			core.NewTask{Agent: "zoe", ID: "later", Kind: "ok", Delay: time.Hour})
		answer := f.invoke(t, known(t, name))
		assert.EqualValues(t, 2, answer["completed"], name)
		assert.EqualValues(t, 2, answer["agents"], name)
		assert.Equal(t, false, answer["more"], name)
		assert.NotNil(t, answer["next_due_at"], name)
		assert.NotContains(t, answer, "duplicate")
		assert.Equal(t, core.StatusWaiting, f.status(t, "zoe", "later"))
		assert.Contains(t, f.logs.String(), "msg=tick agents=2 ran=2 completed=2")
	}
}

func TestATickForSomeAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "ada", ID: "2", Kind: "ok"},
		core.NewTask{Agent: "zoe", ID: "1", Kind: "ok"})
	assert.EqualValues(t, 1, f.invoke(t, `{"kind":"tick","agent_ids":["ada"],"max":1}`)["completed"])
	assert.EqualValues(t, 1, f.invoke(t, known(t, "tick-agents"))["completed"])
	assert.Equal(t, core.StatusWaiting, f.status(t, "zoe", "1"))
	before := f.store.claims()
	assert.EqualValues(t, 0, f.invoke(t, `{"kind":"tick","agent_ids":[]}`)["ran"])
	assert.Equal(t, before, f.store.claims(), "no agents, no call of the store")
	assert.EqualValues(t, 1, f.invoke(t, `{"kind":"tick","all":true,"agent_ids":null}`)["completed"])
}

func TestATickIsReadStrictly(t *testing.T) {
	t.Parallel()
	const arn = `"arn:aws:scheduler:eu-north-1:111122223333:schedule/default/duly"`
	f := setup(t, lambdaadapter.Config{})
	for event, field := range map[string]string{
		`{"kind":"tick","agents":["a"]}`:                    "agents",
		`{"kind":"tick","Max":1}`:                           "Max",
		`{"kind":"tick","agent_ids":"a"}`:                   "agent_ids",
		`{"kind":"tick","agent_ids":["a",""]}`:              "agent_ids[1]",
		`{"kind":"tick","agent_ids":["a"],"all":true}`:      "all",
		`{"kind":"tick","all":false}`:                       "agent_ids",
		`{"kind":"tick","all":1}`:                           "all",
		`{"kind":"tick","max":-1}`:                          "max",
		`{"kind":"tick","max":1.5}`:                         "max",
		`{"kind":"tick","timeout_ms":-1}`:                   "timeout_ms",
		`{"kind":"tick","timeout_ms":"5s"}`:                 "timeout_ms",
		`{"kind":"tick","schedule-arn":` + arn + `}`:        "scheduled-time",
		`{"kind":"tick","scheduled-time":"2026-01-01"}`:     "schedule-arn",
		`{"schedule-arn":1,"scheduled-time":"x"}`:           "schedule-arn",
		`{"schedule-arn":` + arn + `,"scheduled-time":"x"}`: "scheduled-time",
		`{"schedule-arn":"<aws.scheduler.schedule-arn>","scheduled-time":"<aws.scheduler.scheduled-time>"}`: "schedule-arn",
		`{"schedule-arn":` + arn + `,"scheduled-time":"2026-11-02T07:17:00Z","Agent_ids":[]}`:               "Agent_ids",
	} {
		_, err := f.function.Invoke(t.Context(), json.RawMessage(event))
		var invalid *core.InvalidError
		if assert.ErrorAs(t, err, &invalid, event) {
			assert.Equal(t, field, invalid.Field, event)
		}
	}
	assert.Zero(t, f.store.claims())
}

// Runs that fail are part of the answer, the first few with their errors; they are no error of the invocation, which Lambda
// would repeat.
func TestFailedRunsAreToldInTheAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	for i := range 20 {
		f.submit(t, core.NewTask{Agent: "ada", ID: fmt.Sprintf("f%02d", i), Kind: "failing"})
	}
	f.submit(t, core.NewTask{Agent: "ada", ID: "p", Kind: "panicking"}, core.NewTask{Agent: "ada", ID: "ok", Kind: "ok"})
	data, err := f.function.Invoke(t.Context(), json.RawMessage(`{"kind":"tick"}`))
	require.NoError(t, err)
	assert.Less(t, len(data), 10_000, "what is told of failures is capped")
	var answer struct {
		Completed, Failed, Retried int
		Failures                   []map[string]string
	}
	require.NoError(t, json.Unmarshal(data, &answer))
	assert.Equal(t, []int{1, 20, 1}, []int{answer.Completed, answer.Failed, answer.Retried})
	require.NotEmpty(t, answer.Failures)
	assert.LessOrEqual(t, len(answer.Failures), 5)
	assert.Equal(t, "ada", answer.Failures[0]["agent_id"])
	assert.NotEmpty(t, answer.Failures[0]["id"])
	assert.Contains(t, f.logs.String(), "a run failed")
}

func TestARepeatedScheduleIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rule", "scheduler", "tick-scheduler", "input-scheduler"} {
		f := setup(t, lambdaadapter.Config{})
		f.invoke(t, known(t, name))
		f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"})
		claims := f.store.claims()
		answer := f.invoke(t, known(t, name))
		assert.Equal(t, true, answer["duplicate"], name)
		assert.Contains(t, answer["schedule-arn"], "arn:aws:", name)
		assert.Contains(t, answer["scheduled-time"], "2026-11-02T07:1", name)
		assert.Equal(t, claims, f.store.claims(), "a repeat calls no store")

		assert.EqualValues(t, 1, f.invoke(t, `{"kind":"tick"}`)["completed"], "a tick without a schedule is never a repeat")
		assert.NotContains(t, f.invoke(t, `{"kind":"tick"}`), "duplicate")
	}
	f := setup(t, lambdaadapter.Config{})
	f.invoke(t, known(t, "tick-scheduler"))
	assert.NotContains(t, f.invoke(t, alter(t, "tick-scheduler", map[string]any{"scheduled-time": "2026-11-02T07:18:00Z"})), "duplicate")
	assert.Contains(t, f.invoke(t, alter(t, "tick-scheduler", map[string]any{"execution-id": "another"})), "duplicate")
	assert.Contains(t, f.invoke(t, alter(t, "tick-scheduler", map[string]any{"scheduled-time": "2026-11-02T08:17:00+01:00"})), "duplicate")
}

// A tick that failed is not remembered: its repeat has to do the work.
func TestAFailedTickIsRepeated(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"})
	away := &store.Error{Verb: "claim", Err: errors.New("away")}
	f.store.FailWith(away)
	_, err := f.function.Invoke(t.Context(), json.RawMessage(known(t, "scheduler")))
	require.ErrorIs(t, err, away)
	f.store.FailWith(nil)
	assert.EqualValues(t, 1, f.invoke(t, known(t, "scheduler"))["completed"])
	assert.Contains(t, f.invoke(t, known(t, "scheduler")), "duplicate")
}

func TestTheMemoryOfSchedulesIsBounded(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	at := func(i int) string {
		return alter(t, "tick-scheduler", map[string]any{
			"scheduled-time": time.Date(2026, 11, 2, 8, i, 0, 0, time.UTC).Format(time.RFC3339),
		})
	}
	for i := range 65 {
		assert.NotContains(t, f.invoke(t, at(i)), "duplicate")
	}
	assert.Contains(t, f.invoke(t, at(1)), "duplicate", "the latest 64 are known")
	assert.NotContains(t, f.invoke(t, at(0)), "duplicate", "the oldest was forgotten")
}

// Before the deadline everything that was claimed is settled or given back.
func TestNothingIsLeftAtTheDeadline(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	core.Handle(f.scheduler, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	for i := range 8 {
		f.submit(t, core.NewTask{Agent: "ada", ID: fmt.Sprint(i), Kind: "slow"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), model.DefaultMargin+200*time.Millisecond)
	defer cancel()
	data, err := f.function.Invoke(ctx, json.RawMessage(`{"kind":"tick"}`))
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "it was answered before the deadline")
	var report struct {
		Ran, Released int
		More          bool
	}
	require.NoError(t, json.Unmarshal(data, &report))
	assert.Positive(t, report.Ran)
	assert.Equal(t, report.Ran, report.Released)
	assert.True(t, report.More)
	stats, err := f.scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, stats.InProgress)
	assert.EqualValues(t, 8, stats.Waiting)
}

// The line of a tick is a metric: how long the oldest task has been due that it left behind.
func TestATickIsAMetric(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	st := memstore.New(memstore.Config{Clock: clock})
	s, err := core.New(st, core.Config{Clock: clock})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	var log bytes.Buffer
	f, err := lambdaadapter.New(s, lambdaadapter.Config{Metrics: "mine", Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "ada", ID: "2", Kind: "ok"})
	require.NoError(t, err)
	clock.Advance(90 * time.Second)
	for _, late := range []float64{90, 0} {
		log.Reset()
		_, err = f.Invoke(t.Context(), []byte(`{"kind":"tick","max":1}`))
		require.NoError(t, err)
		var line map[string]any
		require.NoError(t, json.Unmarshal(log.Bytes(), &line))
		assert.InDelta(t, late, line["oldest_due"], 1)
		assert.Equal(t, "mine", line["function_name"])
		assert.EqualValues(t, 1, line["due"])
		assert.EqualValues(t, 0, line["cut_off"])
		about := line["_aws"].(map[string]any)
		assert.Positive(t, about["Timestamp"])
		marked, err := json.Marshal(about["CloudWatchMetrics"])
		require.NoError(t, err)
		assert.JSONEq(t, `[{"Namespace":"duly","Dimensions":[["function_name"]],"Metrics":[{"Name":"oldest_due","Unit":"Seconds"}]}]`, string(marked))
	}
	f, err = lambdaadapter.New(s, lambdaadapter.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, err)
	log.Reset()
	_, err = f.Invoke(t.Context(), []byte(`{"kind":"tick"}`))
	require.NoError(t, err)
	assert.NotContains(t, log.String(), "_aws", "nobody asked for a metric, which costs")
}
