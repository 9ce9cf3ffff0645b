package http

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Credentials: what a request may do, found out before any store is asked.

// Scope is a part of what the API does.
// They are what tokens are granted, from the least to the most.
type Scope string

// The scopes.
const (
	ScopeRead    Scope = "read"    // look at tasks and counters
	ScopeTrigger Scope = "trigger" // run what is due
	ScopeWrite   Scope = "write"   // submit and control tasks
)

// Grant is what a caller may do.
// A grant covers a request if it covers its scope and every agent and user in it.
type Grant struct {
	Scopes []Scope // nil for everything
	// Agents are whose tasks it is about; nil for all agents, and for calls that are about more than one agent. Every agent_id
	// and every user_id that a request names has to be among them: a token for an agent that works for several users lists these too.
	Agents []string
}

// Token is a bearer token and what it grants.
type Token struct {
	Token string
	Grant
}

// Verifier finds out what a request may do, without asking a store. It is used by many goroutines at once.
// Those of a handler are asked in order, and the first one that accepts decides.
type Verifier interface {
	// Verify returns what the request's credential grants, ErrNoCredential if it has none that is for this verifier,
	// and any other error if it has one that is not good: the reason is logged and never sent to the client.
	Verify(r *http.Request) (*Grant, error)
}

// ErrNoCredential says that a request has nothing for a verifier to look at.
var ErrNoCredential = errors.New("the request contains no such credential")

// everything is what a caller may do where no credential is asked for.
// The checks after it need no case of their own.
var everything = &Grant{}

// may reports whether a grant covers a scope.
func (g *Grant) may(s Scope) bool { return g.Scopes == nil || slices.Contains(g.Scopes, s) }

// check refuses scopes that are misspelt: a token would otherwise do less than its owner thinks.
func (g *Grant) check(name string) error {
	for _, s := range g.Scopes {
		if s != ScopeRead && s != ScopeTrigger && s != ScopeWrite {
			return fmt.Errorf("httpadapter: %s has the unknown scope %q; expected read, trigger or write", name, s)
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
	return append(t, hashedToken{sum: sha256.Sum256([]byte(plain)), grant: &grant})
}

// Bearer is the bearer token of a request; false if it has none.
func Bearer(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// Verify looks for the token of a request among all of them, without ending at the first that fits.
func (t tokens) Verify(r *http.Request) (*Grant, error) {
	token, ok := Bearer(r)
	if !ok {
		return nil, ErrNoCredential
	}
	given := sha256.Sum256([]byte(token))
	var found *Grant
	for i := range t {
		if subtle.ConstantTimeCompare(given[:], t[i].sum[:]) == 1 {
			found = t[i].grant
		}
	}
	if found == nil {
		return nil, ErrNoCredential // it may be for another verifier
	}
	return found, nil
}

// caller is whom a request comes from: what it may do, and a hash that tells its credential apart from others, so that each gets its own
// share of what is bounded, however the header is spelt that has it.
type caller struct {
	grant      *Grant
	credential [sha256.Size]byte
	message    string // the id of a signed message; empty for any other request
}

// anybody is the caller where no credential is asked for: a header that nobody looks at makes no difference.
var anybody = &caller{grant: everything}

// authenticate finds out who sends a request, by the first verifier that accepts it. The reason why one is refused is for the log only.
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
			from := &caller{grant: grant}
			if _, ok := v.(*signatures); ok {
				from.message = r.Header.Get(webhookID) // all that is signed shares a credential
			} else {
				token, _ := Bearer(r)
				from.credential = sha256.Sum256([]byte(token))
			}
			return from, nil
		}
		if !errors.Is(err, ErrNoCredential) {
			why = err
		}
	}
	return nil, why
}

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// withCaller puts the caller into a request, for the checks of whichever call it is.
func withCaller(r *http.Request, c *caller) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
}

// callerOf is the caller of a request; anybody for one that was not
// authenticated, which only open routes are.
func callerOf(r *http.Request) *caller {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return c
	}
	return anybody
}

// grantOf is the grant of a request.
func grantOf(r *http.Request) *Grant { return callerOf(r).grant }

// allow refuses a request about agents that its caller may not touch: each agent by itself. Whether such an agent exists
// is not told.
func allow(r *http.Request, agents ...string) error {
	g := grantOf(r)
	if g.Agents == nil {
		return nil
	}
	for _, agent := range agents {
		if !slices.Contains(g.Agents, agent) {
			// A name that is longer than any id is not sent back whole.
			shown := strings.ToValidUTF8(agent[:min(len(agent), core.MaxIDLen)], "")
			return problem.New(problem.CodeForbidden, fmt.Sprintf("the credential does not cover the agent %q", shown))
		}
	}
	return nil
}

// allowTasks refuses tasks of agents that the caller may not touch, and tasks that name such a user: a handler takes the user
// of a task for the one to work for.
func allowTasks(r *http.Request, tasks ...core.NewTask) error {
	for i := range tasks {
		// A task without a user works for its agent.
		if err := allow(r, tasks[i].Agent, cmp.Or(tasks[i].UserID, tasks[i].Agent)); err != nil {
			return err
		}
	}
	return nil
}

// allowAll refuses a request about more than single agents to a caller that may touch some only.
func allowAll(r *http.Request) error {
	if grantOf(r).Agents != nil {
		return problem.New(problem.CodeForbidden, "the credential covers single agents only")
	}
	return nil
}

// local reports whether a request's host is one that no name server outside can make point here.
// A page in a browser can make any name point at this machine, but neither localhost nor an address.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
