package core

// The call of a handler: its goroutine, its context, its time limit, and how a panic or a Goexit ends it.

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/runcontext"
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
		outcomes = c.pull.s.wrapped(ctx, c.handler, c.runs, outcomes)
	} else {
		outcomes = c.pull.admitAll(ctx, c)
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
	c.pull.closes(c)
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
