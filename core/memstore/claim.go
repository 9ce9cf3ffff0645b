package memstore

// Claim: which tasks are taken back, put back and leased in one step, and when the partition is due next.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// mostRecovered is how many expired leases one step takes back; pages how many times as many agents as tasks may be
// taken it looks at, and tasks it parks, at most. A picky claim looks further: at wide agents a page, and at deep tasks
// of an agent and level.
// They are the bounds of claim.lua, where they keep a script short. Here they only have to be the same,
// so that both stores take the same tasks.
const (
	mostRecovered = 2
	pages         = 4
	wide          = 50
	deep          = 16
)

// Claim leases due tasks; see [store.Queue].
// All requests are one step: the lock is held until the last of them.
func (s *Store) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "claim", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]store.Claim, len(requests))
	// Each reads the clock again, as each is a script of its own in Redis.
	for i := range requests {
		out[i] = s.claim(&requests[i])
	}
	return out, nil
}

// claim answers one request. A task that it brings is stored first; the mutex is held.
func (s *Store) claim(r *store.ClaimRequest) store.Claim {
	p := s.parts[r.Partition]
	if r.New == nil {
		return p.claim(r, s.now())
	}
	brought := []store.Submission{*r.New}
	if err := s.refuses(brought); err != nil {
		return store.Claim{Look: store.Look{Partition: r.Partition, Now: s.now(), Err: err}}
	}
	placed := make([]store.Submitted, 1)
	submitting{p, s.now()}.submitAll(brought, []int{0}, placed)
	out := store.Claim{Look: store.Look{Partition: r.Partition, Now: s.now()}}
	if placed[0].Created {
		own := *r
		own.Agents, own.New = []string{r.New.Agent}, nil
		out = p.claim(&own, s.now())
	}
	out.Submitted = &placed[0]
	return out
}

// claiming is one claim in the making.
// It is used by one call of claim, under the lock of the store.
type claiming struct {
	p     *partition
	r     *store.ClaimRequest
	now   moment.Millis
	picky bool // it may pass over much that is due
	// room is how many tasks may still be taken.
	room   int
	most   map[string]int // of the kinds that are bounded: how many more are taken
	back   load           // put back
	seen   load           // looked at
	unread *visited       // the first agent that others have left no room for its large tasks; nil for none
	// parked counts the tasks that this claim has parked, and left those of
	// kinds that the caller had no time for.
	parked int
	aside  []store.Aside
	left   int
	// suspects is how many tasks may be taken of each sort of those whose processes died; nil for any number. held are those that
	// were left for it.
	suspects *[store.SuspectSorts]int
	held     int
	noticed  int            // leases that are over
	lost     map[string]int // tasks that were taken back, by whose they were
	lease    time.Duration  // of the first task that was taken; zero before
	// got counts the tasks taken of agents whose tasks are looked at one by one.
	got map[*agent]int
	// passed is the place in the agenda up to which a picky claim has looked in
	// vain: the next one begins after it.
	passed     moment.Millis
	passedName string
	queued     moment.Millis // when the first task of level 1 is due, and is not now, of agents that have several and were looked at; zero if there is none
	taken      []*task
	lined      map[*task]bool   // the taken tasks that had to wait for a limit
	crossed    []bound.Crossing // budgets that are used up by the taken tasks
	from       *bucket          // that lets the task go which is looked at
	fromLine   load             // large tasks of lines that were looked at
	turns      []*lane          // those whose turn it is, where the claim has to choose; nil where it has not
	tight      map[*bucket]bool // budgets that had no room for a run of some kind beside those under way
}

