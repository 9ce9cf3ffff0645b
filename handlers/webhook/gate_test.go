package webhook_test

// Gates that are servers: what their answers mean, and the round trip of an ETag.

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/dulytest"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// gated is a scheduler whose kind x has a server as its gate, and a task that runs each minute.
type gated struct {
	*dulytest.Scheduler
	*testing.T

	inputs []string
	fails  error // what the handler returns
}

func newGated(t *testing.T, c webhook.GateConfig) *gated {
	t.Helper()
	c.AllowLoopback = true
	gate, err := webhook.NewGate(c)
	require.NoError(t, err)
	g := &gated{T: t, Scheduler: dulytest.New(t, core.Config{Default: core.KindConfig{IdleBackoff: core.IdleBackoff{Factor: 1}, PauseAfter: -1, Grace: time.Hour}})}
	core.Gate(g.Scheduler.Scheduler, "x", gate.Ask)
	core.Handle(g.Scheduler.Scheduler, "x", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		g.inputs = append(g.inputs, string(task.GateInput()))
		return g.fails
	})
	_, err = g.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x", Every: time.Minute, Payload: "inbox"})
	require.NoError(t, err)
	return g
}

// tick runs what is due, a while after the last time.
func (g *gated) tick() core.TaskInfo {
	g.Helper()
	_, err := g.Scheduler.Scheduler.RunDue(g.Context(), core.Scope{})
	var failed *core.RunsError
	if err != nil {
		require.ErrorAs(g, err, &failed)
	}
	g.Clock.Advance(10 * time.Minute)
	info, err := g.Task(g.Context(), "a", "i")
	require.NoError(g, err)
	return info
}

func TestAnswersOfAGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		last   model.Outcome
		input  string
		err    string
	}{
		"go":                     {status: 200, body: ` {"mails":3} `, last: model.OutcomeSuccess, input: `{"mails":3}`},
		"go, with text":          {status: 200, body: "three mails\n", last: model.OutcomeSuccess, input: `"three mails"`},
		"go, with nothing":       {status: 200, last: model.OutcomeSuccess},
		"go, and says so":        {status: 200, body: `{"wake":true}`, last: model.OutcomeSuccess, input: `{"wake":true}`},
		"declined":               {status: 200, body: `{"wake":false}`, last: model.OutcomeSkipped, err: "gate"},
		"declined, other name":   {status: 200, body: `{"wakeAgent":false, "why":"asleep"}`, last: model.OutcomeSkipped, err: "gate"},
		"in an array is no word": {status: 200, body: `[{"wake":false}]`, last: model.OutcomeSuccess, input: `[{"wake":false}]`},
		"a string is no word":    {status: 200, body: `{"wake":"false"}`, last: model.OutcomeSuccess, input: `{"wake":"false"}`},
		"no content":             {status: 204, last: model.OutcomeSkipped, err: "gate"},
		"not modified":           {status: 304, last: model.OutcomeSkipped, err: "gate"},
		"precondition, unasked":  {status: 412, last: model.OutcomeFailed, err: "gate: webhook: 412 Precondition Failed"},
		"accepted":               {status: 202, last: model.OutcomeFailed, err: "gate: webhook: 202 Accepted: a gate must answer 200, 204 or 304"},
		"fails":                  {status: 500, body: "oops", last: model.OutcomeFailed, err: "gate: webhook: 500 Internal Server Error: oops"},
		"redirects":              {status: 302, header: map[string]string{"Location": "http://127.0.0.1/"}, last: model.OutcomeFailed, err: "redirects are not followed"},
		"later":                  {status: 429, header: map[string]string{"Retry-After": "90"}, last: model.OutcomeSnoozed, err: ""},
		"too large":              {status: 200, body: strings.Repeat("x", model.MaxGateInput+1), last: model.OutcomeFailed, err: "larger than the limit of 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			g := newGated(t, webhook.GateConfig{Config: webhook.Config{URL: rec.URL}})
			info := g.tick()
			assert.Equal(t, c.last, info.LastOutcome)
			assert.Contains(t, info.LastError, c.err)
			if c.last == model.OutcomeSuccess {
				assert.Equal(t, []string{c.input}, g.inputs)
			} else {
				assert.Empty(t, g.inputs)
			}
		})
	}
}

