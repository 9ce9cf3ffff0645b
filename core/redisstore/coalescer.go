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
	// run carries out one batch and returns as many outcomes as it was
	// given questions, in the same order.
	run func(ctx context.Context, batch []Q) []outcome[A]

	// mu guards waiting and working. It is never held while run works.
	mu sync.Mutex
	// waiting are the questions that no batch has taken yet, in the order in which they were asked.
	waiting []*ask[Q, A]
	// working says that some caller leads now, or has been told to lead next.
	working bool
}

// outcome is what became of one question of a batch; what stops one must not stop the others.
type outcome[A any] struct {
	answer A
	err    error
}

// ask is a question on its way: one goroutine waits for it, and any goroutine
// may lead the batch that answers it.
type ask[Q, A any] struct {
	ctx      context.Context //nolint:containedctx // the batch runs for as long as one of its callers waits
	question Q
	// outcome is written before done is closed, which is what lets its caller read it without the lock.
	outcome outcome[A]
	done    chan struct{} // closed when answered
	lead    chan struct{} // closed when it is this caller's turn to work
}

// largestBatch is the most requests that are joined, so that no script is long.
// A submit script takes about 5 us of Redis for a task, so that a batch of
// this size stays below its 5 ms bound.
const largestBatch = 512

func newCoalescer[Q, A any](run func(context.Context, []Q) []outcome[A]) *coalescer[Q, A] {
	return &coalescer[Q, A]{run: run}
}

// do answers one question, together with those of others. When ctx ends first its error is returned, and the question
// may or may not have been asked.
func (c *coalescer[Q, A]) do(ctx context.Context, question Q) (A, error) {
	a := &ask[Q, A]{ctx: ctx, question: question, done: make(chan struct{}), lead: make(chan struct{})}
	// Whether somebody leads and who waits change together under the lock: a
	// question is never left without a leader.
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
			// A nil channel blocks for ever, so this caller waits for done alone from
			// now on. Its own question may be in a later batch than the one it led, if
			// more were waiting than a batch takes.
			a.lead = nil
		case <-ctx.Done():
			// The context may end at the same moment as the answer arrives, or as the
			// turn to lead: select picks any of them.
			select {
			case <-a.done:
				return a.outcome.answer, a.outcome.err
			case <-a.lead: // nobody else would work off what waits
				c.lead()
				return a.outcome.answer, a.outcome.err
			default:
			}
			// The batch that has this question may be under way already. Then it runs to
			// its end, and the answer is dropped.
			c.leave(a)
			var none A
			return none, context.Cause(ctx)
		}
	}
}

// lead works off one batch and hands over to a caller of the next.
func (c *coalescer[Q, A]) lead() {
	// Goroutines that are about to ask get to run first, which makes
	// batches larger than a lock alone would.
	runtime.Gosched()
	c.mu.Lock()
	n := min(len(c.waiting), largestBatch)
	// The capacity is cut off as well, so that later appends to waiting cannot write into this batch.
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

	// Leadership goes to a caller and not to a goroutine of the store: a store that is idle has no
	// goroutine, and a caller never works for others longer than one batch.
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
	// A linear search is enough: only callers that give up come here, and
	// no more than a few hundred wait.
	for i, w := range c.waiting {
		if w != a {
			continue
		}
		// The head is copied, as a batch that is under way may still read the same array.
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
// The values of the first caller's context (a trace, for instance) are those of the whole batch.
func together[Q, A any](batch []*ask[Q, A]) (context.Context, context.CancelFunc) {
	// Nearly all calls of a process that is not busy: they cost no
	// goroutine, no channel and no context.
	if len(batch) == 1 {
		return batch[0].ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	// A buffer for everyone, so that no AfterFunc ever blocks on it.
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
		// Stops the AfterFuncs first: a caller whose context ends later must
		// not find a batch that is over.
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
