package horizon

// The outlook of a pull: which of its partitions are due, which are next, and which did not answer.

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Outlook is what a pull knows of its partitions: from looks, claims and settlements.
type Outlook struct {
	of      *Partitions
	mu      *sync.Mutex // the series', if there is one
	series  *Series     // nil for a pull that no pull follows, and one that names agents
	targets []*Target
	byIndex map[int]*Target
	agents  int           // named in them
	roused  bool          // a run has ended since the pull has looked what is ready
	lingers chan struct{} // closed when one does; nil unless the pull waits for that

	someAway  atomic.Bool    // some partitions may be
	recovered atomic.Int64   // partitions that have come back while it ran
	probes    sync.WaitGroup // questions to those that are away
}

// Aim makes the targets of a pull: the partitions of some agents, or, if these are nil, some partitions, or all. The pulls of a series share what they know unless
// they name agents.
func (o *Outlook) Aim(of *Partitions, series *Series, agents []string, some []int) {
	o.of, o.byIndex, o.mu = of, map[int]*Target{}, new(sync.Mutex)
	defer o.skipAway()
	partitions := of.Base.Store.Partitions()
	if agents != nil {
		o.add(agents, partitions)
		return
	}
	if o.series = series; series != nil {
		o.mu = &series.mu
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	all := some
	if all == nil {
		all = make([]int, partitions)
		for i := range all {
			all[i] = i
		}
	}
	for _, i := range all {
		o.target(i)
	}
}

// AimAtNothing leaves no partition to ask: the pull runs tasks that were claimed elsewhere.
func (o *Outlook) AimAtNothing() {
	o.mu = new(sync.Mutex)
	o.series, o.targets, o.byIndex, o.agents = nil, nil, nil, 0
}

// Each calls f for each of some targets, while nothing of what is known changes.
func (o *Outlook) Each(targets []*Target, f func(i int, t *Target)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, t := range targets {
		f(i, t)
	}
}

// Follows reports whether another pull of its series follows that knows what this one does.
func (o *Outlook) Follows() bool { return o.series != nil }

// Empty reports whether no partition is asked.
func (o *Outlook) Empty() bool { return len(o.targets) == 0 }

// Join adds the agents that have joined the pull, and removes those that have left it. It names no more agents than two calls may: while more have something
// due, others wait until some have not.
func (o *Outlook) Join(most int, join func() (in, out []string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.agents >= most {
		o.drop(o.of.Base.StoreNow())
	}
	if o.agents >= 2*most {
		return
	}
	in, out := join()
	partitions := o.of.Base.Store.Partitions()
	o.remove(out, partitions)
	o.add(in, partitions)
}

// add adds agents to those that the pull takes tasks of, and wants them to be asked for.
func (o *Outlook) add(agents []string, partitions int) {
	for _, agent := range agents {
		t := o.target(store.PartitionOf(agent, partitions))
		if t.dues == nil {
			t.dues = map[string]moment.Millis{}
		}
		if _, known := t.dues[agent]; !known {
			t.Agents = append(t.Agents, agent)
			o.agents++
		}
		// Old answers of the partition were about other agents, so it counts as never asked.
		t.dues[agent], t.asked = longAgo, time.Time{}
	}
}

// AsksFor reports whether the pull takes tasks of an agent, which a claim of a partition has brought.
func (o *Outlook) AsksFor(agent string, partition int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.byIndex[partition]
	if t == nil || t.dues == nil {
		return t != nil
	}
	_, named := t.dues[agent]
	return named
}

// remove takes agents out.
func (o *Outlook) remove(agents []string, partitions int) {
	for _, agent := range agents {
		t := o.byIndex[store.PartitionOf(agent, partitions)]
		if t == nil {
			continue
		}
		if _, known := t.dues[agent]; known {
			delete(t.dues, agent)
			t.Agents = slices.DeleteFunc(t.Agents, func(a string) bool { return a == agent })
			o.agents--
		}
	}
}

// drop forgets agents that have nothing due, so that a pull that never ends and that others join can continue.
func (o *Outlook) drop(now moment.Millis) {
	for _, t := range o.targets {
		t.Agents = slices.DeleteFunc(t.Agents, func(agent string) bool {
			at := t.dues[agent]
			if at != 0 && at <= now {
				return false
			}
			delete(t.dues, agent)
			o.agents--
			return true
		})
	}
}

// target is what the pull knows of a partition; still empty for a new one.
func (o *Outlook) target(partition int) *Target {
	t := o.byIndex[partition]
	if t == nil {
		t = &Target{Partition: partition}
		if o.series != nil {
			t.seen = o.series.state(partition)
		} else {
			t.seen = &seen{}
		}
		o.byIndex[partition] = t
		o.targets = append(o.targets, t)
	}
	return t
}

// Ready are the targets that are due and may have something for this pull, those that have waited longest first; and the
// time from which on more may be ready that are due but had nothing, zero if there are none.
func (o *Outlook) Ready(news uint64) (due []*Target, again time.Time) {
	return o.readyAt(o.of.Base.Config.Clock.Now(), o.of.Base.StoreNow(), news)
}

// readyAt is Ready at a time.
func (o *Outlook) readyAt(now time.Time, storeNow moment.Millis, news uint64) (due []*Target, again time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.roused = false
	for _, t := range o.targets {
		at := t.asks()
		switch {
		case t.away != nil || !t.room && (at == 0 || at > storeNow && !t.overdue):
		case !t.room && now.Before(t.aside):
			again = sooner(again, t.aside)
		case now.Before(t.emptyUntil) && (t.because == 0 || t.because == news):
			// Only tasks that wait for slots are worth another look in this pull; those left for lack of
			// time are not.
			if t.because != 0 {
				again = sooner(again, t.emptyUntil)
			}
		default:
			due = append(due, t)
		}
	}
	turns := takeTurns(due)
	sort.SliceStable(due, func(i, k int) bool { return due[i].place(turns) < due[k].place(turns) })
	return due, again
}

// sooner is the earlier of two times, the first of which may be none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// InTurns reports whether tenants take turns in some target.
func (o *Outlook) InTurns(due []*Target) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return takeTurns(due)
}

// Next is when the first target is due, as far as is known.
func (o *Outlook) Next() moment.Millis {
	o.mu.Lock()
	defer o.mu.Unlock()
	var next moment.Millis
	for _, t := range o.targets {
		// A target that was never asked is due long ago for ready, but that is no time to report.
		if !t.asked.IsZero() {
			next = base.Earlier(next, t.due())
		}
	}
	return next
}

// fallsDue is when the first target falls due that is not now; zero if none does.
func (o *Outlook) fallsDue(now moment.Millis) (first moment.Millis) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.targets {
		if at := t.due(); at > now && t.away == nil {
			first = base.Earlier(first, at)
		}
	}
	return first
}

