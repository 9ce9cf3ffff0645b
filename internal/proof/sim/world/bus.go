package world

// The bus is between each process and the store: no call goes through before the driver lets it, many never do, and what becomes of each is drawn.

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
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

// fate is the fate of a call.
type fate byte

const (
	fateDeliver    fate = iota
	fateSlow            // it arrives after a while, also if its caller has given up by then
	fateLate            // its answer arrives after a while
	fateTwice           // it is made twice
	fateDeaf            // it is made, and its answer is lost: the caller waits for it until its context ends
	fateCutAfter        // it is made, and the connection breaks before its answer
	fateLost            // it is lost: the caller waits until its context ends
	fateCutBefore       // the connection breaks before it
	fateKillBefore      // its process dies before it
	fateKillAfter       // its process dies after it
)

func (f fate) String() string {
	return [...]string{
		"", "slow", "its answer late", "twice", "its answer lost", "the connection breaks behind it", "lost", "the connection breaks in front of it",
		"its process dies in front of it", "its process dies behind it",
	}[f]
}

// decide draws the fate of a call.
// The draw is made when the driver first meets the call, not when it is sent, so that draws follow the
// order of the driver's choices. A kind world draws nothing.
func (w *World) decide(c *call) {
	c.decided = true
	p := w.plan
	if w.kind || w.faults >= p.MaxCallFaults {
		return
	}
	if c.verb == "Claim" && p.Settings.Ahead > 0 && w.fates.In(8) { // its first answer is lost, with when its tasks are due
		w.faults++
		c.fate = fateTwice
		w.trace("%s  %s: %s", c.p.name, c.label(), c.fate)
		return
	}
	if c.verb == "Extend" && p.Settings.Saves && w.fates.In(10) { // a heartbeat that a save overtakes
		w.faults++
		c.fate = fateSlow
		w.trace("%s  %s: %s", c.p.name, c.label(), c.fate)
		return
	}
	if !w.fates.In(p.CallFaults) {
		return
	}
	// The count is the bound that a smaller history lowers: Shrink cuts the last faults of calls off
	// by MaxCallFaults, and leaves the draws before them as they were.
	w.faults++
	if c.verb == "Claim" && w.fates.In(50) { // what is claimed late is the most of a nuisance
		c.fate = draw.One(w.fates, fateSlow, fateLate)
		w.trace("%s  %s: %s", c.p.name, c.label(), c.fate)
		return
	}
	c.fate = draw.One(w.fates, fateSlow, fateSlow, fateLate, fateLate, fateTwice, fateTwice, fateTwice, fateDeaf, fateCutAfter, fateCutAfter,
		fateLost, fateCutBefore, fateCutBefore, fateKillBefore, fateKillAfter)
	if _, ends := c.ctx.Deadline(); !ends && (c.fate == fateDeaf || c.fate == fateLost) {
		c.fate = fateCutAfter // nothing would ever end it
	}
	if (c.fate == fateKillBefore || c.fate == fateKillAfter) && w.fates.In(60) {
		c.fate = fateTwice // deaths end much that could happen
	}
	w.trace("%s  %s: %s", c.p.name, c.label(), c.fate)
}

// meet lets a call meet its fate.
// A call is met as often as it comes up in the line. One that is slow or late is met twice: c.decided
// and c.done say how far it has come.
func (w *World) meet(c *call) {
	// A process that is cut off gets an error at once, as from a refused connection. A call that the
	// store has already executed keeps its fate: its answer is under way.
	if c.p.cutUntil > w.elapsed() && !c.done {
		w.forget(c)
		c.fail(errCut)
		return
	}
	if c.verb == "Settle" && c.p.mute > w.elapsed() && !c.done {
		w.forget(c)
		c.fail(errCut)
		return
	}
	if !c.decided {
		w.decide(c)
		if c.fate == fateSlow {
			c.at = w.elapsed() + w.fates.Span(time.Millisecond, 4*time.Second)
			return
		}
	}
	switch c.fate {
	case fateCutBefore:
		w.forget(c)
		c.fail(errCut)
	case fateKillBefore:
		w.kill(c.p, "in front of a call")
	// The call stays in the line for its context alone: when that ends, expire answers the caller.
	case fateLost:
		c.at = w.never()
	case fateLate:
		w.late(c)
	// As for a lost call, only the end of the context answers the caller. The store and the auditor
	// have seen the call, though.
	case fateDeaf:
		c.make()
		c.at = w.never()
	// Both times are shown to the auditor. For the calls that the store remembers by a nonce or a
	// fence the second answer has to equal the first, which the invariants of repetition check.
	case fateTwice:
		c.make()
		c.make()
		w.answer(c)
	case fateCutAfter:
		c.make()
		w.forget(c)
		c.fail(errCut)
	// No process is left to get the answer. The next process finds what the store did.
	case fateKillAfter:
		c.make()
		w.kill(c.p, "behind a call")
	default:
		c.make()
		w.answer(c)
	}
}

// late makes a call, and answers it when its time has come.
func (w *World) late(c *call) {
	if c.done {
		w.answer(c)
		return
	}
	c.make()
	c.at = w.elapsed() + w.fates.Span(time.Millisecond, 4*time.Second)
}

// answer gives a call's caller its answer.
func (w *World) answer(c *call) {
	w.forget(c)
	c.give()
}

// expire answers a caller whose context has ended. A call that is slow still arrives.
// The caller cannot know whether the store has executed the call, as with a real timeout.
func (w *World) expire(c *call) {
	cause := c.ctx.Err()
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	c.fail(cause)
	// A slow call is the request of a caller that has given up and that reaches the store later all
	// the same: the case for which claims have nonces and settlements fences.
	if c.fate != fateSlow || c.done {
		w.forget(c)
	}
}

// never is later than anything.
func (*World) never() time.Duration { return 1 << 62 }
