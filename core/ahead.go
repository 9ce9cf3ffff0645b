package core

// Ahead: tasks that a series claims shortly before they are due, so that one claim serves all that fall due within a moment. They start
// at their time by the store's clock.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/store"
)

const (
	// aheadLease is how long tasks are held that were claimed ahead of their time: so long, and half of it for the notice, they are late if
	// their process dies. Those that run are held for longer from the next heartbeat on.
	aheadLease = time.Second
	// aheadOfSlot is how many tasks are claimed ahead of their time for each free slot: most runs are over soon.
	aheadOfSlot = 4
	// fewAhead and manyAhead are how many tasks a claim brings for which the moment becomes longer, and shorter.
	fewAhead, manyAhead = 20, 48
	// shortestAhead is the shortest moment.
	shortestAhead = 5 * time.Millisecond
	// noneAhead is how long nothing is claimed ahead of its time once something was withdrawn.
	noneAhead = time.Second
)

// early are tasks of an agent that wait for their time.
type early struct {
	pull  *pull
	tasks []Claimed // of one agent, and due at the same time
	begin time.Time // by our clock
}

// delay is how long the outcome of a run may wait for a claim that takes it along.
type delay uint8

const (
	atOnce         delay = iota // hardly at all
	ifDueAgain                  // until the next claim, if all that it says is that the task is due again: no one waits for that
	untilNextClaim              // so is any end of a task that had its time
)

// delayOf is the delay of the outcomes of tasks that were due when they were claimed: where claims look ahead the next one comes soon.
func delayOf(c *store.Claim) delay {
	if c.Ahead != 0 {
		return ifDueAgain
	}
	return atOnce
}

// Hears says whether the host gets the wake-ups of the store. A series claims nothing ahead of its time while it does not: a command in
// between would not reach it. What waits for its time is given back when the host hears no more.
func (q *Series) Hears(hears bool) {
	q.hears.Store(hears)
	if !hears {
		q.Withdraw(-1)
	}
}

// Withdraw gives back what was claimed ahead of its time in a partition and has not begun, or in all of them if that is negative: see
// [store.Withdrawn].
func (q *Series) Withdraw(partition int) {
	taken := q.waiting.Take(func(e *early) bool { return partition < 0 || e.tasks[0].Partition == partition })
	q.mu.Lock()
	q.withdrawn = q.s.config.Clock.Now()
	q.mu.Unlock()
	for i := range taken {
		// guard: ahead-not-withdrawn
		taken[i].giveBack()
	}
}

// giveBack releases tasks that have not begun: they are charged nothing, and due at their time.
func (e *early) giveBack() { e.pull.releaseAll(e.tasks) }

// leave gives back what waits of a pull that is to claim no more, and stores the outcomes that wait for another claim.
func (q *Series) leave(p *pull) {
	taken := q.waiting.Take(func(e *early) bool { return e.pull == p })
	for i := range taken {
		taken[i].giveBack()
	}
	q.settler.flush()
}

// begin starts tasks whose time has come.
func (q *Series) begin(all []early) {
	now := q.s.config.Clock.Now()
	for i := range all {
		if e := &all[i]; now.Sub(e.begin) <= ahead.StartWithin {
			e.start()
		} else {
			e.giveBack()
		}
	}
	for i := range all {
		if i == 0 || all[i].pull != all[i-1].pull {
			all[i].pull.startUnwaited()
		}
	}
}

// start starts the tasks for which there are slots. They had none while they waited, so that others found one.
func (e *early) start() {
	s, n := e.pull.s.slots, 0
	for n < len(e.tasks) {
		g := s.Spare(e.tasks[n].Kind)
		if g.N == 0 || g.Urgent {
			s.Keep(g, nil)
			break
		}
		s.Keep(g, e.tasks[n:n+1])
		n++
	}
	if n > 0 {
		e.pull.tick(e.tasks[0].Agent, e.tasks[:n], untilNextClaim)
	}
	if e.tasks = e.tasks[n:]; len(e.tasks) > 0 {
		e.giveBack()
	}
}

// aheadFor is how far ahead of its time a pull may claim. Where slots are scarce or runs of an agent come one after the other that is
// nothing: what waits would keep others from running.
func (q *Series) aheadFor(p *pull) time.Duration {
	if q == nil || p.scope.Agents != nil || !q.hears.Load() || p.serial() || !p.end.IsZero() || p.slots.Scarce() {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.withdrawn.IsZero() && q.s.config.Clock.Now().Sub(q.withdrawn) < noneAhead {
		return 0
	}
	return q.moment
}

// untilClaim is how long it is until a claim will have begun that takes outcomes along; zero if none is to be expected within the moment.
func (q *Series) untilClaim() time.Duration {
	storeNow := q.s.base.StoreNow()
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.next()
	if wait := next.Sub(storeNow); next != 0 && wait <= q.moment+q.moment/4 {
		return max(wait, 0) + settleAfter
	}
	return 0
}

// brought notes how many tasks a claim has brought: the more there are, the shorter is the moment for which they are claimed together.
func (q *Series) brought(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case n >= manyAhead:
		q.moment = max(q.moment/2, min(shortestAhead, q.s.config.Ahead))
	case n < fewAhead:
		q.moment = min(q.moment*2, q.s.config.Ahead)
	}
}

// observe learns the clock of the target's server from an answer.
func (t *target) observe(c *store.Claim, sent, received time.Time) {
	if c.Err == nil {
		t.clock.Observe(c.Now, sent, received)
	}
}

// noteAhead notes which claims have tasks ahead of their time although they do not say that they have looked ahead: the answer to a claim that was
// repeated, as its first one was lost, is about the tasks alone.
func noteAhead(requests []store.ClaimRequest, claims []store.Claim) {
	for i := range claims {
		c := &claims[i]
		// guard: ahead-repeated
		if n := len(c.Tasks); requests[i].Ahead > 0 && n > 0 && c.Tasks[n-1].Due > c.Now {
			c.Ahead = max(c.Ahead, c.Tasks[n-1].Due)
		}
	}
}

// dueOf are the tasks of a claim that are due.
func dueOf(c *store.Claim) []Claimed {
	n := len(c.Tasks)
	for c.Ahead != 0 && n > 0 && c.Tasks[n-1].Due > c.Now {
		n--
	}
	return c.Tasks[:n]
}

// await lets the tasks of an agent that are not due yet wait for their times, and returns the others.
// A command that came while the claim was under way may be about them: then they are given back.
func (q *Series) await(p *pull, c *store.Claim, t *target, tasks []Claimed, sent time.Time) []Claimed {
	now := len(dueOf(&store.Claim{Look: c.Look, Ahead: c.Ahead, Tasks: tasks}))
	if now == len(tasks) {
		return tasks
	}
	q.mu.Lock()
	late := !q.withdrawn.IsZero() && !q.withdrawn.Before(sent)
	q.mu.Unlock()
	if late {
		p.releaseAll(tasks[now:])
		return tasks[:now]
	}
	for start := now; start < len(tasks); {
		end := start + 1
		for end < len(tasks) && tasks[end].Due == tasks[start].Due {
			end++
		}
		begin := t.clock.Reaches(tasks[start].Due)
		q.waiting.Add(begin, early{pull: p, tasks: tasks[start:end], begin: begin})
		start = end
	}
	return tasks[:now]
}
