package memstore

// Settle: how a task ends or continues whose run has ended.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Settle ends runs; see [store.Store].
// Each settlement is judged by itself: one that is stale does not stop the others.
func (s *Store) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "settle", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]store.Settled, len(runs))
	ended := make([]*claim, len(runs))
	for i := range runs {
		out[i], ended[i] = s.parts[runs[i].Partition].settle(&runs[i], now)
	}
	// Last of all, as the outcomes of the tasks, of the others of the call too, decide when an agent is due.
	for i, c := range ended {
		if c != nil && s.parts[runs[i].Partition].free(runs[i].Agent, c, now) {
			out[i].Freed = true
		}
	}
	// Trimmed after all have been recorded, so that the newest of this call count as well.
	for i := range runs {
		s.parts[runs[i].Partition].records(now).trim(runs[i].Agent)
	}
	return out, nil
}

// Turn ends runs and leases due tasks; see [store.Queue]. In one process nothing is saved by doing both at once.
func (s *Store) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

// settle ends one run, if its fence and its place show that it still holds the task. It returns the claim of one that has ended now.
func (p *partition) settle(r *store.Settlement, now moment.Millis) (store.Settled, *claim) {
	c := p.claims[r.Fence]
	// The claim is unknown, or has lost the task: another run may have begun.
	// guard: fence
	if c == nil || r.Index < 0 || r.Index >= len(c.runs) || c.runs[r.Index].lost {
		return store.Settled{Err: store.ErrLeaseLost}, nil
	}
	t := c.runs[r.Index].task
	// The answer to the first settle was lost. The second learns that
	// all is well, and changes nothing.
	if t == nil {
		return store.Settled{}, nil // settled before
	}
	// A reference that does not fit its claim comes from a caller's mistake,
	// and must not settle another task.
	if t.Agent != r.Agent || t.ID != r.ID {
		return store.Settled{Err: store.ErrLeaseLost}, nil
	}
	if err := t.refuses(r); err != nil {
		return store.Settled{Err: err}, nil
	}
	c.runs[r.Index].task = nil
	c.open--
	p.running--
	p.stats(t.Kind).Running--
	had, freed := p.unuse(t, now, true)
	if c.open == 0 {
		p.close(c)
	}
	if r.Tally != nil {
		p.count(r.Tally, now)
	}
	var out store.Settled
	switch r.Verb {
	case store.VerbAgain, store.VerbRelease, store.VerbRest:
		out.Due = p.again(t, r, now)
	default:
		p.finish(t, r, now)
	}
	out.Freed, out.Crossed = freed, out.Crossed.Add(p.afterRun(had, t, r, now)...)
	return out, c
}

// again makes a task wait for its next run, and returns when that is.
func (p *partition) again(t *task, r *store.Settlement, now moment.Millis) moment.Millis {
	when := r.DueAgain()
	due := when.At
	if due == 0 {
		due = now.Add(when.After)
	}
	if r.State != nil {
		t.state = slices.Clone(r.State)
		if r.Verb != store.VerbRelease && !r.Unrun {
			// A run that was released has shown nothing about the task, so its crashes still count.
			p.cleared(t)
		}
	}
	if r.Verb == store.VerbRelease {
		p.counts.Released++
	} else {
		p.counts.Again++
	}
	if s := (scope{kind: 't', name: t.Agent, id: t.ID}); r.Hold != nil && (!p.held(s, now) || p.holds[s].term != nil) {
		// A pause without an end that an operator has made stays unchanged.
		p.hold(s, hold{since: p.begun(now), note: slices.Clone(r.Hold)}, now, true)
	}
	if r.Floor != nil && t.pulse != nil {
		due = p.pulsed(t, r, due, now)
	}
	told := p.awaits(t, r.Await, now)
	// After everything else: an order outweighs the outcome of the run.
	due = p.ordered(t, r.Verb, due, now)
	if told {
		due = min(due, now)
	}
	t.changed = changedBy(r, now)
	p.place(t, due)
	// guard: quiet-in-memory
	if !r.Quiet {
		p.store.announce(p, due)
	}
	return due
}

// changedBy is when a settlement has changed its task; zero if the state records it.
func changedBy(r *store.Settlement, now moment.Millis) moment.Millis {
	if r.Verb == store.VerbAgain && r.State != nil && !r.Unrun {
		return 0
	}
	return now
}

// finish records the end of a live task and takes it out of everything that counts live tasks.
func (p *partition) finish(t *task, r *store.Settlement, now moment.Millis) {
	t.claim = nil
	p.drop(t)
	p.records(now).remember(t.Agent, t.ID, finished{verb: r.Verb, at: now, data: slices.Clone(r.Record)})
	g := p.leave(t.Agent, t.Group, now)
	switch r.Verb {
	case store.VerbComplete:
		p.counts.Completed++
		// guard: group
		g.Completed++
	case store.VerbFail:
		p.counts.Failed++
		g.Failed++
	default:
		p.counts.Cancelled++
		g.Cancelled++
	}
}

// leave takes a live task out of its group, which is over once nothing in it is live.
func (p *partition) leave(agent, name string, now moment.Millis) *group {
	// A task without a group gets one that is thrown away, so that callers can count in any case.
	g := p.group(agent, name, now)
	if g == nil {
		return &group{}
	}
	g.Live--
	if g.Live <= 0 {
		g.over = now.Add(p.store.config.Retention)
	}
	return g
}
