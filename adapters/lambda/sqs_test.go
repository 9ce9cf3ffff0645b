package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// failedRecords are the numbers of the records, as the golden events have them, that an answer names.
func failedRecords(t *testing.T, answer map[string]any) []string {
	t.Helper()
	require.Len(t, answer, 1, "nothing but the failures: %v", answer)
	list, ok := answer["batchItemFailures"].([]any)
	require.True(t, ok, "a list, even if it is empty")
	ids := []string{}
	for _, item := range list {
		id := item.(map[string]any)["itemIdentifier"].(string)
		ids = append(ids, id[len(id)-2:])
	}
	return ids
}

func TestRecordsAreSubmittedEachByItself(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	assert.Equal(t, []string{"03", "04"}, failedRecords(t, f.invoke(t, known(t, "sqs"))), "no task, and no valid one")
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "one"))
	assert.Equal(t, core.StatusWaiting, f.status(t, "bob", "two"))
	assert.Equal(t, core.StatusWaiting, f.status(t, "bob", "sqs-5d1c0000-0000-4000-8000-000000000002-1"))
	assert.Equal(t, core.StatusWaiting, f.status(t, "cy", "sqs-5d1c0000-0000-4000-8000-000000000005-0"))
	assert.Zero(t, f.store.claims(), "nothing is run unless Config says so")
	assert.Contains(t, f.logs.String(), "a record failed")
	assert.NotContains(t, f.logs.String(), "not a task at all", "what a message says is not logged")
}

func TestAMessageDeliveredTwiceMakesOneTask(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	f.invoke(t, known(t, "sqs"))
	f.invoke(t, known(t, "sqs"))
	stats, err := f.scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4, stats.Submitted)
}

// The key makes the id: two messages with one key are one task.
func TestAUniqueKeyMakesOneTaskOfTwoMessages(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	const task = `{"agent_id":"a","kind":"ok","unique_key":"order 17"}`
	for range 2 {
		assert.Empty(t, failedRecords(t, f.invoke(t, records(t, "q", task, task))), f.logs.String())
	}
	stats, err := f.scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, stats.Submitted)
}

func TestSubmittedTasksRunIfConfigSaysSo(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{RunSubmitted: true})
	f.submit(t, core.NewTask{Agent: "zoe", ID: "other", Kind: "ok"})
	assert.Equal(t, []string{"03", "04"}, failedRecords(t, f.invoke(t, known(t, "sqs"))))
	assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "one"))
	assert.Equal(t, core.StatusCompleted, f.status(t, "bob", "two"))
	assert.Equal(t, core.StatusWaiting, f.status(t, "zoe", "other"), "only the agents of these tasks")
	assert.Contains(t, f.logs.String(), "completed=3")
}

// Tasks that are stored are not delivered again because they could not be run.
func TestAPullThatFailsIsNoFailureOfTheRecords(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{RunSubmitted: true})
	ctx, cancel := context.WithCancel(t.Context())
	core.Handle(f.scheduler, "ending", func(context.Context, *core.Task[any]) error {
		f.store.FailWith(&store.Error{Verb: "claim", Err: errors.New("away")})
		cancel()
		return nil
	})
	event := alter(t, "sqs", map[string]any{"Records": []any{map[string]any{
		"eventSource": "aws:sqs", "messageId": "m01", "body": `{"agent_id":"a","id":"1","kind":"ending"}`,
	}}})
	data, err := f.function.Invoke(ctx, json.RawMessage(event))
	require.NoError(t, err)
	assert.JSONEq(t, `{"batchItemFailures":[]}`, string(data))
}

// In a FIFO queue nothing overtakes a record that failed.
func TestFIFOStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	assert.Equal(t, []string{"12", "13"}, failedRecords(t, f.invoke(t, known(t, "sqs-fifo"))))
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "first"))
	_, err := f.scheduler.Task(t.Context(), "ada", "third")
	require.ErrorIs(t, err, core.ErrNotFound)
}

// A store that is away is asked once, not once for each record.
func TestAStoreThatIsAwayFailsTheBatch(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	f.store.FailWith(&store.Error{Verb: "submit", Err: errors.New("away")})
	assert.Equal(t, []string{"01", "02", "03", "04", "05"}, failedRecords(t, f.invoke(t, known(t, "sqs"))))
	assert.EqualValues(t, 1, f.store.submits())
}

// An agent that is full fails its own records only.
func TestALimitIsOneAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	for i := range 50 {
		f.submit(t, core.NewTask{Agent: "ada", ID: fmt.Sprint(i), Kind: "ok", Delay: time.Hour})
	}
	assert.Equal(t, []string{"01", "03", "04"}, failedRecords(t, f.invoke(t, known(t, "sqs"))))
}

