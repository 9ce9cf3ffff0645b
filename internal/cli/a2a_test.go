package cli_test

// Agents that take work by the Agent2Agent protocol, called by its published clients.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// taskOfA2A is a task as the library of 0.3 has it, and part of what that of 1.0 has.
type taskOfA2A struct {
	ID      string `json:"id"`
	Context string `json:"contextId"`
	Status  struct {
		State   any             `json:"state"`
		Message json.RawMessage `json:"message"`
	} `json:"status"`
	Artifacts []struct {
		Parts json.RawMessage `json:"parts"`
	} `json:"artifacts"`
}

// clientOfA2A is what both programs print.
type clientOfA2A struct {
	Done, Again, Data, Failed, Later, Canceled, Told, Seen taskOfA2A
	Kept                                                   string
	Configs, Wrong                                         []any
	Listed                                                 []taskOfA2A
}

// atWork is a daemon whose agents take messages of A2A, and the server that does their work: it says what it was told, fails, or works until its caller goes away.
// Below /hook it is told how tasks have ended. The agent bob is paused.
func atWork(t *testing.T) (url string, work *receiver, d *running) {
	t.Helper()
	work = newReceiver(t, nil)
	work.answer = func(rw http.ResponseWriter, r *http.Request) {
		all := slices.DeleteFunc(slices.Clone(work.messages()), func(m message) bool { return m.path == "/hook" })
		if r.URL.Path == "/hook" {
			return
		}
		run := parse[struct {
			Payload struct {
				Parts []struct {
					Text string
					Data json.RawMessage
				}
			}
		}](t, all[len(all)-1].body)
		switch p := run.Payload.Parts[0]; {
		case p.Data != nil:
			_, _ = fmt.Fprintf(rw, `{"got":%s}`, p.Data)
		case p.Text == "fail":
			http.Error(rw, "no such thing", http.StatusBadRequest)
		case p.Text == "later":
			<-r.Context().Done()
		default:
			_, _ = fmt.Fprintf(rw, "you said %s", p.Text)
		}
	}
	w := newWorld(t)
	w.env = append(w.env, "ADA_TOKEN=key-of-ada", "CALLBACK_SECRET=whsec_"+strings.Repeat("YWJj", 10))
	d = w.start(t, "daemon", "-c", file(t, fmt.Sprintf(`
http: 127.0.0.1:0
a2a: { kind: answer }
handlers: { answer: { webhook: %q } }
callbacks: { allow: ["%s/hook"], secret_env: CALLBACK_SECRET }
tokens: [{ env: ADA_TOKEN, scopes: [read, write], agents: [ada, bob] }]
`, work.URL, work.URL)))
	url = d.url(t)
	s := w.scheduler(t)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "bob", Kind: "answer", Manual: true})
	require.NoError(t, err)
	require.NoError(t, s.Pause(t.Context(), core.Target{Agent: "bob"}, core.Pause{}))
	return url, work, d
}

// notified waits for the push notification of a task, and returns it.
func notified(t *testing.T, work *receiver) message {
	t.Helper()
	var got []message
	require.Eventually(t, func() bool {
		got = slices.DeleteFunc(slices.Clone(work.messages()), func(m message) bool { return m.path != "/hook" })
		return len(got) > 0
	}, 20*time.Second, 5*time.Millisecond)
	require.Len(t, got, 1)
	assert.Equal(t, "token-1", got[0].header.Get("X-A2A-Notification-Token"))
	assert.NotEmpty(t, got[0].header.Get("Webhook-Signature"))
	return got[0]
}