// Unknown reports whether some target has not answered, or whether none has.
func (o *Outlook) Unknown() (some, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all = len(o.targets) > 0
	for _, t := range o.targets {
		if t.asked.IsZero() || t.away != nil {
			some = true
		} else {
			all = false
		}
	}
	return some, all
}

// Forget notes that nothing is known any more.
func (o *Outlook) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.targets {
		t.asked = time.Time{}
	}
}

// Missed is what the pull could not do: how many tasks it left for lack of time, as far as it saw, and which partitions
// were away, also as an error.
func (o *Outlook) Missed() (left int, away []int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.targets {
		left += t.left
		if t.away != nil {
			// guard: away-is-named
			away, err = append(away, t.Partition), cmp.Or(err, t.away)
		}
	}
	slices.Sort(away)
	// Where all are away the call has failed as a whole, with an error of its own.
	if len(away) == 0 || len(away) == len(o.targets) {
		return left, nil, nil
	}
	return left, away, &model.AwayError{Partitions: away, Err: err}
}

// Old are the targets whose last answer is older than an age, and those whose claims find nothing though it said they would. In a
// series targets that soon will be are included, so that one look serves all. Named agents that were never asked for are worth a
// claim at once.
func (o *Outlook) Old(now time.Time, storeNow moment.Millis, age time.Duration) []*Target {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.olderThan(now, storeNow, age)
	if len(old) > 0 && o.series != nil {
		old = o.olderThan(now, storeNow, age/2)
	}
	return old
}

// olderThan is old for one age. The mutex is held.
func (o *Outlook) olderThan(now time.Time, storeNow moment.Millis, age time.Duration) []*Target {
	var old []*Target
	for _, t := range o.targets {
		aged := t.asked.IsZero() && t.Agents == nil || !t.asked.IsZero() && now.Sub(t.asked) >= age
		at := t.asks()
		doubted := t.lost && !t.looked && at != 0 && at <= storeNow
		if t.away == nil && (aged || doubted) {
			old = append(old, t)
		}
	}
	return old
}

// Settle notes that a task of a partition is due at a time.
func (o *Outlook) Settle(partition int, at moment.Millis) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The earliest is kept, never replaced by a later one: the next answer corrects it, but nothing would
	// correct an overlooked task.
	if t := o.byIndex[partition]; t != nil && at != 0 {
		t.settled = base.Earlier(t.settled, at)
		if o.series != nil {
			o.series.noticed(t.asks())
		}
	}
}

// Freed notes that the end of a run has made room in a partition for what was due in it, under a limit or beside its agent, or that its own task
// is due at once: after any earlier claim, and any that is under way, another one is worth it, unless too little time is
// left.
func (o *Outlook) Freed(partition int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.byIndex[partition]
	if t == nil {
		return
	}
	t.room = true
	if t.because == 0 && t.left == 0 {
		t.emptyUntil = time.Time{}
	}
}

// Asking notes that targets are asked now: the answer includes all settlements so far; those that come while it
// is under way are kept.
func (o *Outlook) Asking(targets []*Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range targets {
		t.settled, t.room = 0, false
	}
}

// Linger is closed when a run ends; it is now if one has since the pull has looked what is ready.
func (o *Outlook) Linger() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := make(chan struct{})
	if o.lingers = news; o.roused {
		close(news)
		o.lingers = nil
	}
	return news
}

// Rouse ends the wait of a pull that lingers, as a run has ended, which may have made something due, or room for it.
func (o *Outlook) Rouse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.roused = true
	if o.lingers != nil {
		close(o.lingers)
		o.lingers = nil
	}
}
