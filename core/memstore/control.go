package memstore

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core"
)

// Control carries out an operator's commands; see [core.Store].
func (s *Store) Control(ctx context.Context, commands []core.Command) ([]core.Placed, error) {
	if err := ctx.Err(); err != nil {
		return nil, &core.StoreError{Verb: "control", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]core.Placed, len(commands))
	for i := range commands {
		p := s.partitionOf(commands[i].Agent)
		if p.replay(commands[i].Submission, now) {
			out[i] = core.Placed{Created: true, Due: now}
			s.announce(p, now)
		}
	}
	return out, nil
}

func (p *partition) replay(sub core.Submission, now core.Millis) bool {
	h := p.finished[sub.Agent]
	if h == nil {
		return false
	}
	f, ok := h.records[sub.ID]
	if a := p.agents[sub.Agent]; !ok || f.verb != core.VerbFail || a != nil && a.tasks[sub.ID] != nil {
		return false
	}
	delete(h.records, sub.ID)
	if !h.many {
		delete(p.finished, sub.Agent)
	}
	p.create(sub, p.ticks(1, now), now)
	p.counts.Replayed++
	if g := p.group(sub.Agent, sub.Group, now); g != nil {
		g.Live++
		g.Failed--
		g.over = 0
	}
	return true
}
