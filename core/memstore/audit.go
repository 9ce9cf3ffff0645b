package memstore

// Audit: whether each task can be found again, and whether the counters are right.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// auditing is a partition that is audited at some time.
type auditing struct {
	*partition

	now moment.Millis
}

// audit looks at all tasks of a partition: a page has no end here, as the lock is never held for long.
// A fault would be a mistake in this package, so that it repairs nothing; tests call it.
func (p auditing) audit() audit.Result {
	found := audit.Result{}
	for _, a := range p.agents {
		for _, t := range a.tasks {
			found.Tasks++
			if code := p.fault(t); code != "" {
				found.Faults = append(found.Faults, audit.Fault{Agent: a.name, ID: t.ID, Code: code})
			}
		}
	}
	if len(found.Faults) == 0 {
		// A task that is lost also makes counters wrong. Only the cause is reported.
		found.Faults = p.miscounted()
	}
	return found
}

// counted is what a partition's counters should be, found by looking at every task.
type counted struct {
	live, running int64
	kinds         map[string]count.KindStats
	groups        map[[2]string]int64
}

// recount counts all live tasks.
// It reads the tasks and never a counter.
func (p auditing) recount() counted {
	c := counted{kinds: map[string]count.KindStats{}, groups: map[[2]string]int64{}}
	for _, a := range p.agents {
		for _, t := range a.tasks {
			k := c.kinds[t.Kind]
			c.live, k.Live = c.live+1, k.Live+1
			if t.claim != nil {
				c.running, k.Running = c.running+1, k.Running+1
			}
			if t.dozing() {
				k.Resting++
			}
			// Tasks without a group are counted under the empty name, which no counter has.
			c.kinds[t.Kind] = k
			c.groups[[2]string{t.Agent, t.Group}]++
		}
	}
	return c
}

// miscounted compares the counters with a fresh count.
func (p auditing) miscounted() []audit.Fault {
	var faults []audit.Fault
	is := p.recount()
	if is.live != p.live || is.running != p.running {
		faults = append(faults, audit.Fault{Code: audit.Miscounted})
	}
	for name, k := range p.kinds {
		if want := is.kinds[name]; k.Live != want.Live || k.Running != want.Running || k.Resting != want.Resting {
			faults = append(faults, audit.Fault{Code: audit.Miscounted})
		}
	}
	for name, g := range p.groups {
		// A group that is over may have any number: the next task of that name starts from zero.
		if (g.over == 0 || g.over > p.now) && g.Live != is.groups[name] {
			faults = append(faults, audit.Fault{Agent: name[0], Code: audit.Miscounted})
		}
	}
	return faults
}

// fault is the fault of one live task; empty if it waits, runs or is parked as it should.
func (p auditing) fault(t *task) audit.Code {
	switch {
	// Running: its claim has a lease that will end, and knows the task.
	case t.claim != nil:
		if t.claim.term.at < 0 || !slices.ContainsFunc(t.claim.runs, func(h held) bool { return h.task == t }) {
			return audit.Lost
		}
	// Parked: something has to bring it back.
	case t.parked != "":
		if !p.comesBack(t) {
			return audit.Stranded
		}
	// Waiting: it has to be in a queue, and its agent in the agenda, in time.
	case t.at < 0:
		return audit.Lost
	case p.serial[t.Agent] != nil: // it is put back in time when the run ends
	case t.place().at < 0 || t.place().visit > max(t.due, p.now):
		return audit.Asleep
	}
	return ""
}

// comesBack reports whether the tasks parked in the place of a task will be put back.
// A kind comes back when a process with a handler for it claims; a hold when it ends.
func (p auditing) comesBack(t *task) bool {
	if t.lined != nil {
		return p.served(t)
	}
	if t.parked == t.Kind {
		return true
	}
	for _, s := range scopes(t) {
		_, held := p.holds[s]
		opened := slices.ContainsFunc(p.open, func(o opened) bool { return o.scope == s })
		if s.parking() == t.parked && (held || opened) {
			return true
		}
	}
	return false
}

// served reports whether a task is in its line, and whether a claim will come to that: now, at a time, or when a run ends.
func (p auditing) served(t *task) bool {
	b := t.lined
	stands := slices.ContainsFunc(b.line.agents, func(s *standing) bool { return s.agent == t.Agent && slices.Contains(s.tasks, t) })
	opened := slices.ContainsFunc(p.open, func(o opened) bool { return o.scope == b.scope() })
	return stands && (opened || b.term != nil && b.term.at >= 0 || b.runs > 0)
}