// claim is one claim of a partition: it takes back the tasks of dead processes, puts back those that are no
// longer parked or held, visits agents, and leases the tasks that it has taken.
func (p *partition) claim(r *store.ClaimRequest, now moment.Millis) store.Claim {
	// The caller repeats a claim whose answer was lost, and gets the tasks that it has had all along.
	// guard: nonce-in-memory
	if fence, ok := p.nonces[r.Nonce]; ok && r.Limit > 0 {
		return p.repeat(p.claims[fence], r, now)
	}
	c := &claiming{p: p, r: r, now: now, room: r.Limit, most: bounds(r), got: map[*agent]int{}, tight: map[*bucket]bool{}}
	c.picky = r.Urgent || r.Serial || len(r.Leave) > 0 || len(c.most) > 0
	recovered, ended := p.recover(c)
	c.suspect()
	// A limit of 0 only looks; so does a claim while everything is held, or of a caller whose definitions are not stored.
	unstamped := r.Stamp != "" && !slices.Contains(p.stamps, r.Stamp)
	// guard: stamp
	still := r.Limit == 0 || unstamped || p.held(scope{kind: '*'}, now)
	if !still {
		c.unpark()
		c.putBack()
	}
	// After the tasks are back in their queues, so that an agent whose run has died
	// takes its place by its tasks that are due now.
	for _, e := range ended {
		p.free(e.agent, e.claim, now)
	}
	if still {
		out := c.answer(recovered)
		out.Unstamped = unstamped
		return out
	}
	c.serveLines()
	c.visit()
	p.tenants.note(c)
	until := c.goAhead(recovered)
	out := c.answer(recovered)
	out.Ahead = until
	if len(c.taken) == 0 {
		out.UrgentNext = urgentNext(c)
		return out
	}
	if last := c.taken[len(c.taken)-1].due; last > now {
		p.ahead = max(p.ahead, last)
		// guard: ahead-short
		c.lease = min(c.lease, r.AheadLease)
	}
	held := p.lease(c.taken, r, c.lease, now)
	out.Fence, out.Turns = held.fence, c.turns != nil
	for i, t := range c.taken {
		out.Tasks = append(out.Tasks, p.claimed(t, held.fence, i, held.runs[i].due))
		out.Tasks[i].Lined = c.lined[t]
	}
	out.NextDue, out.NextLease, out.AgentsDue = p.nexts(r.Agents, r.Kinds, now)
	return out
}

// bounds are how many tasks of some kinds are taken at most.
// A bound on a kind that is not requested would only make the claim picky.
func bounds(r *store.ClaimRequest) map[string]int {
	most := maps.Clone(r.Most)
	maps.DeleteFunc(most, func(kind string, _ int) bool { return !slices.Contains(r.Kinds, kind) })
	return most
}

// nexts are the next due time of the requested agents, the next end of a lease, and when each of these agents
// is due.
// Millis of zero mean never, for each of them.
func (p *partition) nexts(agents, kinds []string, now moment.Millis) (due, lease moment.Millis, dues []moment.Millis) {
	due, lease = p.next()
	if len(agents) > 0 {
		dues = make([]moment.Millis, len(agents))
	}
	if p.held(scope{kind: '*'}, now) {
		return 0, lease, dues
	}
	if agents == nil {
		if (p.isParked(kinds) || len(p.open) > 0) && (due == 0 || due > now) {
			due = now
		}
		return due, lease, nil
	}
	// Held agents are not distinguished: a look is a hint, and the claim decides.
	due = p.first(agents, dues)
	if (p.isParked(kinds) || len(p.open) > 0) && (due == 0 || due > now) { // parked tasks may be theirs
		due = now
	}
	return due, lease, dues
}

// first fills in when each of some agents is due, and returns the earliest; zero for never.
// Its results may be earlier than the tasks that a claim finds: visit is the place of an agent,
// which may be the time of its last visit.
func (p *partition) first(agents []string, dues []moment.Millis) moment.Millis {
	var due moment.Millis
	for i, name := range agents {
		a := p.agents[name]
		if a == nil {
			continue
		}
		next, ok := a.next()
		if !ok {
			continue
		}
		dues[i] = next
		if due == 0 || next < due {
			due = next
		}
	}
	return due
}

