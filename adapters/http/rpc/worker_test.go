package rpc_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// workers are generated clients, one of each protocol, for a token.
func (f *fixture) workers(t *testing.T, token string) map[string]schedulerpb.WorkerServiceClient {
	t.Helper()
	return map[string]schedulerpb.WorkerServiceClient{
		"gRPC":     schedulerpb.NewWorkerServiceClient(web(t, token, true), f.url, connect.WithGRPC()),
		"gRPC-Web": schedulerpb.NewWorkerServiceClient(web(t, token, false), f.url, connect.WithGRPCWeb()),
		"JSON":     schedulerpb.NewWorkerServiceClient(web(t, token, false), f.url, connect.WithProtoJSON()),
	}
}

// due submits a task that is due, for workers.
func (f *fixture) due(t *testing.T, agent, id string) {
	t.Helper()
	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: "gpu", Payload: map[string]any{"page": 7}})
	require.NoError(t, err)
}

// program is what a run says to a program.
type program struct {
	Ticket  string          `json:"ticket"`
	ID      string          `json:"id"`
	Payload json.RawMessage `json:"payload"`
	Saved   json.RawMessage `json:"checkpoint"`
}

// read is a run as a program reads it.
func read(t *testing.T, run string) (p program) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(run), &p))
	require.NotEmpty(t, p.Ticket)
	return p
}

// A worker lives by gRPC as it does by HTTP: it claims, keeps with a checkpoint, ends, and has the next run in the same call; a ticket is good in
// either protocol.
func TestAWorkerOverGRPC(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}})
	for name, client := range f.workers(t, "root") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := "ann-" + name
			claim := &schedulerpb.ClaimRequest{Kinds: []string{"gpu"}, AgentIds: []string{agent}, Lease: durationpb.New(time.Minute), Worker: "gpu-1"}
			f.due(t, agent, "1")
			lent, err := client.Claim(t.Context(), ask(claim))
			require.NoError(t, err)
			require.Len(t, lent.Msg.GetRuns(), 1)
			run := read(t, lent.Msg.GetRuns()[0])
			assert.JSONEq(t, `{"page": 7}`, string(run.Payload))

			kept, err := client.Keep(t.Context(), ask(&schedulerpb.KeepRequest{Runs: []*schedulerpb.LifeSign{
				{Ticket: run.Ticket, Checkpoint: `"half"`, Progress: `{"done": 1}`, Usage: map[string]float64{"tokens": 12}, Number: 1, Output: &schedulerpb.Output{Text: "begun\n"}}, {Ticket: "made up"},
			}}))
			require.NoError(t, err)
			require.Len(t, kept.Msg.GetRuns(), 2)
			assert.True(t, kept.Msg.GetRuns()[0].GetKept(), kept)
			assert.EqualValues(t, 6, kept.Msg.GetRuns()[0].GetPrinted())
			assert.Contains(t, kept.Msg.GetRuns()[1].GetError(), "ticket")

			f.due(t, agent, "2")
			end := &schedulerpb.End{Ticket: run.Ticket, Number: 1, Outcome: `{"result": {"pages": 3}}`, Output: &schedulerpb.Output{At: 6, Text: "done\n"}}
			returned, err := client.Return(t.Context(), ask(&schedulerpb.ReturnRequest{Runs: []*schedulerpb.End{end}, Claim: claim}))
			require.NoError(t, err)
			assert.Equal(t, "completed", returned.Msg.GetRuns()[0].GetEnded())
			require.Len(t, returned.Msg.GetClaimed().GetRuns(), 1)
			next := read(t, returned.Msg.GetClaimed().GetRuns()[0])
			assert.Equal(t, "2", next.ID)
			info, err := f.scheduler.Task(t.Context(), agent, "1")
			require.NoError(t, err)
			assert.JSONEq(t, `{"pages": 3}`, string(info.Result))
			assert.JSONEq(t, `{"done": 1}`, string(info.Progress))
			out, err := f.scheduler.Output(t.Context(), agent, "1", inspect.OutputFrom{})
			require.NoError(t, err)
			assert.Equal(t, "begun\ndone\n", out.Text)
			assert.True(t, out.Ended)

			assert.Contains(t, f.post(t, "/v1/work/return", `{"runs": [{"ticket": "`+next.Ticket+`", "yield": "1h", "checkpoint": 2}]}`), `"waiting"`)
			again, err := client.Claim(t.Context(), ask(&schedulerpb.ClaimRequest{Kinds: []string{"gpu"}, AgentIds: []string{agent}}))
			require.NoError(t, err)
			assert.Empty(t, again.Msg.GetRuns())
			assert.WithinDuration(t, time.Now().Add(time.Hour), again.Msg.GetNextDueAt().AsTime(), time.Minute)

			f.due(t, agent, "3")
			third, err := client.Claim(t.Context(), ask(claim))
			require.NoError(t, err)
			back, err := client.Return(t.Context(), ask(&schedulerpb.ReturnRequest{Runs: []*schedulerpb.End{{Ticket: read(t, third.Msg.GetRuns()[0]).Ticket, Release: true}}}))
			require.NoError(t, err)
			assert.Equal(t, "released", back.Msg.GetRuns()[0].GetEnded())
		})
	}
}

