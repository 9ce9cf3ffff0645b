package trigger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func object(t *testing.T, data string) strictjson.Object {
	t.Helper()
	o, err := strictjson.Parse("body", []byte(data))
	require.NoError(t, err)
	return o
}

func TestATickIsForAllUnlessItNamesSome(t *testing.T) {
	t.Parallel()
	some := core.Scope{Agents: []string{"ada"}, MaxTasks: 3, MaxDuration: 5 * time.Second}
	for data, want := range map[string]core.Scope{
		`{}`: {},
		`{"kind":"tick","all":true,"agent_ids":null}`:                             {},
		`{"kind":"tick","agent_ids":["ada"],"max":3,"timeout_ms":5000}`:           some,
		`{"agent_ids":["ada"],"all":false,"max":3,"timeout_ms":5000,"kind":null}`: some,
		`{"agent_ids":[]}`:             {Agents: []string{}},
		`{"timeout_ms":86400001}`:      {MaxDuration: 24 * time.Hour},
		`{"timeout_ms":9223372036854}`: {MaxDuration: 24 * time.Hour},
	} {
		scope, err := trigger.ReadTick(object(t, data))
		require.NoError(t, err, data)
		assert.Equal(t, want, scope, data)
	}
}

func TestWhatATickSaysMustMakeSense(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"kind":"tock"}`:                "kind must be \"tick\"",
		`{"kind":1}`:                     "kind must be \"tick\"",
		`{"all":false}`:                  `agent_ids is required, or "all": true`,
		`{"all":true,"agent_ids":["a"]}`: "all excludes agent_ids",
		`{"agents":["a"]}`:               "agents is not a field of a tick",
		`{"max":0}`:                      "max must not be 0: leave it out for the default",
		`{"max":-3}`:                     "max must be at least 1, not -3: leave it out for no limit",
		`{"timeout_ms":0}`:               "timeout_ms must not be 0: leave it out for the default",
		`{"timeout_ms":-9223372036854}`:  "timeout_ms must be at least 1, not -9223372036854: leave it out for no limit",
		`{"kind":""}`:                    "kind must not be empty: leave it out if it has no value",
	} {
		var invalid *core.InvalidError
		if _, err := trigger.ReadTick(object(t, data)); assert.ErrorAs(t, err, &invalid, data) {
			assert.Equal(t, want, invalid.Field+" "+invalid.Reason, data)
		}
	}
	for data, want := range map[string]string{
		`{}`:                          `agent_ids is required, or "all": true`,
		`{"all":true,"kind":"tick"}`:  "kind is not a field of this call",
		`{"all":null,"agent_id":"a"}`: "agent_id is not a field of this call",
	} {
		var invalid *core.InvalidError
		if _, err := trigger.ReadScope(object(t, data)); assert.ErrorAs(t, err, &invalid, data) {
			assert.Equal(t, want, invalid.Field+" "+invalid.Reason, data)
		}
	}
}

func TestATaskOfTheKindTickIsNoTick(t *testing.T) {
	t.Parallel()
	assert.True(t, trigger.IsTick(object(t, `{"kind":"tick"}`)))
	assert.False(t, trigger.IsTick(object(t, `{"kind":"tick","agent_id":"ada"}`)))
	assert.False(t, trigger.IsTick(object(t, `{"all":true}`)))
}

func TestAnOccasionHasAnInstant(t *testing.T) {
	t.Parallel()
	want := trigger.Occasion{Of: "job", At: "2026-11-02T07:17:00Z"}
	assert.Equal(t, want, trigger.OccasionOf("job", "2026-11-02T07:17:00Z"))
	assert.Equal(t, want, trigger.OccasionOf("job", "2026-11-02T08:17:00+01:00"))
	assert.Zero(t, trigger.OccasionOf("", "2026-11-02T07:17:00Z"))
	assert.Zero(t, trigger.OccasionOf("job", "soon"))
}

func newRunner(t *testing.T) (*trigger.Runner, *storetest.Failing, *bytes.Buffer) {
	t.Helper()
	st := storetest.NewFailing(memstore.New(memstore.Config{Partitions: 8}), "Claim", "Look")
	s, err := core.New(st, core.Config{Default: core.KindConfig{Backoff: time.Hour, MaxBackoff: time.Hour}}) // a retry at once would be one more run
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	core.Handle(s, "failing", func(context.Context, *core.Task[any]) error {
		return errors.New("the model is away: " + strings.Repeat("é", 2000))
	})
	logs := &bytes.Buffer{}
	return &trigger.Runner{Scheduler: s, Logger: slog.New(slog.NewTextHandler(logs, nil))}, st, logs
}

func submit(t *testing.T, r *trigger.Runner, tasks ...core.NewTask) []core.Submitted {
	t.Helper()
	submitted, err := r.Scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	return submitted
}

func TestARepeatIsToldApartOnceAllIsDone(t *testing.T) {
	t.Parallel()
	r, st, _ := newRunner(t)
	key := trigger.Occasion{Of: "job", At: "1"}
	submit(t, r, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"}, core.NewTask{Agent: "ada", ID: "2", Kind: "ok"})

	away := errors.Join(errors.New("away"))
	st.FailWith(away)
	_, repeated, err := r.Run(t.Context(), core.Scope{}, key)
	require.ErrorIs(t, err, away)
	assert.False(t, repeated)
	st.FailWith(nil)

	for range 2 { // the first leaves one of them due
		answer, repeated, err := r.Run(t.Context(), core.Scope{MaxTasks: 1}, key)
		require.NoError(t, err)
		assert.False(t, repeated, "there was work left to do")
		assert.Equal(t, 1, answer.Completed)
	}
	_, repeated, err = r.Run(t.Context(), core.Scope{}, key)
	require.NoError(t, err)
	assert.True(t, repeated)
	for _, scope := range []core.Scope{{}, {Agents: []string{"ada"}}} { // one that was cut off before it knew anything
		cut := trigger.Occasion{Of: "cut", At: fmt.Sprint(scope.Agents)}
		gone, goAway := context.WithCancel(t.Context())
		goAway()
		_, _, err = r.Run(gone, scope, cut)
		require.NoError(t, err)
		_, repeated, err = r.Run(t.Context(), scope, cut)
		require.NoError(t, err)
		assert.False(t, repeated)
	}
	_, repeated, err = r.Run(t.Context(), core.Scope{}, trigger.Occasion{})
	require.NoError(t, err)
	assert.False(t, repeated, "what has no name is never a repeat")
}

func TestTheMemoryOfOccasionsIsBounded(t *testing.T) {
	t.Parallel()
	r, _, _ := newRunner(t)
	run := func(i int) bool {
		_, repeated, err := r.Run(t.Context(), core.Scope{}, trigger.Occasion{Of: "job", At: string(rune('A' + i))})
		require.NoError(t, err)
		return repeated
	}
	for i := range 65 {
		assert.False(t, run(i))
	}
	assert.True(t, run(1), "the latest 64 are known")
	assert.False(t, run(0), "the oldest was forgotten")
}

func TestFailuresAreToldAndLogged(t *testing.T) {
	t.Parallel()
	r, st, logs := newRunner(t)
	submitted := submit(t, r, core.NewTask{Agent: "zoe", ID: "2", Kind: "failing"}, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"},
		core.NewTask{Agent: "zoe", ID: "3", Kind: "ok"})
	answer, _, err := r.Run(t.Context(), core.Scope{Agents: []string{"zoe"}, MaxTasks: 1}, trigger.Occasion{})
	require.NoError(t, err)
	data, err := json.Marshal(answer)
	require.NoError(t, err)
	var told struct {
		Retried, Agents int
		Failures        []struct{ Agent_id, ID, Kind, Error string } //nolint:revive // the name of the member
	}
	require.NoError(t, json.Unmarshal(data, &told))
	assert.Equal(t, []int{1, 1}, []int{told.Retried, told.Agents})
	require.Len(t, told.Failures, 1)
	assert.Equal(t, []string{"zoe", "2", "failing"}, []string{told.Failures[0].Agent_id, told.Failures[0].ID, told.Failures[0].Kind})
	assert.LessOrEqual(t, len(told.Failures[0].Error), trigger.MaxError)
	assert.Contains(t, logs.String(), "task=2 kind=failing")

	r.RunSubmitted(t.Context(), submitted)
	assert.Contains(t, logs.String(), "msg=tick agents=2 ran=2 completed=2")
	away := errors.Join(errors.New("away"))
	st.FailWith(away)
	r.RunSubmitted(t.Context(), submitted)
	assert.Contains(t, logs.String(), "could not be run now")
}

func TestTasksOfAMessageHaveIDs(t *testing.T) {
	t.Parallel()
	tasks, err := trigger.ReadTasks([]byte(`{"tasks":[{"agent_id":"a","kind":"ok"},{"agent_id":"a","kind":"ok","id":"own"}]}`), "sqs-7")
	require.NoError(t, err)
	assert.Equal(t, []string{"sqs-7-0", "own"}, []string{tasks[0].ID, tasks[1].ID})
	for data, want := range map[string]string{`{"tasks":[]}`: "tasks is empty", `{"agent":"a"}`: "agent is not a field of a task: its name is agent_id"} {
		_, err := trigger.ReadTasks([]byte(data), "sqs-7")
		assert.ErrorContains(t, err, want)
	}
}

// Core makes the id of a task with a unique key, and refuses one that has both.
func TestATaskWithAUniqueKeyKeepsIt(t *testing.T) {
	t.Parallel()
	tasks, err := trigger.ReadTasks([]byte(`{"tasks":[{"agent_id":"a","kind":"ok","unique_key":"order 17"},{"agent_id":"a","kind":"ok"}]}`), "sqs-7")
	require.NoError(t, err)
	assert.Equal(t, []string{"", "sqs-7-1"}, []string{tasks[0].ID, tasks[1].ID})
	assert.Equal(t, "order 17", tasks[0].UniqueKey)
}

func TestWhatNoRepeatCanMend(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&core.InvalidError{}: true, &model.DisabledError{}: false, &core.ConflictError{}: true,
		store.ErrChanged: false, &store.LimitError{}: false, &store.Error{Err: errors.New("away")}: false, nil: false,
	} {
		assert.Equal(t, want, trigger.Final(err), "%v", err)
	}
}

func TestSoonEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	deadline, _ := ctx.Deadline()
	soon, cancel := trigger.Soon(ctx, time.Minute)
	defer cancel()
	got, ok := soon.Deadline()
	assert.True(t, ok)
	assert.Equal(t, deadline.Add(-time.Minute), got)
	without, cancel := trigger.Soon(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, ok = without.Deadline()
	assert.False(t, ok)
}
