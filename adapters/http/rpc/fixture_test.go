package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// A server with the routes and the calls on one port, and clients of each protocol.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fixture struct {
	storetest.Spy
	output.Keeper

	calls     atomic.Int64
	fail      atomic.Pointer[error] // what each call of the store fails with
	panics    atomic.Bool
	scheduler *core.Scheduler
	logs      *bytes.Buffer
	handler   http.Handler
	url       string
}

func setup(t *testing.T, config httpadapter.Config) *fixture {
	t.Helper()
	return setupAs(t, config, "")
}

// setupAs is setup with a default agent.
func setupAs(t *testing.T, config httpadapter.Config, agent string) *fixture {
	t.Helper()
	st := memstore.New(memstore.Config{Partitions: 1})
	f := &fixture{Spy: storetest.Spy{Store: st}, Keeper: st, logs: new(bytes.Buffer)}
	f.Before = func(context.Context, string) error {
		f.calls.Add(1)
		if f.panics.Load() {
			panic("hunter2")
		}
		if err := f.fail.Load(); err != nil {
			return *err
		}
		return nil
	}
	var err error
	f.scheduler, err = core.New(f, core.Config{})
	require.NoError(t, err)
	core.Handle(f.scheduler, "ok", func(context.Context, *core.Task[json.RawMessage]) error { return nil })
	logger := slog.New(slog.NewTextHandler(f.logs, nil))
	config.RPC, config.Logger = rpc.New(f.scheduler, rpc.Config{Logger: logger, Ready: config.Ready, DefaultAgent: agent}), logger
	f.handler = httpadapter.New(f.scheduler, config)
	server := httptest.NewUnstartedServer(f.handler)
	server.Config.Protocols = protocols(true)
	server.Start()
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// protocols are HTTP/1 and HTTP/2 without TLS, or HTTP/2 alone.
func protocols(first bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(first)
	p.SetUnencryptedHTTP2(true)
	return p
}

// bearer adds a token to each request.
type bearer struct {
	http.RoundTripper

	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

// web is an HTTP client of one version of HTTP.
func web(t *testing.T, token string, second bool) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	if second {
		tr.Protocols = protocols(false)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: bearer{tr, token}}
}

// clients are generated clients, one of each protocol, for a token.
func (f *fixture) clients(t *testing.T, token string) map[string]schedulerpb.SchedulerServiceClient {
	t.Helper()
	return map[string]schedulerpb.SchedulerServiceClient{
		"gRPC":     schedulerpb.NewSchedulerServiceClient(web(t, token, true), f.url, connect.WithGRPC()),
		"gRPC-Web": schedulerpb.NewSchedulerServiceClient(web(t, token, false), f.url, connect.WithGRPCWeb()),
		"JSON":     schedulerpb.NewSchedulerServiceClient(web(t, token, false), f.url, connect.WithProtoJSON()),
	}
}

// grpc is the generated client over HTTP/2.
func (f *fixture) grpc(t *testing.T, token string) schedulerpb.SchedulerServiceClient {
	t.Helper()
	return f.clients(t, token)["gRPC"]
}

// job submits a daily task.
func (f *fixture) job(t *testing.T, agent, id string) {
	t.Helper()
	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: "ok", Cron: "0 9 * * *", Zone: "Europe/Berlin"})
	require.NoError(t, err)
}

func ask[T any](m *T) *connect.Request[T] { return connect.NewRequest(m) }

const day = 24 * time.Hour