// The message is that of a handler, with the payload, and another id each time.
func TestTheQuestionOfAGate(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	g := newGated(t, webhook.GateConfig{Config: webhook.Config{URL: rec.URL, Secret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}})
	g.tick()
	g.tick()
	got := rec.messages()
	require.Len(t, got, 2)
	var run map[string]any
	require.NoError(t, json.Unmarshal(got[0].body, &run))
	assert.Equal(t, "inbox", run["payload"])
	assert.Equal(t, "a", run["agent_id"])
	assert.NotContains(t, run, "gate")
	assert.Regexp(t, "^gate_[0-9a-f]{32}$", got[0].header.Get("webhook-id"))
	assert.NotEqual(t, got[0].header.Get("webhook-id"), got[1].header.Get("webhook-id"), "who drops repeated messages answers all the same")
	assert.NotEmpty(t, got[0].header.Get("webhook-signature"))
	assert.Empty(t, got[0].header.Get("If-None-Match"))
}

// The ETag of what was dealt with is sent with the next question; that of a run that failed is not.
func TestETagRoundTrip(t *testing.T) {
	t.Parallel()
	version, refuse := `"v1"`, http.StatusNotModified
	rec := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("If-None-Match") == version {
			w.WriteHeader(refuse)
			return
		}
		w.Header().Set("ETag", version)
		_, _ = w.Write([]byte(version))
	})
	g := newGated(t, webhook.GateConfig{Config: webhook.Config{URL: rec.URL}})
	g.fails = assert.AnError
	assert.Equal(t, model.OutcomeFailed, g.tick().LastOutcome)
	g.fails = nil
	assert.Equal(t, model.OutcomeSuccess, g.tick().LastOutcome, "it has not been dealt with")
	assert.Equal(t, model.OutcomeSkipped, g.tick().LastOutcome)
	refuse = http.StatusPreconditionFailed
	assert.Equal(t, model.OutcomeSkipped, g.tick().LastOutcome)
	version = `"v2"`
	assert.Equal(t, model.OutcomeSuccess, g.tick().LastOutcome)
	assert.Equal(t, model.OutcomeSkipped, g.tick().LastOutcome)
	version = `"` + strings.Repeat("x", model.MaxGateTag) + `"`
	assert.Equal(t, model.OutcomeSuccess, g.tick().LastOutcome)
	assert.Equal(t, model.OutcomeSuccess, g.tick().LastOutcome, "one that is too long is not kept")
	var sent []string
	for _, m := range rec.messages() {
		sent = append(sent, m.header.Get("If-None-Match"))
	}
	assert.Equal(t, []string{"", "", `"v1"`, `"v1"`, `"v1"`, `"v2"`, `"v2"`, ""}, sent)
	assert.Equal(t, []string{`"v1"`, `"v1"`, `"v2"`}, g.inputs[:3])
}

// A server that does not answer fails the run after the timeout of the gate.
func TestAGateThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	g := newGated(t, webhook.GateConfig{Config: webhook.Config{URL: rec.URL + "/secret"}, Timeout: 50 * time.Millisecond})
	info := g.tick()
	assert.Equal(t, model.OutcomeFailed, info.LastOutcome)
	assert.Equal(t, "gate: webhook: no answer within 50ms", info.LastError)
	assert.Equal(t, 2, func() int { g.tick(); return len(rec.messages()) }(), "it is asked again")
}

func TestGateConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]webhook.GateConfig{
		"Timeout must not be negative, not -1s": {Config: webhook.Config{URL: "https://a.example"}, Timeout: -time.Second},
		"URL must be an http or https URL":      {},
		"Insecure must be set for http":         {Config: webhook.Config{URL: "http://a.example"}},
	} {
		_, err := webhook.NewGate(c)
		assert.ErrorContains(t, err, want)
		assert.ErrorAs(t, err, new(*core.ConfigError))
	}
}
