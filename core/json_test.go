package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// everyField is a task with all its fields; At excludes Delay and Every, so they are in a second one.
const (
	cronField  = `{"agent_id":"a","kind":"k","cron":"0 1 * * *","zone":"Europe/Berlin","day_match":"all","gap":"skip"}`
	everyField = `{"id":"i","agent_id":"a","kind":"k","payload":{"n":[1,2]},"every":"1m30s","from":"start","level":2,
		"group":"g","max_attempts":7,"backoff":"2s","timeout":"1h0m0s","lease":"45s","trace_id":"t","traceparent":"p",
		"session_id":"s","user_id":"u","labels":{"tier":"gold"},"info":{"x":1},"tags":["b","c"],"delay":"5s"}`
	noneField = `{"agent_id":"a","kind":"k","jitter":"0s","backoff":"0s","timeout":"0s","pause_after_failures":-1}`
	atField   = `{"agent_id":"a","kind":"k","at":"2026-01-02T03:04:05.678+02:00"}`
)

func TestNewTaskRoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range []string{everyField, atField, cronField, `{}`, noneField} {
		var task core.NewTask
		require.NoError(t, json.Unmarshal([]byte(text), &task))
		data, err := json.Marshal(task)
		require.NoError(t, err)
		assert.JSONEq(t, text, string(data))
	}
}

func TestNewTaskReadsEachField(t *testing.T) {
	t.Parallel()
	var task core.NewTask
	require.NoError(t, json.Unmarshal([]byte(everyField), &task))
	assert.Equal(t, core.NewTask{
		Agent: "a", ID: "i", Kind: "k", Payload: json.RawMessage(`{"n":[1,2]}`), Delay: 5 * time.Second,
		Every: 90 * time.Second, From: core.FromStart, Level: core.LevelMedium, Group: "g", MaxAttempts: 7,
		Backoff: 2 * time.Second, Timeout: time.Hour, Lease: 45 * time.Second, TraceID: "t", Traceparent: "p",
		SessionID: "s", UserID: "u", Labels: map[string]string{"tier": "gold"}, Info: json.RawMessage(`{"x":1}`), Tags: []string{"b", "c"},
	}, task)
	require.NoError(t, json.Unmarshal([]byte(atField), &task))
	assert.True(t, time.Date(2026, 1, 2, 1, 4, 5, 678e6, time.UTC).Equal(task.At))
	assert.Empty(t, task.ID, "what was there before is gone")
}

