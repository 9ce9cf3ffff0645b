package due

// The HTTP API of a process: its port, its tokens, its server.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/doors"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// cronSecretEnv holds the secret of GET /v1/cron, as hosts' cron services send it.
// It is the name that the platforms themselves give it, so that it is set already where they run duly.
const cronSecretEnv = "CRON_SECRET"

// Timeouts of the server. A request that runs tasks may take httpadapter.DefaultMaxTimeout.
// They bound what a slow or hostile client can hold open: a header and a body are
// small, an answer may take as long as a pull.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = httpadapter.DefaultMaxTimeout + 30*time.Second
	idleTimeout   = 2 * time.Minute
	lastAnswers   = 5 * time.Second // after the grace
	// Bytes of a request's header, all lines together.
	mostHeader = 64 << 10
)

// api is the HTTP API: its open port, and the tokens it takes. It is nil if none is wanted.
// Its methods accept nil, so that a daemon without an API needs no branches.
type api struct {
	// It is open from the start: an address that is taken shows before any task runs. Nil if there is a socket alone.
	listener net.Listener
	socket   net.Listener // of a store in a folder, for its user's commands; nil for any other
	version  string
	callers  *callers
	events   *httpadapter.Events
	metrics  *metrics.Metrics
	asks     *httpadapter.Approvals // nil without approvals
	console  dulyfile.Console       // never empty
	traces   string                 // where the console leads to for the trace of a task
	share    float64                // of the store's time that a credential for some agents may take
	agent    string                 // the default one
	models   mcp.Config             // what models see
	doors    []httpadapter.Door     // the APIs of other runtimes
	stopping chan struct{}          // closed when it begins to end
}

// scheduler makes a scheduler that is measured for the API.
// The logger of the settings still receives each event first; the metrics come
// after it.
func (a *api) scheduler(st core.Store, settings core.Config) (*core.Scheduler, error) {
	if a == nil {
		return core.New(st, settings)
	}
	log := settings.OnEvent
	settings.OnEvent = func(e core.Event) {
		log(e)
		a.metrics.Event(e)
	}
	settings.OnTick = a.metrics.Tick
	// Metrics wrap the store to measure its calls; they change nothing of them.
	return core.New(a.metrics.Store(st), settings)
}

// listen opens the API's port, if one is wanted. Without a token that is allowed on this machine's own addresses only.
func listen(ctx context.Context, c *dulyfile.File, version string, logger *slog.Logger) (*api, error) {
	if c.HTTP == "" {
		return nil, nil //nolint:nilnil // no API is wanted
	}
	callers, err := readCallers(c) //nolint:contextcheck // keys of OIDC are fetched later, in a context of their own
	if err != nil {
		return nil, err
	}
	asks, err := Approvals(c)
	if err != nil {
		return nil, err
	}
	models, err := Models(c, version)
	if err != nil {
		return nil, err
	}
	// Resolved first, as only an address can be recognised as
	// loopback: a name may resolve to anything.
	addr, err := net.ResolveTCPAddr("tcp", c.HTTP)
	if err != nil {
		return nil, exit.Misuse("use one such as 127.0.0.1:8080", "cannot listen on %q: %w", c.HTTP, err)
	}
	// An API without a token on a reachable address would let any client run and read tasks.
	if callers.none() && !addr.IP.IsLoopback() {
		return nil, exit.Misuse(fmt.Sprintf("set $%s, add tokens to the file, or listen on 127.0.0.1:%d", tokenVariable(c), addr.Port),
			"%s can be reached from other machines, and no token is set", c.HTTP)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr.String())
	// The most frequent mistake by far, so it gets a way out of its own.
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &exit.Failure{
			Why: fmt.Errorf("another program already listens on %s", addr), Code: exit.Failed,
			Todo: "stop it, or choose another address with --http " + portAfter(addr),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	m := metrics.New(metrics.Config{Version: version, Logger: logger})
	return &api{listener: listener, version: version, callers: callers, events: httpadapter.NewEvents(), metrics: m, asks: asks, console: consoleOf(c, addr.IP), traces: c.TraceURL, share: c.StoreShare, agent: c.Defaults.Agent, models: models, doors: doors.Of(c, !callers.none()), stopping: make(chan struct{})}, nil
}

// portAfter is the same address one port further, as a way out when it is taken.
// The highest port is followed by 1, not by an address that cannot exist.
func portAfter(addr *net.TCPAddr) string {
	next := *addr
	next.Port = addr.Port%65535 + 1
	return next.String()
}

// server serves a scheduler, whose runs have a grace when it ends.
// GET /readyz calls ready. A request that its client aborts is logged at
// debug level: it is no fault of this process.
func (a *api) server(s *core.Scheduler, ready func(context.Context) error, grace time.Duration, logger *slog.Logger) *http.Server {
	if a == nil {
		return nil
	}
	// gRPC needs HTTP/2, which has no TLS here: an operator who wants TLS puts a proxy in front.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	config := httpadapter.Config{
		Tokens: a.callers.tokens, Scoped: a.callers.scoped, Signed: a.callers.signed, Verifiers: a.callers.verifiers,
		LocalOnly: a.callers.none(), Version: a.version, Logger: logger, Ready: ready,
		CronSecret: a.callers.cron, Crons: a.callers.crons, Events: a.events, Stopping: a.stopping, Grace: grace, Metrics: a.metrics.Handler(s), Approvals: a.asks, Hooks: a.callers.hooks,
		Shares: httpadapter.NewShares(a.share, nil), Profiles: s.Profiles, RPC: rpc.New(s, rpc.Config{Ready: ready, Logger: logger, DefaultAgent: a.agent}),
		MCP: a.forModels(s, logger), Doors: a.doors,
	}
	handler := a.withConsole(s, httpadapter.New(s, config), &config)
	if a.socket != nil {
		handler = a.withSocket(s, handler, config)
	}
	return &http.Server{
		Protocols: protocols, Handler: impatient(handler), ConnContext: markSocket,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// callPatience is how long a call waits for one answer of Redis: a user who asks hears within five seconds that it is away.
const callPatience = 4 * time.Second

// unhurried are the calls whose work outlasts an outage of Redis: runs, and streams.
var unhurried = []string{"/v1/run-due", "/v1/cron", "/v1/work/", "/v1/events"}

// impatient lets calls of the API fail early if Redis does not answer.
func impatient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waits := func(path string) bool { return strings.HasPrefix(r.URL.Path, path) }
		if strings.HasPrefix(r.URL.Path, "/v1/") && !slices.ContainsFunc(unhurried, waits) {
			r = r.WithContext(redisstore.WithPatience(r.Context(), callPatience))
		}
		next.ServeHTTP(w, r)
	})
}

