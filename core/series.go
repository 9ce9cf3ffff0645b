package core

// The series: the shared state of the pulls of a host that pulls again and again, so that none asks for what the one before it knows.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// pace is the least time between the starts of two claims of a series, unless the first was full: tasks that fall due meanwhile
// come with the second, and so do the outcomes of the first.
//
// After a rest the pace does not matter: the first few claims begin at once.
const (
	pace  = 2 * time.Millisecond
	rest  = 10 * pace
	burst = 2
)

// Series ties the pulls of a host together that follow one another, such as those of a daemon: see [Scope.Series]. It knows when
// each partition is due, from claims, looks, settlements and wake-ups, keeps claims apart while much falls due, and
// lets the outcomes of one pull travel with the claim of the next. At most one of its pulls may claim at a time, the others may
// still run what they have claimed. It is safe for concurrent use.
type Series struct {
	s       *Scheduler
	every   time.Duration
	settler settler
	earlier chan struct{} // has room for one signal: a second one would add nothing
	hears   atomic.Bool
	waiting *ahead.Waiting[early]
	urgent  []atomic.Uint64 // urgent tasks that were announced, by partition

	mu        sync.Mutex // also of the outlooks of its pulls
	seen      map[int]*seen
	alarm     store.Millis  // the last result of Next; zero: never
	claimedAt time.Time     // when the last claim began; zero: never
	full      bool          // it brought all that it asked for
	burst     int           // claims that need not wait, as there was a rest before
	settledAt time.Time     // when outcomes were sent last
	moment    time.Duration // how far claims look ahead
	withdrawn time.Time     // when what they had brought was last withdrawn; zero: never
}

// NewSeries makes a series whose pulls look again at a partition that has reported nothing for so long: so they find what no process
// announces, such as the tasks of a process that died.
func (s *Scheduler) NewSeries(every time.Duration) *Series {
	s.alarm.Lives()
	q := &Series{s: s, every: every, earlier: make(chan struct{}, 1), seen: map[int]*seen{}}
	q.settler.s, q.settler.series = s, q
	q.urgent = make([]atomic.Uint64, s.Partitions())
	q.moment = s.config.Ahead
	q.waiting = ahead.NewWaiting(s.config.Clock, q.begin)
	return q
}

// Expect notes that a partition has something due at a time of the store's clock, as a [store.Wakeup] says.
func (q *Series) Expect(partition int, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Of a partition that no pull has aimed at nothing is known, and the first one looks.
	if t := q.seen[partition]; t != nil {
		t.settled = base.Earlier(t.settled, store.MillisOf(due))
		q.noticed(t.settled)
	}
	q.s.slots.Hurry() // a pull that waits for slots has to learn of it
}

// Hurry notes that a partition has a task of level 1 sooner than it had said, as a [store.Wakeup] says: pulls that have slots for these alone ask it
// at once.
func (q *Series) Hurry(partition int) {
	q.urgent[partition].Add(1)
	q.s.slots.Hurry()
}

// urgentNews is how many urgent tasks of a partition were announced.
func (q *Series) urgentNews(partition int) uint64 {
	if q == nil {
		return 0
	}
	return q.urgent[partition].Load()
}

// Forget makes the next pull look at all partitions, as anything may have fallen due.
func (q *Series) Forget() {
	q.mu.Lock()
	q.forget()
	q.mu.Unlock()
	for i := range q.urgent {
		q.Hurry(i)
	}
}

// forget is Forget. The mutex is held.
func (q *Series) forget() {
	for _, t := range q.seen {
		t.asked = time.Time{}
	}
}

// Next is when something is due next, as far as the series knows; the zero time for never. If something falls due before
// that, Earlier signals.
func (q *Series) Next() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarm = q.next()
	return q.alarm.Time()
}

// next is when the first partition is due. The mutex is held.
func (q *Series) next() store.Millis {
	var next store.Millis
	for _, t := range q.seen {
		next = base.Earlier(next, t.due())
	}
	return next
}

// Earlier has a value when something has become due before what Next has returned last.
func (q *Series) Earlier() <-chan struct{} { return q.earlier }

// noticed wakes the host if something is due before what Next last returned. The mutex is held.
func (q *Series) noticed(at store.Millis) {
	if at == 0 || q.alarm != 0 && at >= q.alarm {
		return
	}
	q.alarm = at // one signal is enough
	select {
	case q.earlier <- struct{}{}:
	default:
	}
}

// Pause is how long the next claim has to wait for the sake of the pace; zero or less if it may begin.
func (q *Series) Pause() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pause()
}

// pause is Pause. The mutex is held.
func (q *Series) pause() time.Duration {
	if q.full || q.burst > 0 {
		return 0
	}
	return q.claimedAt.Add(pace).Sub(q.s.config.Clock.Now())
}

// begins notes that a claim begins.
func (q *Series) begins(at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.burst--; at.Sub(q.claimedAt) >= rest {
		q.burst = burst
	}
	q.claimedAt, q.full = at, false
}

// filled notes that a claim has brought all that it asked for, or could not ask every partition: the next one need not wait.
func (q *Series) filled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full = true
}

// hurries reports whether claims follow one another without a pace, as there is more to have.
func (q *Series) hurries() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.full
}

// company reports whether an outcome that waits for the pace would meet others: a claim that begins by then, the outcome of a task that starts
// by then, or, where outcomes were sent just now, those of handlers that still run.
func (q *Series) company() bool {
	now, storeNow := q.s.config.Clock.Now(), q.s.base.StoreNow()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.s.calls.Load() > 0 && now.Sub(q.settledAt) < pace {
		return true
	}
	if first := q.waiting.First(); !first.IsZero() && first.Sub(now) <= pace {
		return true
	}
	next := q.next()
	return next != 0 && next <= storeNow.Add(pace)
}

// sends notes that outcomes are sent.
func (q *Series) sends() {
	at := q.s.config.Clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settledAt = at
}

// of is the state of a partition. The mutex is held.
func (q *Series) of(partition int) *seen {
	t := q.seen[partition]
	if t == nil {
		t = &seen{}
		q.seen[partition] = t
	}
	return t
}

// paced waits until the pace allows another claim, or the pull may claim no more.
func (p *pull) paced() {
	if q := p.scope.Series; q != nil {
		p.pauseFor(q.Pause())
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
	p.pauseFor(wait)
	return !p.over()
}

// pauseFor waits for a while, or until the pull may claim no more.
func (p *pull) pauseFor(d time.Duration) {
	if d <= 0 {
		return
	}
	done := make(chan struct{})
	stop := p.s.config.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
	case <-p.claiming.Done():
	}
}

// maxAge is how old an answer may be from which the pull claims. A pull that other pulls follow knows what becomes due, but where
// work waits for slots it asks as often as any: the agent that has waited longest has the next one.
func (p *pull) maxAge() time.Duration {
	q := p.scope.Series
	if q == nil || p.scope.Agents != nil || p.slots.Full() {
		return lookEvery
	}
	if q.hurries() {
		return lookEvery
	}
	return q.every
}