// A payload that is a Go value is written as the JSON that a store would get.
func TestNewTaskWritesGoPayloads(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(core.NewTask{Agent: "a", Kind: "k", Payload: map[string]int{"n": 1}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"agent_id":"a","kind":"k","payload":{"n":1}}`, string(data))
	_, err = json.Marshal(core.NewTask{Agent: "a", Kind: "k", Payload: math.Inf(1)})
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
}

func TestNullIsLeftOut(t *testing.T) {
	t.Parallel()
	var task core.NewTask
	require.NoError(t, json.Unmarshal([]byte(`{"agent_id":"a","kind":"k","payload":null,"every":null,"tags":null,"at":null}`), &task))
	assert.Equal(t, core.NewTask{Agent: "a", Kind: "k"}, task)
}

func TestBadTasksNameTheField(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                       "task is not valid JSON: unexpected end of JSON input",
		`{"agent_id":"a"`:                        "task is not valid JSON: unexpected end of JSON input",
		`{"agent_id":"a"} x`:                     "task is not valid JSON: invalid character 'x' after top-level value",
		`[]`:                                     `task must be a JSON object; write several as {"tasks": [...]}`,
		`null`:                                   "task must be a JSON object",
		"{\"agent_id\":\"\xff\"}":                "task is not valid UTF-8",
		`{"agent":"a"}`:                          "agent is not a field of a task: its name is agent_id",
		`{"agent_id":"a","task_id":"b"}`:         "task_id is not a field of a task: its name is id",
		`{"evry":"a"}`:                           "evry is not a field of a task: values of your own go into labels",
		`{"Kind":"a"}`:                           "Kind is not a field of a task: values of your own go into labels",
		`{"kind":"a","kind":"b"}`:                "kind is given twice",
		`{"kind":"a","k\u0069nd":"b"}`:           "kind is given twice",
		`{"kind":1}`:                             "kind must be a string",
		`{"level":"1"}`:                          "level must be 1, 2 or 3",
		`{"level":1.5}`:                          "level must be 1, 2 or 3",
		`{"max_attempts":1e99}`:                  "max_attempts must be a whole number from 1 on",
		`{"every":5}`:                            `every must be a duration such as "90s", "1h30m" or "1d"`,
		`{"every":"5"}`:                          `every must be a duration such as "90s", "1h30m" or "1d"`,
		`{"at":"tomorrow"}`:                      `at must be a time such as "2026-01-02T15:04:05Z"`,
		`{"tags":"a"}`:                           "tags must be an array of strings",
		`{"tasks":{}}`:                           "tasks must be an array",
		`{"tasks":null}`:                         "tasks must be an array",
		`{"tasks":[{}],"kind":"k"}`:              "tasks is not a field of a task: values of your own go into labels",
		`{"tasks":[1]}`:                          "tasks[0] must be a JSON object",
		`{"tasks":[{"kind":"k"},{"delay":"x"}]}`: `tasks[1].delay must be a duration such as "90s", "1h30m" or "1d"`,
		`{"tasks":[` + strings.Repeat("{},", 1000) + `{}]}`: "tasks are 1001: the limit is 1000 a call",
	} {
		_, err := model.ParseTasks([]byte(text))
		var inv *core.InvalidError
		require.ErrorAs(t, err, &inv, text)
		assert.Equal(t, want, err.Error(), text)
	}
}

// The name of an unknown field comes from outside and goes into logs.
func TestUnknownFieldsAreClipped(t *testing.T) {
	t.Parallel()
	err := json.Unmarshal([]byte(`{"`+strings.Repeat("x", 1<<20)+`":1}`), new(core.NewTask))
	var inv *core.InvalidError
	require.ErrorAs(t, err, &inv)
	assert.Less(t, len(inv.Field), 2000)
}

func TestParseTasksReadsOneOrMany(t *testing.T) {
	t.Parallel()
	tasks, err := model.ParseTasks([]byte(` {"agent_id":"a","kind":"k"} `))
	require.NoError(t, err)
	assert.Equal(t, []core.NewTask{{Agent: "a", Kind: "k"}}, tasks)
	tasks, err = model.ParseTasks([]byte(`{"tasks":[{"agent_id":"a","kind":"k"},{"agent_id":"b","kind":"k"}]}`))
	require.NoError(t, err)
	assert.Equal(t, []core.NewTask{{Agent: "a", Kind: "k"}, {Agent: "b", Kind: "k"}}, tasks)
	tasks, err = model.ParseTasks([]byte(`{"tasks":[]}`))
	require.NoError(t, err)
	assert.Empty(t, tasks)
}

// instant is 2026-01-02T03:04:05.678Z.
const instant = moment.Millis(1767323045678)

func TestTaskInfoIsFlat(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(core.TaskInfo{
		Agent: "a", ID: "i", Kind: "k", Status: core.StatusInProgress, Submitted: instant.Time(), Due: (instant + 1).Time(),
		UpdatedAt: (instant + 4).Time(), LastActivity: (instant + 5).Time(), Started: (instant + 2).Time(), Attempt: 1, Crashes: 2,
		TaskSettings: model.TaskSettings{
			Group: "g", Level: core.LevelLow, Payload: json.RawMessage(`{"n":1}`), Every: time.Minute, From: core.FromStart, Tags: []string{"t"},
		},
		TaskHistory: model.TaskHistory{
			RunCount: 3, SkipCount: 4, ErrorCount: 5, ConsecutiveFailures: 6, RetryAfters: 7, LastRun: (instant + 3).Time(), LastOutcome: model.OutcomeFailed,
			LastError: "e", Result: json.RawMessage(`[1]`), Progress: json.RawMessage(`0.5`), Runs: []model.TaskRun{{Attempt: 1}},
		},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{"id":"i","agent_id":"a","kind":"k","group":"g","payload":{"n":1},"every":"1m0s","from":"start",
		"level":3,"tags":["t"],"status":"in_progress","parked":false,"is_running":true,"is_paused":false,
		"updated_at":"2026-01-02T03:04:05.682Z","last_activity":"2026-01-02T03:04:05.683Z","submitted_at":"2026-01-02T03:04:05.678Z","due_at":"2026-01-02T03:04:05.679Z","started_at":"2026-01-02T03:04:05.680Z",
		"attempt":1,"crashes":2,"run_count":3,"skip_count":4,"error_count":5,"consecutive_failures":6,"retry_afters":7,
		"last_run":"2026-01-02T03:04:05.681Z","last_duration_ms":0,"last_result":"failed","last_error":"e",
		"result":[1],"progress":0.5}`, string(data))
}

// What is in a store may be damaged; one such task must not make a list of tasks unreadable.
func TestTaskInfoLeavesDamagedJSONOut(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal([]core.TaskInfo{{Agent: "a", ID: "i", TaskSettings: model.TaskSettings{Payload: json.RawMessage(`{`), Info: json.RawMessage("\x00")}}})
	require.NoError(t, err)
	assert.NotContains(t, string(data), "payload")
	assert.Contains(t, string(data), `"id":"i"`)
}

func TestReportJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(core.Report{
		Agents: 1, Ran: 2, Completed: 3, Failed: 4, Retried: 5, Released: 6, Skipped: 7, Parked: 8, Lost: 9, Cancelled: 10,
		Snoozed: 11, Recovered: 12, Left: 14, Away: []int{1, 3}, NextDueAt: instant.Time(), More: true, Duration: 13 * time.Millisecond,
	})
	require.NoError(t, err)
	assert.JSONEq(t, `{"agents":1,"ran":2,"completed":3,"failed":4,"retried":5,"released":6,"skipped":7,"parked":8,"lost":9,
		"cancelled":10,"snoozed":11,"recovered":12,"left":14,"away":[1,3],"next_due_at":"2026-01-02T03:04:05.678Z","more":true,"duration_ms":13}`, string(data))
	data, err = json.Marshal(core.Report{})
	require.NoError(t, err)
	assert.Contains(t, string(data), `"next_due_at":null`)
	assert.NotContains(t, string(data), "failures")
}