// answer is the claim's answer without its tasks.
func (c *claiming) answer(recovered int) store.Claim {
	out := store.Claim{Look: store.Look{Partition: c.p.index, Now: c.now}, Parked: c.parked, Aside: c.aside, Recovered: recovered, Left: c.left, Noticed: c.noticed, From: c.lost, Suspects: c.held, Crossed: c.crossed}
	// Only if nothing happened at all: the next claim would otherwise skip agents that it has not seen.
	if len(c.taken) == 0 && c.parked == 0 {
		out.Passed, out.PassedName = c.passed, c.passedName
	}
	out.NextDue, out.NextLease, out.AgentsDue = c.p.nexts(c.r.Agents, c.r.Kinds, c.now)
	// Parking changes what is due, which sleeping processes should learn.
	if c.parked > 0 {
		c.p.store.wake(c.p, c.now)
	}
	return out
}

// claimed is a task as a caller gets it. Bytes are copied: callers may change theirs.
func (p *partition) claimed(t *task, fence store.Fence, index int, due moment.Millis) store.Claimed {
	c := store.Claimed{
		Run:  store.Run{Partition: p.index, Fence: fence, Index: index, Agent: t.Agent, ID: t.ID},
		Kind: t.Kind, Level: t.Level, Due: due, Submitted: moment.Millis(t.seq / clockUnit), Crashes: t.crashes,
		Body: slices.Clone(t.Body), State: slices.Clone(t.state), Profile: slices.Clone(p.profiles[t.Agent]),
	}
	// The run was cancelled before it started: its handler is not called, and the settlement records that.
	if t.ending() {
		c.Cancelled, c.Order = true, slices.Clone(t.order.note)
	}
	return c
}

// repeat answers a claim that was made before: with the tasks of it that still run. One that was replaced meanwhile is
// released, as its run has not begun.
// The lease is that of the first answer; it is not extended.
func (p *partition) repeat(c *claim, r *store.ClaimRequest, now moment.Millis) store.Claim {
	for i := range c.runs {
		if t := c.runs[i].task; t != nil && t.order != nil && t.order.op == orderReplace {
			p.giveBack(c, i, now)
		}
	}
	out := store.Claim{Look: store.Look{Partition: p.index, Now: now}, Fence: c.fence}
	out.NextDue, out.NextLease, out.AgentsDue = p.nexts(r.Agents, r.Kinds, now)
	for i := range c.runs {
		if c.runs[i].task != nil {
			out.Tasks = append(out.Tasks, p.claimed(c.runs[i].task, c.fence, i, c.runs[i].due))
		}
	}
	return out
}

// giveBack takes a run out of its claim that has not begun.
// It must not be lost: the task is due at once, for any process.
func (p *partition) giveBack(c *claim, i int, now moment.Millis) {
	t := c.runs[i].task
	c.runs[i] = held{lost: true}
	p.running--
	p.takeBack(t)
	if c.open--; c.open == 0 {
		p.close(c)
	}
	p.free(t.Agent, c, now)
	p.store.announce(p, t.due)
}

// recover takes the tasks of expired leases back, and ends holds whose time has come.
// It is part of every claim, so that no separate process has to watch over leases.
// A lease is given notice first, so that its holder can extend it: the store may have been away when it ended.
func (p *partition) recover(c *claiming) (recovered int, ended []endedRun) {
	now, notice := c.now, c.r.Notice
	dead := 0
	for range openedLooks - 1 {
		t, ok := p.leases.head()
		if !ok || t.end > now {
			break
		}
		// A term without a claim is the end of a hold.
		if t.claim == nil {
			// guard: pause-end
			p.unhold(t.scope, now)
			continue
		}
		if notice > 0 && !t.noticed {
			t.noticed, t.end = true, now.Add(t.notice(notice))
			p.leases.fix(t)
			c.noticed++
			continue
		}
		if dead++; dead > mostRecovered {
			break
		}
		ended = append(ended, c.takeBackAll(t)...)
		p.close(t.claim)
	}
	p.running -= int64(len(ended))
	p.counts.Recovered += int64(len(ended))
	return len(ended), ended
}

