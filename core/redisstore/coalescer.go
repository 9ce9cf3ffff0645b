package redisstore

// Submits of many goroutines share a script call.

import (
	"context"
	"runtime"
	"sync"
)

// coalescer joins single requests of many goroutines into batches, without a timer: whoever finds nobody at work takes
// all that is waiting and works it off; what comes meanwhile waits for the next batch. It has no goroutine of its own.
type coalescer[Q, A any] struct {
	run func(ctx context.Context, batch []Q) []outcome[A]

	mu      sync.Mutex
	waiting []*ask[Q, A]
	working bool
}

// outcome is what became of one question of a batch; what stops one must not stop the others.
type outcome[A any] struct {
	answer A
	err    error
}

type ask[Q, A any] struct {
	ctx      context.Context //nolint:containedctx // the batch runs for as long as one of its callers waits
	question Q
	outcome  outcome[A]
	done     chan struct{} // closed when answered
	lead     chan struct{} // closed when it is this caller's turn to work
}

// largestBatch is the most requests that are joined, so that no script is long.
const largestBatch = 512

func newCoalescer[Q, A any](run func(context.Context, []Q) []outcome[A]) *coalescer[Q, A] {
	return &coalescer[Q, A]{run: run}
}

// do answers one question, together with those of others. When ctx ends first its error is returned, and the question
// may or may not have been asked.
func (c *coalescer[Q, A]) do(ctx context.Context, question Q) (A, error) {
	a := &ask[Q, A]{ctx: ctx, question: question, done: make(chan struct{}), lead: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, a)
	if !c.working {
		c.working = true
		close(a.lead)
	}
	c.mu.Unlock()
	for {
		select {
		case <-a.done:
			return a.outcome.answer, a.outcome.err
		case <-a.lead:
			c.lead()
			a.lead = nil
		case <-ctx.Done():
			select {
			case <-a.done:
				return a.outcome.answer, a.outcome.err
			case <-a.lead: // nobody else would work off what waits
				c.lead()
				return a.outcome.answer, a.outcome.err
			default:
			}
			c.leave(a) // or it is under way, and its answer is nobody's
			var none A
			return none, context.Cause(ctx)
		}
	}
}

// lead works off one batch and hands over to a caller of the next.
func (c *coalescer[Q, A]) lead() {
	runtime.Gosched() // whoever is about to ask comes along
	c.mu.Lock()
	n := min(len(c.waiting), largestBatch)
	batch := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	c.mu.Unlock()

	questions := make([]Q, n)
	for i, a := range batch {
		questions[i] = a.question
	}
	ctx, stop := together(batch)
	outcomes := c.run(ctx, questions)
	stop()
	for i, a := range batch {
		a.outcome = outcomes[i]
		close(a.done)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.working = false
		return
	}
	close(c.waiting[0].lead)
}

// leave takes back a question that no batch has taken yet.
func (c *coalescer[Q, A]) leave(a *ask[Q, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiting {
		if w != a {
			continue
		}
		c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
		select {
		case <-a.lead: // it was just told to lead: the next one does
			if len(c.waiting) > 0 {
				close(c.waiting[0].lead)
			} else {
				c.working = false
			}
		default:
		}
		return
	}
}

// together is a context that ends when all of a batch's have ended: one caller who gives up must not fail the others.
func together[Q, A any](batch []*ask[Q, A]) (context.Context, context.CancelFunc) {
	if len(batch) == 1 {
		return batch[0].ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	left := make(chan struct{}, len(batch))
	stops := make([]func() bool, len(batch))
	for i, a := range batch {
		stops[i] = context.AfterFunc(a.ctx, func() {
			left <- struct{}{}
			if len(left) == len(batch) {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
