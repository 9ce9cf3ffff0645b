package http_test

// Workers over the API.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
)

// as sends a call of a worker with a token, and reads the answer.
func as[A any](t *testing.T, f *fixture, token, call, body string, status int) (out A) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/work/"+call, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, answer := f.do(t, r)
	require.Equal(t, status, res.StatusCode, answer)
	if status < 300 {
		require.NoError(t, json.Unmarshal([]byte(answer), &out))
	}
	return out
}

// ticket claims the only run.
func ticket(t *testing.T, f *fixture, token string) string {
	t.Helper()
	lent := as[operation.Lent](t, f, token, "claim", `{"kinds":["gpu"],"most":10,"worker":"w1"}`, 200)
	require.Len(t, lent.Runs, 1)
	var run struct {
		Ticket string `json:"ticket"`
	}
	require.NoError(t, json.Unmarshal(lent.Runs[0], &run))
	assert.LessOrEqual(t, len(run.Ticket), 1<<10)
	return run.Ticket
}

// submitted submits a task for workers.
func submitted(t *testing.T, f *fixture, agent string) {
	t.Helper()
	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: agent, ID: "1", Kind: "gpu", Payload: 7})
	require.NoError(t, err)
}

// A worker claims a run at one server, keeps it at another and ends it at a third, which takes its next claim along; one that makes a mistake is told, and
// hurts no other run.
func TestAWorkerOverHTTP(t *testing.T) {
	t.Parallel()
	secrets := httpadapter.Config{Tokens: []string{"t"}}
	f := setup(t, secrets)
	other, third := *f, *f
	other.handler, third.handler = httpadapter.New(f.scheduler, secrets), httpadapter.New(f.scheduler, httpadapter.Config{Tokens: []string{"new", "t"}})
	submitted(t, f, "ada")
	run := ticket(t, f, "t")
	kept := as[operation.Kept](t, &other, "t", "keep", fmt.Sprintf(`{"runs":[{"ticket":"made-up"},{"ticket":%q,"progress":{"n":1},"checkpoint":[1],"usage":{"tokens":5},"number":1},{"ticket":%[1]q,"usage":{"runs":1}}]}`, run), 200)
	assert.Equal(t, operation.KeptRun{Kept: true}, kept.Runs[1])
	assert.Contains(t, kept.Runs[0].Error, "ticket is none that this server has given")
	assert.Contains(t, kept.Runs[2].Error, "counted by themselves")
	task, err := f.scheduler.Task(t.Context(), "ada", "1")
	require.NoError(t, err)
	assert.JSONEq(t, `[1]`, string(task.Checkpoint))
	submitted(t, f, "bob")
	ended := as[operation.Returned](t, &third, "t", "return", fmt.Sprintf(
		`{"runs":[{"ticket":%q,"retry_after":"1m"},{"ticket":%[1]q,"result":{"ok":true}},{"ticket":%[1]q,"error":"late"}],"claim":{"kinds":["gpu"],"worker":"w1"}}`, run), 200)
	assert.Equal(t, operation.EndedRefused, ended.Runs[0].Ended)
	assert.Contains(t, ended.Runs[0].Error, "which need an error")
	assert.Equal(t, []operation.EndedAs{operation.EndedCompleted, operation.EndedCompleted}, []operation.EndedAs{ended.Runs[1].Ended, ended.Runs[2].Ended}, "twice in one call: the first counts")
	require.NotNil(t, ended.Claimed)
	assert.Len(t, ended.Claimed.Runs, 1)
	assert.Contains(t, string(ended.Claimed.Runs[0]), `"agent_id":"bob"`)
	stranger := *f
	stranger.handler = httpadapter.New(f.scheduler, httpadapter.Config{Tokens: []string{"x"}})
	submitted(t, f, "eve")
	forged := ticket(t, &stranger, "x")
	kept = as[operation.Kept](t, f, "t", "keep", fmt.Sprintf(`{"runs":[{"ticket":%q}]}`, forged), 200)
	assert.Contains(t, kept.Runs[0].Error, "ticket is none that this server has given", "of a server with other secrets")
}

