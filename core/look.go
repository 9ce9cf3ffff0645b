package core

// Looks: how a pull finds out when its partitions are due, and who joins it.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// refresh looks at the targets whose last answer is older than an age. It fails if no target answered.
func (p *pull) refresh(age time.Duration) error {
	if p.scope.Join != nil && p.scope.Agents != nil {
		p.join()
	}
	p.askAway()
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

// longestLook bounds a look: it takes nothing, so cutting it off loses nothing.
const longestLook = 2 * time.Second

// look asks targets when they are due, without taking anything.
func (p *pull) look(targets []*target, now time.Time) error {
	requests := make([]store.LookRequest, len(targets))
	kinds := p.s.handled()
	for i, t := range targets {
		requests[i] = store.LookRequest{Partition: t.partition, Kinds: kinds, Agents: t.agents}
	}
	p.outlook.asking(targets)
	claiming := p.claiming.Err() == nil
	ctx, cancel := p.call(longestLook)
	if claiming { // whoever wants the end need not wait for it
		stop := context.AfterFunc(p.claiming, cancel)
		defer stop()
	}
	looks, err := p.s.store.Look(ctx, requests)
	cancel()
	if err != nil && claiming && p.claiming.Err() != nil {
		return err
	}
	if err != nil {
		return p.allAway(targets, err)
	}
	p.s.base.Observe(base.LatestOf(looks, func(l *store.Look) *store.Look { return l }))
	p.outlook.mu.Lock()
	defer p.outlook.mu.Unlock()
	for i, t := range targets {
		if looks[i].Err != nil {
			p.isAway(t, looks[i].Err)
			continue
		}
		p.isBack(t)
		t.answered(now, requests[i].Agents, &looks[i])
		t.looked = true
	}
	return nil
}

// call is the context of one call of the store within the pull: it has a deadline before the pull's end, whatever the
// caller's context says, and is not cut off before that, as what a claim has taken would stay under lease.
func (p *pull) call(longest time.Duration) (context.Context, context.CancelFunc) {
	if !p.end.IsZero() {
		longest = min(longest, max(p.end.Sub(p.s.config.Clock.Now()), 0)+p.s.config.Margin/2)
	}
	return context.WithTimeout(context.WithoutCancel(p.ctx), longest)
}
