package memstore

import (
	"context"
	"slices"
	"sort"

	"github.com/seed-6f6f2c11/duly/core"
)

// mostRecovered is how many expired leases one step takes back; pages how many times as many agents as tasks may be
// taken it looks at, and tasks it parks, at most.
const (
	mostRecovered = 2
	pages         = 4
)

// Claim leases due tasks; see [core.Store].
func (s *Store) Claim(ctx context.Context, requests []core.ClaimRequest) ([]core.Claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, &core.StoreError{Verb: "claim", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	look := true
	for i := range requests {
		look = look && requests[i].Limit == 0
	}
	out := make([]core.Claim, len(requests))
	for i := range requests {
		p := s.parts[requests[i].Partition]
		if look {
			out[i] = p.look(&requests[i], s.now())
		} else {
			out[i] = p.claim(&requests[i], s.now())
		}
	}
	return out, nil
}

// look says when the partition is due next; a parked task of a kind that is asked for is due now.
func (p *partition) look(r *core.ClaimRequest, now core.Millis) core.Claim {
	due, lease := p.next()
	switch {
	case p.held(scope{kind: '*'}, now):
		due = 0
	case p.isParked(r.Kinds) || len(p.open) > 0:
		if due == 0 || due > now {
			due = now
		}
	}
	if due == 0 || lease != 0 && lease < due {
		due = lease
	}
	return core.Claim{Partition: p.index, Now: now, NextDue: due}
}

// claiming is one claim in the making.
type claiming struct {
	p      *partition
	r      *core.ClaimRequest
	now    core.Millis
	room   int
	parked int
	taken  []*task
}

func (p *partition) claim(r *core.ClaimRequest, now core.Millis) core.Claim {
	if fence, ok := p.nonces[r.Nonce]; ok && r.Limit > 0 {
		return p.repeat(p.claims[fence], r, now)
	}
	c := &claiming{p: p, r: r, now: now, room: r.Limit}
	recovered := p.recover(now)
	if r.Limit == 0 || p.held(scope{kind: '*'}, now) {
		return c.answer(recovered)
	}
	c.unpark()
	p.putBack(r.Limit)
	c.visit()
	out := c.answer(recovered)
	if len(c.taken) == 0 {
		return out
	}
	held := p.lease(c.taken, r, now)
	out.Fence = held.fence
	for i, t := range c.taken {
		out.Tasks = append(out.Tasks, p.claimed(t, held.fence, i, held.runs[i].due))
	}
	out.NextDue, out.NextLease = p.nexts(r, now)
	return out
}

// nexts are the next due time of the agents that were asked for, and the next end of a lease.
func (p *partition) nexts(r *core.ClaimRequest, now core.Millis) (due, lease core.Millis) {
	due, lease = p.next()
	if p.held(scope{kind: '*'}, now) {
		return 0, lease
	}
	if r.Agents == nil {
		if len(p.open) > 0 && (due == 0 || due > now) {
			due = now
		}
		return due, lease
	}
	due = 0
	for _, name := range r.Agents {
		if a := p.agents[name]; a != nil && a.at >= 0 && (due == 0 || a.visit < due) {
			due = a.visit
		}
	}
	if (p.isParked(r.Kinds) || len(p.open) > 0) && (due == 0 || due > now) { // what is still parked may be theirs
		due = now
	}
	return due, lease
}

func (c *claiming) answer(recovered int) core.Claim {
	out := core.Claim{Partition: c.p.index, Now: c.now, Parked: c.parked, Recovered: recovered}
	out.NextDue, out.NextLease = c.p.nexts(c.r, c.now)
	if c.parked > 0 {
		c.p.store.wake(c.p, c.now)
	}
	return out
}

func (p *partition) claimed(t *task, fence core.Fence, index int, due core.Millis) core.Claimed {
	c := core.Claimed{
		Run:  core.Run{Partition: p.index, Fence: fence, Index: index, Agent: t.Agent, ID: t.ID},
		Kind: t.Kind, Level: t.Level, Due: due, Submitted: core.Millis(t.seq / clockUnit), Crashes: t.crashes,
		Body: slices.Clone(t.Body), State: slices.Clone(t.state),
	}
	if t.order != nil && t.order.op == orderCancel {
		c.Cancelled, c.Order = true, slices.Clone(t.order.note)
	}
	return c
}

// repeat answers a claim that was made before: with the tasks of it that still run.
func (p *partition) repeat(c *claim, r *core.ClaimRequest, now core.Millis) core.Claim {
	out := core.Claim{Partition: p.index, Now: now, Fence: c.fence}
	out.NextDue, out.NextLease = p.nexts(r, now)
	for i := range c.runs {
		if c.runs[i].task != nil {
			out.Tasks = append(out.Tasks, p.claimed(c.runs[i].task, c.fence, i, c.runs[i].due))
		}
	}
	return out
}

// recover takes the tasks of expired leases back, and ends holds whose time has come.
func (p *partition) recover(now core.Millis) int {
	recovered := 0
	for range mostRecovered {
		t, ok := p.leases.head()
		if !ok || t.end > now {
			break
		}
		if t.claim == nil {
			p.unhold(t.scope, now)
			continue
		}
		for i := range t.claim.runs {
			if t.claim.runs[i].task != nil {
				p.takeBack(t.claim.runs[i].task)
				t.claim.runs[i] = held{lost: true}
				recovered++
			}
		}
		p.close(t.claim)
	}
	p.running -= int64(recovered)
	p.counts.Recovered += int64(recovered)
	return recovered
}

// takeBack puts a task whose run has died back into its queue; if it was replaced meanwhile, as the new one.
func (p *partition) takeBack(t *task) {
	p.stats(t.Kind).Running--
	t.crashes = min(t.crashes+1, 255)
	if o := t.order; o != nil && o.op == orderHand {
		o.op = orderRun
	} else if o != nil && o.op == orderReplace {
		t.order, t.crashes, t.state, t.due = nil, 0, o.note, o.due
	}
	p.place(t, t.due)
}

// unpark puts parked tasks of the kinds that are asked for back.
func (c *claiming) unpark() {
	for _, name := range c.r.Kinds {
		k := c.p.parked[name]
		for n := 0; k != nil && k.tasks.Len() > 0 && n < c.r.Limit; n++ {
			t := k.tasks.pop()
			c.p.place(t, t.due)
		}
	}
}

// agents are the agents to visit, those that have waited longest first.
func (c *claiming) agents() []*agent {
	var due []*agent
	if c.r.Agents == nil {
		for len(due) < pages*c.r.Limit {
			a, ok := c.p.agenda.head()
			if !ok || a.visit > c.now {
				break
			}
			due = append(due, c.p.agenda.pop())
		}
		for _, a := range due {
			c.p.agenda.add(a)
		}
		return due
	}
	for _, name := range c.r.Agents {
		if a := c.p.agents[name]; a != nil && a.at >= 0 && a.visit <= c.now {
			due = append(due, a)
		}
	}
	sort.Slice(due, func(i, j int) bool { return c.p.agenda.less(due[i], due[j]) })
	return due[:min(len(due), pages*c.r.Limit)]
}

// visit takes one task from each agent with a single one, and shares from the others, round by round.
func (c *claiming) visit() {
	var many []*visited
	turns := 0
	for _, a := range c.agents() {
		if turns == c.r.Limit {
			break
		}
		if a.many {
			many = append(many, &visited{agent: a})
			turns++
			continue
		}
		// An agent whose only task is to be left where it is takes nobody's turn.
		if t := a.only(); c.consider(t) {
			a.levels[t.Level-1].remove(t)
			c.settleIn(t)
			c.p.agenda.remove(a)
			turns++
		}
	}
	visiting := many
	for c.room > 0 && len(visiting) > 0 && c.parked < pages*c.r.Limit {
		visiting = c.round(visiting)
	}
	for _, v := range many {
		first, ok := v.earliest()
		if !ok {
			c.p.agenda.remove(v.agent)
			continue
		}
		v.visit = max(first, c.now)
		c.p.agenda.fix(v.agent)
	}
}

type visited struct {
	*agent
	got int
}

func (a *agent) only() *task {
	for _, t := range a.tasks {
		return t
	}
	return nil
}

// consider reports whether a due task leaves the queue: it is taken, or parked because nobody asks for its kind.
func (c *claiming) consider(t *task) bool { return !slices.Contains(c.r.Leave, t.Kind) }

func (c *claiming) settleIn(t *task) bool {
	name := ""
	if s, ok := c.p.holdOf(t, c.now); ok && (t.order == nil || t.order.op != orderRun) {
		name = s.parking()
	} else if !slices.Contains(c.r.Kinds, t.Kind) {
		name = t.Kind
	}
	if name != "" {
		c.p.park(t, name)
		c.parked++
		return false
	}
	if t.order != nil && t.order.op == orderRun {
		t.order.op = orderHand
	}
	c.taken = append(c.taken, t)
	c.room--
	return true
}

// round takes an equal share from each agent and returns those that may have more.
func (c *claiming) round(visiting []*visited) []*visited {
	share := max(1, c.room/len(visiting))
	type choice struct {
		from  *visited
		tasks []*task
		want  int
	}
	var choices []choice
	chosen := 0
	for _, v := range visiting {
		want := min(share, c.room-chosen)
		if c.r.PerAgent > 0 {
			want = min(want, c.r.PerAgent-v.got)
		}
		tasks := v.first(want, c.now)
		chosen += len(tasks)
		choices = append(choices, choice{from: v, tasks: tasks, want: want})
	}
	if chosen == 0 {
		return nil
	}
	var again []*visited
	for _, ch := range choices {
		if c.serve(ch.from, ch.tasks) && ch.want > 0 && len(ch.tasks) >= ch.want {
			again = append(again, ch.from)
		}
	}
	return again
}

// serve takes or parks an agent's chosen tasks. It reports whether none had to be left where it is.
func (c *claiming) serve(v *visited, tasks []*task) bool {
	all := true
	for _, t := range tasks {
		if !c.consider(t) {
			all = false
			continue
		}
		v.levels[t.Level-1].remove(t)
		if c.settleIn(t) {
			v.got++
		}
	}
	return all
}

// first are the first due tasks of an agent in the order in which they run: by level, then due time, then submit. A
// task that is overdue by core.RaiseAfter counts as level 1.
func (v *visited) first(want int, now core.Millis) []*task {
	if want <= 0 {
		return nil
	}
	raised := now.Add(-core.RaiseAfter)
	level := func(t *task) core.Level {
		if t.due <= raised {
			return core.LevelHigh
		}
		return t.Level
	}
	var due []*task
	for _, q := range v.levels {
		n := 0
		for n < want {
			t, ok := q.head()
			if !ok || t.due > now {
				break
			}
			due = append(due, q.pop())
			n++
		}
	}
	for _, t := range due {
		v.levels[t.Level-1].add(t)
	}
	sort.SliceStable(due, func(i, j int) bool {
		a, b := due[i], due[j]
		if level(a) != level(b) {
			return level(a) < level(b)
		}
		return before(a, b)
	})
	return due[:min(len(due), want)]
}

// lease puts tasks under a lease.
func (p *partition) lease(tasks []*task, r *core.ClaimRequest, now core.Millis) *claim {
	c := &claim{fence: core.Fence(p.ticks(1, now)), nonce: r.Nonce, open: len(tasks)}
	c.term = &term{end: now.Add(r.Lease), claim: c, at: -1}
	for _, t := range tasks {
		t.claim = c
		p.stats(t.Kind).Running++
		c.runs = append(c.runs, held{task: t, due: t.due})
	}
	p.claims[c.fence], p.nonces[c.nonce] = c, c.fence
	p.leases.add(c.term)
	p.running += int64(len(tasks))
	return c
}