// The published client of A2A 1.0, unchanged, finds the card of an agent, gives it work and reads the result, asks again, and cancels.
func TestTheClientOfA2A(t *testing.T) {
	t.Parallel()
	installed(t)
	url, work, d := atWork(t)
	got := ofClient[clientOfA2A](t, "a2a.mjs", url, "key-of-ada", work.URL+"/hook")
	got.compare(t, map[string]any{"completed": 3.0, "failed": 4.0, "submitted": 1.0, "working": 2.0, "canceled": 5.0})
	assert.JSONEq(t, `[{"content":{"$case":"text","value":"you said hello"},"filename":"","mediaType":""}]`, string(got.Done.Artifacts[0].Parts))
	assert.JSONEq(t, `[{"content":{"$case":"data","value":{"got":{"n":1}}},"filename":"","mediaType":""}]`, string(got.Data.Artifacts[0].Parts))
	assert.Equal(t, []any{"TaskNotFoundError", "TaskNotFoundError", "TaskNotCancelableError", "RequestMalformedError", "RequestMalformedError", "UnsupportedOperationError"}, got.Wrong)
	require.GreaterOrEqual(t, len(got.Listed), 2, "m-5 may not have ended yet")
	assert.Equal(t, got.Done, got.Listed[len(got.Listed)-1], "what changed last is first")
	push := notified(t, work)
	assert.Equal(t, "application/a2a+json", push.header.Get("Content-Type"))
	told := parse[struct{ Task taskOfA2A }](t, push.body).Task
	assert.Equal(t, []any{got.Told.ID, "talk-1", "TASK_STATE_COMPLETED"}, []any{told.ID, told.Context, told.Status.State})
	assert.JSONEq(t, `[{"text":"you said push"}]`, string(told.Artifacts[0].Parts))
	assert.NotContains(t, d.log(), "token-1")
	once(t, work)
}

// The published client of A2A 0.3, unchanged, does the same.
func TestTheOldClientOfA2A(t *testing.T) {
	t.Parallel()
	installed(t)
	url, work, d := atWork(t)
	got := ofClient[clientOfA2A](t, "a2a-03.mjs", url, "key-of-ada", work.URL+"/hook")
	got.compare(t, map[string]any{"completed": "completed", "failed": "failed", "submitted": "submitted", "working": "working", "canceled": "canceled"})
	assert.JSONEq(t, `[{"kind":"text","text":"you said hello"}]`, string(got.Done.Artifacts[0].Parts))
	assert.JSONEq(t, `[{"kind":"data","data":{"got":{"n":1}}}]`, string(got.Data.Artifacts[0].Parts))
	assert.Equal(t, []any{"TaskNotFoundError", "TaskNotFoundError", "TaskNotCancelableError", "-32602", "-32602"}, got.Wrong)
	push := notified(t, work)
	assert.Equal(t, "application/json", push.header.Get("Content-Type"))
	told := parse[taskOfA2A](t, push.body)
	assert.Equal(t, []any{got.Told.ID, "talk-1", "completed"}, []any{told.ID, told.Context, told.Status.State})
	assert.JSONEq(t, `[{"kind":"text","text":"you said push"}]`, string(told.Artifacts[0].Parts))
	assert.NotContains(t, d.log(), "token-1")
	once(t, work)
}

// once checks that the message that was sent twice was done once.
func once(t *testing.T, work *receiver) {
	t.Helper()
	n := 0
	for _, m := range work.messages() {
		run := parse[struct {
			Payload struct {
				ID string `json:"messageId"`
			}
		}](t, m.body)
		if run.Payload.ID == "m-1" {
			n++
		}
	}
	assert.Equal(t, 1, n, "the same message is the same task")
}

// compare compares what both clients have got, by the names of states in their libraries.
func (got *clientOfA2A) compare(t *testing.T, states map[string]any) {
	t.Helper()
	assert.Equal(t, states["completed"], got.Done.Status.State)
	assert.Equal(t, "talk-1", got.Done.Context)
	assert.Equal(t, got.Done, got.Again, "the same message is the same task")
	assert.Equal(t, got.Done, got.Seen)
	assert.Equal(t, states["failed"], got.Failed.Status.State)
	assert.Contains(t, string(got.Failed.Status.Message), "no such thing")
	assert.Contains(t, []any{states["submitted"], states["working"]}, got.Later.Status.State)
	assert.Contains(t, []any{states["canceled"], states["working"]}, got.Canceled.Status.State)
	assert.Equal(t, "TaskNotFoundError", got.Kept, "it has no receiver")
	assert.Equal(t, []any{"token-2", 1.0, 0.0}, got.Configs, "a receiver that was set, and deleted")
	require.Len(t, got.Done.Artifacts, 1)
	require.Len(t, got.Data.Artifacts, 1)
}