// post sends what a worker says over HTTP, and returns the answer.
func (f *fixture) post(t *testing.T, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := web(t, "root", false).Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	out, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(out)
}

// What makes no sense, and what a credential does not cover, is refused before the store is asked, and says what is wrong.
func TestRefusalsOfWorkers(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		{Token: "writer", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWrite}}},
		{Token: "cpu", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWork}, Kinds: []string{"cpu"}}},
		{Token: "ann", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWork}, Agents: []string{"ann"}}},
	}})
	f.due(t, "bob", "1")
	lent, err := f.workers(t, "root")["gRPC"].Claim(t.Context(), ask(&schedulerpb.ClaimRequest{Kinds: []string{"gpu"}}))
	require.NoError(t, err)
	bobs := read(t, lent.Msg.GetRuns()[0]).Ticket
	claim := func(m *schedulerpb.ClaimRequest) func(schedulerpb.WorkerServiceClient) error {
		return func(c schedulerpb.WorkerServiceClient) error {
			_, err := c.Claim(t.Context(), ask(m))
			return err
		}
	}
	ends := func(m ...*schedulerpb.End) func(schedulerpb.WorkerServiceClient) error {
		return func(c schedulerpb.WorkerServiceClient) error {
			_, err := c.Return(t.Context(), ask(&schedulerpb.ReturnRequest{Runs: m}))
			return err
		}
	}
	keeps := func(m *schedulerpb.LifeSign) func(schedulerpb.WorkerServiceClient) error {
		return func(c schedulerpb.WorkerServiceClient) error {
			_, err := c.Keep(t.Context(), ask(&schedulerpb.KeepRequest{Runs: []*schedulerpb.LifeSign{m}}))
			return err
		}
	}
	gpu := []string{"gpu"}
	calls := f.calls.Load()
	for name, row := range map[string]struct {
		token, says string
		code        connect.Code
		call        func(schedulerpb.WorkerServiceClient) error
	}{
		"no credential":     {"", "bearer token", connect.CodeUnauthenticated, claim(&schedulerpb.ClaimRequest{Kinds: gpu})},
		"no worker":         {"writer", "", connect.CodePermissionDenied, claim(&schedulerpb.ClaimRequest{Kinds: gpu})},
		"another kind":      {"cpu", "the kind gpu", connect.CodePermissionDenied, claim(&schedulerpb.ClaimRequest{Kinds: gpu})},
		"another agent":     {"ann", "", connect.CodePermissionDenied, claim(&schedulerpb.ClaimRequest{Kinds: gpu, AgentIds: []string{"bob"}})},
		"no kind":           {"root", "kinds", connect.CodeInvalidArgument, claim(&schedulerpb.ClaimRequest{})},
		"too many":          {"root", "most", connect.CodeInvalidArgument, claim(&schedulerpb.ClaimRequest{Kinds: gpu, Most: 4000000000})},
		"a lease of nought": {"root", "lease", connect.CodeInvalidArgument, claim(&schedulerpb.ClaimRequest{Kinds: gpu, Lease: durationpb.New(0)})},
		"a negative wait":   {"root", "wait", connect.CodeInvalidArgument, claim(&schedulerpb.ClaimRequest{Kinds: gpu, Wait: durationpb.New(-1)})},
		"a wait of no end":  {"root", "wait", connect.CodeInvalidArgument, claim(&schedulerpb.ClaimRequest{Kinds: gpu, Wait: durationpb.New(1 << 62)})},
		"no JSON":           {"root", "checkpoint", connect.CodeInvalidArgument, keeps(&schedulerpb.LifeSign{Ticket: bobs, Checkpoint: "{", Number: 1})},
		"no outcome":        {"root", "outcome", connect.CodeInvalidArgument, ends(&schedulerpb.End{Ticket: bobs, Outcome: "3"})},
		"nulls":             {"root", "outcome", connect.CodeInvalidArgument, ends(&schedulerpb.End{Ticket: bobs, Outcome: "null"})},
		"a second ticket":   {"root", "outcome", connect.CodeInvalidArgument, ends(&schedulerpb.End{Ticket: bobs, Outcome: `{"ticket": "x"}`})},
		"an unknown field":  {"root", "outcome", connect.CodeInvalidArgument, ends(&schedulerpb.End{Ticket: bobs, Outcome: `{"snoze": "1m"}`})},
		"a mebibyte":        {"root", "", connect.CodeResourceExhausted, ends(&schedulerpb.End{Ticket: bobs, Outcome: `{"result": "` + strings.Repeat("x", 1<<20) + `"}`})},
		"too many ends":     {"root", "runs", connect.CodeInvalidArgument, ends(make([]*schedulerpb.End, core.MaxLent+1)...)},
	} {
		for protocol, client := range f.workers(t, row.token) {
			err := row.call(client)
			assert.Equal(t, row.code.String(), connect.CodeOf(err).String(), "%s by %s: %v", name, protocol, err)
			assert.ErrorContains(t, err, row.says, name)
		}
	}
	assert.Equal(t, calls, f.calls.Load(), "the store is not asked")
	for _, token := range []string{"cpu", "ann"} { // what is wrong with one run is no matter of the others
		returned, err := f.workers(t, token)["gRPC"].Return(t.Context(), ask(&schedulerpb.ReturnRequest{Runs: []*schedulerpb.End{{Ticket: bobs}}}))
		require.NoError(t, err)
		assert.Equal(t, "refused", returned.Msg.GetRuns()[0].GetEnded(), token)
	}
}

