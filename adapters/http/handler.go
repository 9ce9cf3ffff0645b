package http

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/localhost"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/waits"
	"github.com/seed-6f6f2c11/duly/core"
)

// The handler: its settings, and the way of each request from its admission to its answer.

// Defaults of Config.
// MaxBody fits a thousand small tasks, or a few with payloads.
const (
	DefaultMaxBody    = 1 << 20
	DefaultMaxTimeout = 5 * time.Minute
	DefaultMaxWaits   = 32
)

// Config says how a scheduler is served. Every zero is a good default, but without Tokens any client that can reach the handler
// may do everything.
type Config struct {
	// Tokens are the bearer tokens that are accepted, each for everything; several, so that they can be rotated. Scoped are
	// those that are for less; Signed and Verifiers, such as those of package oidc, accept requests by other means. If there is
	// none of all these no request needs a credential.
	Tokens    []string
	Scoped    []Token
	Signed    []Signed
	Verifiers []Verifier
	// CronSecret opens GET /v1/cron, which runs what is due for all agents, to requests that have it as their bearer token, as
	// hosts' cron services send it. Without it the path does not exist.
	CronSecret string
	// Crons are more secrets of that path. One whose grant names agents runs what is due for these; it must not have patterns, as the matching
	// agents are not known.
	Crons []Token
	// LocalOnly refuses requests for a host that is neither localhost nor an IP address. Set it when there are no tokens
	// and the server listens on loopback: a page in a browser cannot reach it then through a name that it made point here.
	LocalOnly bool
	// MaxBody is the largest body of a request, in bytes: DefaultMaxBody if zero.
	MaxBody int64
	// MaxTimeout is the longest that one request may run tasks, and the default of a request that gives none:
	// DefaultMaxTimeout if zero. The server's WriteTimeout has to be longer.
	MaxTimeout time.Duration
	// MaxWaits is how many requests of one credential may wait at once, for a task to end or a user to be idle: DefaultMaxWaits if zero. All
	// credentials together may have eight times as many. More are answered with 429 and a Retry-After.
	MaxWaits int
	// Shares are the shares of credentials that cover some agents only: NewShares(0, nil) if nil. Give the same to a handler beside this one, by Callers.
	Shares *Shares
	// Version is shown by /healthz.
	Version string
	// Ready is called by /readyz, which needs no token, so it should be cheap; always ready if nil. Even if it returns nil, a process
	// that claims nothing because of abandoned handlers is not ready.
	Ready func(ctx context.Context) error
	// Logger gets errors on the server's side. Nothing is logged if nil.
	Logger *slog.Logger
	// Events, if set, answers GET /v1/events with the events of all processes of the store: NewEvents makes it.
	Events *Events
	// Stopping, if set, is closed when the server is about to shut down: it ends the streams of events and the waits, which
	// would hold it up, and no request claims tasks any more.
	Stopping <-chan struct{}
	// Grace is how long the handlers that a request runs may continue once Stopping is closed or the request's context is done.
	// Then their contexts are cancelled and their tasks released, uncharged; at once if zero. The server has to wait longer.
	Grace time.Duration
	// Approvals, if set, answers the addresses that it makes, below /v1/signed: pages on which a person answers a task that waits. They need no
	// credential.
	Approvals *Approvals
	// Hooks, if set, answers POST /v1/hooks/{name}: package adapters/hooks makes it. Its requests need no other credential.
	Hooks Hooks
	// Profiles, if set, answers GET /v1/profiles with the profiles of all agents: give it the method of the scheduler. It is a setting, so that
	// a function without such calls does not load the code that finds them.
	Profiles func(ctx context.Context, cursor string, limit int) ([]core.Profile, string, error)
	// Metrics, if set, answers GET /metrics, as the handler of package metrics does. If credentials are required it needs
	// one to read, for all agents.
	Metrics http.Handler
	// RPC, if set, answers gRPC calls in addition to the routes: package rpc makes it. A call needs a credential as every request does.
	RPC RPC
	// Doors are the APIs of other runtimes that are answered in addition to the routes, such as those of packages langgraph, letta and a2a.
	// A call needs a credential as every request does.
	Doors []Door
	// MCP, if set, answers models at PathMCP: package mcp makes it. A call needs a credential as every request does.
	MCP MCP
	// TicketSecrets are the keys that seal the tickets of workers: the first seals, and each opens. Servers with the same keys take each other's
	// tickets. They follow from the tokens if nil.
	TicketSecrets []string
	// Clock is the clock for checking signatures: core.SystemClock if nil.
	Clock core.Clock
}

