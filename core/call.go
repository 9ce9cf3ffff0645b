package core

// The call of a handler: its goroutine, its context, its time limit, and how it ends: by itself, by a panic or a Goexit, or abandoned, as it goes on
// although its context is done.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/runcontext"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// call is one call of a handler: for one run, or for all runs of a batch.
type call struct {
	pull    *pull
	handler *handler
	runs    []*run
	gate    gate // nil if the kind has none
	begun   time.Time
	over    atomic.Bool // the handler has returned or was abandoned, whichever came first
	givenUp atomic.Bool // it is abandoned unless it returns
	ctx     runcontext.Context
	stop    func() bool // stops the timer of its time limit; nil for none
	at      int         // its place among those of the pull
	one     [1]error    // the outcome of a single run
}

// run makes the call, and does the rest of the work of its goroutine.
func (c *call) run() {
	defer c.pull.settler.storeInline()
	defer c.close()
	c.make((*runsContext)(c))
}

// close ends what belongs to the call alone.
func (c *call) close() {
	if c.stop != nil {
		c.stop()
	}
	c.ctx.Cancel(nil)
}

// make calls the handler and hands over how each run has ended, even if the handler panics or ends its
// goroutine.
func (c *call) make(ctx context.Context) {
	outcomes := c.one[:]
	if len(c.runs) != 1 {
		outcomes = make([]error, len(c.runs))
	}
	returned := false
	defer func() {
		if v := recover(); v != nil {
			fill(outcomes, &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())})
		} else if !returned {
			fill(outcomes, outcome.ErrGoexit)
		}
		c.ended(ctx, outcomes)
	}()
	if !c.needsAdmission() {
		outcomes = c.pull.s.middleware.wrap(ctx, c.handler, c.runs, outcomes)
	} else {
		outcomes = c.admitAll(ctx)
	}
	returned = true
}

// ended hands over the outcomes of a handler that has returned, and its slots.
func (c *call) ended(ctx context.Context, outcomes []error) {
	s := c.pull.s
	if c.over.Swap(true) {
		c.pull.slots.Returned()
		return
	}
	s.calls.Add(-1) // before the outcomes, which wait for those that still run
	defer c.pull.calls.Done()
	c.pull.openCalls.remove(c)
	took, cause := s.config.Clock.Now().Sub(c.begun), context.Cause(ctx)
	// guard: learn
	if cause == nil && c.handler != spawner && slices.Contains(outcomes, nil) {
		s.runTimes.Record(c.handler.kind, took)
	}
	for i, r := range c.runs {
		r.settlesInline = true
		r.conclude(because(outcomes[i], cause), took, true)
	}
	for _, r := range c.runs {
		if !r.sharesSlot {
			c.pull.slots.Give(r.claimed)
		}
	}
}

// slotted are the tasks of a call that have a slot each: those of a batch share the slot of the first.
func (c *call) slotted() (tasks []*store.Claimed) {
	for _, r := range c.runs {
		if !r.sharesSlot {
			tasks = append(tasks, r.claimed)
		}
	}
	return tasks
}

// PanicError is the outcome of a handler that panicked.
type PanicError struct {
	Value string // the value of the panic
	Stack string
}

// Error is the panic's value.
func (e *PanicError) Error() string { return "panic: " + e.Value }

// workers call the handlers of a pull. Each handler has a goroutine of its own while it runs, but one that has returned leaves its
// goroutine to the next: where handlers are quick, few goroutines start and grow their stacks. None waits for work, so nothing is
// left of them when nothing runs.
type workers struct {
	mu     sync.Mutex
	queue  []*call // to be begun, in their order
	coming bool    // a goroutine is on its way to the queue
}

// add has a call made at once.
func (w *workers) add(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, c)
	w.send()
}

// send makes sure that a worker serves the queue, so that no call in it waits for the end of another. The mutex is held.
func (w *workers) send() {
	if len(w.queue) > 0 && !w.coming {
		w.coming = true
		go w.work()
	}
}

// work makes calls until none is in the queue.
func (w *workers) work() {
	growStack()
	w.mu.Lock()
	w.coming = false
	for len(w.queue) > 0 {
		c := w.queue[0]
		w.queue[0] = nil
		if w.queue = w.queue[1:]; len(w.queue) == 0 {
			w.queue = nil
		}
		w.send() // it may be long until this goroutine is back, or it ends with its handler
		w.mu.Unlock()
		c.run()
		w.mu.Lock()
	}
	w.mu.Unlock()
}

// growStack gives a goroutine the stack that most handlers need, while it has little on it that would have to be copied.
//
//go:noinline
func growStack() byte {
	var room [6 << 10]byte
	return room[noByte]
}

// noByte is what the compiler cannot know, so that it leaves the room where it is.
var noByte int

// patience is how long a handler may ignore that its context is cancelled before it is abandoned.
const patience = 5 * time.Second

// openCalls are the calls of a pull that have neither returned nor been abandoned. All are notified together when the pull ends, so that
// none of them has to wait for that itself.
type openCalls struct {
	mu     sync.Mutex
	all    []*call
	ending bool // they have been notified
}

// add notes a call that is about to begin.
func (o *openCalls) add(c *call) {
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

// remove forgets a call.
func (o *openCalls) remove(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.all) - 1
	o.all[c.at], o.all[last].at = o.all[last], c.at
	o.all[last] = nil
	o.all = o.all[:last]
}

// some reports whether handlers of the pull run that are not abandoned.
func (o *openCalls) some() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all) > 0
}

// end cancels the contexts of all calls: the pull ends.
func (o *openCalls) end() {
	o.mu.Lock()
	o.ending = true
	all := slices.Clone(o.all)
	o.mu.Unlock()
	for _, c := range all {
		c.giveUp()
		c.hurry()
	}
}

// Alone reports whether the call is for one run.
func (c *call) Alone() bool { return len(c.runs) == 1 }

// Has reports whether the call is for a task of a sort.
func (c *call) Has(which func(of *Claimed) bool) bool {
	return slices.ContainsFunc(c.runs, func(r *run) bool { return which(r.claimed) })
}

// Cancel ends the context of a call, for a cause.
func (c *call) Cancel(cause error) {
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
	p.openCalls.remove(c)
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
