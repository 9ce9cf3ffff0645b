package world

// The bus is between each process and the store: no call goes through before the driver lets it, and many never do.

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/stores"
)

// errCut is what a caller sees of a call whose connection broke.
var errCut = errors.New("the connection broke")

// call is a call of the store that the driver has to decide about.
type call struct {
	p    *process
	verb string
	key  func() string                     // tells it from others of its verb
	name string                            // what key has returned
	ctx  context.Context                   //nolint:containedctx // its caller's: when it ends, the driver tells the caller
	do   func(st store.Store) (any, error) // makes it, and tells the auditor
	// If a call is repeated, its first answer counts where the store answers from its memory of the call, as the one on Redis does;
	// elsewhere the answer of the repeated call counts.
	firstCounts bool

	told    []*run        // whose contexts are done once it is answered
	sent    int           // after so many steps
	born    time.Duration // when that was
	at      time.Duration // not before
	decided bool
	fate    fate
	done    bool // it was made
	answer  any
	err     error
	given   bool // its caller has an answer
	reply   chan struct{}
}

// bus is the store of one process.
// It implements every verb, as a scheduler calls it, and never touches the store itself: that is done
// by the driver, with the call's do, in the driver's own goroutine.
type bus struct {
	p    *process
	turn int // when the turn was sent that its calls are halves of, after so many steps; zero: they are sent by themselves
}

var _ store.Store = (*bus)(nil)

// Partitions is the number of partitions.
func (b *bus) Partitions() int { return b.p.w.plan.Settings.Partitions }

// through waits until the driver has decided about a call.
// It runs in a goroutine of the process and blocks until the driver gives an answer. An error of the
// store comes with the zero answer.
func through[A any](ctx context.Context, b *bus, verb string, key func() string, do func(st store.Store) (A, error)) (A, error) {
	w := b.p.w
	c := &call{p: b.p, verb: verb, key: key, ctx: ctx, reply: make(chan struct{}), sent: cmp.Or(b.turn, w.steps), born: w.elapsed()}
	c.do = func(st store.Store) (any, error) { return do(st) }
	switch verb {
	case "Submit", "Touch", "Replay", "RunNow", "Cancel", "Delete", "Hold", "Unhold", "Signal", "Replan", "Profile":
		c.firstCounts = true
	}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	w.called[verb] = true
	w.mu.Unlock()
	<-c.reply
	answer, _ := c.answer.(A) // nil with an error
	return answer, c.err
}

// label is what a call is sorted by among those of its process.
// It is built when it is first needed, as a call that is alone in the line and goes well needs none.
// It must not hold anything that differs between two plays, such as a nonce.
func (c *call) label() string {
	if c.name == "" {
		c.name = c.verb + " " + c.key()
	}
	return c.name
}

// make makes the call.
// It is called by the driver alone, so that one call at a time reaches the store. World.making is the
// call under way: the auditor asks it when it was sent and by whom.
func (c *call) make() {
	w := c.p.w
	// A store that is restored sees the call again, by way of the auditor, which then builds its new
	// model from it. The answer of then is dropped: the caller has had its own.
	w.remember(func() { w.making = c; _, _ = c.do(w.store) })
	w.making = c
	if f, mortal := w.store.(stores.Mortal); mortal {
		f.Next()
	}
	answer, err := c.do(w.store)
	if !c.given && (!c.done || !c.firstCounts) { // who gave up waiting has an answer, and may be reading it
		c.answer, c.err = answer, err
	}
	c.done = true
	if c.err == nil {
		c.p.w.wakeUp(c.verb)
	}
}

// wakeUp ends the sleep of processes when something may be due earlier. As with the store's own wake-ups, some are lost.
func (w *World) wakeUp(verb string) {
	switch verb {
	case "Hold", "Cancel", "Delete", "Profile":
		withdraw(w)
		return
	case "Submit":
		withdraw(w)
	case "Touch", "Replay", "RunNow", "Unhold", "Signal", "Replan":
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		for _, n := range p.naps {
			if !p.deaf && !n.deep {
				n.at = min(n.at, w.elapsed())
			}
		}
	}
}

// give answers the caller.
// A caller gets one answer: an answer after an expiry is dropped.
func (c *call) give() {
	if !c.given {
		c.given = true
		if c.err == nil {
			c.p.w.expected = append(c.p.w.expected, c.told...)
		}
		close(c.reply)
	}
}

// fail answers the caller that the outcome of the call is unknown.
// The error is wrapped as a store wraps its own: the outcome is unknown, and calling again is safe.
func (c *call) fail(err error) {
	if !c.given {
		c.answer, c.err = nil, &store.Error{Verb: c.verb, Err: err}
		c.give()
	}
}
