package core

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/search"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A pull never works from one old look: what it knows of a partition is at most lookEvery old when it fills a slot, so
// that the slot goes to the agent that has waited longest, in any partition.
const lookEvery = search.Every

// target is a partition that the pull takes tasks from, and its known state.
type target struct {
	partition int
	agents    []string                // nil for all
	dues      map[string]store.Millis // of agents: when each is due next, by the last answer

	*seen

	away   error // why it did not answer last time
	looked bool  // this pull has looked at it, rather than claimed from it

	room       bool          // it is due regardless of the clock: a run has made room in it since it was asked last
	left       int           // tasks that it was seen to leave for lack of time
	nextSort   time.Duration // until another sort of these has its turn
	suspected  time.Time     // when a claim last left tasks whose last runs died with their process
	rest       search.Search // of claims that leave some kinds
	urgent     search.Urgent // of claims for urgent tasks
	emptyUntil time.Time     // until when nothing in it is for this pull, by the last claim
	because    uint64        // if not zero: unless slots have come free since, see slots.news
}

// seen is the last answer of a partition, and the news since. The pulls of a series share it.
type seen struct {
	asked   time.Time    // when the last answer was requested; zero: never
	next    store.Millis // when it is due next, by the last answer
	settled store.Millis // when the earliest of the tasks is due that were settled or announced since
	atNow   bool         // it answered that something was due at that very moment, or later
	// overdue reports that next was over when it answered, by its own clock: the clock of another partition, or of an answer that was long under
	// way, may be behind it, and then nothing would seem to be due.
	overdue bool
	clock   ahead.Clock  // of its server
	served  store.Millis // when a claim has last brought something of it
	turns   bool         // tenants took turns then: its place among partitions does not follow from when it is due
	doubted bool         // the last claim found nothing, as if others were faster: a look costs them and us less
}

// suspects reports whether claims have left tasks lately whose last runs died with their process. A search that has passed them sees none.
func (t *target) suspects(now time.Time) bool {
	return !t.suspected.IsZero() && now.Sub(t.suspected) < slots.SuspectsLinger
}

// due is when something is due in the partition, as far as is known.
func (s *seen) due() store.Millis { return base.Earlier(s.next, s.settled) }

// place is its place among partitions that are due, those first that come first. Where tenants take turns partitions do, too: what is due in one for
// longest is of the tenant that has most, so that by age alone another one, in another partition, would wait behind all of it.
func (t *target) place(turns bool) store.Millis {
	// guard: partitions-in-turn
	if turns {
		return max(t.due(), t.served)
	}
	return t.due()
}

// urgentFrom is when it is worth asking it for urgent tasks.
func (t *target) urgentFrom(q *Series) time.Time {
	return t.urgent.From(q != nil && q.hears.Load(), q.urgentNews(t.partition))
}

// takeTurns reports whether tenants take turns in some target. The mutex is held.
func takeTurns(targets []*target) bool {
	return slices.ContainsFunc(targets, func(t *target) bool { return t.turns })
}

// outlook is what a pull knows of its partitions: from looks, claims and settlements.
type outlook struct {
	mu      *sync.Mutex // the series', if there is one
	series  *Series     // nil for a pull that no pull follows, and one that names agents
	targets []*target
	byIndex map[int]*target
	agents  int           // named in them
	roused  bool          // a run has ended since the pull has looked what is ready
	lingers chan struct{} // closed when one does; nil unless the pull waits for that
}

