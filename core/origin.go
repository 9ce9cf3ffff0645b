package core

// Origins: tasks that the runs of other tasks submit.

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// originKey is the key of the origin that the tasks have which are submitted with a context.
type originKey struct{}

// originOf is the origin of what is submitted with a context; nil if the context belongs to no run.
func originOf(ctx context.Context) *Origin {
	o, _ := ctx.Value(originKey{}).(*Origin)
	return o
}

// InRun is a context with which a handler of batches submits tasks in the name of one of its runs. Without it they count as submitted by
// that run of the batch which is deepest below its root. The context of any other handler is that of its run.
func InRun(ctx context.Context, t *RunInfo) context.Context {
	return context.WithValue(ctx, originKey{}, below(model.TaskName{Agent: t.Agent, ID: t.ID}, t.Parent, t.Origin()))
}

// parseName reads what [model.TaskName.String] has made.
func parseName(text string) (model.TaskName, error) {
	agent, id, both := strings.Cut(text, "/")
	var n model.TaskName
	var err1, err2 error
	n.Agent, err1 = url.PathUnescape(agent)
	n.ID, err2 = url.PathUnescape(id)
	if err := errors.Join(err1, err2, check.ValidID("agent_id", n.Agent), check.ValidID("id", n.ID)); !both || err != nil {
		return n, fmt.Errorf("%q must be an agent and the id of a task, with a slash between them and each escaped as in the path of a URL", check.Clip(text))
	}
	return n, nil
}

// WithParent is a context with which tasks are submitted in the name of a run of another process: that of the task which parent
// names, as the program or the server of a run was given it, see [ParentOf]. The task is read from the store, which has its depth and
// its root: they cannot be chosen. It has to be known, and the caller of ctx needs the right to submit tasks of its agent, as the new
// tasks count for its root.
func (s *Scheduler) WithParent(ctx context.Context, parent string) (context.Context, error) {
	name, err := parseName(parent)
	if err != nil {
		return nil, &InvalidError{Field: "parent", Reason: err.Error()}
	}
	if err := s.base.Authorize(ctx, Access{Action: model.ActionSubmit, Agent: name.Agent, ID: name.ID}); err != nil {
		return nil, err
	}
	info, err := s.Task(ctx, name.Agent, name.ID)
	if errors.Is(err, ErrNotFound) || err == nil && info.Dropped {
		return nil, check.Invalid("parent", "%q names no task that exists: pass on what the run was given, or leave it out", parent)
	}
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, originKey{}, below(name, info.Parent, info.Origin)), nil
}

// ParentOf names the task of the run that a context is of, for a program or a server that submits tasks in its name: see
// [Scheduler.WithParent]. Of a batch it is the one that is deepest below its root. It is empty for a context of no run.
func ParentOf(ctx context.Context) string {
	if o := originOf(ctx); o != nil {
		return o.By.String()
	}
	return ""
}

// below is the origin of tasks that are submitted by a run, whose own origin is own or nil. The occurrences of a recurring
// task share its root, also where each is a task of its own.
func below(by model.TaskName, recurring string, own *Origin) *Origin {
	o := &Origin{By: by, Root: by, Depth: 1}
	switch {
	case own != nil:
		// guard: breaker-grows
		o.Root, o.Depth = own.Root, own.Depth+1
	case recurring != "":
		o.Root.ID = recurring
	}
	return o
}

// Origin returns by which run the task of this run was submitted; nil if by none.
func (t *RunInfo) Origin() *Origin {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.origin
}

// runsContext is the context of a call, which is that of its runs: tasks submitted with it get its origin. It is the call itself, as
// most handlers submit nothing, and should not pay for it.
type runsContext call

// Deadline is the deadline of the pull.
func (c *runsContext) Deadline() (time.Time, bool) { return c.ctx.Deadline() }

// Done is closed when the runs are to end.
func (c *runsContext) Done() <-chan struct{} { return c.ctx.Done() }

// Err reports that the runs are to end.
func (c *runsContext) Err() error { return c.ctx.Err() }

// Value is the origin of tasks submitted with the context, or the value of its pull.
func (c *runsContext) Value(key any) any {
	if key == (originKey{}) {
		return (*call)(c).origin()
	}
	return c.ctx.Value(key)
}

// String names the context, as it would be printed with its lock otherwise.
func (c *runsContext) String() string { return c.ctx.String() }

// origin is the origin of tasks that the runs of a call submit: that of the deepest run.
func (c *call) origin() *Origin {
	var deepest *Origin
	for _, r := range c.runs {
		o := below(model.TaskName{Agent: r.claimed.Agent, ID: r.claimed.ID}, r.body.Parent, codec.InformOrigin(r.body.Origin))
		if deepest == nil || o.Depth > deepest.Depth {
			deepest = o
		}
	}
	return deepest
}