// takeBackAll takes the tasks back of a lease that is over, and notes whose they were.
func (c *claiming) takeBackAll(t *term) []endedRun {
	var ended []endedRun
	for i := range t.claim.runs {
		task := t.claim.runs[i].task
		if task == nil {
			continue
		}
		ended = append(ended, endedRun{task.Agent, t.claim})
		if c.lost == nil {
			c.lost = map[string]int{}
		}
		c.lost[t.claim.nonce[:min(len(t.claim.nonce), store.NonceLen/2)]]++
		if !t.leaving {
			c.p.crashed(task, t.claim.fence)
		}
		c.p.takeBack(task)
		t.claim.runs[i] = held{lost: true}
	}
	return ended
}

// endedRun is a run that has died: the agent of its task, and the claim that had it.
type endedRun struct {
	agent string
	claim *claim
}

// takeBack puts a task whose run has died back into its queue; if it was replaced meanwhile, as the new one.
// The run may have been cancelled meanwhile: then that order stays, and the next claim ends the task.
func (p *partition) takeBack(t *task) {
	p.stats(t.Kind).Running--
	p.unuse(t, p.store.now(), false)
	if o := t.order; o != nil && o.op == orderHand {
		o.op = orderRun
	} else if o != nil && o.op == orderReplace {
		p.unwait(t)
		t.order, t.state, t.due = nil, o.note, o.due
		p.cleared(t)
	}
	t.changed = p.store.now()
	p.place(t, t.due)
}

// unpark puts parked tasks of the requested kinds back into their queues:
// about as many in all as may be taken, and at least one of each kind, so that a kind
// with many cannot keep another one parked.
func (c *claiming) unpark() {
	var there []*parking
	for _, name := range c.r.Kinds {
		if k := c.p.parked[name]; k != nil && k.tasks.Len() > 0 {
			there = append(there, k)
		}
	}
	for _, k := range there {
		c.putBackOf(k, max(1, c.r.Limit/len(there)))
	}
}

// putBackOf puts some of the tasks parked at a place back, until there is a large task and this claim has put enough of them back.
// The rest stays parked, and the next claim continues.
func (c *claiming) putBackOf(k *parking, most int) {
	for range most {
		t, ok := k.tasks.head()
		if !ok || !c.back.fits(t) {
			return
		}
		k.tasks.pop()
		c.p.place(t, t.due)
	}
}

// load bounds the large tasks that a claim looks at: see store.ClaimBytes.
// Small tasks weigh nothing: their number is bounded by the limit of the claim.
type load struct{ kib int }

// fits adds a task, unless it is large and enough of them were added.
func (l *load) fits(t *task) bool {
	kib := weight(len(t.Body))
	if kib > 0 && l.kib >= store.ClaimBytes>>10 {
		return false
	}
	l.kib += kib
	return true
}

// lease puts tasks under a lease.
// The fence is larger than every one that the caller has seen: see store.ClaimRequest.Fence.
func (p *partition) lease(tasks []*task, r *store.ClaimRequest, lease time.Duration, now moment.Millis) *claim {
	p.clock = max(p.clock, int64(r.Fence))
	c := &claim{fence: store.Fence(p.ticks(1, now)), nonce: r.Nonce, open: len(tasks)}
	c.term = &term{end: now.Add(lease), claim: c, at: -1}
	for _, t := range tasks {
		t.claim = c
		if t.lost != nil {
			t.lost.claimed = true
		}
		p.stats(t.Kind).Running++
		c.runs = append(c.runs, held{task: t, due: t.due})
	}
	p.claims[c.fence], p.nonces[c.nonce] = c, c.fence
	for _, t := range tasks {
		// The agent has a run now, so its other tasks wait outside the agenda until free.
		if r.Serial {
			p.serial[t.Agent] = c
		}
	}
	p.leases.add(c.term)
	p.running += int64(len(tasks))
	return c
}
