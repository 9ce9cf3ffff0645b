package http

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/shares"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Credentials: the rights of a request, found out before any store is called.

// Scope is a part of the API's calls.
type Scope = operation.Scope

// The scopes.
const (
	ScopeRead    = operation.ScopeRead
	ScopeTrigger = operation.ScopeTrigger
	ScopeWrite   = operation.ScopeWrite
	ScopeWork    = operation.ScopeWork
	ScopeApprove = operation.ScopeApprove
)

// Grant is what a caller may do: the rights of a [core.Principal].
// A grant covers a request if it covers its scope and every agent and user in it.
type Grant struct {
	Name   string  // of the caller, for a core.Authorizer, and for commands that do not name who gave them
	Scopes []Scope // nil for everything
	// Agents are whose tasks it is about; nil for all agents, and for calls that are about more than one agent. Every agent_id
	// and every user_id that a request names has to be among them: a token for an agent that works for several users lists these too. An id may end in a *, which is no pattern here.
	Agents []string
	// Patterns are the beginnings of ids and a *, such as "team-*": all agents and users with such ids, besides Agents.
	Patterns []string
	Kinds    []string // that a worker with it may run; nil for all
}

// Token is a bearer token and what it grants.
type Token struct {
	Token string
	Grant
}

// Verifier finds out what a request may do, without asking a store. It is used by many goroutines at once.
// The verifiers of a handler are asked in order, and the first one that accepts decides.
type Verifier interface {
	// Verify returns what the request's credential grants, ErrNoCredential if it has none that is for this verifier,
	// and any other error if it has one that is not good: the reason is logged and never sent to the client.
	Verify(r *http.Request) (*Grant, error)
}

// ErrNoCredential reports that a request has no credential for a verifier.
var ErrNoCredential = errors.New("the request contains no such credential")

// everything is what a caller may do where no credential is required.
// The checks after it need no case of their own.
var everything = &Grant{}

// may reports whether a grant covers a scope.
func (g *Grant) may(s Scope) bool { return g.Scopes == nil || slices.Contains(g.Scopes, s) }

// all reports whether a grant covers all agents.
func (g *Grant) all() bool { return g.Agents == nil && g.Patterns == nil }

// covers reports whether a grant covers an agent, or a user.
func (g *Grant) covers(id string) bool {
	return g.all() || slices.Contains(g.Agents, id) ||
		slices.ContainsFunc(g.Patterns, func(p string) bool { return strings.HasPrefix(id, strings.TrimSuffix(p, "*")) })
}

// scopeOf is the scope that an action needs.
func scopeOf(action model.Action) Scope {
	switch action {
	case model.ActionRead:
		return ScopeRead
	case model.ActionRun:
		return ScopeTrigger
	case model.ActionApprove:
		return ScopeApprove
	default:
		return ScopeWrite
	}
}

// Authorize refuses what a grant does not cover. A handler takes the user of a task for the one to work for, so that is covered too.
func (g *Grant) Authorize(_ context.Context, _ core.Principal, what core.Access) error {
	return g.covered(scopeOf(what.Action), what)
}

// covered refuses what a grant does not cover, or its scope.
func (g *Grant) covered(scope Scope, what core.Access) error {
	switch {
	case !g.may(scope):
		return fmt.Errorf("the credential does not cover the scope %q", scope)
	case g.all():
		return nil
	case what.Agent == "":
		return errors.New("the credential covers single agents only")
	// guard: grant
	case !g.covers(what.Agent):
		return errors.New("the credential does not cover it")
	// A task without a user works for its agent.
	case what.User != "" && !g.covers(what.User):
		return errors.New("the credential does not cover the user that it works for")
	default:
		return nil
	}
}

// check refuses scopes and patterns that are misspelt: a token would otherwise do less, or more, than its owner thinks.
func (g *Grant) check(name string) error {
	for _, s := range g.Scopes {
		if !slices.Contains([]Scope{ScopeRead, ScopeTrigger, ScopeWrite, ScopeWork, ScopeApprove}, s) {
			return fmt.Errorf("httpadapter: %s has the unknown scope %q; expected read, trigger, write, work or approve", name, s)
		}
	}
	for _, p := range g.Patterns {
		if strings.IndexByte(p, '*') != len(p)-1 || p == "" {
			return fmt.Errorf("httpadapter: %s has the pattern %q; a pattern is the beginning of ids and a *, such as team-*", name, p)
		}
	}
	return nil
}

// tokens are the bearer tokens that are accepted, by their hashes, so that comparing takes the same time however much of a
// guess is right, and however long it is.
type tokens []hashedToken

// hashedToken is a token of which the secret itself is not kept.
type hashedToken struct {
	sum   [sha256.Size]byte
	grant *Grant
}

// with adds a token. An empty one would be matched by a request with an empty token.
func (t tokens) with(name, plain string, grant Grant) tokens {
	if strings.TrimSpace(plain) == "" {
		panic(fmt.Sprintf("httpadapter: %s is empty", name))
	}
	if err := grant.check(name); err != nil {
		panic(err.Error())
	}
	sum := sha256.Sum256([]byte(plain))
	if t.find(sum) != nil {
		panic(fmt.Sprintf("httpadapter: %s is the same as another token", name)) // which of them counts would be a guess
	}
	return append(t, hashedToken{sum: sum, grant: &grant})
}

