package http_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// A handler beside the API lets in the same callers, with the same rights.
func TestCallersOfAHandlerBeside(t *testing.T) {
	t.Parallel()
	assert.Nil(t, new(httpadapter.Config).Callers(), "nobody needs a credential")
	callers := (&httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		{Token: "ann", Grant: httpadapter.Grant{Name: "Ann", Agents: []string{"ann"}, Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}},
	}}).Callers()
	r := httptest.NewRequest(http.MethodGet, "/ui", nil)
	_, err := callers(r)
	require.ErrorIs(t, err, httpadapter.ErrNoCredential)
	r.Header.Set("Authorization", "Bearer wrong")
	_, err = callers(r)
	require.Error(t, err)
	r.Header.Set("Authorization", "Bearer root")
	who, err := callers(r)
	require.NoError(t, err)
	assert.NoError(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: core.ActionControl}))
	r.Header.Set("Authorization", "Bearer ann")
	who, err = callers(r)
	require.NoError(t, err)
	assert.Equal(t, "Ann", who.Name)
	assert.NoError(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: core.ActionRead, Agent: "ann"}))
	assert.Error(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: core.ActionRead, Agent: "bob"}))
	assert.Error(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: core.ActionControl, Agent: "ann"}))
}

// It hears what it wants, learns what it missed, and takes its share of the listeners.
func TestAHandlerBesideListens(t *testing.T) {
	t.Parallel()
	var events httpadapter.Events
	heard, missed, leave, err := events.Listen("one", func(e *core.Event) bool { return e.Agent == "a" })
	require.NoError(t, err)
	events.Publish(core.Event{Agent: "b", ID: "1"})
	for range 300 {
		events.Publish(core.Event{Agent: "a", ID: "2"})
	}
	assert.Equal(t, "2", (<-heard).ID)
	assert.Equal(t, 44, missed())
	assert.Zero(t, missed())
	leave()
	var ends []func()
	for range 100 {
		_, _, end, err := events.Listen("one", nil)
		require.NoError(t, err)
		ends = append(ends, end)
	}
	_, _, _, err = events.Listen("one", nil)
	require.ErrorContains(t, err, "100 clients are already listening")
	_, _, end, err := events.Listen("two", nil)
	require.NoError(t, err, "another one has its own share")
	for _, end := range append(ends, end) {
		end()
	}
	_, _, end, err = events.Listen("one", nil)
	require.NoError(t, err)
	end()
}
