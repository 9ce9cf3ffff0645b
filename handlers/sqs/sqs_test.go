package sqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/sqs"
)

// sent is a message as SQS gets it.
type sent struct {
	QueueURL                                            string `json:"QueueUrl"`
	MessageBody, MessageGroupId, MessageDeduplicationId string //nolint:revive // the names of AWS
	header                                              http.Header
}

// once sends a task of an agent to a queue that answers with a status and a body, and returns what became of both.
func once(t *testing.T, agent, queue string, status int, answer string) (core.TaskInfo, sent) {
	t.Helper()
	var got sent
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.NoError(t, json.Unmarshal(body, &got))
		got.header = r.Header
		calls++
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SQS": server.URL, "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "", "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
	} {
		t.Setenv(name, value)
	}
	h, err := sqs.New(t.Context(), sqs.Config{QueueURL: queue})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Default: core.KindConfig{Backoff: time.Hour, MaxBackoff: time.Hour}})
	require.NoError(t, err)
	core.Handle(s, "x", h.Run)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: agent, ID: "i", Kind: "x", Payload: 7, MaxAttempts: 3})
	require.NoError(t, err)
	_, err = s.RunDue(context.WithoutCancel(t.Context()), core.Scope{})
	var failed *core.RunsError
	require.True(t, err == nil || errors.As(err, &failed), "%v", err)
	info, err := s.Task(t.Context(), agent, "i")
	require.NoError(t, err)
	assert.Equal(t, 1, calls, "the library repeats nothing")
	return info, got
}

const (
	plain = "https://sqs.eu-north-1.amazonaws.com/123456789012/digests"
	taken = `{"MessageId":"m-1"}`
)

// A task is a message, signed for the region of the queue; it is done when the queue has taken it.
func TestATaskIsAMessage(t *testing.T) {
	info, got := once(t, "ada", plain, 200, taken)
	require.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.JSONEq(t, `{"message_id":"m-1"}`, string(info.Result))
	assert.Equal(t, "AmazonSQS.SendMessage", got.header.Get("X-Amz-Target"))
	assert.Contains(t, got.header.Get("Authorization"), "Credential=AKIDEXAMPLE/")
	assert.Contains(t, got.header.Get("Authorization"), "/eu-north-1/sqs/aws4_request")
	assert.Equal(t, plain, got.QueueURL)
	assert.Empty(t, got.MessageGroupId)
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.MessageBody), &body))
	assert.Equal(t, []any{"i", "ada", 7.0}, []any{body["id"], body["agent_id"], body["payload"]})
}

// In a FIFO queue the group is the agent, also one whose name a group cannot have, and a repeat is known by the id of the message.
func TestAGroupIsAnAgent(t *testing.T) {
	_, got := once(t, "ada", plain+".fifo", 200, taken)
	assert.Equal(t, "ada", got.MessageGroupId)
	assert.Regexp(t, "^msg_[0-9a-f]{32}$", got.MessageDeduplicationId)
	for _, agent := range []string{"a b", "é", strings.Repeat("a", 200)} {
		_, got = once(t, agent, plain+".fifo", 200, taken)
		assert.Regexp(t, "^[0-9a-f]{64}$", got.MessageGroupId, agent)
	}
}

// What a queue refuses is tried again if that may help, and uncharged if it was one too many.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]struct {
		status  int
		answer  string
		becomes core.Status
		later   int
	}{
		"sqs: 400 Bad Request: QueueDoesNotExist no such queue": {400, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no such queue"}`, core.StatusFailed, 0},
		"RequestThrottled slower":                               {400, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slower"}`, core.StatusWaiting, 1},
		"sqs: 503 Service Unavailable: ServiceUnavailable":      {503, `{"__type":"com.amazonaws.sqs#ServiceUnavailable","message":"down"}`, core.StatusWaiting, 0},
	} {
		info, _ := once(t, "ada", plain, want.status, want.answer)
		assert.Equal(t, want.becomes, info.Status, text)
		assert.Contains(t, info.LastError, text)
		assert.Equal(t, want.later, info.RetryAfters, text)
	}
}

func TestConfigurations(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/nowhere")
	for queue, want := range map[string]string{"digests": "To must be the URL of a queue", "https://a.example/": "To must be the URL", "http://localhost:4566/000000000000/a": "Region must be given"} {
		_, err := sqs.New(t.Context(), sqs.Config{QueueURL: queue})
		require.ErrorAs(t, err, new(*core.ConfigError))
		assert.ErrorContains(t, err, want)
	}
}
