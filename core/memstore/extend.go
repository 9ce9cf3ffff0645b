package memstore

// Extend: the ends of leases, and the progress of runs.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Extend moves the ends of leases; see [store.Store].
// Leases of claims that are over, and runs that have ended, are passed over:
// the caller learns from Held and Ended.
func (s *Store) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "extend", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]store.Extended, len(leases))
	for i := range leases {
		p := s.parts[leases[i].Partition]
		if len(leases[i].Back) > 0 {
			out[i].Back = p.giveAgain(&leases[i], now)
			continue
		}
		c := p.claims[leases[i].Fence]
		// A claim whose lease has run out but that was not taken back is still held:
		// no other run of its tasks has begun.
		if c == nil || c.term.at < 0 {
			continue
		}
		out[i].Held = true
		// guard: extend
		c.term.end, c.term.noticed = now.Add(leases[i].Lease), false
		// guard: leaves
		c.term.leaving = c.term.leaving || leases[i].Leave
		p.leases.fix(c.term)
		out[i].Ended = c.ended()
		if c.open > 1 {
			out[i].Running, out[i].Holder = c.open, c.nonce[:min(len(c.nonce), store.NonceLen/2)]
		}
		c.progress(leases[i].Progress, now)
		chargeAll(p, c, leases[i].Progress, &out[i], now)
	}
	return out, nil
}

// progress stores new states of tasks whose runs continue.
func (c *claim) progress(all []store.Progress, now moment.Millis) {
	for _, pr := range all {
		if pr.Index < 0 || pr.Index >= len(c.runs) || c.runs[pr.Index].task == nil {
			continue
		}
		t := c.runs[pr.Index].task
		// Of a claim that a failover has undone, whose fence another claim has by now: its progress is about another task.
		if t.Agent != pr.Agent || t.ID != pr.ID {
			continue
		}
		r := &c.runs[pr.Index]
		// guard: late-state
		if pr.Number != 0 && pr.Number < r.number {
			continue
		}
		t.state, t.changed, r.number = slices.Clone(pr.State), now, pr.Number // its crashes stay counted until the run ends
	}
}

// chargeAll charges what runs that go on have used so far.
func chargeAll(p *partition, c *claim, all []store.Progress, out *store.Extended, now moment.Millis) {
	for _, pr := range all {
		if len(pr.Used) == 0 || pr.Index < 0 || pr.Index >= len(c.runs) || c.runs[pr.Index].task == nil {
			continue
		}
		t := c.runs[pr.Index].task
		if t.Agent != pr.Agent || t.ID != pr.ID {
			continue
		}
		crossed, over := chargeUsed(p, t, pr.Used, now)
		out.Crossed = out.Crossed.Add(crossed...)
		if over {
			out.Ended = append(out.Ended, store.Ended{Index: pr.Index, Spent: true})
		}
	}
}

// ended are the runs of a claim whose tasks were cancelled or deleted.
// They are reported with every heartbeat until the run has settled, as the answer to one may be lost.
func (c *claim) ended() []store.Ended {
	var out []store.Ended
	for k, r := range c.runs {
		switch {
		case r.lost:
			out = append(out, store.Ended{Index: k, Deleted: true})
		case r.task != nil && r.task.order != nil && r.task.order.op == orderCancel:
			out = append(out, store.Ended{Index: k, Order: slices.Clone(r.task.order.note)})
		}
	}
	return out
}