// Every host answers with the same failures: they are a part of the report, each bounded.
func TestReportJSONNamesTheFailures(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(core.Report{Failures: []model.RunFailure{
		{Agent: "a", ID: "i", Kind: "k", Err: errors.New("boom " + strings.Repeat("é", 2000))}, {Agent: "b", ID: "j", Kind: "k"},
	}})
	require.NoError(t, err)
	var told struct {
		Failures []map[string]string `json:"failures"`
	}
	require.NoError(t, json.Unmarshal(data, &told))
	require.Len(t, told.Failures, 2)
	assert.LessOrEqual(t, len(told.Failures[0]["error"]), 1024)
	assert.Contains(t, told.Failures[0]["error"], "boom é")
	delete(told.Failures[0], "error")
	assert.Equal(t, map[string]string{"agent_id": "a", "id": "i", "kind": "k"}, told.Failures[0])
	assert.Empty(t, told.Failures[1]["error"])
}

func TestTheSmallShapes(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		`{"id":"i","agent_id":"a","kind":"k","status":"waiting","due_at":"2026-01-02T03:04:05.678Z","created":true}`: core.Submitted{
			Agent: "a", ID: "i", Kind: "k", Status: core.StatusWaiting, Due: instant.Time(), Created: true,
		},
		`{"id":"i","agent_id":"a","kind":"k","status":"completed","created":false}`: core.Submitted{
			Agent: "a", ID: "i", Kind: "k", Status: core.StatusCompleted,
		},
		`{"started_at":"2026-01-02T03:04:05.678Z","duration_ms":5,"attempt":1,"outcome":"failed","error":"e"}`: model.TaskRun{
			Started: instant.Time(), Duration: 5 * time.Millisecond, Attempt: 1, Outcome: model.OutcomeFailed, Error: "e",
		},
		`{"duration_ms":0,"attempt":2,"outcome":"crashed"}`:                        model.TaskRun{Attempt: 2, Outcome: model.OutcomeCrashed},
		`{"status":"failed","live":1,"completed":2,"failed":3,"cancelled":4}`:      model.GroupCounts{Live: 1, Completed: 2, Failed: 3, Cancelled: 4},
		`{"status":"in_progress","live":1,"completed":0,"failed":0,"cancelled":0}`: &model.GroupCounts{Live: 1},
		`{"now":"2026-01-02T03:04:05.678Z","next_due":"2026-01-02T03:04:05.679Z","partitions":8,"agents":1,"waiting":2,
			"resting":0,"in_progress":0,"held":0,"deleted":0,"parked":0,"completed":0,"failed":0,"cancelled":0,"submitted":0,"again":0,"released":0,
			"recovered":0,"replayed":0,"trimmed":0,"malformed":0}`: inspect.Stats{Counters: count.Counters{Partitions: 8, Agents: 1, Waiting: 2}, Now: instant.Time(), NextDue: (instant + 1).Time()},
	} {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(data))
	}
}