// broken is an answer that cannot be written.
type broken struct{ *httptest.ResponseRecorder }

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A run whose answer cannot be written is another's at once.
func TestRunsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.due(t, "ann", "1")
	f.due(t, "bob", "2")
	call := func(name, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/duly.scheduler.v1.WorkerService/"+name, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Host = "localhost"
		f.handler.ServeHTTP(broken{httptest.NewRecorder()}, r)
	}
	call("Claim", `{"kinds": ["gpu"], "most": 2, "lease": "3600s"}`)
	client := f.workers(t, "")["gRPC"]
	lent, err := client.Claim(t.Context(), ask(&schedulerpb.ClaimRequest{Kinds: []string{"gpu"}}))
	require.NoError(t, err)
	require.Len(t, lent.Msg.GetRuns(), 1, "they were given back")
	call("Return", `{"runs": [{"ticket": "`+read(t, lent.Msg.GetRuns()[0]).Ticket+`"}], "claim": {"kinds": ["gpu"], "lease": "3600s"}}`)
	next, err := client.Claim(t.Context(), ask(&schedulerpb.ClaimRequest{Kinds: []string{"gpu"}, Most: 2}))
	require.NoError(t, err)
	assert.Len(t, next.Msg.GetRuns(), 1, "the end is stored, and what came with its answer was given back")
}
