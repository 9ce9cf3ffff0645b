package call

// The plain scripts: the common part of submits, claims and settlements, and nothing else.

import (
	"math"
	"sync/atomic"
)

// Submit, claim and settle have two scripts each. A plain one goes straight through the common case: if it finds a rare one it
// changes nothing, and answers with the time alone. Then the other one is sent, which handles every case, and costs two to three
// times as much. See docs/decisions/0025-plain-scripts.md.

// plainness is how a partition has answered the plain scripts of a verb: where one was not enough, the next few calls do
// without, twice as many each time, so that a partition with a lasting rare case hardly pays for being asked.
type plainness struct {
	skip atomic.Int32 // calls that still do without
	last atomic.Int32 // how many did the last time
}

// Plain is the memory of one partition.
type Plain struct{ Submit, Claim, Settle, Start plainness }

// Never does without plain scripts from now on.
func (p *Plain) Never() {
	for _, verb := range []*plainness{&p.Submit, &p.Claim, &p.Settle, &p.Start} {
		verb.skip.Store(math.MaxInt32)
	}
}

// mostSkipped is the most calls in a row that do without.
const mostSkipped = 31

// WorthTrying reports whether the next call is to try the plain script.
func (p *plainness) WorthTrying() bool {
	if p.skip.Load() <= 0 {
		return true
	}
	p.skip.Add(-1)
	return false
}

// was notes how a plain script has answered.
func (p *plainness) was(enough bool) {
	if enough {
		p.last.Store(0)
		return
	}
	n := min(2*p.last.Load()+1, mostSkipped)
	p.last.Store(n)
	p.skip.Store(n)
}

// odd are those of some calls whose plain scripts were not enough. They are the full ones from here on.
func (e *evaluation) odd(todo []int) []int {
	var odd []int
	for _, i := range todo {
		c := &e.calls[i]
		if c.Full == nil || e.errs[i] != nil {
			continue
		}
		enough := len(e.replies[i]) > 1
		c.Plain.was(enough)
		if !enough {
			c.makeFull()
			// guard: odd
			odd = append(odd, i)
		}
	}
	return odd
}

// makeFull turns a plain call into the full one.
func (c *Call) makeFull() {
	full := c.Full()
	c.Script, c.Args, c.Full = full.Script, full.Args, nil
}
