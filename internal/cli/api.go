package cli

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
	"os"
	"strings"
	"syscall"
	"time"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// tokenEnv holds the tokens of the API, separated by commas, unless the file names another variable.
// Several at once let a token be replaced without a moment in which neither
// the old nor the new one is accepted.
const tokenEnv = "DULY_TOKEN"

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
	// It is open from the start: an address that is taken shows before any task runs.
	listener net.Listener
	version  string
	tokens   []string
	cron     string // the secret of GET /v1/cron; there is no such path if it is empty
	events   httpadapter.Events
	metrics  *metrics.Metrics
	stopping chan struct{} // closed when it begins to end
}

// scheduler makes a scheduler whose events go to those who listen at the API too, and that is measured for it.
// The logger of the settings stays the first to hear of an event; the API's
// listeners and metrics come after it.
func (a *api) scheduler(st core.Store, settings core.Config) (*core.Scheduler, error) {
	if a == nil {
		return core.New(st, settings)
	}
	log := settings.OnEvent
	settings.OnEvent = func(e core.Event) {
		log(e)
		// Publish never blocks: a listener that is too slow misses events, and learns how many.
		a.events.Publish(e)
		a.metrics.Event(e)
	}
	settings.OnTick = a.metrics.Tick
	// Metrics wrap the store to measure its calls; they change nothing of them.
	return core.New(a.metrics.Store(st), settings)
}

// tokens are the tokens that the environment holds.
// An error is returned for a variable that is set and empty: whoever set it
// wanted a token, and would get an open API.
func tokens(c *dulyfile.File) ([]string, error) {
	name := tokenVariable(c)
	value, set := os.LookupEnv(name)
	var tokens []string
	// Spaces and empty entries are what templates leave behind, and never a token.
	for token := range strings.SplitSeq(value, ",") {
		if token = strings.TrimSpace(token); token != "" {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 && (set || c.TokenEnv != "") {
		return nil, usage("set it, or unset it to serve on 127.0.0.1 without a token", "the environment variable %s contains no token", name)
	}
	return tokens, nil
}

// cronSecret is the secret of GET /v1/cron, if there is one. What a file or a form left around it is no part of it.
func cronSecret() (string, error) {
	value, set := os.LookupEnv(cronSecretEnv)
	secret := strings.TrimSpace(value)
	if set && secret == "" {
		return "", usage("set it, or unset it to disable GET /v1/cron", "the environment variable %s contains no secret", cronSecretEnv)
	}
	return secret, nil
}

// tokenVariable is the environment variable that holds the tokens.
// The file may name another variable, as several programs on one machine each want tokens of their own.
func tokenVariable(c *dulyfile.File) string { return cmp.Or(c.TokenEnv, tokenEnv) }

// listen opens the API's port, if one is wanted. Without a token that is allowed on this machine's own addresses only.
func listen(ctx context.Context, c *dulyfile.File, version string, logger *slog.Logger) (*api, error) {
	if c.HTTP == "" {
		return nil, nil //nolint:nilnil // no API is wanted
	}
	tokens, err := tokens(c)
	if err != nil {
		return nil, err
	}
	cron, err := cronSecret()
	if err != nil {
		return nil, err
	}
	// Resolved first, as only an address can be told to be this
	// machine's own: a name may mean anything.
	addr, err := net.ResolveTCPAddr("tcp", c.HTTP)
	if err != nil {
		return nil, usage("use one such as 127.0.0.1:8080", "cannot listen on %q: %w", c.HTTP, err)
	}
	// An API without a token on a reachable address would let anybody run and read tasks.
	if len(tokens) == 0 && !addr.IP.IsLoopback() {
		return nil, usage(fmt.Sprintf("set $%s, or listen on 127.0.0.1:%d", tokenVariable(c), addr.Port),
			"%s can be reached from other machines, and no token is set", c.HTTP)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr.String())
	// The most frequent mistake by far, so it gets a way out of its own.
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &failure{
			why: fmt.Errorf("another program already listens on %s", addr), code: exitFailed,
			todo: "stop it, or choose another address with --http " + portAfter(addr),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	m := metrics.New(metrics.Config{Version: version, Logger: logger})
	return &api{listener: listener, version: version, tokens: tokens, cron: cron, metrics: m, stopping: make(chan struct{})}, nil
}

// portAfter is the same address one port further, as a way out when it is taken.
// The highest port is followed by 1, not by an address that cannot exist.
func portAfter(addr *net.TCPAddr) string {
	next := *addr
	next.Port = addr.Port%65535 + 1
	return next.String()
}

// server serves a scheduler, whose runs have a grace when it ends.
// ready is what GET /readyz asks. What a client breaks off is logged at
// debug level: it is nobody's fault here.
func (a *api) server(s *core.Scheduler, ready func(context.Context) error, grace time.Duration, logger *slog.Logger) *http.Server {
	if a == nil {
		return nil
	}
	return &http.Server{
		Handler: httpadapter.New(s, httpadapter.Config{
			Tokens: a.tokens, LocalOnly: len(a.tokens) == 0, Version: a.version, Logger: logger, Ready: ready,
			CronSecret: a.cron, Events: &a.events, Stopping: a.stopping, Grace: grace, Metrics: a.metrics.Handler(s),
		}),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeader, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
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
	err := server.Serve(a.listener)
	// stop returns false once the function has been started, that is after ctx has ended.
	if stop() { // nobody asked it to end
		return fmt.Errorf("the HTTP server ended: %w", err)
	}
	<-stopped
	return nil
}

// close frees the port if the process fails before it serves; a second close does no harm.
func (a *api) close() {
	if a != nil {
		_ = a.listener.Close()
	}
}

// announce says where the API is and what to try with it.
// The example is a whole command that works as it is printed, with the header for
// the token but never the token itself.
func (a *api) announce(ctx context.Context, c *dulyfile.File, logger *slog.Logger) {
	if a == nil {
		return
	}
	url := "http://" + a.listener.Addr().String()
	logger.LogAttrs(ctx, slog.LevelInfo, "listening", slog.String("url", url), slog.Bool("token", len(a.tokens) > 0))
	// A daemon without handlers could not run the example.
	if len(c.Handlers) == 0 {
		return
	}
	task, err := json.Marshal(core.NewTask{Agent: "me", Kind: c.Handlers[0].Kind, Payload: map[string]string{"text": "hello"}})
	if err != nil {
		return
	}
	header := "-H 'Content-Type: application/json'"
	if len(a.tokens) > 0 {
		header += ` -H "Authorization: Bearer $` + tokenVariable(c) + `"`
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "try", slog.String("command", fmt.Sprintf("curl %s -d '%s' %s/v1/tasks", header, task, url)))
}
