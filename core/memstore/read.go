package memstore

import (
	"context"
	"slices"
	"sort"

	"github.com/seed-6f6f2c11/duly/core"
)

// Read returns tasks of one agent; see [core.Store].
func (s *Store) Read(ctx context.Context, q core.Query) (core.Page, error) {
	if err := ctx.Err(); err != nil {
		return core.Page{}, &core.StoreError{Verb: "read", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partitionOf(q.Agent)
	page := core.Page{Now: s.now()}
	if g := p.groups[[2]string{q.Agent, q.Group}]; g != nil && (g.over == 0 || g.over > page.Now) {
		page.Group = g.GroupCounts
	}
	if q.IDs != nil {
		for _, id := range q.IDs {
			page.Tasks = append(page.Tasks, p.stored(q.Agent, id, page.Now))
		}
		return page, nil
	}
	for _, id := range p.ids(q.Agent, page.Now) {
		t := p.stored(q.Agent, id, page.Now)
		if id <= q.After || q.Statuses != nil && !slices.Contains(q.Statuses, t.Status) {
			continue
		}
		if len(page.Tasks) == q.Limit {
			page.More = true
			break
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page, nil
}

// ids are the ids of an agent's tasks, sorted.
func (p *partition) ids(name string, now core.Millis) []string {
	var ids []string
	a := p.agents[name]
	if a != nil {
		for id := range a.tasks {
			ids = append(ids, id)
		}
	}
	if h := p.finished[name]; h != nil {
		for id := range h.records {
			if _, ok := p.remembered(name, id, now); ok && (a == nil || a.tasks[id] == nil) {
				ids = append(ids, id)
			}
		}
	}
	sort.Strings(ids)
	return ids
}

func (p *partition) stored(agent, id string, now core.Millis) core.Stored {
	out := core.Stored{Agent: agent, ID: id}
	if a := p.agents[agent]; a != nil && a.tasks[id] != nil {
		t := a.tasks[id]
		out.Kind, out.Level, out.Submitted = t.Kind, t.Level, core.Millis(t.seq/clockUnit)
		out.Body, out.State, out.Crashes = slices.Clone(t.Body), slices.Clone(t.state), t.crashes
		out.Status, out.Parked = core.StatusWaiting, t.parked
		if t.claim != nil {
			out.Status = core.StatusInProgress
		} else {
			out.Due = t.due
		}
		return out
	}
	if f, ok := p.remembered(agent, id, now); ok {
		out.Finished, out.Record = f.at, slices.Clone(f.data)
		switch f.verb {
		case core.VerbComplete:
			out.Status = core.StatusCompleted
		case core.VerbFail:
			out.Status = core.StatusFailed
		default:
			out.Status = core.StatusCancelled
		}
	}
	return out
}

// Stats are the counters of all partitions.
func (s *Store) Stats(ctx context.Context) (core.Stats, error) {
	if err := ctx.Err(); err != nil {
		return core.Stats{}, &core.StoreError{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := core.Stats{Now: s.now(), Partitions: len(s.parts)}
	for _, p := range s.parts {
		st.Agents += int64(len(p.agents))
		st.Waiting += p.live - p.running
		st.InProgress += p.running
		for _, k := range p.parked {
			st.Parked += int64(k.tasks.Len())
		}
		st.Completed += p.counts.Completed
		st.Failed += p.counts.Failed
		st.Cancelled += p.counts.Cancelled
		st.Submitted += p.counts.Submitted
		st.Again += p.counts.Again
		st.Released += p.counts.Released
		st.Recovered += p.counts.Recovered
		st.Replayed += p.counts.Replayed
		st.Trimmed += p.counts.Trimmed
		if a, ok := p.agenda.head(); ok && (st.NextDue == 0 || a.visit < st.NextDue) {
			st.NextDue = a.visit
		}
	}
	return st, nil
}
