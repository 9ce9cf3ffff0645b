package core

// The call of a handler: its context, its time limit, and what a panic or a Goexit becomes.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// call is one call of a handler: for one run, or for all runs of a batch.
type call struct {
	pull    *pull
	handler *handler
	runs    []*run
	gate    gate
	begun   time.Time
	over    atomic.Bool // the handler has returned, or it was abandoned: whichever came first
}

// make calls the handler and hands over how each run has ended, whatever the handler does: it may panic, or end its
// goroutine.
func (c *call) make(ctx context.Context) {
	outcomes := make([]error, len(c.runs))
	returned := false
	defer func() {
		if v := recover(); v != nil {
			fill(outcomes, &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())})
		} else if !returned {
			fill(outcomes, errGoexit)
		}
		c.ended(ctx, outcomes)
	}()
	if c.gate == nil {
		outcomes = c.pull.s.wrapped(ctx, c.handler, c.runs)
	} else {
		outcomes = c.pull.gated(ctx, c.gate, c.handler, c.runs)
	}
	returned = true
}

// ended hands over the outcomes of a handler that has returned, and its slots.
func (c *call) ended(ctx context.Context, outcomes []error) {
	s := c.pull.s
	if c.over.Swap(true) {
		s.slots.returned()
		return
	}
	defer c.pull.calls.Done()
	took, cause := s.config.Clock.Now().Sub(c.begun), context.Cause(ctx)
	if cause == nil && c.handler != spawner && slices.Contains(outcomes, nil) {
		s.learn(c.handler.kind, took)
	}
	for i, r := range c.runs {
		r.conclude(because(outcomes[i], cause), took, true)
	}
	for _, r := range c.runs {
		s.slots.give(r.claimed)
	}
}

// patience is how long a handler may ignore that its context is cancelled before it is abandoned.
const patience = 5 * time.Second

// giveUp abandons a handler that does not return although its context is done: after patience, and soon after its pull has
// to end, whatever ended the run itself.
func (c *call) giveUp(ctx context.Context) {
	p := c.pull
	cause := context.Cause(ctx)
	p.s.config.Clock.AfterFunc(patience, func() { c.abandon(ctx, cause) })
	context.AfterFunc(p.running, func() {
		if !errors.Is(context.Cause(p.running), ErrStopping) || c.over.Load() {
			return
		}
		p.s.config.Clock.AfterFunc(min(patience, p.s.config.Margin/2), func() { c.abandon(ctx, cause) })
	})
}

// abandon ends the runs of a handler that still runs. Their slots are free; how many such handlers there are is counted
// until they return, and what they return then is refused.
func (c *call) abandon(ctx context.Context, cause error) {
	p := c.pull
	if c.over.Swap(true) {
		return
	}
	defer p.calls.Done()
	took := p.s.config.Clock.Now().Sub(c.begun)
	n := p.s.slots.abandon(c.runs)
	for _, r := range c.runs {
		if r.conclude(errors.Join(cause, errIgnores), took, true) {
			p.s.emit(r.event(EventStuck))
		}
		p.s.config.Logger.WarnContext(ctx, "a handler ignores its cancelled context and is abandoned",
			slog.String("agent", r.info.Agent), slog.String("task", r.info.ID), slog.String("kind", c.handler.kind),
			slog.Int("abandoned", n), slog.Int("limit", p.s.config.MaxAbandoned))
	}
}

// errIgnores is the error of a run whose handler was abandoned.
var errIgnores = errors.New("the handler ignores its context")

// AbandonedError says that a process claims nothing more, as too many of its handlers have ignored their cancelled
// contexts and still run. It is over when enough of them return.
type AbandonedError struct {
	Handlers int // that were abandoned and still run
	Limit    int // Config.MaxAbandoned
}

// Error says how many there are, and what to do.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("%d handlers ignore that their context is cancelled (the limit is %d): this process claims nothing until they return; "+
		"restart it, and let its handlers heed ctx.Done()", e.Handlers, e.Limit)
}
