package core

// Slots: how much may run at once in a process, and who gets the next one.

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// slots bound what runs at once in a process: all runs, those that are not urgent, and those of some kinds. Pulls that
// want a slot get it in the order in which they came, so that a busy one never keeps another waiting for more than a turn.
type slots struct {
	clock  model.Clock
	total  int            // most runs at once
	kept   int            // of total: kept for tasks of level 1
	ofKind map[string]int // most runs at once of some kinds
	most   int            // abandoned handlers, beyond which nothing is claimed any more

	mu        sync.Mutex
	used      int
	usual     int // of used: runs that are not of level 1
	kinds     map[string]int
	lent      grant // of these: what claims under way may fill
	abandoned int
	suspects  suspects
	news      uint64        // grows whenever a slot comes free
	changed   chan struct{} // closed when news grows; nil when nobody waits for that
	waiting   []*waiter     // in the order in which they came
}

// waiter is a pull that waits for slots.
type waiter struct {
	most   int
	urgent bool // slots that are kept for urgent tasks will do
	got    chan grant
}

// grant are slots that a pull may fill with one call of claims. What it does not fill it gives back with keep.
type grant struct {
	n      int
	usual  int            // of lent slots: those that any task may fill
	urgent bool           // with tasks of level 1 only
	room   map[string]int // how many tasks of the kinds that have a bound
	// suspects is how many tasks of each sort whose last runs died with their process.
	suspects sorts
	news     uint64 // as of when it was made
	err      error  // why there will be none
}

// newSlots are the slots of a process, all of them free: so many, of which some are kept for urgent tasks, until most handlers are abandoned.
func newSlots(clock model.Clock, total, kept, most int) *slots {
	return &slots{clock: clock, news: 1, total: total, kept: kept, most: most, ofKind: map[string]int{}, kinds: map[string]int{}, lent: grant{room: map[string]int{}}}
}

// bound bounds the runs of a kind; zero for no bound.
func (s *slots) bound(kind string, most int) {
	if most == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ofKind[kind] = most
}

// take takes between 1 and most slots. It waits for the first one until ctx is done; none then. From urgentAt on it is
// also content with those that are kept for urgent tasks.
func (s *slots) take(ctx context.Context, most int, urgentAt time.Time) grant {
	s.mu.Lock()
	// Everybody queues, also where slots are free: a pull that has just come must not pass one that
	// waits.
	w := &waiter{most: most, got: make(chan grant, 1)}
	wait := urgentAt.Sub(s.clock.Now())
	w.urgent = wait <= 0
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	select {
	case g := <-w.got:
		return s.more(g, most)
	default:
	}
	stop := func() bool { return true }
	// Where no slots are kept for urgent tasks there is nothing else to be content with.
	if !w.urgent && s.kept > 0 {
		stop = s.clock.AfterFunc(wait, func() { s.accept(w) })
	}
	defer stop()
	select {
	case g := <-w.got:
		return s.more(g, most)
	case <-ctx.Done():
		return s.leave(w)
	}
}

// accept makes a waiter content with slots that are kept for urgent tasks.
func (s *slots) accept(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.urgent = true
	s.serve()
}

// leave takes a waiter out of the queue. What it got meanwhile is given back.
func (s *slots) leave(w *waiter) grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.waiting {
		if s.waiting[i] == w {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return grant{}
		}
	}
	// It is no longer in the queue, so it has been granted something at the same moment as ctx was
	// done.
	g := <-w.got
	s.back(g, nil)
	return grant{err: g.err}
}

// more adds slots to a grant that come free while nobody else waits: runs that are about to end come along.
func (s *slots) more(g grant, most int) grant {
	// A grant for urgent tasks alone is left as it is: keep gives back all the slots of a grant as one
	// sort.
	if g.err != nil || g.n == most || g.urgent {
		return g
	}
	// Runs end in bursts. Letting the others go on for a moment makes one claim for several tasks out
	// of several claims for one.
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := min(most-g.n, s.free()); n > 0 && len(s.waiting) == 0 {
		s.lend(n, false)
		g.n += n
	}
	return g
}

// free is how many slots any task may have. The mutex is held.
func (s *slots) free() int { return min(s.total-s.used, s.total-s.kept-s.usual) }

// serve grants slots to those who wait, first come, first served. One who waits for a slot that any task may have lets
// those behind it pass who are content with less. The mutex is held.
func (s *slots) serve() {
	left := s.waiting[:0]
	for _, w := range s.waiting {
		if g := s.grant(w); g.n > 0 || g.err != nil {
			w.got <- g
		} else {
			left = append(left, w)
		}
	}
	clear(s.waiting[len(left):])
	s.waiting = left
}

