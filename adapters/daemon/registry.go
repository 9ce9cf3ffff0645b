package daemon

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The agents of a daemon: who is registered, who is marked dirty, and when each is due next. Hosts call
// it from many goroutines, and none of them may wait for a pull.

// registry are the agents that a daemon runs, and what it knows of each. Agents that are dirty, or whose time has come,
// are asked for by the pull that claims, or by the next one.
// It is called under no lock, as it only signals.
type registry struct {
	// mu is held for the time of a map's change, and never while a store is asked.
	changed func() // called when an agent may have to be asked for sooner

	mu      sync.Mutex
	members map[string]*member
	// removed go to the pull that claims, so that it stops serving them.
	removed []string // since the pull that claims was asked to serve no more agents
}

// member is the state of one agent.
type member struct {
	dirty bool      // something may be due for it now
	next  time.Time // when it is due next by the store's clock, as far as is known; zero for never
}

// add registers agents. New ones are dirty: what is due for them is not known.
func (r *registry) add(agents []string) {
	r.mu.Lock()
	for _, a := range agents {
		if r.members[a] == nil {
			r.members[a] = &member{dirty: true}
		}
	}
	r.mu.Unlock()
	r.changed()
}

// remove takes agents out.
func (r *registry) remove(agents []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range agents {
		delete(r.members, a)
	}
	r.removed = append(r.removed, agents...)
}

// out returns the agents that were removed since its last call.
func (r *registry) out() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.removed
	r.removed = nil
	// One that was added again meanwhile stays.
	return slices.DeleteFunc(out, func(a string) bool { return r.members[a] != nil })
}

// mark makes agents dirty; one that is not registered is passed over.
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

// take returns the agents to ask for now, at most as many as a pull may name, and marks them clean: until the pull's
// answer it is not known when they are due.
func (r *registry) take(due func(next time.Time) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []string
	for a, m := range r.members {
		if m.dirty || !m.next.IsZero() && due(m.next) {
			batch = append(batch, a)
			m.dirty, m.next = false, time.Time{}
			if len(batch) == core.MaxAgents {
				break
			}
		}
	}
	// In a fixed order, so that the same agents make the same call.
	slices.Sort(batch)
	return batch
}

// takeAll is take for a pull that begins: if any agent is to be asked for, and one pull can name all, it names all, so that
// it notices by itself which fall due while it is busy.
func (r *registry) takeAll(due func(next time.Time) bool) []string {
	batch := r.take(due)
	r.mu.Lock()
	defer r.mu.Unlock()
	// A pull that begins is given the members of now, so nothing has to leave it.
	r.removed = nil
	if len(batch) == 0 || len(r.members) > core.MaxAgents {
		return batch
	}
	// What was known of them is out of date by the end of the pull.
	for _, m := range r.members {
		*m = member{}
	}
	return slices.Sorted(maps.Keys(r.members))
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

// again notes when an agent has something due again.
// It comes from a pull under way, for a task that it has just settled.
func (r *registry) again(agent string, at time.Time) {
	r.learn([]string{agent}, at)
	r.changed()
}

// expect notes that something in a partition is due at a time: of which agent is not known.
func (r *registry) expect(w store.Wakeup, partitions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := w.Due.Time()
	// Agents that share a partition are all woken: one look finds out whose work it is.
	for a, m := range r.members {
		if store.PartitionOf(a, partitions) == w.Partition && (m.next.IsZero() || at.Before(m.next)) {
			m.next = at
		}
	}
}

// expectAll notes that something is due for an unknown agent at a time.
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
// The zero time is long ago, so a dirty agent is asked for at once.
func (r *registry) next() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for _, m := range r.members {
		switch {
		case m.dirty:
			return time.Time{}, true
		case !m.next.IsZero() && (first.IsZero() || m.next.Before(first)):
			first = m.next
		}
	}
	return first, !first.IsZero()
}