// aim makes the targets of a scope.
func (o *outlook) aim(scope *Scope, partitions int) {
	o.byIndex = map[int]*target{}
	o.mu = new(sync.Mutex)
	if scope.Agents != nil {
		o.add(scope.Agents, partitions)
		return
	}
	if o.series = scope.Series; o.series != nil {
		o.mu = &o.series.mu
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	all := scope.Partitions
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

// add adds agents to those that the pull takes tasks of, and wants them to be asked for.
func (o *outlook) add(agents []string, partitions int) {
	for _, agent := range agents {
		t := o.target(store.PartitionOf(agent, partitions))
		if t.dues == nil {
			t.dues = map[string]store.Millis{}
		}
		if _, known := t.dues[agent]; !known {
			t.agents = append(t.agents, agent)
			o.agents++
		}
		// Old answers of the partition were about other agents, so it counts as never asked.
		t.dues[agent], t.asked = longAgo, time.Time{}
	}
}

// asksFor reports whether the pull takes tasks of an agent, which a claim of a partition has brought.
func (o *outlook) asksFor(agent string, partition int) bool {
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
func (o *outlook) remove(agents []string, partitions int) {
	for _, agent := range agents {
		t := o.byIndex[store.PartitionOf(agent, partitions)]
		if t == nil {
			continue
		}
		if _, known := t.dues[agent]; known {
			delete(t.dues, agent)
			t.agents = slices.DeleteFunc(t.agents, func(a string) bool { return a == agent })
			o.agents--
		}
	}
}

// longAgo is when an agent is due that is to be asked for in any case.
const longAgo store.Millis = 1

// drop forgets agents that have nothing due, so that a pull that never ends and that others join can continue.
func (o *outlook) drop(now store.Millis) {
	for _, t := range o.targets {
		t.agents = slices.DeleteFunc(t.agents, func(agent string) bool {
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
func (o *outlook) target(partition int) *target {
	t := o.byIndex[partition]
	if t == nil {
		t = &target{partition: partition}
		if o.series != nil {
			t.seen = o.series.of(partition)
		} else {
			t.seen = &seen{}
		}
		o.byIndex[partition] = t
		o.targets = append(o.targets, t)
	}
	return t
}

// due is when the target is due; long ago if it has never been asked.
func (t *target) due() store.Millis {
	if t.asked.IsZero() && t.agents != nil {
		return longAgo
	}
	return t.seen.due()
}

// ready are the targets that are due and may have something for this pull, those that have waited longest first; and the
// time from which on more may be ready that are due but had nothing, zero if there are none.
func (o *outlook) ready(now time.Time, storeNow store.Millis, news uint64) (due []*target, again time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.roused = false
	for _, t := range o.targets {
		at := t.due()
		switch {
		case t.away != nil || !t.room && (at == 0 || at > storeNow && !t.overdue):
		case now.Before(t.emptyUntil) && (t.because == 0 || t.because == news):
			// Only tasks that wait for slots are worth another look in this pull; those left for lack of
			// time are not.
			if t.because != 0 && (again.IsZero() || t.emptyUntil.Before(again)) {
				again = t.emptyUntil
			}
		default:
			due = append(due, t)
		}
	}
	turns := takeTurns(due)
	sort.SliceStable(due, func(i, k int) bool { return due[i].place(turns) < due[k].place(turns) })
	return due, again
}

// inTurns reports whether tenants take turns in some target.
func (o *outlook) inTurns(due []*target) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return takeTurns(due)
}

// Next is when the first target is due, as far as is known.
func (o *outlook) Next() store.Millis {
	o.mu.Lock()
	defer o.mu.Unlock()
	var next store.Millis
	for _, t := range o.targets {
		// A target that was never asked is due long ago for ready, but that is no time to report.
		if !t.asked.IsZero() {
			next = base.Earlier(next, t.due())
		}
	}
	return next
}

// fallsDue is when the first target falls due that is not now; zero if none does.
func (o *outlook) fallsDue(now store.Millis) (first store.Millis) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.targets {
		if at := t.due(); at > now && t.away == nil {
			first = base.Earlier(first, at)
		}
	}
	return first
}

// unknown reports whether some target has not answered, or whether none has.
func (o *outlook) unknown() (some, all bool) {
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

// forget notes that nothing is known any more.
func (o *outlook) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.targets {
		t.asked = time.Time{}
	}
}

// missed is what the pull could not do: how many tasks it left for lack of time, as far as it saw, and which partitions
// were away, also as an error.
func (o *outlook) missed() (left int, away []int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.targets {
		left += t.left
		if t.away != nil {
			// guard: away-is-named
			away, err = append(away, t.partition), cmp.Or(err, t.away)
		}
	}
	slices.Sort(away)
	// Where all are away the call has failed as a whole, with an error of its own.
	if len(away) == 0 || len(away) == len(o.targets) {
		return left, nil, nil
	}
	return left, away, &AwayError{Partitions: away, Err: err}
}

// old are the targets whose last answer is older than an age, and those whose claims find nothing though it said they would. In a
// series targets that soon will be are included, so that one look serves all. Named agents that were never asked for are worth a
// claim at once.
func (o *outlook) old(now time.Time, storeNow store.Millis, age time.Duration) []*target {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.olderThan(now, storeNow, age)
	if len(old) > 0 && o.series != nil {
		old = o.olderThan(now, storeNow, age/2)
	}
	return old
}

// olderThan is old for one age. The mutex is held.
func (o *outlook) olderThan(now time.Time, storeNow store.Millis, age time.Duration) []*target {
	var old []*target
	for _, t := range o.targets {
		aged := t.asked.IsZero() && t.agents == nil || !t.asked.IsZero() && now.Sub(t.asked) >= age
		doubted := t.doubted && !t.looked && t.due() != 0 && t.due() <= storeNow
		if t.away == nil && (aged || doubted) {
			old = append(old, t)
		}
	}
	return old
}

// settle notes that a task of a partition is due at a time.
func (o *outlook) settle(partition int, at store.Millis) {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The earliest is kept, never replaced by a later one: the next answer corrects it, but nothing would
	// correct an overlooked task.
	if t := o.byIndex[partition]; t != nil && at != 0 {
		t.settled = base.Earlier(t.settled, at)
		if o.series != nil {
			o.series.noticed(at)
		}
	}
}

// freed notes that the end of a run has made room in a partition for what was due in it, under a limit or beside its agent, or that its own task
// is due at once: after any earlier claim, and any that is under way, another one is worth it, unless too little time is
// left.
func (o *outlook) freed(partition int) {
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

// asking notes that targets are asked now: the answer includes all settlements so far; those that come while it
// is under way are kept.
func (o *outlook) asking(targets []*target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range targets {
		t.settled, t.room = 0, false
	}
}

// answered learns from a look or a claim that asked for some agents of the target, or all.
func (t *target) answered(asked time.Time, agents []string, c *store.Look) {
	t.asked, t.away, t.next, t.atNow = asked, nil, c.NextDue, c.NextDue >= c.Now
	for i := range c.AgentsDue {
		t.dues[agents[i]] = c.AgentsDue[i]
	}
	if len(agents) < len(t.agents) { // the others are due when they were
		for _, due := range t.dues {
			t.next = base.Earlier(t.next, due)
		}
	}
	if t.agents == nil || c.NextLease != 0 && c.NextLease <= c.Now { // expired leases may hold tasks of these agents
		t.next = base.Earlier(t.next, c.NextLease)
	}
	t.overdue = t.next != 0 && t.next <= c.Now
}

// agentsNow are the agents to ask for: those that are due, or all if it is not known which are. The mutex is held.
func (t *target) agentsNow(now store.Millis) []string {
	if t.agents == nil {
		return nil
	}
	var due []string
	for _, agent := range t.agents {
		if at := t.dues[agent]; at != 0 && at <= now {
			due = append(due, agent)
		}
	}
	if len(due) == 0 || t.settled != 0 && t.settled <= now || len(due) == len(t.agents) {
		return slices.Clone(t.agents)
	}
	return due
}
