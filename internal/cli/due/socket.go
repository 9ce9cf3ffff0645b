package due

// The socket of a daemon that has its tasks in a folder: the commands of the same user reach it there.

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// openBeside opens the store of a process, and its socket beside the API's port. The API is another one if there was none.
func openBeside(ctx context.Context, c *dulyfile.File, a *api, version string, logger *slog.Logger) (*storage.Store, *api, error) {
	st, err := storage.Open(ctx, c, logger)
	if err != nil {
		return nil, a, err
	}
	if a, err = a.besides(ctx, c, st, version, logger); err != nil {
		st.End(ctx)
		return nil, a, err
	}
	return st, a, nil
}

// besides opens the socket of a store in a folder, beside the port if there is one. The folder is this process's by now.
func (a *api) besides(ctx context.Context, c *dulyfile.File, st *storage.Store, version string, logger *slog.Logger) (*api, error) {
	if st.Folder == "" {
		return a, nil
	}
	socket, err := folder.Listen(ctx, st.Folder)
	if err != nil {
		return a, fmt.Errorf("cannot listen for commands: %w", err)
	}
	if a == nil {
		models, err := Models(c, version)
		if err != nil {
			_ = socket.Close()
			return a, err
		}
		a = &api{
			version: version, callers: &callers{}, events: httpadapter.NewEvents(), metrics: metrics.New(metrics.Config{Version: version, Logger: logger}),
			console: dulyfile.ConsoleOff, share: c.StoreShare, agent: c.Defaults.Agent, models: models, stopping: make(chan struct{}),
		}
	}
	a.socket = socket
	end := st.Close
	st.Close = func() error {
		_ = socket.Close() // which has happened, unless the process fails before it serves
		return end()
	}
	return a, nil
}

// onSocket marks connections of the socket.
type onSocket struct{}

// markSocket notes in the context of a connection whether it came by a socket.
func markSocket(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, onSocket{}, c.LocalAddr().Network() == "unix")
}

// withSocket answers what comes by the socket without a credential: the system lets only the user of the folder in, who may read all of it.
func (a *api) withSocket(s *core.Scheduler, port http.Handler, config httpadapter.Config) http.Handler {
	socket := httpadapter.New(s, httpadapter.Config{
		LocalOnly: true, Version: config.Version, Logger: config.Logger, Ready: config.Ready, Events: a.events, Stopping: a.stopping, Grace: config.Grace,
		Metrics: config.Metrics, Approvals: config.Approvals, Profiles: config.Profiles, MCP: config.MCP,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if by, _ := r.Context().Value(onSocket{}).(bool); by {
			socket.ServeHTTP(w, r)
			return
		}
		port.ServeHTTP(w, r)
	})
}
