package hooks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/hooks"
	"github.com/seed-6f6f2c11/duly/core"
)

// What makes no sense is refused when the hooks are made, by the name of the field, and without the secret.
func TestMistakesInAHook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field, reason string
		change        func(c *hooks.Config)
	}{
		{"Name", "must be 1 to 64 letters", func(c *hooks.Config) { c.Name = "" }},
		{"Name", "must be 1 to 64 letters", func(c *hooks.Config) { c.Name = "a/b" }},
		{"Name", "must be 1 to 64 letters", func(c *hooks.Config) { c.Name = strings.Repeat("a", 65) }},
		{"Scheme", "must be standard_webhooks", func(c *hooks.Config) { c.Scheme = "none" }},
		{"Secrets", "must have a secret at least", func(c *hooks.Config) { c.Secrets = nil }},
		{"Secrets", "is too short", func(c *hooks.Config) { c.Secrets = []string{"fifteen bytes!!"} }},
		{"Secrets", "must be whsec_ and base64", func(c *hooks.Config) { c.Scheme = hooks.StandardWebhooks }},
		{"Secrets", "is too short", func(c *hooks.Config) { c.Scheme, c.Secrets = hooks.StandardWebhooks, []string{"whsec_c2hvcnQ="} }},
		{"Plain.ID", "must name a header or a pointer", func(c *hooks.Config) { c.Plain.ID = "fixed" }},
		{"Plain.ID", "must be a JSON pointer", func(c *hooks.Config) { c.Plain.ID = "{id}" }},
		{"Only", "must have pointers or headers", func(c *hooks.Config) { c.Only = map[string][]string{"type": {"a"}} }},
		{"Only", "must have pointers or headers", func(c *hooks.Config) { c.Only = map[string][]string{"/type": nil} }},
		{"Agents", "must be set, as the agent comes", func(c *hooks.Config) { c.Signal.Agent = "team-{/a}" }},
		{"Agents", "such as team-*", func(c *hooks.Config) { c.Agents = []string{"te*m"} }},
		{"Agents", "must cover the agent \"ann\"", func(c *hooks.Config) { c.Agents = []string{"bob", "team-*"} }},
		{"Signal", "or Task must be set", func(c *hooks.Config) { c.Signal = nil }},
		{"Signal", "and not both", func(c *hooks.Config) { c.Task = &core.NewTask{} }},
		{"Signal.Agent", "is required", func(c *hooks.Config) { c.Signal.Agent = "" }},
		{"Signal.Key", "is required", func(c *hooks.Config) { c.Signal.Key = "" }},
		{"Signal.Key", "a { without its }", func(c *hooks.Config) { c.Signal.Key = "{" }},
		{"Signal.Payload", "must be JSON", func(c *hooks.Config) { c.Signal.Payload = []byte("{") }},
		{"Signal.Payload.a[0]", "must be a JSON pointer", func(c *hooks.Config) { c.Signal.Payload = []byte(`{"a":["{x}"]}`) }},
		{"Task.agent", "is required", func(c *hooks.Config) { c.Signal, c.Task = nil, &core.NewTask{Kind: "ok"} }},
		{"Task.labels.x", "must be a JSON pointer", func(c *hooks.Config) {
			c.Signal, c.Task = nil, &core.NewTask{Agent: "ann", Kind: "ok", Labels: map[string]string{"x": "{x}"}}
		}},
		{"Task.tags[1]", "must be a JSON pointer", func(c *hooks.Config) {
			c.Signal, c.Task = nil, &core.NewTask{Agent: "ann", Kind: "ok", Tags: []string{"a", "{x}"}}
		}},
		{"Task.payload", "the limit is", func(c *hooks.Config) {
			c.Signal, c.Task = nil, &core.NewTask{Agent: "ann", Kind: "ok", Payload: strings.Repeat("a", 300<<10)}
		}},
	} {
		_, err := hooks.New(tells(c.change))
		wrong := new(core.ConfigError)
		require.ErrorAs(t, err, &wrong, c.field)
		assert.Equal(t, c.field, wrong.Field)
		assert.Contains(t, wrong.Reason, c.reason)
		assert.NotContains(t, err.Error(), secret)
	}
	_, err := hooks.New(tells(nil), tells(nil))
	require.ErrorContains(t, err, "is that of another hook")
}