// api answers requests. The answer to each is JSON.
// All but waits is immutable after New. It is used by many goroutines.
type api struct {
	scheduler *core.Scheduler
	config    Config
	verifiers []Verifier
	// cron is the only token of GET /v1/cron, nil without a secret.
	cron    tokens
	origins *http.CrossOriginProtection
	table   []route
	waits   waits.Bound
	// services are the first segments of the calls of RPC.
	services []string
}

// New makes the handler that serves a scheduler. It panics if a token is empty, as that is a mistake in the program that
// would let every client in.
// Nothing listens yet: the caller gives the handler to a server of its own.
func New(s *core.Scheduler, config Config) http.Handler {
	config.MaxBody = cmp.Or(config.MaxBody, DefaultMaxBody)
	config.MaxTimeout = cmp.Or(config.MaxTimeout, DefaultMaxTimeout)
	config.MaxWaits = cmp.Or(config.MaxWaits, DefaultMaxWaits)
	if config.Ready == nil {
		config.Ready = func(context.Context) error { return nil }
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Clock == nil {
		config.Clock = core.SystemClock{}
	}
	if config.Shares == nil {
		config.Shares = NewShares(0, config.Clock)
	}
	// Requests from pages of other origins are refused, regardless of their
	// credentials: a browser adds these by itself.
	a := &api{scheduler: s, config: config, verifiers: config.verifiers(), origins: http.NewCrossOriginProtection()}
	if config.CronSecret != "" {
		a.cron = a.cron.with("CronSecret", config.CronSecret, Grant{Scopes: []Scope{ScopeTrigger}})
	}
	for i, t := range config.Crons {
		if t.Patterns != nil {
			panic(fmt.Sprintf("httpadapter: Crons[%d] has patterns; name its agents", i))
		}
		a.cron = a.cron.with(fmt.Sprintf("Crons[%d]", i), t.Token, t.Grant)
	}
	a.table = a.routes()
	return a
}

// verifiers are the verifiers of requests.
// Tokens are tried before signatures, as they cost less.
func (c *Config) verifiers() []Verifier {
	var known tokens
	for i, plain := range c.Tokens {
		known = known.with(fmt.Sprintf("Tokens[%d]", i), plain, Grant{})
	}
	for i, t := range c.Scoped {
		known = known.with(fmt.Sprintf("Scoped[%d]", i), t.Token, t.Grant)
	}
	var all []Verifier
	if known != nil {
		all = append(all, known)
	}
	for i := range c.Signed {
		all = append(all, newSignatures(&c.Signed[i], c.Clock, c.MaxBody))
	}
	return append(all, c.Verifiers...)
}

// ServeHTTP answers a request.
// The order is: who may come in, which agent, and only then the call itself.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer a.caught(w, r)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// Answers are about the state of now.
	w.Header().Set("Cache-Control", "no-store")
	rt, from, err := a.admit(r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	pace, end := a.config.Shares.pace(from)
	defer end()
	r = withCaller(r, from.to(rt), pace)
	// Set before anything reads the body; the call turns its error into a 413.
	r.Body = http.MaxBytesReader(w, r.Body, a.config.MaxBody)
	if agent := r.PathValue("agent"); agent != "" && !rt.Asks {
		if err := a.allow(r.Context(), agent); err != nil {
			a.refuse(w, r, err)
			return
		}
	}
	// A stream writes its own answer, and may not end for hours.
	if rt.stream != nil {
		if err := a.receiveStream(r, rt); err != nil {
			a.refuse(w, r, err)
			return
		}
		rt.stream(w, r)
		return
	}
	if rt.Submits {
		ctx, err := a.inRun(r)
		if err != nil {
			a.refuse(w, r, err)
			return
		}
		r = r.WithContext(ctx)
	}
	status, body, err := a.once(r, rt)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.write(w, r, status, body)
}

// admit is the route of a request and its caller, if it may go there. No store is called for that, and
// nothing of the body is read unless it is signed.
func (a *api) admit(r *http.Request) (*route, *caller, error) {
	// The route is looked up first, as it may be open, but whether it exists is
	// only revealed to callers who were accepted.
	rt, allowed := find(a.table, r)
	if a.config.LocalOnly && !localhost.Is(r.Host) && (rt == nil || !rt.anyHost) {
		return nil, nil, errForeignHost
	}
	from, err := a.identify(rt, r)
	if err != nil {
		return nil, nil, err
	}
	switch {
	// After the credential, so that only its owner learns why.
	case a.origins.Check(r) != nil:
		return nil, nil, errCrossOrigin
	case rt == nil && allowed != nil:
		return nil, nil, problem.Method(allowed)
	case rt == nil:
		return nil, nil, errNoRoute
	case !rt.Open && !rt.Asks && !from.grant.may(rt.Scope()):
		return nil, nil, problem.New(core.CodeForbidden, fmt.Sprintf("the credential does not cover the scope %q", rt.Scope()))
	default:
		return rt, from, nil
	}
}

// identify finds out who calls a route. Why it is refused is for the log, unless it may succeed later.
// An open route needs no grant: it shows nothing of any agent.
func (a *api) identify(rt *route, r *http.Request) (*caller, error) {
	verifiers := a.verifiers
	switch {
	case rt != nil && rt.Open:
		return anybody, nil
	case rt != nil && rt.verify != nil:
		verifiers = []Verifier{rt.verify}
	case rt != nil && rt.keyHeader != "":
		keyAsBearer(r, rt.keyHeader)
	}
	from, err := authenticate(r, verifiers)
	if err == nil {
		return from, nil
	}
	a.config.Logger.LogAttrs(r.Context(), slog.LevelInfo, "a request was refused", slog.String("path", r.URL.Path), slog.Any("err", err))
	if rt != nil && rt.anyHost && answered(err) {
		return nil, err
	}
	return nil, errUnauthorized
}

// keyAsBearer makes the key in a header the bearer token of a request that has no Authorization.
func keyAsBearer(r *http.Request, header string) {
	if key := r.Header.Get(header); key != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
}

// write sends the answer in one piece, so that a failure to encode it can still be answered.
func (a *api) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		a.refuse(w, r, fmt.Errorf("encode answer: %w", err))
		return
	}
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// From here on the status cannot be changed.
	w.WriteHeader(status)
	if _, err := w.Write(append(data, '\n')); err != nil {
		a.unsent(r.Context(), err)
	}
}

// caught is deferred: it turns a panic into an answer that hides what happened.
// Go's server would close the connection, and the client would not
// learn that the fault is on this side.
func (a *api) caught(w http.ResponseWriter, r *http.Request) {
	v := recover() //nolint:revive // it is called by the deferred function itself
	if v == nil {
		return
	}
	// It is how a handler ends a connection on purpose.
	if v == http.ErrAbortHandler { //nolint:errorlint // a value that was thrown, not an error that was returned
		panic(v)
	}
	a.config.Logger.LogAttrs(r.Context(), slog.LevelError, "a request panicked",
		slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	a.refuse(w, r, problem.ErrInternal)
}