// grant takes slots for a waiter, if there are any. The mutex is held.
func (s *slots) grant(w *waiter) grant {
	// An error rather than a wait: handlers that ignore their context need not return ever, and whoever
	// runs the process has to hear of it.
	if s.abandoned >= s.most {
		return grant{err: &model.AbandonedError{Handlers: s.abandoned, Limit: s.most}}
	}
	g := grant{n: min(w.most, s.free()), news: s.news}
	// Slots that any task may have come first: those that are kept for urgent tasks stay free as long
	// as possible.
	if g.n <= 0 && w.urgent {
		g.n, g.urgent = min(w.most, s.total-s.used), true
	}
	if g.n <= 0 {
		return grant{}
	}
	s.lend(g.n, g.urgent)
	g.suspects = s.roomForSuspects()
	s.lendSuspects(g.suspects, 1)
	if len(s.ofKind) > 0 {
		// The room of each kind is taken as a whole, for it is not known yet which kinds the claim will
		// bring. What it does not fill goes back with keep.
		g.room = make(map[string]int, len(s.ofKind))
		for kind, most := range s.ofKind {
			g.room[kind] = min(max(most-s.kinds[kind], 0), g.n)
			s.kinds[kind] += g.room[kind]
			s.lent.room[kind] += g.room[kind]
		}
	}
	return g
}

// lend takes n slots for claims; a negative n gives them back. The mutex is held.
func (s *slots) lend(n int, urgent bool) {
	s.used += n
	s.lent.n += n
	if !urgent {
		s.usual += n
		s.lent.usual += n
	}
}

// keep keeps the slots of a grant that tasks fill, and gives the others back.
func (s *slots) keep(g grant, tasks []store.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back(g, tasks)
}

// back is keep. The mutex is held.
func (s *slots) back(g grant, tasks []store.Claimed) {
	if g.n == 0 {
		return
	}
	// All that was lent goes back first, then what the tasks fill is counted: a task may fill another
	// sort of slot than was lent for it.
	s.lend(-g.n, g.urgent)
	for kind, n := range g.room {
		s.kinds[kind] -= n
		s.lent.room[kind] -= n
	}
	s.lendSuspects(g.suspects, -1)
	for i := range tasks {
		s.count(&tasks[i], 1)
	}
	s.serve() // no news: what a claim did not fill was free before
}

// count adds n runs like that of a task to those in flight. The mutex is held.
func (s *slots) count(c *store.Claimed, n int) {
	s.used += n
	if c.Level != LevelHigh {
		s.usual += n
	}
	if _, bounded := s.ofKind[c.Kind]; bounded {
		s.kinds[c.Kind] += n
	}
	if c.Crashes > 0 {
		s.countSuspect(c, n)
	}
}

// give gives back the slots of runs that have ended.
func (s *slots) give(c *store.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c, -1)
	s.freed()
}

// pass makes the slot of one run that of another.
func (s *slots) pass(from, to *store.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(from, -1)
	s.count(to, 1)
}

// freed tells that slots have come free. The mutex is held.
func (s *slots) freed() {
	s.news++
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.serve()
}

// stats are the slots as users see them: those that are lent out but not used count as free.
func (s *slots) stats() model.SlotStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := model.SlotStats{Total: s.total, InUse: s.used - s.lent.n, Urgent: s.kept, Usual: s.usual - s.lent.usual, Abandoned: s.abandoned, MaxAbandoned: s.most}
	if len(s.ofKind) > 0 {
		st.Kinds = make(map[string]model.KindSlots, len(s.ofKind))
	}
	for kind, total := range s.ofKind {
		st.Kinds[kind] = model.KindSlots{Total: total, InUse: s.kinds[kind] - s.lent.room[kind]}
	}
	return st
}

// full reports whether no slot is free that any task may have.
func (s *slots) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free() <= 0
}

// scarce reports whether more than half of the slots that any task may have are in use, or claiming has stopped.
func (s *slots) scarce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2*(s.usual-s.lent.usual) > s.total-s.kept || s.abandoned >= s.most
}

// newest is the number of the last news.
func (s *slots) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// await waits until slots have come free since a grant, ctx is done, or a time has come.
func (s *slots) await(ctx context.Context, since uint64, until time.Time) {
	s.mu.Lock()
	// Slots that came free between the grant and this call would be missed otherwise.
	if s.news != since {
		s.mu.Unlock()
		return
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed := s.changed
	s.mu.Unlock()
	late := make(chan struct{})
	stop := s.clock.AfterFunc(max(until.Sub(s.clock.Now()), 0), func() { close(late) })
	defer stop()
	select {
	case <-changed:
	case <-late:
	case <-ctx.Done():
	}
}

// abandon gives back the slots of tasks whose handler does not return, and counts the handler. It returns how many there
// are.
func (s *slots) abandon(tasks []*store.Claimed) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned++
	for _, c := range tasks {
		s.count(c, -1)
	}
	s.freed()
	return s.abandoned
}

// returned notes that an abandoned handler has returned after all.
func (s *slots) returned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned--
	s.freed()
}