// What a message lacks is refused by the name of the field, before any store call, and logged.
func TestWhatAMessageLacks(t *testing.T) {
	t.Parallel()
	task := func(change func(t *core.NewTask)) hooks.Config { return submits(change) }
	for _, c := range []struct {
		hook                hooks.Config
		body, field, detail string
	}{
		{tells(nil), `{}`, "signal.key", "{/id} finds nothing in the body"},
		{tells(nil), `{"id":{}}`, "signal.key", "{/id} finds an object"},
		{tells(nil), `id=1`, "signal.key", "needs a body of JSON"},
		{tells(func(c *hooks.Config) { c.Signal.Key = "{/id}" }), `{"id":""}`, "signal.key", "is empty for this message"},
		{tells(func(c *hooks.Config) { c.Signal.Payload = []byte(`{"a":"{/x}"}`) }), `{"id":1}`, "signal.payload.a", "{/x} finds nothing"},
		{tells(func(c *hooks.Config) { c.Signal.Agent, c.Agents = "{/a}", []string{"*"} }), `{"id":1}`, "signal.agent", "{/a} finds nothing"},
		{tells(func(c *hooks.Config) { c.Plain.ID = "{header:X-Id}" }), `{"id":1}`, "hmac.id", "finds no such header"},
		{task(func(t *core.NewTask) { t.ID = "{/id}" }), `{"id":""}`, "submit.id", "is empty for this message"},
		{task(func(t *core.NewTask) { t.Labels = map[string]string{"x": "{/x}"} }), `{}`, "submit.labels.x", "{/x} finds nothing"},
		{task(func(t *core.NewTask) { t.Tags = []string{"{/x}"} }), `{}`, "submit.tags[0]", "{/x} finds nothing"},
		{task(func(t *core.NewTask) { t.Payload = json.RawMessage(`["{/x}"]`) }), `{}`, "submit.payload[0]", "{/x} finds nothing"},
		{task(nil), ``, "submit.payload", "needs a body of JSON"},
		{task(nil), `payload=%7B%7D`, "submit.payload", "needs a body of JSON"},
	} {
		p := start(t, c.hook)
		status, answer := p.plain("in", c.body)
		assert.Equal(t, 400, status, answer)
		assert.Contains(t, answer, `"field":"`+c.field+`"`)
		assert.Contains(t, answer, c.detail)
		assert.Zero(t, p.spy.Calls(), c.field)
		assert.Contains(t, p.logs.String(), "a hook has refused a message")
	}
}

// A task has what its hook says, of each message.
func TestTheTaskOfAMessage(t *testing.T) {
	t.Parallel()
	p := start(t, submits(func(t *core.NewTask) {
		t.ID, t.UserID, t.Group, t.SessionID, t.LimitKey = "gh-{header:X-GitHub-Delivery}", "ann", "g-{/n}", "s-{/n}", "l-{/n}"
		t.Labels, t.Tags, t.MaxAttempts = map[string]string{"n": "{/n}", "fixed": "x"}, []string{"a{/n}"}, 2
		t.Payload = map[string]any{"all": "{/}", "n": "{/n}", "text": "number {/n}"}
	}))
	for _, n := range []string{"1", "2"} {
		status, answer := p.plain("in", `{"n":`+n+`}`, "X-GitHub-Delivery", n)
		assert.Equal(t, 201, status, answer)
	}
	for _, n := range []string{"1", "2"} {
		task, err := p.s.Task(t.Context(), "ann", "gh-"+n)
		require.NoError(t, err)
		assert.Equal(t, []any{"ann", "g-" + n, "s-" + n, "l-" + n, 2}, []any{task.UserID, task.Group, task.SessionID, task.LimitKey, task.MaxAttempts})
		assert.Equal(t, map[string]string{"n": n, "fixed": "x"}, task.Labels)
		assert.Equal(t, []string{"a" + n}, task.Tags)
		assert.JSONEq(t, `{"all":{"n":`+n+`},"n":`+n+`,"text":"number `+n+`"}`, string(task.Payload))
	}
}

// A sender whose scheme has no name says where its signature is, and what names a message.
func TestAPlainScheme(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plain  hooks.Plain
		header func(body string) []string
	}{
		{hooks.Plain{}, func(body string) []string { return []string{"X-Signature", sum(secret, body)} }},
		{hooks.Plain{Header: "X-My-Sum", Prefix: "v1:"}, func(body string) []string { return []string{"X-My-Sum", "v1:" + sum(secret, body)} }},
		{hooks.Plain{Header: "X-My-Sum", Base64: true}, func(body string) []string { return []string{"X-My-Sum", base64Sum(secret, body)} }},
	} {
		p := start(t, tells(func(s *hooks.Config) { s.Plain = c.plain }))
		status, answer := p.send("in", `{"id":1}`, c.header(`{"id":1}`)...)
		assert.Equal(t, 202, status, answer)
		status, _ = p.send("in", `{"id":1}`, c.header(`{"id":1}`)...)
		assert.Equal(t, 208, status, "the same body is the same message")
		status, _ = p.send("in", `{"id":2}`, c.header(`{"id":2}`)...)
		assert.Equal(t, 202, status)
		status, _ = p.send("in", `{"id":3}`, "X-Signature", "", "X-My-Sum", "v1:")
		assert.Equal(t, 401, status)
	}
	p := start(t, tells(func(c *hooks.Config) { c.Plain.ID = "{/of}-{header:X-Id}" }))
	for _, m := range []struct {
		body, id string
		want     int
	}{{`{"id":1,"of":"a"}`, "1", 202}, {`{"id":2,"of":"a"}`, "1", 208}, {`{"id":3,"of":"a"}`, "2", 202}} {
		status, _ := p.plain("in", m.body, "X-Id", m.id)
		assert.Equal(t, m.want, status)
	}
}
