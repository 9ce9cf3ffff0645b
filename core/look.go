package core

// What a pull asks its partitions besides claims: when they are due, and whether those are back that were away.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/internal/search"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// A pull never works from one old look: what it knows of a partition is at most lookEvery old when it fills a slot, so
// that the slot goes to the agent that has waited longest, in any partition.
const lookEvery = search.Every

// refresh looks at the targets whose last answer is older than an age. It fails if no target answered.
func (p *pull) refresh(age time.Duration) error {
	if p.scope.Join != nil && p.scope.Agents != nil {
		p.outlook.Join(MaxAgents, p.scope.Join)
	}
	p.outlook.Probe(p.ctx, p)
	now := p.s.config.Clock.Now()
	switch {
	case p.scope.loan != nil: // it asks for another
	case p.scope.Series != nil:
		p.s.base.Asked.Store(int64(moment.Never))
	default:
		p.s.base.Asked.Store(now.UnixMilli())
	}
	old := p.outlook.Old(now, p.s.base.StoreNow(), age)
	if len(old) == 0 {
		return nil
	}
	return p.look(old, now)
}

// look asks targets when they are due, without taking anything.
func (p *pull) look(targets []*horizon.Target, now time.Time) error {
	requests := make([]store.LookRequest, len(targets))
	kinds := kindsOf(p)
	for i, t := range targets {
		requests[i] = store.LookRequest{Partition: t.Partition, Kinds: kinds, Agents: t.Agents}
	}
	p.outlook.Asking(targets)
	claiming := p.claiming.Err() == nil
	ctx, cancel := p.Call(p.ctx, base.LongestLook)
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
		return p.outlook.AllAway(p.ctx, targets, err)
	}
	p.s.base.Observe(base.LatestOf(looks, func(l *store.Look) *store.Look { return l }))
	p.outlook.Looked(p.ctx, targets, requests, looks, now)
	return nil
}

// claimRecovered claims from partitions that have come back since the last rounds, until no question to one is under way.
func (p *pull) claimRecovered() error {
	for served := int64(0); ; {
		back := p.outlook.Recovered()
		if back == served {
			return nil
		}
		served = back
		if err := p.rounds(); err != nil {
			return err
		}
	}
}

// LookAt looks at one partition that was away, concurrently with the pull's other work.
func (p *pull) LookAt(partition int) error {
	ctx, cancel := p.Call(p.ctx, base.LongestLook/2)
	defer cancel()
	looks, err := p.s.store.Look(ctx, []store.LookRequest{{Partition: partition, Kinds: claimed(p.s)}})
	if err == nil {
		err = looks[0].Err
	}
	return err
}

// awaitsNotice waits until a notice is over that the pull has given, and reports whether there is one: a host that is called once a minute
// would come too late for the work of the dead. A series comes back by itself.
func (p *pull) awaitsNotice() bool {
	wait := p.noticed.Sub(p.s.config.Clock.Now())
	if p.noticed.IsZero() || p.scope.Series != nil || p.over() || p.left == 0 {
		return false
	}
	news := p.outlook.Linger()
	if lingerFor(p, wait+time.Millisecond, news); p.s.config.Clock.Now().After(p.noticed) {
		p.noticed = time.Time{}
	}
	return !p.over()
}
