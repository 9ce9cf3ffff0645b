package core

// The series: the shared state of the pulls of a host that pulls again and again, so that none asks for what the one before it knows. Its claims bring tasks
// shortly before they are due, so that one claim serves all that fall due within a moment: they start at their time by the store's clock.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

const (
	// aheadLease is how long tasks are held that were claimed ahead of their time: so long, and half of it for the notice, they are late if
	// their process dies. Those that run are held for longer from the next heartbeat on.
	aheadLease = time.Second
	// aheadOfSlot is how many tasks are claimed ahead of their time for each free slot: most runs are over soon.
	aheadOfSlot = 4
)

// Series ties the pulls of a host together that follow one another, such as those of a daemon: see [Scope.Series]. It knows when
// each partition is due, from claims, looks, settlements and wake-ups, keeps claims apart while much falls due, and
// lets the outcomes of one pull travel with the claim of the next. At most one of its pulls may claim at a time, the others may
// still run what they have claimed. It is safe for concurrent use.
type Series struct {
	s       *Scheduler
	every   time.Duration
	settler settler
	waiting *ahead.Waiting[early]
	known   *horizon.Series
}

// horizon is what the pulls of the series know; nil for that of no series.
func (q *Series) horizon() *horizon.Series {
	if q == nil {
		return nil
	}
	return q.known
}

// Expect notes that a partition has something due at a time of the store's clock, as a [store.Wakeup] says.
func (q *Series) Expect(partition int, due time.Time) {
	q.known.Expect(partition, moment.Of(due))
	q.s.slots.Hurry() // a pull that waits for slots has to learn of it
}

// Hurry notes that a partition has a task of level 1 sooner than it had said, as a [store.Wakeup] says: pulls that have slots for these alone ask it
// at once.
func (q *Series) Hurry(partition int) {
	q.known.Urgent(partition)
	q.s.slots.Hurry()
}

// Forget makes the next pull look at all partitions, as anything may have fallen due.
func (q *Series) Forget() {
	q.known.Forget()
	for i := range q.s.Partitions() {
		q.Hurry(i)
	}
}

// Next is when something is due next, as far as the series knows; the zero time for never. If something falls due before
// that, Earlier signals.
func (q *Series) Next() time.Time { return q.known.Next().Time() }

// Earlier has a value when something has become due before what Next has returned last.
func (q *Series) Earlier() <-chan struct{} { return q.known.Earlier() }

// Pause is how long the next claim has to wait for the sake of the pace; zero or less if it may begin.
func (q *Series) Pause() time.Duration { return q.known.Pause() }

// paced waits until the pace allows another claim, or the pull may claim no more.
func (p *pull) paced() {
	if q := p.scope.Series; q != nil {
		lingerFor(p, q.Pause(), nil)
	}
}

// waitsForDue waits for tasks that fall due before the pace would allow the next pull to claim anyway, and reports whether there are
// any: a pull that begins costs more than one that waits.
func (p *pull) waitsForDue() bool {
	q := p.scope.Series
	if q == nil || p.over() || p.left == 0 {
		return false
	}
	wait := q.Pause()
	next, now := p.outlook.Next(), p.s.base.StoreNow()
	if wait <= 0 || next <= now || next > now.Add(wait) { // what is due already is not for this pull, or it would have claimed it
		return false
	}
	lingerFor(p, wait, nil)
	return !p.over()
}

// maxAge is how old an answer may be from which the pull claims. A pull that other pulls follow knows what becomes due, but where
// work waits for slots it asks as often as any: the agent that has waited longest has the next one.
func (p *pull) maxAge() time.Duration {
	q := p.scope.Series
	if q == nil || p.scope.Agents != nil || p.slots.Full() {
		return lookEvery
	}
	if q.known.Hurries() {
		return lookEvery
	}
	return q.every
}

// early are tasks of an agent that wait for their time.
type early struct {
	pull  *pull
	tasks []Claimed // of one agent, and due at the same time
	begin time.Time // by our clock
}

// delay is how long the outcome of a run may wait for a claim that takes it along, or for those of runs that begin within the moment.
type delay uint8

const (
	atOnce     delay = iota // hardly at all
	ifDueAgain              // for others, if all that it says is that the task is due again: no one waits for that
	forOthers               // so is any end of a task that had its time
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
	q.known.SetHears(hears)
	if !hears {
		q.Withdraw(-1)
	}
}

// Withdraw gives back what was claimed ahead of its time in a partition and has not begun, or in all of them if that is negative: see
// [store.Withdrawn].
func (q *Series) Withdraw(partition int) {
	taken := q.waiting.Take(func(e *early) bool { return partition < 0 || e.tasks[0].Partition == partition })
	q.known.Withdraws()
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
	growStack()
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
			all[i].pull.batches.startUnwaited()
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
		e.pull.tick(e.tasks[0].Agent, e.tasks[:n], forOthers)
	}
	if e.tasks = e.tasks[n:]; len(e.tasks) > 0 {
		e.giveBack()
	}
}

// aheadFor is how far ahead of its time a pull may claim. Where slots are scarce or runs of an agent come one after the other that is
// nothing: what waits would keep others from running.
func (q *Series) aheadFor(p *pull) time.Duration {
	if q == nil || p.scope.Agents != nil || !q.known.Hears() || p.Serial() || !p.End.IsZero() || p.slots.Scarce() {
		return 0
	}
	return q.known.Ahead()
}

// untilOthers is how long it is until a claim will have begun that takes outcomes along, or if none is to be expected within the moment, until
// all has begun that was claimed ahead of its time: most of that ends soon, and its outcomes go with those that wait. Zero for neither.
func (q *Series) untilOthers() time.Duration {
	if wait, soon := q.known.UntilClaim(); soon {
		return wait + settleAfter
	}
	// guard: ahead-together
	if last := q.waiting.Last(); !last.IsZero() {
		return max(last.Sub(q.s.config.Clock.Now()), 0) + settleAfter
	}
	return 0
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
func (q *Series) await(p *pull, c *store.Claim, t *horizon.Target, tasks []Claimed, sent time.Time) []Claimed {
	now := len(dueOf(&store.Claim{Look: c.Look, Ahead: c.Ahead, Tasks: tasks}))
	if now == len(tasks) {
		return tasks
	}
	if q.known.WithdrawnSince(sent) {
		p.releaseAll(tasks[now:])
		return tasks[:now]
	}
	for start := now; start < len(tasks); {
		end := start + 1
		for end < len(tasks) && tasks[end].Due == tasks[start].Due {
			end++
		}
		begin := t.Reaches(tasks[start].Due)
		q.waiting.Add(begin, early{pull: p, tasks: tasks[start:end], begin: begin})
		start = end
	}
	return tasks[:now]
}
