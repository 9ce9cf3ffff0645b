package memstore

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core"
)

// Submit stores new tasks; see [core.Store].
func (s *Store) Submit(ctx context.Context, tasks []core.Submission) ([]core.Placed, error) {
	if err := ctx.Err(); err != nil {
		return nil, &core.StoreError{Verb: "submit", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.room(tasks); err != nil {
		return nil, err
	}
	now := s.now()
	out := make([]core.Placed, len(tasks))
	byPartition := map[*partition][]int{}
	for i := range tasks {
		p := s.partitionOf(tasks[i].Agent)
		byPartition[p] = append(byPartition[p], i)
	}
	for _, p := range s.parts {
		members := byPartition[p]
		if len(members) == 0 {
			continue
		}
		first := p.ticks(len(members), now)
		var earliest core.Millis
		for k, i := range members {
			out[i] = p.submit(tasks[i], first+int64(k), now)
			if due := out[i].Due; due != 0 && (earliest == 0 || due < earliest) {
				earliest = due
			}
		}
		if earliest != 0 {
			s.announce(p, earliest)
		}
	}
	return out, nil
}

// room refuses tasks of an agent that would have too many.
func (s *Store) room(tasks []core.Submission) error {
	more := map[string]int{}
	now := s.now()
	for i := range tasks {
		t := &tasks[i]
		p := s.partitionOf(t.Agent)
		if p.known(t.Agent, t.ID, now) {
			continue
		}
		live := 0
		if a := p.agents[t.Agent]; a != nil {
			live = len(a.tasks)
		}
		if live+more[t.Agent] >= s.config.MaxTasks {
			return &core.LimitError{Agent: t.Agent, Limit: s.config.MaxTasks}
		}
		more[t.Agent]++
	}
	return nil
}

// known reports whether a task is live, or finished and still remembered.
func (p *partition) known(agent, id string, now core.Millis) bool {
	if a := p.agents[agent]; a != nil && a.tasks[id] != nil {
		return true
	}
	_, ok := p.remembered(agent, id, now)
	return ok
}

func (p *partition) remembered(agent, id string, now core.Millis) (finished, bool) {
	h := p.finished[agent]
	if h == nil {
		return finished{}, false
	}
	f, ok := h.records[id]
	return f, ok && f.at > now.Add(-p.store.config.Retention)
}

func (p *partition) submit(sub core.Submission, seq int64, now core.Millis) core.Placed {
	if p.known(sub.Agent, sub.ID, now) {
		return core.Placed{}
	}
	due := max(sub.Due.At, now) // nobody gets ahead of others by a time long past
	if sub.Due.At == 0 {
		due = now.Add(max(sub.Due.After, 0))
	}
	p.create(sub, seq, due)
	p.counts.Submitted++
	if g := p.group(sub.Agent, sub.Group, now); g != nil {
		g.Live++
		g.over = 0
	}
	return core.Placed{Created: true, Due: due}
}

// create adds a live task that waits.
func (p *partition) create(sub core.Submission, seq int64, due core.Millis) {
	a := p.agent(sub.Agent)
	t := &task{Submission: sub, agent: a, seq: seq, at: -1}
	a.many = len(a.tasks) > 0 || a.many
	a.tasks[sub.ID] = t
	p.place(t, due)
	p.live++
}
