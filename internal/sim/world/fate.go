package world

// What becomes of a call of the store.

import (
	"context"
	"time"
)

// fate is what becomes of a call.
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

// decide draws what becomes of a call.
func (w *World) decide(c *call) {
	c.decided = true
	p := w.plan
	if w.kind || w.faults >= p.MaxCallFaults || !w.fates.in(p.CallFaults) {
		return
	}
	w.faults++
	if c.verb == "Claim" && w.fates.in(50) { // what is claimed late is the most of a nuisance
		c.fate = one(w.fates, fateSlow, fateLate)
		w.trace("%s  %s: %s", c.p.name, c.label(), c.fate)
		return
	}
	c.fate = one(w.fates, fateSlow, fateSlow, fateLate, fateLate, fateTwice, fateTwice, fateTwice, fateDeaf, fateCutAfter, fateCutAfter,
		fateLost, fateCutBefore, fateCutBefore, fateKillBefore, fateKillAfter)
	if _, ends := c.ctx.Deadline(); !ends && (c.fate == fateDeaf || c.fate == fateLost) {
		c.fate = fateCutAfter // nothing would ever end it
	}
	if (c.fate == fateKillBefore || c.fate == fateKillAfter) && w.fates.in(60) {
		c.fate = fateTwice // deaths end much that could happen
	}
	w.trace("%s  %s: %s", c.p.name, c.label(), c.fate)
}

// meet lets a call meet its fate.
func (w *World) meet(c *call) {
	if c.p.cutUntil > w.elapsed() && !c.done {
		w.forget(c)
		c.fail(errCut)
		return
	}
	if !c.decided {
		w.decide(c)
		if c.fate == fateSlow {
			c.at = w.elapsed() + w.fates.span(time.Millisecond, 4*time.Second)
			return
		}
	}
	switch c.fate {
	case fateCutBefore:
		w.forget(c)
		c.fail(errCut)
	case fateKillBefore:
		w.kill(c.p, "in front of a call")
	case fateLost:
		c.at = w.never()
	case fateLate:
		w.late(c)
	case fateDeaf:
		c.make()
		c.at = w.never()
	case fateTwice:
		c.make()
		c.make()
		w.answer(c)
	case fateCutAfter:
		c.make()
		w.forget(c)
		c.fail(errCut)
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
	c.at = w.elapsed() + w.fates.span(time.Millisecond, 4*time.Second)
}

// answer gives a call's caller its answer.
func (w *World) answer(c *call) {
	w.forget(c)
	c.give()
}

// expire tells a caller whose context has ended. A call that is slow arrives all the same.
func (w *World) expire(c *call) {
	cause := c.ctx.Err()
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	c.fail(cause)
	if c.fate != fateSlow || c.done {
		w.forget(c)
	}
}

// never is later than anything.
func (*World) never() time.Duration { return 1 << 62 }
