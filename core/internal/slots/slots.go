// Package slots bounds what runs at once in a process: all runs, those of a kind, and those whose last run died with its process.
package slots

// Slots: how much may run at once in a process, and which pull gets the next slot.

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Slots bound what runs at once in a process: all runs, those that are not urgent, and those of some kinds. Pulls
// get slots in the order in which they came, so that a busy one never keeps another waiting for more than a turn.
type Slots struct {
	clock  model.Clock
	total  int            // most runs at once
	kept   int            // of total: kept for tasks of level 1
	ofKind map[string]int // most runs at once of some kinds
	most   int            // abandoned handlers at which claiming stops

	mu        sync.Mutex
	used      int
	usual     int // of used: runs that are not of level 1
	kinds     map[string]int
	lent      Grant // of these: lent to claims under way
	abandoned int
	suspects  suspects
	news      uint64        // grows whenever a slot comes free
	changed   chan struct{} // closed when news grows; nil when no caller waits for that
	waiting   []*waiter     // in the order in which they came
	hurried   bool          // urgent tasks were announced, and no pull has had a slot for them since
}

// waiter is a pull that waits for slots.
type waiter struct {
	most   int
	urgent bool // slots that are kept for urgent tasks suffice
	got    chan Grant
}

// New returns the slots of a process, all free: total, of which kept are kept for urgent tasks; claiming stops at most abandoned handlers.
func New(clock model.Clock, total, kept, most int) *Slots {
	return &Slots{clock: clock, news: 1, total: total, kept: kept, most: most, ofKind: map[string]int{}, kinds: map[string]int{}, lent: Grant{Room: map[string]int{}}}
}

// Bound bounds the runs of a kind; zero for no bound.
func (s *Slots) Bound(kind string, most int) {
	if most == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// guard: kind-slots
	s.ofKind[kind] = most
}

// Spare takes a slot for a task of level 1, if there is a free one that no pull waits for.
func (s *Slots) Spare(kind string) Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	most, bounded := s.ofKind[kind]
	if s.abandoned >= s.most || bounded && s.kinds[kind] >= most {
		return Grant{}
	}
	usual := s.free() > 0
	for _, w := range s.waiting {
		// guard: start-slots
		if usual || w.urgent {
			return Grant{}
		}
	}
	if !usual && s.total-s.used <= 0 {
		return Grant{}
	}
	g := Grant{N: 1, Urgent: !usual, News: s.news}
	s.lend(1, g.Urgent)
	if bounded {
		g.Room = map[string]int{kind: 1}
		s.kinds[kind]++
		s.lent.Room[kind]++
	}
	return g
}

// Take takes between 1 and most slots. It waits for the first one until ctx is done; none then. From urgentAt on it also
// accepts those that are kept for urgent tasks.
func (s *Slots) Take(ctx context.Context, most int, urgentAt time.Time) Grant {
	s.mu.Lock()
	// Every pull queues, even if slots are free: a new pull must not pass one that
	// waits.
	w := &waiter{most: most, got: make(chan Grant, 1)}
	wait := urgentAt.Sub(s.clock.Now())
	urgent := wait <= 0 || s.hurried
	w.urgent = urgent
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	select {
	case g := <-w.got:
		return s.more(g, most)
	default:
	}
	stop := func() bool { return true }
	// If no slots are kept for urgent tasks there are no others to accept.
	if !urgent && s.kept > 0 {
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

// Hurry lets pulls that wait for slots take those that are kept for urgent tasks; if none waits, the next one that finds no others.
func (s *Slots) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurried = true
	for _, w := range s.waiting {
		w.urgent = true
	}
	s.serve()
}

// accept lets a waiter take slots that are kept for urgent tasks.
func (s *Slots) accept(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.urgent = true
	s.serve()
}

// leave takes a waiter out of the queue. What it got meanwhile is given back.
func (s *Slots) leave(w *waiter) Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.waiting {
		if s.waiting[i] == w {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			return Grant{}
		}
	}
	// It is no longer in the queue, so it has been granted something at the same moment as ctx was
	// done.
	g := <-w.got
	s.back(g, nil)
	return Grant{Err: g.Err}
}

// more adds to a grant slots that come free while no other pull waits, of runs that are about to end.
func (s *Slots) more(g Grant, most int) Grant {
	// A grant for urgent tasks alone is not extended: Keep gives back all the slots of a grant as one
	// sort.
	if g.Err != nil || g.N == most || g.Urgent {
		return g
	}
	// Runs end in bursts. Yielding to the others for a moment makes one claim for several tasks out
	// of several claims for one.
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := min(most-g.N, s.free()); n > 0 && len(s.waiting) == 0 {
		s.lend(n, false)
		g.N += n
	}
	return g
}

// free is how many slots any task may have. The mutex is held.
func (s *Slots) free() int { return min(s.total-s.used, s.total-s.kept-s.usual) }

// serve grants slots to waiters, first come, first served. One that waits for a slot that any task may have is passed
// by later ones that accept urgent slots. The mutex is held.
func (s *Slots) serve() {
	left := s.waiting[:0]
	for _, w := range s.waiting {
		if g := s.grant(w); g.N > 0 || g.Err != nil {
			w.got <- g
		} else {
			left = append(left, w)
		}
	}
	clear(s.waiting[len(left):])
	s.waiting = left
}

