package memstore

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Control carries out an operator's commands; see [store.Store].
func (s *Store) Control(ctx context.Context, commands []store.Command) ([]store.Effect, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.StoreError{Verb: "control", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]store.Effect, len(commands))
	for i := range commands {
		out[i] = s.obey(&commands[i], now)
	}
	return out, nil
}

func (s *Store) obey(c *store.Command, now store.Millis) store.Effect {
	p := s.partitionOf(c.Agent)
	switch c.Op {
	case store.OpReplay:
		if !p.replay(c.Submission, now) {
			return store.Effect{}
		}
		s.announce(p, now)
		return store.Effect{Code: store.EffectDone, Due: now}
	case store.OpRun:
		return p.run(c, now)
	case store.OpCancel:
		return p.cancel(c, now)
	case store.OpDelete:
		return p.erase(c, now)
	case store.OpAudit:
		return s.parts[c.Audit.Partition].audit(now)
	default:
		return s.holdOrNot(c, now)
	}
}

// holdOrNot begins or ends a hold, in each partition that its scope is about.
func (s *Store) holdOrNot(c *store.Command, now store.Millis) store.Effect {
	parts := s.parts
	if c.Scope.Agent != "" {
		parts = []*partition{s.partitionOf(c.Scope.Agent)}
	}
	sc := scopeOf(c.Scope)
	var done bool
	for _, p := range parts {
		switch {
		case c.Op == store.OpUnhold:
			if p.unhold(sc, now) {
				done = true
				s.wake(p, now)
			}
		case sc.kind != 't' || p.task(sc.name, sc.id) != nil:
			h := newHold(sc, c, now)
			if old := p.holds[sc]; c.Op == store.OpProlong && p.held(sc, now) && old.outlasts(&h) {
				continue
			}
			done = true
			p.hold(sc, h, now)
		}
	}
	if !done {
		return store.Effect{}
	}
	return store.Effect{Code: store.EffectDone}
}

func newHold(sc scope, c *store.Command, now store.Millis) hold {
	h := hold{note: slices.Clone(c.Hold)}
	end := c.Until.At
	if end == 0 && c.Until.After > 0 {
		end = now.Add(c.Until.After)
	}
	if end != 0 {
		h.term = &term{end: end, scope: sc, at: -1}
	}
	return h
}

func (p *partition) replay(sub store.Submission, now store.Millis) bool {
	f, dropped, ok := p.remembered(sub.Agent, sub.ID, now)
	if !ok || dropped || f.verb != store.VerbFail || p.task(sub.Agent, sub.ID) != nil {
		return false
	}
	t := p.create(sub, p.ticks(1, now), now)
	if sub.Pulse != nil {
		t.pulse = &pulse{first: now}
	}
	p.counts.Replayed++
	if g := p.join(sub, now); g != nil {
		g.Failed--
	}
	return true
}
