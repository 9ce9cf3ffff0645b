package memstore

// Get, List, Group, Agents, Holds and Stats.

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Get returns tasks of one agent by their ids; see [store.Reader].
// Its bounds are those of the caller: nothing is read in steps here.
func (s *Store) Get(ctx context.Context, q store.Get) (store.Found, error) {
	return read(ctx, s, func(now moment.Millis) (store.Found, error) {
		p := reading{s.partitionOf(q.Agent), now}
		out := store.Found{Now: now}
		for _, id := range q.IDs {
			t := p.stored(q.Agent, id)
			if q.Explain {
				p.explain(&t)
			}
			out.Tasks = append(out.Tasks, t)
		}
		return out, nil
	})
}

// List returns a page of an agent's tasks; see [store.Reader].
func (s *Store) List(ctx context.Context, q store.List) (store.Page, error) {
	return read(ctx, s, func(now moment.Millis) (store.Page, error) {
		page := store.Page{Now: now}
		p := reading{s.partitionOf(q.Agent), now}
		if err := p.walk(q, &page); err != nil {
			return store.Page{}, err
		}
		return page, nil
	})
}

// Group returns the counts of a group; see [store.Reader].
func (s *Store) Group(ctx context.Context, agent, group string) (store.GroupCounts, error) {
	return read(ctx, s, func(now moment.Millis) (store.GroupCounts, error) {
		if g := s.partitionOf(agent).groups[[2]string{agent, group}]; g != nil && (g.over == 0 || g.over > now) {
			return g.GroupCounts, nil
		}
		return store.GroupCounts{}, nil
	})
}

// Agents returns a page of agents, by name; see [store.Reader].
// By name, unlike Redis, whose order is that of a hash: callers rely on no order.
func (s *Store) Agents(ctx context.Context, q store.PageOf) (store.AgentPage, error) {
	return read(ctx, s, func(now moment.Millis) (store.AgentPage, error) { return s.agents(q, now), nil })
}

// Holds returns a page of the holds in force; see [store.Reader].
func (s *Store) Holds(ctx context.Context, q store.PageOf) (store.HoldPage, error) {
	return read(ctx, s, func(now moment.Millis) (store.HoldPage, error) { return s.holds(q, now), nil })
}

