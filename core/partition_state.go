package core

// What a pull knows of its partitions: it looks when they are due, and learns from the answers to claims.

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// observeClaim notes what a claim reports about its target.
func (p *pull) observeClaim(t *target, r *store.ClaimRequest, c *store.Claim, sent time.Time, g slots.Grant) {
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	if c.Err != nil {
		p.markUnavailable(t, c.Err)
		return
	}
	// Any answer shows that the partition is available, even one without a task.
	p.markAvailable(t)
	p.s.fences.seen(t.partition, c.Fence)
	before, now := t.due(), t.atNow
	t.answered(sent, r.Agents, &c.Look)
	if c.Unstamped { // due tasks are claimed once the store has what this process relies on
		return
	}
	if len(c.Tasks) > 0 {
		t.served, t.turns = c.Now, c.Turns
	}
	// The most that was seen: a later claim looks at a part only, and the tasks that it does not see are still
	// left.
	t.left = max(t.left, c.Left)
	if c.Suspects > 0 {
		t.suspected = sent
	}
	t.nextSort = p.slots.LeftSuspects(c.Suspects, p.sortPatience())
	if c.Noticed > 0 {
		p.noticed = sent.Add(r.Notice)
	}
	t.emptyUntil = time.Time{}
	t.doubted = p.outlook.series != nil && !g.Urgent && len(c.Tasks)+c.Parked+c.Recovered == 0
	// The claim may not have seen tasks that a settlement made due, or made room for, while it was under way: that is no reason to
	// stay away.
	if due := t.next; due != 0 && due <= c.Now && len(c.Tasks)+c.Parked+c.Recovered == 0 {
		// The place of an agent whose due task was cancelled or replaced stays in the past until a claim has looked there and put it
		// right, which may be all that a small claim has a turn for. Then something else comes first: the next claim sees others.
		// A place that is always now moves with the clock alone, which is no reason to come back at once.
		// guard: nothing-found
		t.foundNothing(r, c, sent, g, due > before && (!now || !t.atNow))
	}
}

// sortPatience is how long suspects of one sort wait for those of another before they have their turn: a small part of a pull that has an
// end, as they are to start in it.
func (p *pull) sortPatience() time.Duration {
	if p.end.IsZero() {
		return slots.SuspectsLinger
	}
	return p.end.Sub(p.begun) / 8
}

// foundNothing notes how far a claim has searched that brought nothing, and when it is worth trying again. A task that waits for
// a slot of its kind is worth it as soon as slots come free; one that is left for lack of time stays so for the whole pull.
func (t *target) foundNothing(r *store.ClaimRequest, c *store.Claim, sent time.Time, g slots.Grant, moved bool) {
	full, shared := t.suspects(sent), false // kinds without a slot; kinds whose slots another partition was offered
	for kind, most := range r.Most {
		full = full || most == 0
		shared = shared || most == 0 && g.Room[kind] > 0
	}
	switch {
	case shared:
	case g.Urgent:
		t.urgent.Found(r.After, c)
	default:
		t.rest.Found(c.Passed, c.Now)
	}
	switch {
	case c.Passed != 0 && !shared: // there is more to look at, at once
	case g.Urgent:
		t.urgent.Ends(sent, t.clockUnless(full || shared))
	case moved && !full && len(r.Leave) == 0:
	case t.room && t.left == 0: // the claim may not have seen it
	case full:
		t.emptyUntil, t.because = sent.Add(cmp.Or(t.nextSort, lookEvery)), g.News
	default:
		t.emptyUntil, t.because = sent.Add(leftFor), 0
	}
}

// clockUnless is the clock of its server, but for where something waits for a slot of its kind: that is worth a claim as soon as one comes free.
func (t *target) clockUnless(waits bool) *ahead.Clock {
	if waits {
		return nil
	}
	return &t.clock
}

// fences are the largest fences that this process was given, by partition. Claims report them to the store: a master that was promoted
// may lack the last writes of the one before, and with them its last fences, and its clock may be behind.
type fences []atomic.Int64

// seen notes the fence of a claim.
func (f fences) seen(partition int, fence store.Fence) {
	for {
		last := f[partition].Load()
		if int64(fence) <= last || f[partition].CompareAndSwap(last, int64(fence)) {
			return
		}
	}
}

// last is the largest fence of a partition, 0 if none was given.
func (f fences) last(partition int) store.Fence { return store.Fence(f[partition].Load()) }

// refresh looks at the targets whose last answer is older than an age. It fails if no target answered.
func (p *pull) refresh(age time.Duration) error {
	if p.scope.Join != nil && p.scope.Agents != nil {
		p.join()
	}
	p.probeUnavailable()
	now := p.s.config.Clock.Now()
	old := p.outlook.old(now, p.s.base.StoreNow(), age)
	if len(old) == 0 {
		return nil
	}
	return p.look(old, now)
}

// join adds the agents that have joined the pull. It names no more agents than two calls may: while more have something
// due, others wait until some have not.
func (p *pull) join() {
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	if p.outlook.agents >= MaxAgents {
		p.outlook.drop(p.s.base.StoreNow())
	}
	if p.outlook.agents >= 2*MaxAgents {
		return
	}
	in, out := p.scope.Join()
	partitions := p.s.store.Partitions()
	p.outlook.remove(out, partitions)
	p.outlook.add(in, partitions)
}

// look asks targets when they are due, without taking anything.
func (p *pull) look(targets []*target, now time.Time) error {
	requests := make([]store.LookRequest, len(targets))
	kinds := kindsOf(p)
	for i, t := range targets {
		requests[i] = store.LookRequest{Partition: t.partition, Kinds: kinds, Agents: t.agents}
	}
	p.outlook.asking(targets)
	claiming := p.claiming.Err() == nil
	ctx, cancel := p.call(base.LongestLook)
	if claiming { // a caller that wants the end need not wait for it
		stop := context.AfterFunc(p.claiming, cancel)
		defer stop()
	}
	looks, err := p.s.store.Look(ctx, requests)
	cancel()
	if err != nil && claiming && p.claiming.Err() != nil {
		return err
	}
	if err != nil {
		return p.markAllUnavailable(targets, err)
	}
	p.s.base.Observe(base.LatestOf(looks, func(l *store.Look) *store.Look { return l }))
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	for i, t := range targets {
		if looks[i].Err != nil {
			p.markUnavailable(t, looks[i].Err)
			continue
		}
		p.markAvailable(t)
		t.answered(now, requests[i].Agents, &looks[i])
		t.looked = true
	}
	return nil
}

// call is the context of one call of the store within the pull: it has a deadline before the pull's end, regardless of the
// caller's context, and is not cut off before that, as tasks that a claim has taken would stay under lease.
func (p *pull) call(longest time.Duration) (context.Context, context.CancelFunc) {
	if !p.end.IsZero() {
		longest = min(longest, max(p.end.Sub(p.s.config.Clock.Now()), 0)+p.s.config.Margin/2)
	}
	return context.WithTimeout(context.WithoutCancel(p.ctx), longest)
}
