package memstore

// Look: when partitions are due, without taking anything.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Look returns when partitions are due; see [store.Queue].
func (s *Store) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	if err := ctx.Err(); err != nil {
		// A look has the verb of a claim in errors, as callers treat both alike.
		return nil, &store.Error{Verb: "claim", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]store.Look, len(requests))
	for i := range requests {
		out[i] = s.parts[requests[i].Partition].look(&requests[i], s.now())
	}
	return out, nil
}

// look returns when the partition is due next; a parked task of a requested kind is due now.
// With agents it returns when each of these is due; without, only when anything is.
func (p *partition) look(r *store.LookRequest, now moment.Millis) store.Look {
	out := store.Look{Partition: p.index, Now: now}
	if r.Agents != nil {
		out.NextDue, out.NextLease, out.AgentsDue = p.nexts(r.Agents, r.Kinds, now)
		return out
	}
	due, lease := p.next()
	switch {
	// Everything is held: nothing becomes due but the end of a lease, or of the hold.
	case p.held(scope{kind: '*'}, now):
		due = 0
	case p.isParked(r.Kinds) || len(p.open) > 0:
		if due == 0 || due > now {
			due = now
		}
	}
	// An expired lease is work as well: its tasks are taken back by a claim.
	// guard: hint
	if due == 0 || lease != 0 && lease < due {
		due = lease
	}
	out.NextDue = due
	return out
}
