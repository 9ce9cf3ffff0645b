package redisstore

// Submits of many goroutines share a script call.

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// coalescer joins single requests of many goroutines into batches, without a timer: a caller that finds no other at work takes
// all that is waiting and works it off; requests that come meanwhile wait for the next batch. It has no goroutine of its own.
type coalescer[Q, A any] struct {
	// run carries out one batch and returns as many outcomes as it was
	// given questions, in the same order.
	run func(ctx context.Context, batch []Q) []outcome[A]

	// mu guards waiting and working. It is never held while run works.
	mu sync.Mutex
	// waiting are the questions that no batch has taken yet, in the order in which they were asked.
	waiting []*ask[Q, A]
	// working is set while some caller leads, or has been asked to lead next.
	working bool
}

// outcome is the outcome of one question of a batch; an error of one must not stop the others.
type outcome[A any] struct {
	answer A
	err    error
}

// ask is a question on its way: one goroutine waits for it, and any goroutine
// may lead the batch that answers it.
type ask[Q, A any] struct {
	ctx      context.Context //nolint:containedctx // the batch runs for as long as one of its callers waits
	question Q
	// outcome is written before done is sent, which lets its caller read it without the lock.
	outcome outcome[A]
	news    chan news // room for both, so that no sender waits
	batch   *joined   // that has it, if one has; the coalescer's mutex guards it
}

// news is the message that a caller waits for.
type news byte

const (
	lead news = iota // it is this caller's turn to work
	done             // the outcome has arrived
)

// joined is a call under way for several callers.
type joined struct {
	left   atomic.Int32 // callers that still wait
	cancel context.CancelFunc
}

// leave notes that a caller gave up: without any the batch is worth nothing.
func (b *joined) leave() {
	if b.left.Add(-1) == 0 {
		b.cancel()
	}
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
	a := &ask[Q, A]{ctx: ctx, question: question, news: make(chan news, 2)}
	// Whether a caller leads and who waits change together under the lock: a
	// question is never left without a leader.
	c.mu.Lock()
	c.waiting = append(c.waiting, a)
	first := !c.working
	c.working = true
	c.mu.Unlock()
	if first {
		return c.lead(a)
	}
	select {
	case n := <-a.news:
		return c.heard(a, n)
	case <-ctx.Done():
	}
	// The context may have ended at the same moment as the answer arrived, or as the turn to lead.
	select {
	case n := <-a.news:
		return c.heard(a, n)
	default:
	}
	// The batch that has this question may be under way already. Then it runs to its end, unless all have left, and the answer is
	// dropped.
	c.leave(a)
	var none A
	return none, context.Cause(ctx)
}

// heard continues where a caller has received news.
func (c *coalescer[Q, A]) heard(a *ask[Q, A], n news) (A, error) {
	if n == lead {
		return c.lead(a)
	}
	return a.outcome.answer, a.outcome.err
}

// lead works off one batch, hands over to a caller of the next, and returns the answer of its caller, who waits for longest and so is
// in the batch.
func (c *coalescer[Q, A]) lead(leader *ask[Q, A]) (A, error) {
	// Goroutines that are about to ask get to run first, which makes
	// batches larger than a lock alone would.
	runtime.Gosched()
	asks, ctx, over := c.take(leader)
	questions := make([]Q, len(asks))
	for i, a := range asks {
		questions[i] = a.question
	}
	outcomes := c.run(ctx, questions)
	over()
	for i, a := range asks {
		a.outcome = outcomes[i]
		a.news <- done
	}

	// Leadership goes to a caller and not to a goroutine of the store: a store that is idle has no
	// goroutine, and a caller never works for others longer than one batch.
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handOver()
	return leader.outcome.answer, leader.outcome.err
}

// take takes a batch. Its context ends when those of all its callers have: one who gives up must not fail the others. The values of
// the leader's context (a trace, for instance) are those of the whole batch.
func (c *coalescer[Q, A]) take(leader *ask[Q, A]) (asks []*ask[Q, A], ctx context.Context, over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.waiting), largestBatch)
	// The capacity is cut off as well, so that later appends to waiting cannot write into this batch.
	asks, c.waiting = c.waiting[:n:n], c.waiting[n:]
	// Nearly all calls of a process that is not busy: they cost no context.
	if n == 1 {
		return asks, leader.ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(leader.ctx))
	b := &joined{cancel: cancel}
	b.left.Store(int32(n))
	for _, a := range asks {
		a.batch = b
	}
	// The others see by themselves when their contexts end; the leader works.
	stop := context.AfterFunc(leader.ctx, b.leave)
	return asks, ctx, func() {
		stop()
		cancel()
	}
}

// handOver lets the caller lead who waits for longest. The mutex is held.
func (c *coalescer[Q, A]) handOver() {
	if len(c.waiting) == 0 {
		c.working = false
		return
	}
	c.waiting[0].news <- lead
}

// leave takes back a question of a caller who gives up.
func (c *coalescer[Q, A]) leave(a *ask[Q, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.batch != nil {
		a.batch.leave()
		return
	}
	// A linear search is enough: only callers that give up come here, and
	// no more than a few hundred wait.
	i := slices.Index(c.waiting, a)
	if i < 0 { // it is a batch of its own, or is done
		return
	}
	// The head is copied, as a batch that is under way may still read the same array.
	c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
	select {
	case <-a.news: // it was just asked to lead: the next one does
		c.handOver()
	default:
	}
}
