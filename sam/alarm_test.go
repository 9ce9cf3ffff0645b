package main_test

// The alarm: with a queue in its environment the function books its next call there, and its messages are ticks.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A function that is called for nothing else books what is due next, and runs it when it is called for that. An early call only books again.
func TestTheFunctionBooksItsNextCall(t *testing.T) {
	t.Parallel()
	messages := make(chan string, 10)
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct{ MessageBody, ScheduleExpression string }
		body, _ := io.ReadAll(r.Body)
		assert.NoError(t, json.Unmarshal(body, &m))
		messages <- m.MessageBody + m.ScheduleExpression
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(aws.Close)
	const arn = "arn:aws:sqs:eu-north-1:123456789012:alarms"
	w := newWorld(t, "DULY_ALARM_QUEUE="+aws.URL+"/123456789012/alarms", "DULY_ALARM_QUEUE_ARN="+arn, "DULY_ALARM_ROLE=arn:aws:iam::123456789012:role/x",
		"DULY_ALARM_GROUP=x", "AWS_ENDPOINT_URL_SCHEDULER="+aws.URL, "AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret")
	e := w.environment(20 * time.Second)
	message := func(body string) map[string]any {
		return w.answer(e, fmt.Sprintf(`{"Records":[{"eventSource":"aws:sqs","eventSourceARN":%q,"messageId":"1","body":%q}]}`, arn, body))
	}

	w.submit(core.NewTask{Agent: "ada", ID: "soon", Kind: "quick", Delay: 5 * time.Second}, core.NewTask{Agent: "ada", ID: "later", Kind: "quick", Delay: time.Hour})
	w.answer(e, tick)
	booked := <-messages
	assert.Contains(t, booked, `{"kind":"tick","at":"`)
	assert.Empty(t, message(booked)["batchItemFailures"])
	assert.Equal(t, booked, <-messages, "it came early")
	assert.Equal(t, core.StatusWaiting, w.task("soon").Status)
	time.Sleep(time.Until(w.task("soon").Due.Add(10 * time.Millisecond)))
	message(booked)
	assert.Equal(t, core.StatusCompleted, w.task("soon").Status)
	guard := <-messages
	assert.Contains(t, guard, `{"kind":"tick","at":"`, "a guard before it starts anything")
	last := <-messages
	for strings.Contains(last, `{"kind":"tick","at":"`) { // where a run takes long, a guard follows the first
		last = <-messages
	}
	assert.Contains(t, last, "at(", "a schedule for what is due in an hour")
	assert.Empty(t, messages)
}

// A setting that makes no sense is named by its variable.
func TestAnAlarmThatIsSetUpWrongly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "DULY_ALARM_QUEUE=https://sqs.eu-north-1.amazonaws.com/123456789012/alarms", "AWS_REGION=eu-north-1", "AWS_ACCESS_KEY_ID=AKID",
		"AWS_SECRET_ACCESS_KEY=secret", "DULY_ALARM_ROLE=x")
	r, err := w.environment(20*time.Second).Invoke(t.Context(), []byte(tick))
	require.NoError(t, err)
	assert.Contains(t, string(r.Payload), "DULY_ALARM_ROLE must be given together with QueueARN")
}