// Whatever comes in is read or refused with the name of a field, and what was read can be written and read again.
func FuzzParseTasks(f *testing.F) {
	for _, text := range []string{
		everyField, atField, `{"tasks":[` + atField + `]}`, `{"kind":"a","kind":"b"}`, `{"every":"1e5s"}`, `{"payload":"\ud800"}`, noneField,
		`{"at":"0000-01-01T00:00:00Z"}`, `{"delay":"-1ns","level":-9223372036854775808}`, `{"info":[[[[]]]],"tags":[null]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tasks, err := model.ParseTasks(data)
		if err != nil {
			require.True(t, errors.As(err, new(*core.InvalidError)), "%v", err)
			return
		}
		for _, task := range tasks {
			once, err := json.Marshal(task)
			require.NoError(t, err)
			var read core.NewTask
			require.NoError(t, json.Unmarshal(once, &read))
			twice, err := json.Marshal(read)
			require.NoError(t, err)
			assert.Equal(t, string(once), string(twice))
		}
	})
}

// What is no UTF-8 never reaches a reader of JSON: it is refused at submit, and mended in what a handler says.
func TestJSONIsUTF8(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[any]) error {
			return t.SetResult(json.RawMessage("{\"a\":\"\xff\"}"))
		})
		for _, bad := range []core.NewTask{
			{Agent: "a", Kind: "k", Payload: json.RawMessage("\"\xff\"")},
			{Agent: "a", Kind: "k", Payload: []byte("\"\xff\"")},
			{Agent: "a", Kind: "k", Info: json.RawMessage("\"\xff\"")},
		} {
			_, err := w.s.Submit(w.Context(), bad)
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		}
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		data, err := json.Marshal(w.task("a", "1"))
		require.NoError(t, err)
		assert.True(t, utf8.Valid(data))
		assert.Contains(t, string(data), `"result":{"a":"`+"\ufffd"+`"}`)
		assert.True(t, utf8.Valid(w.task("a", "1").Result), "as it is stored")
	})
}
