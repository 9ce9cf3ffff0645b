package lambda_test

// The queue for alarms: its messages are ticks when their time has come, and handed back to the clock before.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
)

// clock notes what is set.
type clock struct {
	set  []time.Time
	fail error
}

func (c *clock) Set(_ context.Context, at time.Time) error {
	if c.fail != nil {
		return c.fail
	}
	c.set = append(c.set, at)
	return nil
}

const alarms = "arn:aws:sqs:eu-north-1:111122223333:alarms"

// ringing is a function with a queue for alarms, and a task that is due.
func ringing(t *testing.T) (*fixture, *clock) {
	t.Helper()
	c := &clock{}
	f := setup(t, lambdaadapter.Config{AlarmQueue: alarms, Alarm: c})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "ok"})
	return f, c
}

func ring(at time.Time) string {
	return fmt.Sprintf(`{"kind":"tick","at":%q}`, at.UTC().Format(time.RFC3339Nano))
}

// Messages whose time has come are one tick together.
func TestAlarmsAreTicks(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"kind":"tick"}`, ring(time.Now()), ring(time.Now().Add(-time.Hour)), ring(time.Now().Add(900 * time.Millisecond))} {
		f, c := ringing(t)
		assert.Empty(t, failedRecords(t, f.invoke(t, records(t, "alarms", body, body, body))))
		assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))
		assert.Empty(t, c.set)
		assert.Equal(t, 1, strings.Count(f.logs.String(), "msg=tick"), "one pull for all of them")
	}
}

// A message that comes early is set again, once for each time, and runs nothing: without that nobody would come, as the store has it booked.
func TestAnEarlyAlarmIsSetAgain(t *testing.T) {
	t.Parallel()
	f, c := ringing(t)
	at := time.Now().Add(2 * time.Minute).UTC().Truncate(time.Second)
	f.invoke(t, records(t, "alarms", ring(at), ring(at), ring(at.Add(time.Second))))
	assert.Equal(t, []time.Time{at, at.Add(time.Second)}, c.set)
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "1"))
	f.invoke(t, records(t, "alarms", ring(at), `{"kind":"tick"}`))
	assert.Len(t, c.set, 3)
	assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))

	c.fail = errors.New("throttled")
	_, err := f.function.Invoke(t.Context(), json.RawMessage(records(t, "alarms", ring(at))))
	var unset *core.AlarmError
	require.ErrorAs(t, err, &unset, "SQS brings the message again")
	assert.Equal(t, at, unset.At)
}

// An event whose pull fails is a failure, so that SQS brings it again.
func TestAnAlarmThatFailsComesAgain(t *testing.T) {
	t.Parallel()
	f, _ := ringing(t)
	f.store.FailWith(errors.New("away"))
	_, err := f.function.Invoke(t.Context(), json.RawMessage(records(t, "alarms", `{"kind":"tick"}`)))
	require.ErrorContains(t, err, "away")
}

// Neither queue takes what is for the other: a tick is no task, and a task no tick.
func TestQueuesAreNotConfused(t *testing.T) {
	t.Parallel()
	f, c := ringing(t)
	for _, body := range []string{`{"agent_id":"zoe","id":"2","kind":"ok"}`, `{"kind":"tock"}`, `{"kind":"tick","all":true}`, `{}`, `[]`, ``, `{"kind":"tick","at":"soon"}`} {
		f.invoke(t, records(t, "alarms", body))
	}
	assert.Zero(t, f.store.claims())
	assert.Equal(t, 1, f.store.submits(), "that of the fixture")
	assert.Contains(t, f.logs.String(), "a message is no alarm and was dropped")
	assert.Equal(t, []string{"00"}, failedRecords(t, f.invoke(t, records(t, "intake", `{"kind":"tick"}`))))
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "1"))
	assert.Empty(t, c.set)
	_, err := lambdaadapter.New(f.scheduler, lambdaadapter.Config{AlarmQueue: alarms})
	require.ErrorContains(t, err, "AlarmQueue and Alarm")
}
