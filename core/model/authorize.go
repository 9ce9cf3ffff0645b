package model

// Who may submit, run, read and control tasks of which agent, and at what pace.

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Action is what a caller wants to do with tasks.
type Action string

// The actions.
const (
	ActionSubmit  Action = "submit"  // create or replace a task, or note an activity
	ActionRun     Action = "run"     // run what is due
	ActionRead    Action = "read"    // look at tasks, counters and events
	ActionApprove Action = "approve" // send a signal that counts as an approval
	ActionControl Action = "control" // pause, resume, run now, cancel, delete, replay, limit
)

// Access is what a caller wants to do, and with whose tasks.
type Access struct {
	Action Action
	// Agent owns the tasks. It is empty for a request about several agents, such as a pause of everything, or counters.
	Agent string
	// User is the user that a submitted or running task works for; empty if it names none.
	User string
	// Kind and ID are those of the task, as far as they are known.
	Kind, ID string
}

// Principal is who makes a request: a caller with a credential, or this process.
type Principal struct {
	// Name is that of a credential or an account, as the adapter that authenticated the caller names it; [core.Config].Name for what
	// this process does by itself. It may be empty.
	Name string
	// Rights is what the credential grants; nil for everything. An [Authorizer] can look into it for what an adapter knows.
	Rights Authorizer
	// Pace bounds how much of the store's time the caller takes; nil for no bound.
	Pace Pace
}

// Authorizer decides who may do what. It is used by many goroutines at once.
type Authorizer interface {
	// Authorize returns nil if who may do what. Any error refuses it, and is sent to the caller.
	Authorize(ctx context.Context, who Principal, what Access) error
}

// AuthorizerFunc is a function as an Authorizer.
type AuthorizerFunc func(ctx context.Context, who Principal, what Access) error

// Authorize calls the function.
func (f AuthorizerFunc) Authorize(ctx context.Context, who Principal, what Access) error {
	return f(ctx, who, what)
}

// ForbiddenError says that a caller may not do something. Nothing was written.
type ForbiddenError struct {
	Who    string // its name; may be empty
	Access Access
	Err    error // why
}

// Error says what is refused, and why. A name that is longer than any id is cut.
func (e *ForbiddenError) Error() string {
	about := "all agents"
	if agent := e.Access.Agent; agent != "" {
		about = fmt.Sprintf("the agent %q", strings.ToValidUTF8(agent[:min(len(agent), check.MaxIDLen)], ""))
	}
	return fmt.Sprintf("not allowed to %s tasks of %s: %v", e.Access.Action, about, e.Err)
}

// Unwrap returns why it is refused.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// principalKey is the context key of the caller.
type principalKey struct{}

// WithPrincipal returns a context for calls by who. Adapters make it once they have authenticated the caller; without it the caller is this process.
func WithPrincipal(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, &who)
}

// PrincipalOf returns the caller; nil for this process.
func PrincipalOf(ctx context.Context) *Principal {
	who, _ := ctx.Value(principalKey{}).(*Principal)
	return who
}

// OfProcess returns a context for what this process does by itself on behalf of a caller, such as a run: a handler that submits tasks
// has the rights of the process, no matter who asked for the pull.
func OfProcess(ctx context.Context) context.Context {
	if PrincipalOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, principalKey{}, (*Principal)(nil))
}

// Pace bounds how much of the store's time a caller takes with calls that go through many tasks: lists, exports, changes of a profile, bulk
// commands, and submits of many. A [Principal] may have one.
type Pace interface {
	// Take waits until such a call may begin, or refuses it with an error that the caller gets unchanged. done must be called when the call is
	// over. Take is used by several goroutines at once.
	Take(ctx context.Context) (done func(), err error)
}