// records is an event with a record for each body.
func records(t *testing.T, queue string, bodies ...string) string {
	t.Helper()
	var list []any
	for i, body := range bodies {
		list = append(list, map[string]any{
			"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-north-1:111122223333:" + queue,
			"messageId": fmt.Sprintf("m-%04d", i), "body": body,
		})
	}
	event, err := json.Marshal(map[string]any{"Records": list})
	require.NoError(t, err)
	return string(event)
}

// A batch costs one call of the store, and some more to find a record that is refused.
func TestABatchIsSubmittedAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	task := func(i int) string { return fmt.Sprintf(`{"agent_id":"a%d","id":"t%d","kind":"ok"}`, i%100, i) }
	bodies := make([]string, 2500)
	for i := range bodies {
		bodies[i] = task(i)
	}
	assert.Empty(t, failedRecords(t, f.invoke(t, records(t, "q", bodies...))))
	assert.EqualValues(t, 3, f.store.submits())

	before := f.store.submits()
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"agent_id":"b%d","id":"t%d","kind":"ok"}`, i%100, i)
	}
	bodies[777] = `{"agent_id":"b","kind":"ok","cron":"0 0 30 2 *"}`
	assert.Equal(t, []string{"77"}, failedRecords(t, f.invoke(t, records(t, "q", bodies...))))
	assert.LessOrEqual(t, f.store.submits()-before, 25)
	stats, err := f.scheduler.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 4999, stats.Submitted)
}

// What is wrong with one record, whatever it is, holds up no other one.
func TestARefusedRecordFailsByItself(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	f.submit(t, core.NewTask{Agent: "a", ID: "there", Kind: "ok", Delay: time.Hour})
	bodies := []string{
		`{"agent_id":"a","id":"1","kind":"ok"}`,
		`{"agent_id":"a","id":"there","kind":"ok","on_conflict":"fail"}`,
		`{"agent_id":"a","id":"2","kind":"off"}`,
		`{"agent_id":"a","id":"1","kind":"ok"}`,
		`{"agent_id":"a","id":"3","kind":"ok"}`,
	}
	assert.Equal(t, []string{"01", "02"}, failedRecords(t, f.invoke(t, records(t, "q", bodies...))), "one that says the same twice is no failure")
	assert.Equal(t, core.StatusWaiting, f.status(t, "a", "3"))
	assert.Contains(t, f.logs.String(), "already exists")

	other := setup(t, lambdaadapter.Config{})
	other.submit(t, core.NewTask{Agent: "a", ID: "there", Kind: "ok", Delay: time.Hour})
	assert.Equal(t, []string{"01", "02", "03", "04"}, failedRecords(t, other.invoke(t, records(t, "q.fifo", bodies...))))
	assert.Equal(t, core.StatusWaiting, other.status(t, "a", "1"))
}

func TestRecordsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{})
	for _, body := range []any{nil, 7, "", "{}", "[]", `{"tasks":[]}`, `{"tasks":null}`, "null", `{"agent_id":"a"}`} {
		event, err := json.Marshal(map[string]any{"Records": []any{
			map[string]any{"eventSource": "aws:sqs", "messageId": "bad-01", "body": body},
			map[string]any{"eventSource": "aws:sqs", "messageId": "good-02", "body": `{"agent_id":"a","id":"1","kind":"ok"}`},
		}})
		require.NoError(t, err)
		assert.Equal(t, []string{"01"}, failedRecords(t, f.invoke(t, string(event))), "%v", body)
	}
	_, err := f.function.Invoke(t.Context(), json.RawMessage(`{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}`))
	var invalid *core.InvalidError
	require.ErrorAs(t, err, &invalid, "what has no id cannot be reported: the whole batch fails")
}

// A submit that hangs is given up in time to say so.
func TestASubmitEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	f := setup(t, lambdaadapter.Config{Margin: time.Minute})
	hang := &storetest.Spy{Store: f.store, Before: func(ctx context.Context, verb string) error {
		if verb != "Submit" {
			return nil
		}
		<-ctx.Done()
		return &store.Error{Verb: "submit", Err: ctx.Err()}
	}}
	s, err := core.New(hang, core.Config{})
	require.NoError(t, err)
	function, err := lambdaadapter.New(s, lambdaadapter.Config{Margin: time.Minute})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+50*time.Millisecond)
	defer cancel()
	data, err := function.Invoke(ctx, json.RawMessage(known(t, "sqs-fifo")))
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	assert.Contains(t, string(data), "000000000011")
}
