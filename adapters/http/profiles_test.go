package http_test

// Profiles over HTTP: set, shown, deleted and refused.

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

func TestProfiles(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	res, body := f.call(t, "GET", "/v1/agents/a", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	assert.Contains(t, body, `agent \"a\" has no profile`)
	sent := `{"zone":"Europe/Berlin","quiet":[{"from":"22:00","to":"07:00"},{"from":"00:00","to":"24:00","days":["sat-sun"]}],"urgent":true,"labels":{"tier":"gold"}}`
	shown := `{"agent_id":"a","revision":1,` + sent[1:]
	for range 2 {
		res, body = f.call(t, "PUT", "/v1/agents/a", sent)
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		assert.JSONEq(t, shown, body)
	}
	_, body = f.call(t, "GET", "/v1/agents/a", "")
	assert.JSONEq(t, shown, body)
	_, body = f.call(t, "PUT", "/v1/agents/a", body)
	assert.JSONEq(t, shown, body, "what was shown can be sent back")
	_, body = f.call(t, "PUT", "/v1/agents/a", `{}`)
	assert.JSONEq(t, `{"agent_id":"a","revision":2}`, body, "it is set as a whole")
	_, body = f.call(t, "DELETE", "/v1/agents/a/profile", "")
	assert.JSONEq(t, `{"agent_id":"a","deleted":true}`, body)
	res, _ = f.call(t, "DELETE", "/v1/agents/a/profile", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}

// noProfiles are those of a store without any.
func noProfiles(context.Context, string, int) ([]core.Profile, string, error) { return nil, "", nil }

// The profiles of all agents are a page, where a program lists them.
func TestProfilesOfAllAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Profiles: func(_ context.Context, cursor string, limit int) ([]core.Profile, string, error) {
		return []core.Profile{{Agent: cursor, Revision: int64(limit)}}, "next", nil
	}})
	res, body := f.call(t, "GET", "/v1/profiles?limit=7&cursor=at", "")
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.JSONEq(t, `{"profiles":[{"agent_id":"at","revision":7}],"next_cursor":"next"}`, body)
	_, body = setup(t, httpadapter.Config{Profiles: noProfiles}).call(t, "GET", "/v1/profiles", "")
	assert.JSONEq(t, `{"profiles":[],"next_cursor":""}`, body)
	res, _ = setup(t, httpadapter.Config{}).call(t, "GET", "/v1/profiles", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}

// A credential for some agents is for their profiles too.
func TestProfilesNeedTheirAgent(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{{
		Token: "t", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeRead}, Agents: []string{"a"}},
	}}})
	for call, want := range map[string]int{"GET /v1/agents/a": 404, "GET /v1/agents/b": 403, "PUT /v1/agents/a": 403, "DELETE /v1/agents/a/profile": 403} {
		method, path, _ := strings.Cut(call, " ")
		r := httptest.NewRequest(method, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer t")
		res, body := f.do(t, r)
		assert.Equal(t, want, res.StatusCode, "%s: %s", call, body)
	}
}

func TestProfilesAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for body, field := range map[string]string{
		`[]`:                                  "profile",
		`{"zone":"Mars"}`:                     "zone",
		`{"zone":5}`:                          "zone",
		`{"urgent":"x"}`:                      "urgent",
		`{"quiet":{}}`:                        "quiet",
		`{"quiet":[5]}`:                       "quiet[0]",
		`{"quiet":[{}]}`:                      "quiet[0].from",
		`{"quiet":[{"from":"22:00","to":7}]}`: "quiet[0].to",
		`{"quiet":[{"from":"22:00","to":"07:00","day":["mon"]}]}`:                        "quiet[0].day",
		`{"quiet":[{"from":"22:00","to":"07:00","days":"mon"}]}`:                         "quiet[0].days",
		`{"quiet":[{"from":"22:00","to":"07:00","days":["monday"]}]}`:                    "quiet[0].days",
		`{"quiet":[{"from":"00:00","to":"12:00"},{"from":"12:00","to":"24:00"}]}`:        "quiet",
		`{"quiet":[{"from":"22:00","to":"07:00"}],"quiet":[{"from":"1:00","to":"2:0"}]}`: "quiet",
		`{"labels":{"x":5}}`:  "labels",
		`{"agent_id":"b"}`:    "agent_id",
		`{"quiet_hours":"1"}`: "quiet_hours",
		`{"revision":"1"}`:    "revision",
	} {
		res, answer := f.call(t, "PUT", "/v1/agents/a", body)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, body)
		assert.Equal(t, field, get[map[string]any](t, answer)["field"], "%s: %s", body, answer)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"1","kind":"ok","delay":"1h"}`)
	f.call(t, "PUT", "/v1/agents/a", `{"zone":"UTC"}`)
	for _, c := range [][2]string{
		{"?dry_run=true", `{"agent_id":"a","live":1,"finished":0,"profile":true,"dry_run":true}`},
		{"", `{"agent_id":"a","live":1,"finished":0,"profile":true,"dry_run":false}`},
		{"?dry_run=false", `{"agent_id":"a","live":0,"finished":0,"profile":false,"dry_run":false}`},
	} {
		res, body := f.call(t, "DELETE", "/v1/agents/a"+c[0], "")
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.JSONEq(t, c[1], body)
	}
	res, _ := f.call(t, "DELETE", "/v1/agents/a?dry_run=perhaps", "")
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
}

// A profile that cannot be read changes nothing, however it is misspelt, and one that was read before somebody else has changed it is a conflict.
func TestAProfileIsReplacedAsItWasRead(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "PUT", "/v1/agents/a", `{"zone":"Asia/Tokyo"}`)
	_, before := f.call(t, "GET", "/v1/agents/a", "")
	for _, body := range []string{`{`, `"x`, `{"quite":null}`, `{"quite":1}`, `[]`, `null`, `{"revision":"1"}`, `{"zone":`} {
		res, answer := f.call(t, "PUT", "/v1/agents/a", body)
		assert.Equal(t, 400, res.StatusCode, "%s: %s", body, answer)
	}
	res, answer := f.call(t, "PUT", "/v1/agents/a", `{"zone":"UTC","revision":7}`)
	assert.Equal(t, 409, res.StatusCode)
	assert.Contains(t, answer, "has changed since that revision")
	_, after := f.call(t, "GET", "/v1/agents/a", "")
	assert.Equal(t, before, after)
	for range 2 { // sent again, as its answer was lost, it is what it was
		res, answer = f.call(t, "PUT", "/v1/agents/a", `{"zone":"UTC","revision":1}`)
		assert.Equal(t, 200, res.StatusCode, answer)
	}
}
