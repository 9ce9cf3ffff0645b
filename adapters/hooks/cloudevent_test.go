package hooks_test

// Events of CloudEvents, as its own library sends them.

import (
	"net/http/httptest"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/hooks"
	"github.com/seed-6f6f2c11/duly/core"
)

// sender is the library's client, with a token.
func sender(t *testing.T, p *process, token string) client.Client {
	t.Helper()
	server := httptest.NewServer(p.handler)
	t.Cleanup(server.Close)
	c, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(server.URL+"/v1/hooks/in"), cloudevents.WithHeader("Authorization", "Bearer "+token))
	require.NoError(t, err)
	return c
}

// An event makes the same task in both modes, and once in both together: attributes are headers, and pointers look into the data.
func TestTheLibraryOfCloudEventsIsUnderstood(t *testing.T) {
	t.Parallel()
	config := submits(func(task *core.NewTask) {
		task.Agent = "bob"
		task.ID, task.Payload = "{header:ce-type}-{/order}", []byte(`{"whole":"{/}","tenant":"{header:ce-tenant}","subject":"{header:ce-subject}"}`)
	})
	config.Scheme, config.Only = hooks.CloudEvents, map[string][]string{"header:ce-type": {"order.paid"}}
	e := cloudevents.NewEvent()
	e.SetID("1")
	e.SetSource("https://shop.example/orders")
	e.SetType("order.paid")
	e.SetSubject("7")
	e.SetExtension("tenant", "acme")
	require.NoError(t, e.SetData(cloudevents.ApplicationJSON, map[string]any{"order": 7}))
	for _, structured := range []bool{false, true} {
		p := start(t, config)
		mode, other := cloudevents.WithEncodingBinary(t.Context()), cloudevents.WithEncodingStructured(t.Context())
		if structured {
			mode, other = other, mode
		}
		good := sender(t, p, secret)
		require.True(t, cloudevents.IsACK(good.Send(mode, e)))
		require.True(t, cloudevents.IsACK(good.Send(other, e)), "a repeat")
		tasks := p.tasks(t, "bob")
		require.Len(t, tasks, 1)
		assert.Equal(t, "order.paid-7", tasks[0].ID)
		assert.JSONEq(t, `{"whole":{"order":7},"tenant":"acme","subject":"7"}`, string(tasks[0].Payload))

		next := e.Clone()
		next.SetID("2")
		assert.True(t, cloudevents.IsNACK(sender(t, p, "another token, of 16 bytes").Send(mode, next)))
		next.SetType("order.sent")
		require.True(t, cloudevents.IsACK(good.Send(mode, next)), "is ignored")
		assert.Len(t, p.tasks(t, "bob"), 1)
	}
}

// What is no event is refused with what is missing, and nothing is stored.
func TestWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	p := start(t, tells(func(c *hooks.Config) { c.Scheme, c.Signal.Key = hooks.CloudEvents, "{header:ce-id}" }))
	auth := []string{"Authorization", "Bearer " + secret}
	for _, c := range []struct {
		body   string
		header []string
		status int
		said   string
	}{
		{`{}`, []string{"Content-Type", "application/json"}, 400, "ce-specversion is required"},
		{`{}`, []string{"Ce-Specversion", "0.3", "Ce-Id", "1", "Ce-Source", "s", "Ce-Type", "t"}, 400, "ce-specversion must be 1.0"},
		{`{}`, []string{"Ce-Specversion", "1.0", "Ce-Source", "s", "Ce-Type", "t"}, 400, "ce-id is required"},
		{`{"specversion":"1.0","id":"1","source":"s"}`, []string{"Content-Type", "application/cloudevents+json", "Ce-Type", "t"}, 400, "ce-type is required"},
		{`[]`, []string{"Content-Type", "application/cloudevents-batch+json"}, 415, "no batch"},
		{`no JSON`, []string{"Content-Type", "application/cloudevents+json"}, 400, "body"},
		{`{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"!"}`, []string{"Content-Type", "application/cloudevents+json"}, 400, "data_base64 must be"},
		{`{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"e30="}`, []string{"Content-Type", "application/cloudevents+json; charset=utf-8"}, 202, ""},
	} {
		before := p.spy.Calls()
		status, answer := p.send("in", c.body, append(c.header, auth...)...)
		assert.Equal(t, c.status, status, "%s: %s", c.body, answer)
		assert.Contains(t, answer, c.said)
		if c.status != 202 {
			assert.Equal(t, before, p.spy.Calls())
		}
	}
	status, _ := p.send("in", `{}`, "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "s", "Ce-Type", "t")
	assert.Equal(t, 401, status)
	status, _ = p.send("in", `{}`, "Authorization", "Basic "+secret)
	assert.Equal(t, 401, status)
}
