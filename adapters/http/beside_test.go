package http_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
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
	assert.NoError(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: model.ActionControl}))
	r.Header.Set("Authorization", "Bearer ann")
	who, err = callers(r)
	require.NoError(t, err)
	assert.Equal(t, "Ann", who.Name)
	assert.NoError(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: model.ActionRead, Agent: "ann"}))
	assert.Error(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: model.ActionRead, Agent: "bob"}))
	assert.Error(t, who.Rights.Authorize(t.Context(), who, core.Access{Action: model.ActionControl, Agent: "ann"}))
}

// It takes its share of the places of those who listen.
func TestAHandlerBesideListens(t *testing.T) {
	t.Parallel()
	events := httpadapter.NewEvents()
	var ends []func()
	for range 100 {
		end, err := events.Listen("one")
		require.NoError(t, err)
		ends = append(ends, end)
	}
	_, err := events.Listen("one")
	require.ErrorContains(t, err, "100 clients are already listening")
	end, err := events.Listen("two")
	require.NoError(t, err, "another one has its own share")
	for _, end := range append(ends, end) {
		end()
	}
	end, err = events.Listen("one")
	require.NoError(t, err)
	end()
}
