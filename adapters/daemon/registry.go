package daemon

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// registry are the agents that a daemon runs, and what it knows of each. Agents that are dirty, or whose time has come,
// are asked for with the next pull; one whose tick is under way is asked for when that has ended.
type registry struct {
	changed func() // told when an agent may have to be asked for sooner

	mu      sync.Mutex
	members map[string]*member
}

type member struct {
	gone  bool      // it was taken out while its tick was under way, and is forgotten when that has ended
	dirty bool      // something may be due for it now
	busy  int       // pulls in which its tick is under way
	next  time.Time // when it is due next by the store's clock, as far as is known; zero for never
}

func (r *registry) add(agents []string) {
	r.mu.Lock()
	for _, a := range agents {
		switch m := r.members[a]; {
		case m == nil:
			r.members[a] = &member{dirty: true}
		case m.gone:
			m.gone, m.dirty = false, true
		}
	}
	r.mu.Unlock()
	r.changed()
}

func (r *registry) remove(agents []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range agents {
		if m := r.members[a]; m != nil && m.busy > 0 {
			m.gone = true
		} else {
			delete(r.members, a)
		}
	}
}

func (r *registry) mark(agents []string) {
	r.mu.Lock()
	for _, a := range agents {
		if m := r.members[a]; m != nil {
			m.dirty = true
		}
	}
	r.mu.Unlock()
	r.changed()
}

// tick notes that the tick of an agent has begun or ended; what it left due is found by the next pull.
func (r *registry) tick(t core.Tick) {
	r.mu.Lock()
	m := r.members[t.Agent]
	switch {
	case m == nil && !t.Ended: // it was taken out after the pull had asked for it
		r.members[t.Agent] = &member{busy: 1, gone: true}
	case m == nil:
	case !t.Ended:
		m.busy++
	case m.gone && m.busy == 1:
		delete(r.members, t.Agent)
	default:
		m.busy, m.dirty = max(m.busy-1, 0), true
	}
	r.mu.Unlock()
	if m != nil && t.Ended {
		r.changed()
	}
}

// take returns the agents to ask for now, at most as many as a pull may name, and marks them clean: until what the pull
// learns, nothing is known of when they are due.
func (r *registry) take(due func(next time.Time) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []string
	for a, m := range r.members {
		if m.busy == 0 && (m.dirty || !m.next.IsZero() && due(m.next)) {
			batch = append(batch, a)
			m.dirty, m.next = false, time.Time{}
			if len(batch) == core.MaxAgents {
				break
			}
		}
	}
	slices.Sort(batch)
	return batch
}

// learn notes when the first of some agents is due next. A pull that failed learned nothing: the next look makes up for it.
func (r *registry) learn(agents []string, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range agents {
		m := r.members[a]
		if m == nil {
			continue
		}
		if !next.IsZero() && (m.next.IsZero() || next.Before(m.next)) {
			m.next = next
		}
	}
}

// expect notes that something in a partition is due at a time: of which agent is not known.
func (r *registry) expect(w core.Wakeup, partitions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := w.Due.Time()
	for a, m := range r.members {
		if core.PartitionOf(a, partitions) == w.Partition && (m.next.IsZero() || at.Before(m.next)) {
			m.next = at
		}
	}
}

// expectAll notes that something is due for anybody at a time.
func (r *registry) expectAll(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.members {
		if m.next.IsZero() || at.Before(m.next) {
			m.next = at
		}
	}
}

// next is when an agent has to be asked for, as far as is known: long ago if one is dirty.
func (r *registry) next() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for _, m := range r.members {
		switch {
		case m.busy > 0:
		case m.dirty:
			return time.Time{}, true
		case !m.next.IsZero() && (first.IsZero() || m.next.Before(first)):
			first = m.next
		}
	}
	return first, !first.IsZero()
}
