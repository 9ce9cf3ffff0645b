package core

// Authorization: who may submit, run, read and control tasks of which agent.

import (
	"context"
	"fmt"
	"strings"
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
	// Name is that of a credential or an account, as whoever found it out calls it; that of this process, [Config].Name, for what it
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
		about = fmt.Sprintf("the agent %q", strings.ToValidUTF8(agent[:min(len(agent), MaxIDLen)], ""))
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

// principalOf is who asks; nil for this process.
func principalOf(ctx context.Context) *Principal {
	who, _ := ctx.Value(principalKey{}).(*Principal)
	return who
}

// ofProcess is a context of what this process does by itself on behalf of a caller, such as a run: a handler that submits tasks
// has the rights of the process, whoever has asked for the pull.
func ofProcess(ctx context.Context) context.Context {
	if principalOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, principalKey{}, (*Principal)(nil))
}

// Authorize fails with a *[ForbiddenError] if whoever a context is of may not do something: by its rights, or by [Config].Authorizer.
// Submit, Existing and Notice ask by themselves, and so does a pull before each run; adapters ask for all other calls.
func (s *Scheduler) Authorize(ctx context.Context, what Access) error {
	who := principalOf(ctx)
	if who == nil {
		if s.config.Authorizer == nil {
			return nil
		}
		who = &Principal{Name: s.config.Name}
	}
	if who.Rights != nil {
		if err := who.Rights.Authorize(ctx, *who, what); err != nil {
			return &ForbiddenError{Who: who.Name, Access: what, Err: err}
		}
	}
	if s.config.Authorizer != nil {
		if err := s.config.Authorizer.Authorize(ctx, *who, what); err != nil {
			return &ForbiddenError{Who: who.Name, Access: what, Err: err}
		}
	}
	return nil
}

// authorizeSubmit asks for each task of a submit: one that is refused refuses all.
func (s *Scheduler) authorizeSubmit(ctx context.Context, tasks []NewTask) error {
	if s.config.Authorizer == nil && principalOf(ctx) == nil {
		return nil
	}
	for i := range tasks {
		t := &tasks[i]
		if err := s.Authorize(ctx, Access{Action: ActionSubmit, Agent: t.Agent, User: t.UserID, Kind: t.Kind, ID: t.ID}); err != nil {
			return err
		}
	}
	return nil
}

// authorizeRun asks whether this process may run a task.
func (s *Scheduler) authorizeRun(ctx context.Context, t *RunInfo) error {
	if s.config.Authorizer == nil {
		return nil
	}
	return s.Authorize(ctx, Access{Action: ActionRun, Agent: t.Agent, User: t.UserID, Kind: t.Kind, ID: t.ID})
}