// serve answers requests until ctx is done, then finishes those under way. What they run has the same grace as what the
// daemon runs; after it they release their tasks, for which there is time.
// After the grace, requests are cut off: their pulls release what they hold within lastAnswers.
func (a *api) serve(ctx context.Context, server *http.Server, grace time.Duration) error {
	if a == nil {
		return nil
	}
	defer func() { _ = server.Close() }()
	// Requests live in a context of their own, which ends after the grace and not with the signal.
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server.BaseContext = func(net.Listener) context.Context { return requests }
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		// Streams of events and long polls end now: they would otherwise use up the whole grace.
		close(a.stopping)
		timer := time.AfterFunc(grace, cut)
		defer timer.Stop()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace+lastAnswers)
		defer cancel()
		_ = server.Shutdown(limited) // an error says that a connection does not end by itself: it is closed
	})
	err := a.answer(server)
	// stop returns false once the function has been started, that is after ctx has ended.
	if stop() { // the server ended by itself
		return fmt.Errorf("the HTTP server ended: %w", err)
	}
	<-stopped
	return nil
}

// answer answers requests on the port and on the socket until one of them fails, or both are closed.
func (a *api) answer(server *http.Server) error {
	failed := make(chan error, 2)
	all := 0
	for _, l := range []net.Listener{a.listener, a.socket} {
		if l != nil {
			all++
			serve := func() { failed <- server.Serve(l) }
			go serve()
		}
	}
	err := <-failed
	if all > 1 {
		_ = server.Close() // one that ended by itself takes the other along; at a Shutdown both have ended
		err = cmp.Or(err, <-failed)
	}
	return err
}

// close frees the port if the process fails before it serves; a second close does no harm.
func (a *api) close() {
	if a != nil {
		_ = a.listener.Close()
	}
}

// announce logs the address of the API and an example request.
// The example is a complete command that can be pasted, with the header for
// the token but never the token itself.
func (a *api) announce(ctx context.Context, c *dulyfile.File, logger *slog.Logger) {
	if a == nil || a.listener == nil {
		return
	}
	url := "http://" + a.listener.Addr().String()
	logger.LogAttrs(ctx, slog.LevelInfo, "listening", slog.String("url", url), slog.Bool("token", !a.callers.none()))
	if a.console != dulyfile.ConsoleOff {
		logger.LogAttrs(ctx, slog.LevelInfo, "console", slog.String("url", url+console.Path))
	}
	// A daemon without handlers could not run the example.
	if len(c.Handlers) == 0 {
		return
	}
	agent := cmp.Or(a.callers.example.agent, "me")
	task, err := json.Marshal(core.NewTask{Agent: agent, Kind: c.Handlers[0].Kind, Payload: map[string]string{"text": "hello"}})
	if err != nil {
		return
	}
	header := "-H 'Content-Type: application/json'"
	switch {
	case a.callers.none():
	case a.callers.example.variable == "": // it would be refused
		return
	default:
		header += ` -H "Authorization: Bearer $` + a.callers.example.variable + `"`
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "try", slog.String("command", fmt.Sprintf("curl %s -d '%s' %s/v1/tasks", header, task, url)))
}

// consoleOf is whether there is a console at an address. Where others can reach it, it has to be asked for: then it lets in whom the API does.
func consoleOf(c *dulyfile.File, at net.IP) dulyfile.Console {
	switch {
	case c.Console != "":
		return c.Console
	case at.IsLoopback():
		return dulyfile.ConsoleOn
	default:
		return dulyfile.ConsoleOff
	}
}

// withConsole puts the console beside the API. Its pages let in the same callers, with the same rights.
func (a *api) withConsole(s *core.Scheduler, api http.Handler, config *httpadapter.Config) http.Handler {
	if a.console == dulyfile.ConsoleOff {
		return api
	}
	pages := console.New(s, console.Options{
		Callers: config.Callers(), LocalOnly: config.LocalOnly, ReadOnly: a.console == dulyfile.ConsoleReadOnly, Version: a.version, Events: a.events,
		Stopping: a.stopping, Logger: config.Logger, TraceURL: a.traces,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == console.Path || strings.HasPrefix(path, console.Path+"/"):
			pages.ServeHTTP(w, r)
		// A browser that was given the bare address.
		case path == "/" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, console.Path, http.StatusSeeOther)
		default:
			api.ServeHTTP(w, r)
		}
	})
}
