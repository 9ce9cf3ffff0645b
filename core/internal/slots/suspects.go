package slots

// Suspects: tasks whose last runs died with their process. They run beside others, but ever fewer of them in one process.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// A task whose run died with its process may have killed it, or have run beside the one that did. Other tasks never wait
// for suspects. Of tasks that have died once a process runs at most half as many as it has slots, of those that have died twice two,
// and of those that have died more often one. So a task that kills processes soon takes few others with it, and these are cleared by
// their next run; a task ends at its fourth death in a row.
const (
	secondSort = 1
	// MostOfSecondSort is how many of those that have died twice a process runs.
	MostOfSecondSort = 2
)

// sortsApart is how long suspects of one sort run in a process before another sort, by its number, joins them: a task that kills its
// process mostly does so soon, and innocent tasks of another sort should not run beside it. A task that has died once waits less, as
// most lost runs are such tasks; one that has died more often is more likely the cause.
var sortsApart = [store.SuspectSorts]time.Duration{time.Second, 3 * time.Second, 3 * time.Second}

// SuspectsLinger is how long a claim that left suspects counts as recent: their turn, and the search behind them, last as long.
const SuspectsLinger = time.Second

// pairsApart is how long one of those that have died twice runs before the other joins it.
const pairsApart = 2 * time.Second

// Tasks that have died less often come first: if processes die one after the other, a task that has died three times must not run in
// the next one that does. The next sort has its turn once suspects were left for this long and none of an earlier sort was found; in
// total this takes less than a second.
var nextSortAfter = [store.SuspectSorts - 1]time.Duration{200 * time.Millisecond, 600 * time.Millisecond}

// sorts are suspects, by their sort.
type sorts [store.SuspectSorts]int

// suspects are those that run in a process, and those for which claims under way have room.
type suspects struct {
	running sorts
	lent    sorts
	begun   [store.SuspectSorts]time.Time // when the first of the running ones began
	turn    int                           // the last sort that may start
	since   time.Time                     // when turn was set, or a run of that sort began; zero if no suspect was left since
	left    time.Time                     // when a claim last left some
}

// mostSuspects is how many suspects of a sort a process with so many slots runs.
func mostSuspects(sort, slots int) int {
	switch sort {
	case 0:
		return max(1, slots/2)
	case secondSort:
		return min(MostOfSecondSort, slots)
	default:
		return 1
	}
}

// roomForSuspects is how many suspects of each sort may start. The mutex of the slots is held.
func (s *Slots) roomForSuspects() sorts {
	var room sorts
	now := s.clock.Now()
	for sort := range room {
		if sort <= s.suspects.turn && !s.suspects.apart(sort, now) {
			room[sort] = max(mostSuspects(sort, s.total)-s.suspects.running[sort]-s.suspects.lent[sort], 0)
		}
	}
	room[secondSort] = min(room[secondSort], 1) // one of them, and then the other
	return room
}

// apart reports whether suspects have begun so recently, or may be about to begin, that none of a sort may join them.
func (o *suspects) apart(sort int, now time.Time) bool {
	if sort == secondSort && (o.lent[sort] > 0 || o.running[sort] > 0 && now.Sub(o.begun[sort]) < pairsApart) {
		return true
	}
	for other, n := range o.running {
		if other != sort && n > 0 && now.Sub(o.begun[other]) < sortsApart[sort] {
			return true
		}
	}
	return false
}

// lendSuspects takes room for a claim; with n = -1 it gives it back. The mutex is held.
func (s *Slots) lendSuspects(room sorts, n int) {
	for sort := range room {
		s.suspects.lent[sort] += n * room[sort]
	}
}

// countSuspect adds n to the runs of the sort of a task. The mutex is held.
func (s *Slots) countSuspect(c *store.Claimed, n int) {
	sort := store.SuspectSort(c.Crashes)
	if sort < 0 {
		return
	}
	if n > 0 {
		now := s.clock.Now()
		if s.suspects.running[sort] == 0 {
			s.suspects.begun[sort] = now
		}
		s.suspects.turn, s.suspects.since = min(s.suspects.turn, sort), now
	}
	s.suspects.running[sort] += n
}

// SuspectsFor are the suspects that the n-th of several claims may take. One of them gets all the room of a grant, as it is not known which of them
// would fill it.
func (g *Grant) SuspectsFor(n, of int) *[store.SuspectSorts]int {
	room := [store.SuspectSorts]int{}
	if n%of == 0 {
		room = g.suspects
	}
	return &room
}

// LeftSuspects records how many suspects a claim has left, as there was no room for them, and returns when the next sort has its turn: zero if
// that does not depend on the time. A sort waits no longer than most for it.
func (s *Slots) LeftSuspects(n int, most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, now := &s.suspects, s.clock.Now()
	switch {
	case n == 0:
		if now.Sub(o.left) >= SuspectsLinger {
			o.turn, o.since = 0, time.Time{}
		}
		return 0
	case o.since.IsZero():
		o.since = now
	}
	o.left = now
	if o.turn == store.SuspectSorts-1 {
		return 0
	}
	wait := o.since.Add(min(nextSortAfter[o.turn], most)).Sub(now)
	if wait <= 0 {
		o.turn, o.since = o.turn+1, now
		return time.Millisecond // at once
	}
	return wait
}
