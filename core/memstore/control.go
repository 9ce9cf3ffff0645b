package memstore

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
)

// Control carries out an operator's commands; see [core.Store].
func (s *Store) Control(ctx context.Context, commands []core.Command) ([]core.Effect, error) {
	if err := ctx.Err(); err != nil {
		return nil, &core.StoreError{Verb: "control", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]core.Effect, len(commands))
	for i := range commands {
		out[i] = s.obey(&commands[i], now)
	}
	return out, nil
}

func (s *Store) obey(c *core.Command, now core.Millis) core.Effect {
	p := s.partitionOf(c.Agent)
	switch c.Op {
	case core.OpReplay:
		if !p.replay(c.Submission, now) {
			return core.Effect{}
		}
		s.announce(p, now)
		return core.Effect{Code: core.EffectDone, Due: now}
	case core.OpRun:
		return p.run(c, now)
	case core.OpCancel:
		return p.cancel(c, now)
	case core.OpDelete:
		return p.erase(c, now)
	case core.OpAudit:
		return s.parts[c.Audit.Partition].audit(now)
	default:
		return s.holdOrNot(c, now)
	}
}

// holdOrNot begins or ends a hold, in each partition that its scope is about.
func (s *Store) holdOrNot(c *core.Command, now core.Millis) core.Effect {
	parts := s.parts
	if c.Scope.Agent != "" {
		parts = []*partition{s.partitionOf(c.Scope.Agent)}
	}
	sc := scopeOf(c.Scope)
	var done bool
	for _, p := range parts {
		switch {
		case c.Op == core.OpUnhold:
			if p.unhold(sc, now) {
				done = true
				s.wake(p, now)
			}
		case sc.kind != 't' || p.task(sc.name, sc.id) != nil:
			h := newHold(sc, c, now)
			if old := p.holds[sc]; c.Op == core.OpProlong && p.held(sc, now) && old.outlasts(&h) {
				continue
			}
			done = true
			p.hold(sc, h, now)
		}
	}
	if !done {
		return core.Effect{}
	}
	return core.Effect{Code: core.EffectDone}
}

func newHold(sc scope, c *core.Command, now core.Millis) hold {
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

func (p *partition) replay(sub core.Submission, now core.Millis) bool {
	f, dropped, ok := p.remembered(sub.Agent, sub.ID, now)
	if !ok || dropped || f.verb != core.VerbFail || p.task(sub.Agent, sub.ID) != nil {
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