// read looks at the store in one step.
// The context is only looked at before: reading takes no time that could be saved.
func read[A any](ctx context.Context, s *Store, look func(now moment.Millis) (A, error)) (A, error) {
	if err := ctx.Err(); err != nil {
		var none A
		return none, &store.Error{Verb: "read", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return look(s.now())
}

// reading is a partition as its readers see it at some time.
type reading struct {
	*partition

	now moment.Millis
}

// stored is one task as a reader sees it: live, finished, or neither.
func (p reading) stored(agent, id string) store.Stored {
	out := store.Stored{Agent: agent, ID: id}
	if a := p.agents[agent]; a != nil && a.tasks[id] != nil {
		t := a.tasks[id]
		out.Kind, out.Level, out.Submitted = t.Kind, t.Level, moment.Millis(t.seq/clockUnit)
		out.Body, out.State, out.Crashes = slices.Clone(t.Body), slices.Clone(t.state), t.crashes
		out.Key, out.Version, out.Holds = t.Key, t.version(), p.holdsOf(t)
		out.Status = store.StatusWaiting
		if t.ending() {
			out.Order = slices.Clone(t.order.note)
		}
		// A task that was held is shown as parked only while the hold lasts.
		out.Parked = t.parked != "" && (t.parked[0] != '@' || len(out.Holds) > 0) // otherwise it is about to be put back
		if t.claim != nil {
			out.Status = store.StatusInProgress
			out.Updated = moment.Millis(t.claim.fence / clockUnit)
		} else {
			out.Due = t.due
			out.Resting = t.dozing()
		}
		if t.pulse != nil {
			out.LastActivity = t.pulse.last
		}
		out.Updated = max(out.Updated, out.Submitted, t.changed, out.LastActivity)
		return out
	}
	if f, dropped, ok := p.records(p.now).remembered(agent, id); ok {
		out.Finished, out.Record, out.Dropped = f.at, slices.Clone(f.data), dropped
		out.Version, out.Updated = f.version(), f.at
		switch f.verb {
		case store.VerbComplete:
			out.Status = store.StatusCompleted
		case store.VerbFail:
			out.Status = store.StatusFailed
		default:
			out.Status = store.StatusCancelled
		}
	}
	return out
}

// describe adds who holds a lease. The first half of a nonce names the process.
func (c *claim) describe(out *store.Stored) {
	out.Lease, out.Fence, out.Holder = c.term.end, c.fence, c.nonce[:min(len(c.nonce), store.NonceLen/2)]
}

// explain adds who holds a task, or how many agents come before its own in the agenda.
func (p reading) explain(out *store.Stored) {
	t := p.task(out.Agent, out.ID)
	switch {
	case t == nil:
	case t.claim != nil:
		t.claim.describe(out)
	default:
		// A task of a serial agent waits for another run of it: for the end of that lease.
		if c := p.serial[t.Agent]; c != nil && c.term.at >= 0 {
			c.describe(out)
		}
		out.Line = p.lineOf(t)
		if t.place().at < 0 {
			return
		}
		for _, s := range p.agenda.items {
			if p.agenda.less(s, t.place()) {
				out.Ahead++
			}
		}
	}
}

// agents is a page of agents, sorted: the cursor is the last name.
func (s *Store) agents(q store.PageOf, now moment.Millis) store.AgentPage {
	var page store.AgentPage
	for _, p := range s.parts {
		for name, a := range p.agents {
			if name <= q.After {
				continue
			}
			st := store.AgentStats{Agent: name, Live: int64(len(a.tasks)), Held: p.held(scope{kind: 'a', name: name}, now)}
			if due, ok := a.next(); ok {
				st.Due = due
			}
			page.Agents = append(page.Agents, st)
		}
	}
	sort.Slice(page.Agents, func(i, j int) bool { return page.Agents[i].Agent < page.Agents[j].Agent })
	if q.Limit > 0 && len(page.Agents) > q.Limit {
		page.Agents = page.Agents[:q.Limit]
		page.Next = page.Agents[q.Limit-1].Agent
	}
	return page
}

// holds is a page of the holds in force, by the names of their targets. A hold that is not about one
// agent is in every partition: the copy in the first one is shown.
func (s *Store) holds(q store.PageOf, now moment.Millis) store.HoldPage {
	var page store.HoldPage
	all := map[string]store.Held{}
	for i, p := range s.parts {
		for sc, h := range p.holds {
			own := sc.kind == 'a' || sc.kind == 't'
			if name := sc.String(); (own || i == 0) && p.held(sc, now) && name > q.After {
				all[name] = store.Held{Target: sc.target(), Since: h.since, Until: h.until(), Note: slices.Clone(h.note)}
			}
		}
	}
	names := slices.Sorted(maps.Keys(all))
	if q.Limit > 0 && len(names) > q.Limit {
		names = names[:q.Limit]
		page.Next = names[q.Limit-1]
	}
	for _, name := range names {
		page.Holds = append(page.Holds, all[name])
	}
	return page
}

// Stats are the counters of all partitions.
// One lock, so that all counters are of the same moment, which Redis does not promise.
func (s *Store) Stats(ctx context.Context) (count.Stats, error) {
	if err := ctx.Err(); err != nil {
		return count.Stats{}, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := count.Stats{Counters: count.Counters{Partitions: len(s.parts)}, Now: s.now()}
	for _, p := range s.parts {
		st.Agents += int64(len(p.agents))
		st.Waiting += p.live - p.running
		st.InProgress += p.running
		for name, k := range p.parked {
			if strings.HasPrefix(name, "@l:") { // in line for a limit: neither paused nor without a handler
				continue
			}
			st.Parked += int64(k.tasks.Len())
			if strings.HasPrefix(name, "@") {
				st.Held += int64(k.tasks.Len())
			}
		}
		st.Completed += p.counts.Completed
		st.Failed += p.counts.Failed
		st.Cancelled += p.counts.Cancelled
		st.Submitted += p.counts.Submitted
		st.Again += p.counts.Again
		st.Released += p.counts.Released
		st.Recovered += p.counts.Recovered
		st.Replayed += p.counts.Replayed
		st.Deleted += p.counts.Deleted
		st.Trimmed += p.counts.Trimmed
		st.LastTrimmed = max(st.LastTrimmed, p.counts.LastTrimmed)
		if a, ok := p.agenda.head(); ok && (st.NextDue == 0 || a.visit < st.NextDue) {
			st.NextDue = a.visit
		}
	}
	st.Kinds = s.kindsOf()
	st.CountResting()
	return st, nil
}
