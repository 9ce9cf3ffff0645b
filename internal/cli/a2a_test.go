package cli_test

// Agents that take work by the Agent2Agent protocol, called by its published clients.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	Done, Again, Data, Failed, Later, Canceled, Seen taskOfA2A
	Wrong                                            []any
}

// atWork is a daemon whose agents take messages of A2A, and the server that does their work: it says what it was told, fails, or works until its caller goes away.
func atWork(t *testing.T, file func(work string) string, env ...string) (w *world, url string, work *receiver) {
	t.Helper()
	work = newReceiver(t, nil)
	work.answer = func(rw http.ResponseWriter, r *http.Request) {
		all := work.messages()
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
	w = newWorld(t)
	w.env = append(w.env, append(env, "ADA_TOKEN=key-of-ada")...)
	d := w.start(t, "daemon", "-c", fileOf(t, file(work.URL)))
	return w, d.url(t), work
}

// fileOf is a duly.yaml with an API, and a token for two agents.
func fileOf(t *testing.T, more string) string {
	t.Helper()
	return file(t, "http: 127.0.0.1:0\ntokens: [{ env: ADA_TOKEN, scopes: [read, write], agents: [ada, bob] }]\n"+more)
}

// answering are the lines that have messages answered by a server.
func answering(work string) string {
	return fmt.Sprintf("a2a: { kind: answer }\nhandlers: { answer: { webhook: %q } }\n", work)
}

// The published client of A2A 1.0, unchanged, finds the card of an agent, gives it work and reads the result, asks again, and cancels.
func TestTheClientOfA2A(t *testing.T) {
	t.Parallel()
	installed(t)
	_, url, work := atWork(t, answering)
	got := ofClient[clientOfA2A](t, "a2a.mjs", url, "key-of-ada", work.URL)
	got.compare(t, map[string]any{"completed": 3.0, "failed": 4.0, "submitted": 1.0, "working": 2.0, "canceled": 5.0})
	assert.JSONEq(t, `[{"content":{"$case":"text","value":"you said hello"},"filename":"","mediaType":""}]`, string(got.Done.Artifacts[0].Parts))
	assert.JSONEq(t, `[{"content":{"$case":"data","value":{"got":{"n":1}}},"filename":"","mediaType":""}]`, string(got.Data.Artifacts[0].Parts))
	assert.Equal(t, []any{"TaskNotFoundError", "TaskNotFoundError", "TaskNotCancelableError", "RequestMalformedError", "UnsupportedOperationError"}, got.Wrong)
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
	require.Len(t, got.Done.Artifacts, 1)
	require.Len(t, got.Data.Artifacts, 1)
}
