package core

// What a pull learns of a partition from the answer to a claim.

import (
	"cmp"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// learn notes what a claim says of its target.
func (p *pull) learn(t *target, r *store.ClaimRequest, c *store.Claim, sent time.Time, g grant) {
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	if c.Err != nil {
		p.isAway(t, c.Err)
		return
	}
	// Any answer shows that the partition is there, also one that brings no task.
	p.isBack(t)
	p.s.fences.seen(t.partition, c.Fence)
	before, now := t.due(), t.atNow
	t.answered(sent, r.Agents, &c.Look)
	if c.Unstamped { // what is due is taken once the store has what this process relies on
		return
	}
	// The most that was seen: a later claim looks at a part only, and what it does not see is still
	// left.
	t.left = max(t.left, c.Left)
	if c.Suspects > 0 {
		t.suspected = sent
	}
	t.nextSort = p.s.slots.leftSuspects(c.Suspects, p.sortPatience())
	if c.Noticed > 0 {
		p.noticed = sent.Add(r.Notice)
	}
	t.barren = time.Time{}
	t.doubted = p.outlook.series != nil && !g.urgent && len(c.Tasks)+c.Parked+c.Recovered == 0
	// What a settlement has made due, or has made room for, while the claim was under way the claim may not have seen: that is no reason to
	// stay away.
	if due := t.next; due != 0 && due <= c.Now && len(c.Tasks)+c.Parked+c.Recovered == 0 {
		// The place of an agent whose due task was cancelled or replaced stays in the past until a claim has looked there and put it
		// right, which may be all that a small claim has a turn for. Then something else comes first: the next claim sees others.
		// A place that is always now moves with the clock alone, which is no reason to come back at once.
		t.foundNothing(r, c, sent, g, due > before && (!now || !t.atNow))
	}
}

// sortPatience is how long suspects of one sort wait for those of another before they have their turn: a small part of a pull that has an
// end, as they are to start in it.
func (p *pull) sortPatience() time.Duration {
	if p.end.IsZero() {
		return suspectsLinger
	}
	return p.end.Sub(p.begun) / 8
}

// foundNothing notes how far a claim has searched that brought nothing, and when it is worth trying again. What waits for
// a slot of its kind is worth it as soon as slots come free; what is left for lack of time is so for the whole pull.
func (t *target) foundNothing(r *store.ClaimRequest, c *store.Claim, sent time.Time, g grant, moved bool) {
	full, shared := t.suspects(sent), false // kinds without a slot; kinds whose slots another partition was offered
	for kind, most := range r.Most {
		full = full || most == 0
		shared = shared || most == 0 && g.room[kind] > 0
	}
	on := &t.rest
	if g.urgent {
		on = &t.urgent
	}
	if !shared {
		on.found(c.Passed, c.Now)
	}
	switch {
	case c.Passed != 0 && !shared: // there is more to look at, at once
	case g.urgent:
		t.urgentAsked = sent
	case moved && !full && len(r.Leave) == 0:
	case t.room && t.left == 0: // the claim may not have seen it
	case full:
		t.barren, t.because = sent.Add(cmp.Or(t.nextSort, lookEvery)), g.news
	default:
		t.barren, t.because = sent.Add(leftFor), 0
	}
}

// tellMoved reports what a claim did with other tasks than those that it took: which it has parked, up to a bound and then how many more.
func (p *pull) tellMoved(c *store.Claim) {
	for _, a := range c.Aside {
		p.s.base.Emit(Event{Type: model.EventPark, Agent: a.Agent, ID: a.ID, From: StatusWaiting, Status: StatusWaiting, By: check.ByDuly, Reason: base.Aside(a.Why), Count: 1})
	}
	if more := c.Parked - len(c.Aside); more > 0 {
		p.s.base.Emit(Event{Type: model.EventPark, From: StatusWaiting, Status: StatusWaiting, By: check.ByDuly, Count: more})
	}
}
