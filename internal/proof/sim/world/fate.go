package world

// What becomes of a call of the store.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

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
