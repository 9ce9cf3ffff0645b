package core

// Abandoning: how handlers are given up that do not return although their contexts are done.

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// patience is how long a handler may ignore that its context is cancelled before it is abandoned.
const patience = 5 * time.Second

// openCalls are the calls of a pull that have neither returned nor been abandoned. All are notified together when the pull ends, so that
// none of them has to wait for that itself.
type openCalls struct {
	mu     sync.Mutex
	all    []*call
	ending bool // they have been notified
}

// opens notes a call that is about to begin.
func (p *pull) opens(c *call) {
	o := &p.openCalls
	o.mu.Lock()
	c.at = len(o.all)
	o.all = append(o.all, c)
	ending := o.ending
	o.mu.Unlock()
	if ending {
		c.giveUp()
		c.hurry()
	}
}

// closes forgets a call.
func (p *pull) closes(c *call) {
	o := &p.openCalls
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.all) - 1
	o.all[c.at], o.all[last].at = o.all[last], c.at
	o.all[last] = nil
	o.all = o.all[:last]
}

// calling reports whether handlers of the pull run that are not abandoned.
func (p *pull) calling() bool {
	p.openCalls.mu.Lock()
	defer p.openCalls.mu.Unlock()
	return len(p.openCalls.all) > 0
}

// endCalls cancels the contexts of all calls: the pull ends.
func (p *pull) endCalls() {
	o := &p.openCalls
	o.mu.Lock()
	o.ending = true
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, c := range all {
		c.giveUp()
		c.hurry()
	}
}

// cancel ends the context of a call, for a cause.
func (c *call) cancel(cause error) {
	c.ctx.Cancel(cause)
	if !c.over.Load() {
		c.giveUp()
	}
}

// giveUp abandons a handler that does not return although its context is done, after patience.
func (c *call) giveUp() {
	if c.givenUp.Swap(true) {
		return
	}
	cause := context.Cause(&c.ctx)
	c.pull.s.config.Clock.AfterFunc(patience, func() { c.abandon(cause) })
}

// hurry abandons the call soon after its pull has to end, for any reason that ended the run itself.
func (c *call) hurry() {
	p := c.pull
	if !errors.Is(context.Cause(p.running), ErrStopping) || c.over.Load() {
		return
	}
	cause := context.Cause(&c.ctx)
	p.s.config.Clock.AfterFunc(min(patience, p.s.config.Margin/2), func() { c.abandon(cause) })
}

// abandon ends the runs of a handler that still runs. Their slots are free; such handlers are counted
// until they return, and the outcomes they return then are refused.
func (c *call) abandon(cause error) {
	p := c.pull
	if c.over.Swap(true) {
		return
	}
	p.s.calls.Add(-1)
	defer p.calls.Done()
	p.closes(c)
	took := p.s.config.Clock.Now().Sub(c.begun)
	n := p.slots.Abandon(c.slotted())
	for _, r := range c.runs {
		if r.conclude(errors.Join(cause, errIgnores), took, true) {
			r.emit(model.EventStuck)
		}
		p.s.config.Logger.WarnContext(&c.ctx, "a handler ignores its cancelled context and is abandoned",
			slog.String("agent", r.info.Agent), slog.String("task", r.info.ID), slog.String("kind", c.handler.kind),
			slog.Int("abandoned", n), slog.Int("limit", p.s.config.MaxAbandoned))
	}
}

// errIgnores is the error of a run whose handler was abandoned.
var errIgnores = errors.New("the handler ignores its context")
