package hooks_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/hooks"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/message"
)

// vectors are requests as the providers sign them: the example of Standard Webhooks' libraries, that of GitHub's documentation, and one whose
// signature stripe-go 82.5.1 has computed.
var vectors = map[string]struct {
	scheme hooks.Scheme
	secret string
	body   string
	header []string
}{
	"standard webhooks": {hooks.StandardWebhooks, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`, []string{
		"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330", "webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}},
	"github": {hooks.GitHub, "It's a Secret to Everybody", "Hello, World!", []string{
		"X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
	}},
	"stripe": {hooks.Stripe, "whsec_test_secret", `{"id":"evt_1","object":"event","type":"invoice.paid","data":{"object":{"id":"in_1","customer":"cus_1"}}}`, []string{
		"Stripe-Signature", "t=1614265330,v1=e44787f74cc8f12ee6f44e488da4e4d5b7a2bf64e4220b8d2a958b0b231b0b1d",
	}},
}

// The providers' own requests are accepted, once each; changed in any byte of the secret, of the body or of what is signed, they are refused, and no store is
// called.
func TestTheVectorsOfTheProviders(t *testing.T) {
	t.Parallel()
	for name, v := range vectors {
		c := hooks.Config{Name: "in", Scheme: v.scheme, Secrets: []string{"another secret, rotated in"}, Signal: &hooks.Signal{Agent: "ann", Key: "k", Payload: []byte(`"fixed"`)}}
		if v.scheme == hooks.StandardWebhooks {
			c.Secrets[0] = "whsec_" + base64.StdEncoding.EncodeToString([]byte(c.Secrets[0]))
		}
		other := start(t, c)
		c.Secrets = append(c.Secrets, v.secret)
		p := start(t, c)
		refused := func(p *process, what, body string, header ...string) {
			t.Helper()
			before := p.spy.Calls()
			status, answer := p.send("in", body, header...)
			assert.Equal(t, 401, status, "%s: %s", name, what)
			assert.Contains(t, answer, "the signature is missing or not valid")
			assert.NotContains(t, answer, "too old", "the reason is for the log")
			assert.Equal(t, before, p.spy.Calls(), "%s: %s", name, what)
		}
		refused(other, "another secret", v.body, v.header...)
		refused(p, "another body", v.body+" ", v.header...)
		refused(p, "no body", "", v.header...)
		refused(p, "no signature", v.body)
		refused(p, "a token", v.body, "Authorization", "Bearer token")
		for i := 1; i < len(v.header); i += 2 {
			if v.header[i-1] == "X-GitHub-Delivery" {
				continue // is not signed
			}
			for _, changed := range []string{"", "x", v.header[i][1:], v.header[i] + "x", strings.Replace(v.header[i], "1", "2", 1)} {
				header := slices.Clone(v.header)
				if header[i] = changed; slices.Equal(header, v.header) {
					continue
				}
				refused(p, header[i-1]+": "+changed, v.body, header...)
			}
		}
		status, answer := p.send("in", v.body, v.header...)
		assert.Equal(t, 202, status, "%s: %s", name, answer)
		status, answer = p.send("in", v.body, v.header...)
		assert.Equal(t, 208, status, name)
		assert.JSONEq(t, `{"duplicate":true}`, answer)
	}
}

// A signature with a time is good for five minutes, both ways.
func TestOldSignatures(t *testing.T) {
	t.Parallel()
	stripe := tells(func(c *hooks.Config) { c.Scheme, c.Name = hooks.Stripe, "stripe" })
	webhooks := tells(func(c *hooks.Config) {
		c.Scheme, c.Name, c.Secrets = hooks.StandardWebhooks, "standard", []string{base64.StdEncoding.EncodeToString([]byte(secret))}
	})
	p := start(t, stripe, webhooks)
	for shift, want := range map[time.Duration]int{-5 * time.Minute: 202, 5 * time.Minute: 202, -5*time.Minute - time.Second: 401, 5*time.Minute + time.Second: 401} {
		at := signedAt.Add(shift)
		body := `{"id":"` + shift.String() + `"}`
		text := fmt.Sprint(at.Unix())
		status, _ := p.send("stripe", body, "Stripe-Signature", "t="+text+",v1="+sum(secret, text+"."+body))
		assert.Equal(t, want, status, shift)
		body = `{"id":"s` + shift.String() + `"}`
		status, _ = p.send("standard", body, standard([]byte(secret), shift.String(), at, body)...)
		assert.Equal(t, want, status, shift)
	}
}

// Of several signatures one has to match, made by one of several secrets; a time that is given twice is none.
func TestSeveralSignatures(t *testing.T) {
	t.Parallel()
	p := start(t, tells(func(c *hooks.Config) {
		c.Scheme, c.Secrets = hooks.Stripe, []string{"the next secret of this hook", secret}
	}))
	body, wrong := `{"id":"e"}`, strings.Repeat("0", 64)
	good := sum(secret, "1614265330."+body)
	for header, want := range map[string]int{
		"t=1614265330,v1=" + wrong:                 401,
		"t=1614265330,v0=" + good:                  401,
		"t=1614265330":                             401,
		"v1=" + good:                               401,
		"t=1614265330,t=1614265331,v1=" + good:     401,
		"t=1614265330,v1=" + wrong + ",v1=" + good: 202,
	} {
		status, _ := p.send("in", body, "Stripe-Signature", header)
		assert.Equal(t, want, status, header)
	}
	status, _ := p.send("in", body, "Stripe-Signature", "t=1614265330, v1="+sum("the next secret of this hook", "1614265330."+body))
	assert.Equal(t, 208, status)
}

// A background response wakes the run that waits for it, which hears of whom it was; but it is no approval.
func TestAHookWakesTheRunThatWaits(t *testing.T) {
	t.Parallel()
	openai := hooks.Config{
		Name: "openai", Scheme: hooks.StandardWebhooks, Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))},
		Only: map[string][]string{"/type": {"response.completed", "response.failed"}}, Signal: &hooks.Signal{Agent: "ann", Key: "response-{/data/id}"},
	}
	body := `{"id": "evt_1", "type": "response.completed", "created_at": 1719168000, "data": {"id": "resp_1"}}`
	for _, approval := range []bool{false, true} {
		p := start(t, openai)
		heard := p.wait(t, "response-resp_1", approval)
		status, answer := p.send("openai", body, standard([]byte(secret), "wh_1", signedAt, body)...)
		if approval {
			assert.Equal(t, 403, status, answer)
			assert.Nil(t, heard())
			assert.Contains(t, p.logs.String(), "a hook has refused a message")
			continue
		}
		assert.Equal(t, 200, status, answer)
		assert.JSONEq(t, `{"resumed":1,"kept":false}`, answer)
		h := heard()
		require.NotNil(t, h)
		assert.JSONEq(t, body, string(h.Payload))
		assert.Equal(t, core.ByCredential, h.How)
		assert.Equal(t, "hook:openai", h.By)
	}
}

// Two processes on a store carry a message out once, also if another body is around it.
func TestAMessageCountsOnceOverProcesses(t *testing.T) {
	t.Parallel()
	st := memstore.New(memstore.Config{})
	c := submits(func(t *core.NewTask) { t.Group = "g" })
	c.Scheme = hooks.Stripe
	all := []*process{beside(t, st, c), beside(t, st, c)}
	send := func(p *process, body string) int {
		status, _ := p.send("in", body, "Stripe-Signature", "t=1614265330,v1="+sum(secret, "1614265330."+body))
		return status
	}
	var counts [600]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			status := send(all[i%2], `{"id":"evt_1","pending_webhooks":1}`)
			mu.Lock()
			defer mu.Unlock()
			counts[status]++
		})
	}
	wg.Wait()
	assert.Equal(t, 1, counts[201])
	assert.Equal(t, 15, counts[208]+counts[503], "done, or under way")
	assert.Equal(t, 208, send(all[1], `{"id":"evt_1","pending_webhooks":0}`), "senders change what is beside the id")
	assert.Equal(t, 201, send(all[1], `{"id":"evt_2"}`))
	assert.Len(t, all[0].tasks(t, "ann"), 2)
}

// A message whose effect failed is answered so that it comes again, and counts then.
func TestAFailedMessageComesAgain(t *testing.T) {
	t.Parallel()
	p := start(t, submits(nil))
	away := errors.New("away")
	for verb, want := range map[string]int{"Receive": 503, "Submit": 503} {
		p.spy.Before = func(_ context.Context, called string) error {
			if called == verb {
				return &store.Error{Verb: called, Err: away}
			}
			return nil
		}
		status, answer := p.plain("in", `{"id":1}`)
		assert.Equal(t, want, status, "%s: %s", verb, answer)
	}
	p.spy.Before = nil
	status, _ := p.plain("in", `{"id":1}`)
	assert.Equal(t, 201, status)
	for _, id := range []string{"2", "3"} {
		status, _ = p.plain("in", `{"id":`+id+`}`)
		assert.Equal(t, 201, status)
	}
	for range 2 {
		status, answer := p.plain("in", `{"id":4}`)
		assert.Equal(t, 429, status, "the agent has as many tasks as it may: %s", answer)
	}
	p.run(t)
	status, _ = p.plain("in", `{"id":4}`)
	assert.Equal(t, 201, status)
	assert.Len(t, p.tasks(t, "ann"), 4)
}

// A process that dies between the effect and its note has a message carried out again: its task exists then.
func TestATaskIsSubmittedOnceThoughItsMessageIsForgotten(t *testing.T) {
	t.Parallel()
	p := start(t, submits(nil))
	forgets := false
	p.spy.Before = func(_ context.Context, called string) error {
		if called == "Submit" {
			forgets = true
		}
		if called == "Receive" && forgets { // the process is dead by then
			return &store.Error{Verb: called, Err: errors.New("dead")}
		}
		return nil
	}
	status, first := p.plain("in", `{"id":1}`)
	assert.Equal(t, 201, status)
	forgotten := memstore.New(memstore.Config{}) // of receipts alone: the tasks are those of the store before
	p.spy.Before = nil
	again := beside(t, &receipts{p.spy.Store, forgotten}, submits(nil))
	status, second := again.plain("in", `{"id":1}`)
	assert.Equal(t, 200, status, second)
	assert.Equal(t, strings.Replace(first, `"created":true`, `"created":false`, 1), second)
	assert.Len(t, p.tasks(t, "ann"), 1)
}

// So it is with a signal: it is not kept for a task that waits for the same key later, and no task is resumed again.
func TestASignalIsSentOnceThoughItsMessageIsForgotten(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		p := start(t, tells(nil))
		want := `{"resumed":0,"kept":true}`
		if waits {
			p.wait(t, "k-1", false)
			want = `{"resumed":1,"kept":false}`
		}
		status, answer := p.plain("in", `{"id":1}`)
		assert.Less(t, status, 300)
		assert.JSONEq(t, want, answer)
		p.run(t)
		again := beside(t, &receipts{p.spy.Store, memstore.New(memstore.Config{})}, tells(nil))
		status, answer = again.plain("in", `{"id":1}`)
		assert.Equal(t, 200, status)
		assert.JSONEq(t, `{"resumed":0,"kept":false}`, answer)
		status, answer = p.plain("in", `{"id":1,"other":true}`)
		assert.Equal(t, waits, status == 202, "another message is sent, unless one is kept still: %s", answer)
	}
}

// receipts is a store with the messages of another.
type receipts struct {
	core.Store

	of core.Store
}

func (r *receipts) Receive(ctx context.Context, of message.Receipt) (message.Received, error) {
	return r.of.Receive(ctx, of)
}

// An agent of a message is bounded by the patterns of its hook, and nothing is stored for any other.
func TestTheAgentsOfAHook(t *testing.T) {
	t.Parallel()
	c := submits(func(t *core.NewTask) { t.Agent = "{/agent}" })
	_, err := hooks.New(c)
	require.ErrorContains(t, err, "Agents must be set, as the agent comes from the message")
	c.Agents = []string{"ann", "team-*"}
	s := tells(func(s *hooks.Config) {
		s.Name, s.Signal.Agent, s.Signal.Key, s.Agents = "tell", "{/agent}", "k{/n}", c.Agents
	})
	p := start(t, c, s)
	for agent, may := range map[string]bool{"ann": true, "team-1": true, "team-": true, "anna": false, "tea": false, "*": false, "team-*": true, "ANN": false} {
		before := p.spy.Calls()
		body := `{"agent":"` + agent + `","n":1}`
		for hook, want := range map[string]int{"in": 201, "tell": 202} {
			status, answer := p.plain(hook, body)
			if !may {
				want = 403
				assert.Equal(t, before, p.spy.Calls(), agent)
			}
			assert.Equal(t, want, status, "%s %s: %s", hook, agent, answer)
		}
	}
	user := submits(func(t *core.NewTask) { t.UserID = "{/user}" })
	user.Name = "user"
	p = start(t, user)
	status, _ := p.plain("user", `{"user":"bob"}`)
	assert.Equal(t, 403, status, "nor does it choose users")
}

// Messages that are none of those that count are answered and ignored, before any store call.
func TestOnlySomeMessages(t *testing.T) {
	t.Parallel()
	p := start(t, tells(func(c *hooks.Config) {
		c.Only = map[string][]string{"/type": {"a", "1"}, "header:X-GitHub-Event": {"issues"}}
	}))
	for _, c := range []struct {
		body, event string
		want        int
	}{
		{`{"type":"a","id":"1"}`, "issues", 202},
		{`{"type":1,"id":"2"}`, "issues", 202},
		{`{"type":"b","id":"3"}`, "issues", 204},
		{`{"type":"a","id":"4"}`, "push", 204},
		{`{"id":"5"}`, "issues", 204},
		{`{"type":["a"],"id":"6"}`, "issues", 204},
		{`none`, "issues", 204},
		{`{"type":"a"}`, "issues", 400},
	} {
		before := p.spy.Calls()
		status, answer := p.plain("in", c.body, "X-GitHub-Event", c.event)
		assert.Equal(t, c.want, status, c.body)
		if c.want != 202 {
			assert.Equal(t, before, p.spy.Calls(), c.body)
		}
		assert.Equal(t, c.want == 204, answer == "", answer)
	}
}

// A request is known by its signature alone: no page, no host, no token and no other method makes a difference.
func TestTheRoute(t *testing.T) {
	t.Parallel()
	p := start(t, tells(nil))
	status, answer := p.plain("none", `{"id":"1"}`)
	assert.Equal(t, 404, status)
	assert.Contains(t, answer, `"code":"no_route"`)
	status, answer = p.plain("in", strings.Repeat(" ", 4096)+`{"id":"1"}`)
	assert.Equal(t, 413, status)
	assert.Contains(t, answer, "the limit is 4096 bytes")
	status, _ = p.plain("in", `{"id":"1"}`, "Authorization", "Bearer wrong")
	assert.Equal(t, 202, status)
	status, _ = p.plain("in?from=there", `{"id":"1"}`)
	assert.Equal(t, 208, status, "a query is not signed, and makes no other message")
	status, _ = p.plain("in", `{"id":"2"}`, "Origin", "https://evil.example")
	assert.Equal(t, 403, status)
	for _, name := range []string{"", "in/x", ".", "..", "%2e"} {
		status, _ = p.plain(name, `{"id":"3"}`)
		assert.Contains(t, []int{401, 404}, status, name)
	}
	assert.NotContains(t, p.logs.String(), secret)
}