// A credential gets runs of its agents and kinds only, and its tickets are of no use to another; without the scope it gets none.
func TestATicketOfAnotherCredential(t *testing.T) {
	t.Parallel()
	work := []httpadapter.Scope{httpadapter.ScopeWork}
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{
		{Token: "ada", Grant: httpadapter.Grant{Scopes: work, Agents: []string{"ada"}}},
		{Token: "bob", Grant: httpadapter.Grant{Scopes: work, Agents: []string{"bob"}}},
		{Token: "cpu", Grant: httpadapter.Grant{Scopes: work, Kinds: []string{"cpu"}}},
		{Token: "some", Grant: httpadapter.Grant{Scopes: work, Patterns: []string{"a*"}}},
		{Token: "write", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWrite}}},
	}})
	submitted(t, f, "ada")
	const claim = `{"kinds":["gpu"],"most":10,"worker":"w1"}`
	assert.Empty(t, as[operation.Lent](t, f, "bob", "claim", claim, 200).Runs)
	as[any](t, f, "cpu", "claim", claim, 403)
	as[any](t, f, "some", "claim", claim, 403)
	as[any](t, f, "write", "claim", claim, 403)
	as[any](t, f, "", "claim", claim, 401)
	run := ticket(t, f, "ada")
	for _, token := range []string{"bob", "cpu"} {
		kept := as[operation.Kept](t, f, token, "keep", fmt.Sprintf(`{"runs":[{"ticket":%q,"checkpoint":"stolen"}]}`, run), 200)
		assert.NotEmpty(t, kept.Runs[0].Error)
		ended := as[operation.Returned](t, f, token, "return", fmt.Sprintf(`{"runs":[{"ticket":%q}]}`, run), 200)
		assert.Equal(t, operation.EndedRefused, ended.Runs[0].Ended)
	}
	assert.Equal(t, operation.EndedReleased, as[operation.Returned](t, f, "ada", "return", fmt.Sprintf(`{"runs":[{"ticket":%q,"release":true}]}`, run), 200).Runs[0].Ended)
	assert.NotEmpty(t, as[operation.Lent](t, f, "some", "claim", `{"kinds":["gpu"],"agent_ids":["ada"]}`, 200).Runs)
	r := httptest.NewRequest(http.MethodGet, "/v1/tasks?agent_id=ada", nil)
	r.Header.Set("Authorization", "Bearer ada")
	res, _ := f.do(t, r)
	assert.Equal(t, 403, res.StatusCode, "a worker reads no tasks")
}

// brokenWriter is a connection that is gone.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("connection reset") }

// Runs that cannot be sent are given back at once, uncharged.
func TestRunsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	submitted(t, f, "ada")
	r := httptest.NewRequest(http.MethodPost, "/v1/work/claim", strings.NewReader(`{"kinds":["gpu"],"lease":"1h"}`))
	r.Header.Set("Content-Type", "application/json")
	f.handler.ServeHTTP(brokenWriter{httptest.NewRecorder()}, r)
	task, err := f.scheduler.Task(t.Context(), "ada", "1")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, task.Status)
	ticket(t, f, "")
}

// A worker that waits when the server stops is answered with nothing, for another server to serve it.
func TestAStoppingServerSendsWorkersAway(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	f := setup(t, httpadapter.Config{Stopping: stopping})
	close(stopping)
	assert.Empty(t, as[operation.Lent](t, f, "", "claim", `{"kinds":["gpu"],"wait":"5m"}`, 200).Runs)
}

// What makes no sense is refused before any call of the store.
func TestCallsOfWorkersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for _, c := range [][2]string{
		{"claim", `{}`},
		{"claim", `{"kinds":[]}`},
		{"claim", `{"kinds":["gpu"],"most":51}`},
		{"claim", `{"kinds":["gpu"],"lease":"1ms"}`},
		{"claim", `{"kinds":["gpu"],"wait":"1d"}`},
		{"claim", `{"kinds":["gpu"],"waits":"1s"}`},
		{"claim", `{"kinds":["duly.tell"]}`},
		{"keep", `{"runs":[` + strings.Repeat(`{},`, 50) + `{}]}`},
		{"return", `{"runs":[],"claim":{"kind":"gpu"}}`},
		{"keep", `{"runs":[7]}`},
		{"keep", `{"runs":[{"ticket":7}]}`},
		{"return", `{"runs":[7]}`},
		{"return", `{"runs":[{"ticket":7}]}`},
		{"return", `{"runs":[{"ticket":"x","quite":1}]}`},
	} {
		as[any](t, f, "", c[0], c[1], 400)
	}
	for _, run := range []string{`{}`, `{"ticket":"x"}`} {
		for call, want := range map[string]string{"keep": `"kept":false,"error":`, "return": `"ended":"refused"`} {
			r := httptest.NewRequest(http.MethodPost, "/v1/work/"+call, strings.NewReader(`{"runs":[`+run+`]}`))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, r)
			assert.Contains(t, w.Body.String(), want, run)
		}
	}
	assert.Zero(t, f.store.calls.Load())
}

// A run that is given back has used what it has used, and is charged no attempt; what makes no sense beside it is refused, and the run stays.
func TestARunThatIsGivenBack(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"ada"}})
	submitted(t, f, "ada")
	run := ticket(t, f, "ada")
	back := func(more string) operation.ReturnedRun {
		return as[operation.Returned](t, f, "ada", "return", fmt.Sprintf(`{"runs":[{"ticket":%q,"release":true%s}]}`, run, more), 200).Runs[0]
	}
	for more, says := range map[string]string{`,"result":1`: "alone", `,"usage":{"tokens":-1}`: "tokens", `,"usage":{"tokens":1},"error":"no"`: "alone"} {
		refused := back(more)
		assert.Equal(t, operation.EndedRefused, refused.Ended, more)
		assert.Contains(t, refused.Error, says, more)
	}
	assert.Equal(t, operation.EndedReleased, back(`,"usage":{"tokens":12}`).Ended)
	info, err := f.scheduler.Task(t.Context(), "ada", "1")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, info.Status)
	require.Len(t, info.Runs, 1)
	assert.Equal(t, core.Usage{"tokens": 12}, info.Runs[0].Used)
	assert.Zero(t, info.ErrorCount)
}
