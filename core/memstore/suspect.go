package memstore

// Suspects: tasks whose runs died with their process, how many of them a claim takes, and processes that were not dead after all.

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// loss is the last run of a task that died with its process, as far as the store knows.
type loss struct {
	fence   store.Fence
	claimed bool // the task was claimed since
}

// crashed counts a crash of a run under a fence.
func (p *partition) crashed(t *task, fence store.Fence) {
	// guard: crash-counted
	t.crashes++
	t.lost = &loss{fence: fence}
	p.suspects[[2]string{t.Agent, t.ID}] = t
}

// cleared forgets the crashes of a task, as a run of it has ended or it has another definition.
func (p *partition) cleared(t *task) {
	t.crashes, t.lost = 0, nil
	delete(p.suspects, [2]string{t.Agent, t.ID})
}

// suspect makes a claim picky where tasks of the partition are suspects, as it may pass over many of them.
func (c *claiming) suspect() {
	if len(c.r.Leases) > 0 {
		c.picky = true
	}
	if c.r.Suspects == nil {
		return
	}
	rooms := *c.r.Suspects
	c.suspects = &rooms
	c.picky = c.picky || len(c.p.suspects) > 0
}

// tookSuspect takes the room of a suspect, and that of all other sorts: a death beside a suspect of another sort would prove nothing.
func (c *claiming) tookSuspect(t *task) {
	sort := c.sortOf(t)
	if sort < 0 || c.suspects == nil {
		return
	}
	rooms := [store.SuspectSorts]int{}
	rooms[sort] = c.suspects[sort] - 1
	*c.suspects = rooms
}

// sortOf is the sort of a task that is a suspect; -1 for any other.
func (c *claiming) sortOf(t *task) int {
	if c.r.MaxCrashes > 0 && t.crashes > c.r.MaxCrashes {
		return -1
	}
	return store.SuspectSort(t.crashes)
}

// leaseOf is how long the claim holds tasks of a kind.
func (c *claiming) leaseOf(kind string) time.Duration {
	if lease, own := c.r.Leases[kind]; own {
		return lease
	}
	return c.r.Lease
}

// heldApart reports whether tasks of a requested kind are held for another time than those that the claim has taken.
func (c *claiming) heldApart(kind string) bool {
	return c.lease != 0 && c.leaseOf(kind) != c.lease && slices.Contains(c.r.Kinds, kind)
}

// giveAgain answers a process that lives although its lease was lost: crashes of its runs that were counted are taken back, and
// those that were not claimed since are leased again under a new fence, unless limits or other runs of the agent have to be checked.
func (p *partition) giveAgain(e *store.Extension, now moment.Millis) []store.Run {
	if fence, ok := p.nonces[e.Nonce]; ok {
		return p.runsOf(p.claims[fence])
	}
	var tasks []*task
	for _, run := range e.Back {
		t := p.task(run.Agent, run.ID)
		if t == nil || t.lost == nil || t.lost.fence != run.Fence {
			continue
		}
		// guard: begun-elsewhere
		claimed := t.lost.claimed
		t.lost = nil
		// guard: lived
		if t.crashes--; t.crashes == 0 {
			p.cleared(t)
		}
		if e.Lease == 0 || claimed || t.claim != nil || t.order != nil || len(p.limits)+len(p.bounds)+len(p.serial) > 0 {
			continue
		}
		p.lift(t)
		tasks = append(tasks, t)
	}
	if len(tasks) == 0 {
		return nil
	}
	return p.runsOf(p.lease(tasks, &store.ClaimRequest{Nonce: e.Nonce, Fence: e.Fence}, e.Lease, now))
}

// runsOf are the runs of a claim that have not ended.
func (p *partition) runsOf(c *claim) []store.Run {
	if c == nil {
		return nil
	}
	var out []store.Run
	for i := range c.runs {
		if t := c.runs[i].task; t != nil {
			out = append(out, store.Run{Partition: p.index, Fence: c.fence, Index: i, Agent: t.Agent, ID: t.ID})
		}
	}
	return out
}

// shortestNotice is the least that a holder is given, unless the caller gives less.
const shortestNotice = 500 * time.Millisecond

// notice is what the holder of a lease is given: no more than half of what a short lease has lasted, such as that of tasks that were
// claimed ahead of their time.
func (t *term) notice(given time.Duration) time.Duration {
	if lasted := t.end.Sub(moment.Millis(t.claim.fence / clockUnit)); lasted > 0 {
		given = min(given, max(shortestNotice, (lasted/2).Truncate(time.Millisecond)))
	}
	return given
}
