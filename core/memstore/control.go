package memstore

// The commands of operators.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Replay makes dead tasks live again; see [store.Operator].
// Replay is as a submit of the old task, with the counters of its history corrected.
func (s *Store) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	return operate(ctx, s, tasks, func(r *store.Replay, now moment.Millis) store.Effect {
		p := operating{s.partitionOf(r.Agent), now}
		if done, err := p.replay(r); !done {
			return store.Effect{Refused: err}
		}
		s.announce(p.partition, now)
		return store.Effect{Code: store.EffectDone, Due: now}
	})
}

// RunNow makes waiting tasks due now; see [store.Operator].
func (s *Store) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	return operate(ctx, s, tasks, func(r *store.RunNow, now moment.Millis) store.Effect {
		return operating{s.partitionOf(r.Agent), now}.run(r)
	})
}

// Cancel ends tasks as cancelled; see [store.Operator].
func (s *Store) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	return operate(ctx, s, tasks, func(c *store.Cancellation, now moment.Millis) store.Effect {
		return operating{s.partitionOf(c.Agent), now}.cancel(c)
	})
}

// Delete forgets tasks; see [store.Operator].
func (s *Store) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	return operate(ctx, s, tasks, func(t *store.Deletion, now moment.Millis) store.Effect {
		return operating{s.partitionOf(t.Agent), now}.erase(t)
	})
}

// Hold lets no task of some targets be claimed; see [store.Operator].
// A hold on a task that does not exist changes nothing; one on an agent or a kind may come before them.
func (s *Store) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	return operate(ctx, s, holds, func(h *store.Hold, now moment.Millis) store.Effect {
		sc := scopeOf(h.Target)
		var begin moment.Millis
		effect := s.inScope(&h.Target, func(p *partition) bool {
			if sc.kind == 't' && p.task(sc.name, sc.id) == nil {
				return false
			}
			begun := newHold(sc, h, now)
			begun.since = p.begun(now)
			// Prolong is for a snooze: it must never shorten a pause that another call has made.
			if old := p.holds[sc]; h.Prolong && p.held(sc, now) && old.outlasts(&begun) {
				return false
			}
			p.hold(sc, begun, now, h.Prolong)
			if sc.kind != 't' || p.task(sc.name, sc.id).claim != nil {
				begin = max(begin, withdraw(p, now))
			}
			return true
		})
		effect.Due = begin
		return effect
	})
}

// Unhold ends holds; see [store.Operator].
// The held tasks are put back by claims, a limited number at a time.
func (s *Store) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	return operate(ctx, s, targets, func(t *store.Target, now moment.Millis) store.Effect {
		return s.inScope(t, func(p *partition) bool {
			if !p.unhold(scopeOf(*t), now) {
				return false
			}
			s.wake(p, now)
			return true
		})
	})
}

// Audit looks at live tasks; see [store.Operator].
func (s *Store) Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error) {
	return operate(ctx, s, pages, func(a *audit.Page, now moment.Millis) audit.Result {
		return auditing{s.parts[a.Partition], now}.audit()
	})
}

// operate carries out requests, one after the other, in one step.
// The context is only looked at before: once begun, a step is never left half done.
func operate[R, A any](ctx context.Context, s *Store, requests []R, do func(r *R, now moment.Millis) A) ([]A, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "control", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]A, len(requests))
	for i := range requests {
		out[i] = do(&requests[i], now)
	}
	return out, nil
}

// inScope changes each partition of a target, and returns whether any was changed.
// A hold on a kind, a key or everything is in every partition, as in Redis.
func (s *Store) inScope(t *store.Target, change func(p *partition) bool) store.Effect {
	parts := s.parts
	if t.Agent != "" {
		parts = []*partition{s.partitionOf(t.Agent)}
	}
	out := store.Effect{}
	for _, p := range parts {
		if change(p) {
			out.Code = store.EffectDone
		}
	}
	return out
}

// newHold is a hold that begins now, with its end: at a time, after a while, or never.
func newHold(sc scope, c *store.Hold, now moment.Millis) hold {
	h := hold{since: now, note: slices.Clone(c.Note)}
	end := c.Until.At
	if end == 0 && c.Until.After > 0 {
		end = now.Add(c.Until.After)
	}
	if end != 0 {
		h.term = &term{end: end, scope: sc, at: -1}
	}
	return h
}

// replay makes a dead task live again; false if no dead task has that id, or the quota of its agent has no room.
func (p operating) replay(r *store.Replay) (bool, error) {
	sub := store.Submission{
		Agent: r.Agent, ID: r.ID, Kind: r.Kind, Group: r.Group, Key: r.Key, Level: r.Level, Body: r.Body, State: r.State, Recurs: r.Recurs,
	}
	f, dropped, ok := p.records(p.now).remembered(sub.Agent, sub.ID)
	// A record that was dropped has no payload to run with.
	if !ok || dropped || f.verb != store.VerbFail || p.task(sub.Agent, sub.ID) != nil {
		return false, nil
	}
	w := wanted{id: sub.ID, bound: r.Bound, checked: true, recurs: r.Recurs, fresh: true}
	// guard: quota-replay
	if err := p.quotas.refusesNew(p.partition, &sub, w, p.now); err != nil {
		return false, err
	}
	p.quotas.pass(sub.Agent, r.Bound, p.now)
	t := p.create(sub, p.ticks(1, p.now), p.now)
	// The activity was the operator's: the run is booked for now.
	if r.Activity {
		t.pulse = &pulse{first: p.now}
	}
	p.counts.Replayed++
	// It has ended as failed in its group, and is live there again.
	if g := p.join(sub, p.now); g != nil {
		g.Failed--
	}
	return true, nil
}