// Bearer is the bearer token of a request; false if it has none.
func Bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// Verify looks for the token of a request among all of them.
func (t tokens) Verify(r *http.Request) (*Grant, error) {
	token, ok := Bearer(r)
	if !ok {
		return nil, ErrNoCredential
	}
	found := t.find(sha256.Sum256([]byte(token)))
	if found == nil {
		return nil, ErrNoCredential // it may be for another verifier
	}
	return found, nil
}

// find is the grant of a token by its hash; nil if there is no such token. Both cases take the same time.
func (t tokens) find(given [sha256.Size]byte) *Grant {
	var found *Grant
	for i := range t {
		if subtle.ConstantTimeCompare(given[:], t[i].sum[:]) == 1 {
			found = t[i].grant
		}
	}
	return found
}

// caller is the sender of a request: what it may do and wants to, and a hash that distinguishes its credential from others, so that each gets its own
// share of bounded resources, regardless of how the header is spelt.
type caller struct {
	grant      *Grant
	action     model.Action
	credential [sha256.Size]byte
	message    Message // of a request that counts once; zero for any other
	works      bool    // it calls as a worker
}

// rights are what it may do.
func (c *caller) rights() core.Authorizer {
	if c.works {
		return worker{c.grant}
	}
	return c.grant
}

// anybody is the caller where no credential is required: a header that is never read makes no difference.
var anybody = &caller{grant: everything}

// authenticate finds out who sends a request, by the first verifier that accepts it. The reason for a refusal is for the log only.
func authenticate(r *http.Request, verifiers []Verifier) (*caller, error) {
	if len(verifiers) == 0 {
		return anybody, nil
	}
	// The most telling reason goes to the log: that a credential was refused, rather
	// than that another verifier saw none.
	why := ErrNoCredential
	for _, v := range verifiers {
		grant, err := v.Verify(r)
		if err == nil {
			return newCaller(r, v, grant), nil
		}
		if !errors.Is(err, ErrNoCredential) {
			why = err
		}
	}
	return nil, why
}

// newCaller is who sends a request that a verifier has accepted.
func newCaller(r *http.Request, v Verifier, grant *Grant) *caller {
	from := &caller{grant: grant}
	if s, ok := v.(Sender); ok {
		from.message = s.Message(r)
	}
	if from.message.ID == "" {
		token, _ := Bearer(r)
		from.credential = sha256.Sum256([]byte(token))
	} else if grant.Name != "" { // all that one sender signs shares a credential
		from.credential = sha256.Sum256([]byte("\x00" + grant.Name)) // no token has a NUL
	}
	return from
}

// to is the caller as it wants to use a route.
func (c *caller) to(rt *route) *caller {
	to := *c
	to.works = rt.Scope() == ScopeWork
	switch rt.Scope() {
	case ScopeRead:
		to.action = model.ActionRead
	case ScopeTrigger, ScopeWork:
		to.action = model.ActionRun
	default:
		to.action = model.ActionControl
	}
	return &to
}

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// withCaller puts the caller into a request, for the checks of its route, and for those of the scheduler. One that needs no
// credential is this process, as a caller in Go would be.
func withCaller(r *http.Request, c *caller, pace model.Pace) *http.Request {
	ctx := context.WithValue(r.Context(), callerKey{}, c)
	if c.grant != everything {
		ctx = core.WithPrincipal(ctx, core.Principal{Name: c.grant.Name, Rights: c.rights(), Pace: pace})
	}
	return r.WithContext(ctx)
}

// Shares bound how much of the store's time each credential takes that covers some agents only, with lists, exports, changes of a profile and other
// calls that go through many tasks: one such call of it is under way at a time, and more than its share is answered with 429 and a Retry-After; a call
// that has begun is slowed down. They are of one process. [NewShares] makes them.
type Shares struct{ of *shares.Shares }

// DefaultShare is the part of the store's time that a credential may take for long.
const DefaultShare = shares.Default

// NewShares makes shares of a part of the store's time each: DefaultShare if it is zero, and as much as they like if it is negative. clock is
// core.SystemClock if nil.
func NewShares(part float64, clock core.Clock) *Shares {
	if clock == nil {
		clock = core.SystemClock{}
	}
	return &Shares{shares.New(part, clock)}
}

// pace limits how fast a caller takes its share, until its request ends. All tokens of one name have one share.
func (s *Shares) pace(c *caller) (model.Pace, func()) {
	if c.grant.all() {
		return nil, func() {}
	}
	who := c.credential
	if c.grant.Name != "" {
		who = sha256.Sum256([]byte("\x00" + c.grant.Name)) // no token has a NUL
	}
	return s.of.Of(who)
}

// callerOf is the caller of a request; anybody for one that was not
// authenticated, which only open routes are.
func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return anybody
}

// allow refuses a request about agents that its caller may not touch: each agent by itself. The answer does not reveal whether
// such an agent exists.
func (a *api) allow(ctx context.Context, agents ...string) error {
	for _, agent := range agents {
		if err := a.scheduler.Authorize(ctx, core.Access{Action: callerOf(ctx).action, Agent: agent}); err != nil {
			return err
		}
	}
	return nil
}

// allowAll refuses a request about more than single agents to a caller that may touch some only.
func (a *api) allowAll(ctx context.Context) error { return a.allow(ctx, "") }
