package horizon

// What the pulls of a series know together: when each partition is due, when they claimed and settled last, and how far ahead they look.

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Pace is the least time between the starts of two claims of a series, unless the first was full: tasks that fall due meanwhile
// come with the second, and so do the outcomes of the first.
//
// After a rest the pace does not matter: the first few claims begin at once.
const (
	Pace  = 2 * time.Millisecond
	rest  = 10 * Pace
	burst = 2
)

const (
	// fewAhead and manyAhead are how many tasks a claim brings for which the moment becomes longer, and shorter.
	fewAhead, manyAhead = 40, 96
	// shortestAhead is the shortest moment.
	shortestAhead = 5 * time.Millisecond
	// noneAhead is how long nothing is claimed ahead of its time once something was withdrawn.
	noneAhead = time.Second
)

// Series is what the pulls of a host that follow one another know together. It is safe for concurrent use.
type Series struct {
	of      *Partitions
	slots   *slots.Slots  // of the process
	others  func() int    // how many there are
	ahead   time.Duration // the longest moment
	earlier chan struct{} // has room for one signal: a second one would add nothing
	hears   atomic.Bool
	urgent  []atomic.Uint64 // urgent tasks that were announced, by partition

	mu        sync.Mutex // also of the outlooks of its pulls
	seen      map[int]*seen
	alarm     moment.Millis // the last result of Next; zero: never
	claimedAt time.Time     // when the last claim began; zero: never
	full      bool          // it brought all that it asked for
	burst     int           // claims that need not wait, as there was a rest before
	settledAt time.Time     // when outcomes were sent last
	moment    time.Duration // how far claims look ahead
	withdrawn time.Time     // when what they had brought was last withdrawn; zero: never
}

// NewSeries makes a series of a process with some slots, beside as many others as are known, whose claims look ahead for so long at most.
func NewSeries(of *Partitions, s *slots.Slots, others func() int, ahead time.Duration) *Series {
	return &Series{
		of: of, slots: s, others: others, ahead: ahead, moment: ahead, earlier: make(chan struct{}, 1), seen: map[int]*seen{}, urgent: make([]atomic.Uint64, of.Base.Store.Partitions()),
	}
}

// Expect notes that a partition has something due at a time.
func (q *Series) Expect(partition int, due moment.Millis) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// Of a partition that no pull has aimed at nothing is known, and the first one looks.
	if t := q.seen[partition]; t != nil {
		t.settled = base.Earlier(t.settled, due)
		q.noticed(t.asks())
	}
}

// Urgent notes that a partition has a task of level 1 sooner than it had said.
func (q *Series) Urgent(partition int) { q.urgent[partition].Add(1) }

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
	defer q.mu.Unlock()
	q.forget()
}

// forget is Forget. The mutex is held.
func (q *Series) forget() {
	for _, t := range q.seen {
		t.asked = time.Time{}
	}
}

// Next is when something is due next, as far as the series knows; zero for never. If something falls due before
// that, Earlier signals.
func (q *Series) Next() moment.Millis {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarm = q.next()
	return q.alarm
}

// next is when the first partition is due. The mutex is held.
func (q *Series) next() moment.Millis {
	var next moment.Millis
	for _, t := range q.seen {
		next = base.Earlier(next, t.asks())
	}
	return next
}

// Earlier has a value when something has become due before what Next has returned last.
func (q *Series) Earlier() <-chan struct{} { return q.earlier }

// noticed wakes the host if something is due before what Next last returned. The mutex is held.
func (q *Series) noticed(at moment.Millis) {
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
	if q.full || q.burst > 0 {
		return 0
	}
	return q.claimedAt.Add(Pace).Sub(q.of.Base.Config.Clock.Now())
}

// Begins notes that a claim begins.
func (q *Series) Begins(at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.burst--; at.Sub(q.claimedAt) >= rest {
		q.burst = burst
	}
	q.claimedAt, q.full = at, false
}

// Filled notes that a claim has brought all that it asked for, or could not ask every partition: the next one need not wait.
func (q *Series) Filled() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full = true
}

// Hurries reports whether claims follow one another without a pace, as there is more to have.
func (q *Series) Hurries() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.full
}

// Company reports whether an outcome that waits for the pace would meet others: a claim that begins by then, the outcome of a task that starts
// by then, the first of which does so at a time, or, where outcomes were sent just now, those of handlers, of which so many still run.
func (q *Series) Company(running *atomic.Int64, first func() time.Time) bool {
	now, storeNow := q.of.Base.Config.Clock.Now(), q.of.Base.StoreNow()
	q.mu.Lock()
	defer q.mu.Unlock()
	if running.Load() > 0 && now.Sub(q.settledAt) < Pace {
		return true
	}
	if at := first(); !at.IsZero() && at.Sub(now) <= Pace {
		return true
	}
	next := q.next()
	return next != 0 && next <= storeNow.Add(Pace)
}

// Sends notes that outcomes are sent.
func (q *Series) Sends() {
	at := q.of.Base.Config.Clock.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settledAt = at
}

// state is the state of a partition. The mutex is held.
func (q *Series) state(partition int) *seen {
	t := q.seen[partition]
	if t == nil {
		t = &seen{series: q}
		q.seen[partition] = t
	}
	return t
}

// SetHears says whether the host gets the wake-ups of the store.
func (q *Series) SetHears(hears bool) { q.hears.Store(hears) }

// Hears reports whether it does.
func (q *Series) Hears() bool { return q.hears.Load() }

// Withdraws notes that what was claimed ahead of its time is withdrawn.
func (q *Series) Withdraws() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.withdrawn = q.of.Base.Config.Clock.Now()
}

// WithdrawnSince reports whether something was withdrawn at a time or after it.
func (q *Series) WithdrawnSince(at time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.withdrawn.IsZero() && !q.withdrawn.Before(at)
}

// Ahead is how far ahead of its time a claim may look: not at all for a while after something was withdrawn.
func (q *Series) Ahead() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.withdrawn.IsZero() && q.of.Base.Config.Clock.Now().Sub(q.withdrawn) < noneAhead {
		return 0
	}
	return q.moment
}

// UntilClaim is how long it is until a claim is to be expected that takes outcomes along; false if none is within the moment.
func (q *Series) UntilClaim() (time.Duration, bool) {
	storeNow := q.of.Base.StoreNow()
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.next()
	wait := next.Sub(storeNow)
	return max(wait, 0), next != 0 && wait <= q.moment+q.moment/4
}

// Brought notes how many tasks a claim has brought: the more there are, the shorter is the moment for which they are claimed together.
func (q *Series) Brought(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case n >= manyAhead:
		q.moment = max(q.moment/2, min(shortestAhead, q.ahead))
	case n < fewAhead:
		q.moment = min(q.moment*2, q.ahead)
	}
}