// grant takes slots for a waiter, if there are any. The mutex is held.
func (s *Slots) grant(w *waiter) Grant {
	// An error rather than a wait: handlers that ignore their context may never return, and the operator
	// of the process has to know.
	if s.abandoned >= s.most {
		return Grant{Err: &model.AbandonedError{Handlers: s.abandoned, Limit: s.most}}
	}
	g := Grant{N: min(w.most, s.free()), News: s.news}
	// Slots that any task may have come first: those that are kept for urgent tasks stay free as long
	// as possible.
	if g.N <= 0 && w.urgent {
		g.N, g.Urgent, s.hurried = min(w.most, s.total-s.used), true, false
	}
	if g.N <= 0 {
		return Grant{}
	}
	s.lend(g.N, g.Urgent)
	g.suspects = s.roomForSuspects()
	s.lendSuspects(g.suspects, 1)
	if len(s.ofKind) > 0 {
		// All room of each kind is taken, as it is not known yet which kinds the claim will
		// bring. Keep gives back what it does not fill.
		g.Room = make(map[string]int, len(s.ofKind))
		for kind, most := range s.ofKind {
			g.Room[kind] = min(max(most-s.kinds[kind], 0), g.N)
			s.kinds[kind] += g.Room[kind]
			s.lent.Room[kind] += g.Room[kind]
		}
	}
	return g
}

// lend takes n slots for claims; a negative n gives them back. The mutex is held.
func (s *Slots) lend(n int, urgent bool) {
	s.used += n
	s.lent.N += n
	if !urgent {
		s.usual += n
		s.lent.usual += n
	}
}

// Keep keeps the slots of a grant that tasks fill, and gives the others back.
func (s *Slots) Keep(g Grant, tasks []store.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back(g, tasks)
}

// back is Keep. The mutex is held.
func (s *Slots) back(g Grant, tasks []store.Claimed) {
	if g.N == 0 {
		return
	}
	// Everything lent is given back first, then the slots that the tasks fill are counted: a task may fill
	// another sort of slot than was lent for it.
	s.lend(-g.N, g.Urgent)
	for kind, n := range g.Room {
		s.kinds[kind] -= n
		s.lent.Room[kind] -= n
	}
	s.lendSuspects(g.suspects, -1)
	for i := range tasks {
		s.count(&tasks[i], 1)
	}
	s.serve() // no news: what a claim did not fill was free before
}

// count adds n runs like that of a task to those in flight. The mutex is held.
func (s *Slots) count(c *store.Claimed, n int) {
	s.used += n
	if c.Level != store.LevelHigh {
		s.usual += n
	}
	if _, bounded := s.ofKind[c.Kind]; bounded {
		s.kinds[c.Kind] += n
	}
	if c.Crashes > 0 {
		s.countSuspect(c, n)
	}
}

// Give gives back the slots of runs that have ended.
func (s *Slots) Give(c *store.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(c, -1)
	s.freed()
}

// Pass moves the slot of one run to another.
func (s *Slots) Pass(from, to *store.Claimed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(from, -1)
	s.count(to, 1)
}

// freed notifies waiters that slots have come free. The mutex is held.
func (s *Slots) freed() {
	s.news++
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.serve()
}

// Stats are the slots as users see them: those that are lent out but not used count as free.
func (s *Slots) Stats() model.SlotStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := model.SlotStats{Total: s.total, InUse: s.used - s.lent.N, Urgent: s.kept, Usual: s.usual - s.lent.usual, Abandoned: s.abandoned, MaxAbandoned: s.most}
	for _, n := range s.suspects.running {
		st.Suspects += n
	}
	if len(s.ofKind) > 0 {
		st.Kinds = make(map[string]model.KindSlots, len(s.ofKind))
	}
	for kind, total := range s.ofKind {
		st.Kinds[kind] = model.KindSlots{Total: total, InUse: s.kinds[kind] - s.lent.Room[kind]}
	}
	return st
}

// Full reports whether no slot is free that any task may have.
func (s *Slots) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free() <= 0
}

// Load is the part of the slots that any task may have which is in use, from 0 to 1.
func (s *Slots) Load() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.usual-s.lent.usual) / float64(max(s.total-s.kept, 1))
}

// Scarce reports whether more than half of the slots that any task may have are in use, or claiming has stopped.
func (s *Slots) Scarce() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2*(s.usual-s.lent.usual) > s.total-s.kept || s.abandoned >= s.most
}

// Newest is the number of the last news.
func (s *Slots) Newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// Await waits until slots have come free since a grant, ctx is done, or a time has come.
func (s *Slots) Await(ctx context.Context, since uint64, until time.Time) {
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

// Abandon gives back the slots of tasks whose handler does not return, and counts the handler. It returns how many there
// are.
func (s *Slots) Abandon(tasks []*store.Claimed) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned++
	for _, c := range tasks {
		s.count(c, -1)
	}
	s.freed()
	return s.abandoned
}

// Returned notes that an abandoned handler has returned after all.
func (s *Slots) Returned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned--
	s.freed()
}
