package model

// Who may submit, run, read and control tasks of which agent, and at what pace.

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Action is what somebody wants to do with tasks.
type Action string

// The actions.
const (
	ActionSubmit  Action = "submit"  // create or replace a task, or note an activity
	ActionRun     Action = "run"     // run what is due
	ActionRead    Action = "read"    // look at tasks, counters and events
	ActionApprove Action = "approve" // send a signal that counts as an approval
	ActionControl Action = "control" // pause, resume, run now, cancel, delete, replay, limit
)

// Access is what somebody wants to do, and with whose tasks.
type Access struct {
	Action Action
	// Agent owns the tasks. It is empty for what is about more than single agents, such as a pause of everything, or counters.
	Agent string
	// User is whom a task that is submitted or run works for; empty if it names none.
	User string
	// Kind and ID are those of the task, as far as they are known.
	Kind, ID string
}

// Principal is who wants something: a caller with a credential, or this process.
type Principal struct {
	// Name is that of a credential or an account, as whoever found it out calls it; that of this process, [core.Config].Name, for what it
	// does by itself. It may be empty.
	Name string
	// Rights is what the credential grants; nil for everything. An [Authorizer] can look into it for what an adapter knows.
	Rights Authorizer
	// Pace bounds how much of the store's time the caller takes; nil for as much as it likes.
	Pace Pace
}

// Authorizer decides who may do what. It is used by many goroutines at once.
type Authorizer interface {
	// Authorize returns nil if who may do it. Any error refuses it, and is sent to the caller.
	Authorize(ctx context.Context, who Principal, what Access) error
}

// AuthorizerFunc is a function as an Authorizer.
type AuthorizerFunc func(ctx context.Context, who Principal, what Access) error

// Authorize calls the function.
func (f AuthorizerFunc) Authorize(ctx context.Context, who Principal, what Access) error {
	return f(ctx, who, what)
}

// ForbiddenError says that somebody may not do something. Nothing was written.
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

// Unwrap is why it is refused.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// principalKey is the key of who calls in a context.
type principalKey struct{}

// WithPrincipal is a context of what somebody asks for. Adapters make it once they know who it is; without it this process asks.
func WithPrincipal(ctx context.Context, who Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, &who)
}

// PrincipalOf is who asks; nil for this process.
func PrincipalOf(ctx context.Context) *Principal {
	who, _ := ctx.Value(principalKey{}).(*Principal)
	return who
}

// OfProcess is a context of what this process does by itself on behalf of a caller, such as a run: a handler that submits tasks
// has the rights of the process, whoever has asked for the pull.
func OfProcess(ctx context.Context) context.Context {
	if PrincipalOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, principalKey{}, (*Principal)(nil))
}

// Pace bounds how much of the store's time a caller takes with calls that go through many tasks: lists, exports, changes of a profile, what is done to
// many tasks at once, and submits of many. A [Principal] may have one.
type Pace interface {
	// Take waits until such a call may begin, or refuses it with an error that the caller gets as it is. done says that the call is over. It
	// is used by several goroutines at once.
	Take(ctx context.Context) (done func(), err error)
}
