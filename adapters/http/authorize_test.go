package http_test

// The rights of a caller where a request is about more than one agent at a time: a batch with a key, and a stream.

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A batch with a key asks the store about tasks before it submits them: whoever may not submit all of them learns nothing of any.
func TestABatchWithAKeyIsAuthorizedFirst(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{{Token: "t", Grant: httpadapter.Grant{Patterns: []string{"an*"}}}}})
	for body, want := range map[string]int{
		`{"tasks":[{"agent_id":"ann","kind":"ok"},{"agent_id":"bob","id":"1","kind":"ok"}]}`: 403,
		`{"tasks":[{"agent_id":"ann","kind":"ok"},{"agent_id":"ant","id":"1","kind":"ok"}]}`: 201,
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer t")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "key")
		before := f.store.calls.Load()
		res, text := f.do(t, r)
		assert.Equal(t, want, res.StatusCode, text)
		assert.Equal(t, want == 403, before == f.store.calls.Load(), text)
	}
}

// A stream has what its caller may see at that moment, by its grant and by the authorizer: what is about all is for those alone who may
// see all.
func TestAStreamIsAuthorizedEventByEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := httpadapter.NewEvents()
		suspended := ""
		f := setupWith(t, core.Config{
			Authorizer: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
				if what.Agent != "" && what.Agent == suspended {
					return errors.New("suspended")
				}
				return nil
			}),
		}, httpadapter.Config{Events: events, Tokens: []string{"root"}, Scoped: []httpadapter.Token{
			{Token: "some", Grant: httpadapter.Grant{Agents: []string{"bob"}, Patterns: []string{"an*"}}},
		}})
		ctx, end := context.WithCancel(t.Context())
		streams := map[string]*httptest.ResponseRecorder{"root": httptest.NewRecorder(), "some": httptest.NewRecorder()}
		for token, w := range streams {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			go f.handler.ServeHTTP(w, r)
		}
		synctest.Wait()
		require.NoError(t, f.scheduler.Pause(t.Context(), core.Target{}, core.Pause{}))
		for _, agent := range []string{"ann", "bob", "cid"} {
			require.NoError(t, f.scheduler.Pause(t.Context(), core.Target{Agent: agent}, core.Pause{Ahead: true}))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		suspended = "ann"
		require.NoError(t, f.scheduler.Resume(t.Context(), core.Target{Agent: "ann"}))
		time.Sleep(time.Second)
		end()
		synctest.Wait()
		count := func(token, text string) int { return strings.Count(streams[token].Body.String(), text) }
		assert.Equal(t, 4, count("root", "event: pause"))
		assert.Equal(t, 2, count("some", "event: pause"))
		assert.Zero(t, count("some", `"agent_id":"cid"`))
		assert.Zero(t, count("root", "event: resume")+count("some", "event: resume"))
	})
}

// Two senders may use the same message ids: neither gets the task of the other for its own.
func TestSendersHaveMessageIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	other := []byte("a key of another sender, long enough")
	f := setup(t, httpadapter.Config{Signed: []httpadapter.Signed{
		{Secrets: []string{base64.StdEncoding.EncodeToString(signingKey)}, Grant: httpadapter.Grant{Name: "one"}},
		{Secrets: []string{base64.StdEncoding.EncodeToString(other)}, Grant: httpadapter.Grant{Name: "two"}},
	}})
	const body = `{"agent_id":"a","kind":"ok"}`
	stamp := unix(time.Now())
	ids := map[string]bool{}
	for range 2 {
		r := signed("m", stamp, body)
		if len(ids) == 1 {
			mac := hmac.New(sha256.New, other)
			_, _ = mac.Write([]byte("m." + stamp + "." + body))
			r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		}
		res, text := f.do(t, r)
		require.Equal(t, 201, res.StatusCode, text)
		ids[text] = true
	}
	assert.Len(t, ids, 2)
}

// A pattern is the beginning of ids; an id that ends in a star, which a user may have chosen, is none.
func TestPatternsAreNoIDs(t *testing.T) {
	t.Parallel()
	g := httpadapter.Grant{Agents: []string{"*", "te*"}, Patterns: []string{"team-*"}}
	for agent, want := range map[string]bool{"*": true, "te*": true, "team-1": true, "team-": true, "team": false, "ann": false, "": false} {
		err := g.Authorize(t.Context(), core.Principal{}, core.Access{Action: model.ActionRead, Agent: agent})
		assert.Equal(t, want, err == nil, "%q", agent)
	}
	for _, bad := range []string{"", "team", "*team", "te*am*", "**"} {
		config := httpadapter.Config{Scoped: []httpadapter.Token{{Token: "t", Grant: httpadapter.Grant{Patterns: []string{bad}}}}}
		assert.Panics(t, func() { httpadapter.New(nil, config) }, "%q", bad)
	}
	assert.Panics(t, func() { httpadapter.New(nil, httpadapter.Config{Tokens: []string{"a", "a"}}) }, "which of the same tokens counts would be a guess")
}
