package memstore

// Quotas: what they refuse, and what is counted for them. Also the reference for quota.lua.

import (
	"bytes"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// quotas are those of the agents of a partition.
type quotas struct{ of map[string]quota }

// quota is that of an agent, with its counts. What else it counts, the agent has.
type quota struct {
	store.Quota
	mark      string
	recurring map[string]bool // ids of live tasks that recur, while it bounds them
	submits   map[int64]int   // of callers that it binds, by span
}

// set gives an agent the quota of its profile. The counts stay as long as it bounds what they count.
func (q *quotas) set(c *store.ProfileChange) {
	old := q.of[c.Agent]
	if c.Quota.IsZero() {
		delete(q.of, c.Agent)
		return
	}
	next := quota{Quota: *c.Quota, mark: c.Quota.Mark(), recurring: old.recurring, submits: old.submits}
	next.Kinds = slices.Clone(c.Quota.Kinds)
	if next.Recurring == 0 {
		next.recurring = nil
	} else if next.recurring == nil {
		next.recurring = map[string]bool{}
	}
	if next.Submits == 0 {
		next.submits = nil
	} else if next.submits == nil {
		next.submits = map[int64]int{}
	}
	if q.of == nil {
		q.of = map[string]quota{}
	}
	q.of[c.Agent] = next
}

// enroll counts tasks that recur, if they are still the same.
func (q *quotas) enroll(p *partition, agent string, tasks []store.Stored) {
	for i := range tasks {
		s := &tasks[i]
		if t := p.task(agent, s.ID); t != nil && t.Level == s.Level && t.Kind == s.Kind && t.Key == s.Key && bytes.Equal(t.Body, s.Body) {
			q.count(agent, s.ID, true)
		}
	}
}

// count notes whether a live task recurs.
func (q *quotas) count(agent, id string, recurs bool) {
	ids := q.of[agent].recurring
	if recurs && ids != nil {
		ids[id] = true
		return
	}
	delete(ids, id)
}

// pass counts a task that a bound caller has stored.
func (q *quotas) pass(agent string, bound bool, now moment.Millis) {
	own := q.of[agent]
	if !bound || own.submits == nil {
		return
	}
	maps.DeleteFunc(own.submits, func(slot int64, _ int) bool { return own.SlotEnds(slot) <= now })
	own.submits[own.Slot(now)]++
}

// submitted is how many tasks of the last minute count, and when the first of them are forgotten so that there is room.
func (own *quota) submitted(also int, now moment.Millis) (n int, until moment.Millis) {
	counts := maps.Clone(own.submits)
	maps.DeleteFunc(counts, func(slot int64, _ int) bool { return own.SlotEnds(slot) <= now })
	if counts != nil {
		counts[own.Slot(now)] += also
	}
	for _, c := range counts {
		n += c
	}
	left := n
	for _, slot := range slices.Sorted(maps.Keys(counts)) {
		if left -= counts[slot]; left < own.Submits {
			return n, own.SlotEnds(slot)
		}
	}
	return n, 0
}

// wanted is what a task takes of a quota.
type wanted struct {
	id      string
	bound   bool
	mark    string
	recurs  bool
	fresh   bool // it does not replace a live task
	checked bool // there is no mark to compare
}

// refuses finds out why the quota of an agent has no room for a task, if it has none. live is how many tasks the agent has by then.
func (q *quotas) refuses(agent string, w wanted, live int, also *gain, now moment.Millis) error {
	own, has := q.of[agent]
	if !has || !w.bound {
		return nil
	}
	// guard: quota-mark
	if !w.checked && w.mark != own.mark {
		return store.ErrChanged
	}
	// guard: quota-live
	if own.Live > 0 && w.fresh && live >= own.Live {
		return own.Refuse(agent, "live", live, 0)
	}
	used := len(own.recurring) + also.recurring
	// guard: quota-recurring
	if own.Recurring > 0 && own.adds(w) > 0 && used >= own.Recurring {
		return own.Refuse(agent, "recurring", used, 0)
	}
	if own.Submits > 0 {
		// guard: quota-submits
		if n, until := own.submitted(also.submits, now); n >= own.Submits {
			return own.Refuse(agent, "submits", n, until)
		}
	}
	return nil
}

// tooHeavy refuses a task that would give an agent more bytes than its quota allows.
func (q *quotas) tooHeavy(p *partition, agent string, kib, also int, bound bool) error {
	own := q.of[agent]
	if !bound || own.Bytes == 0 || kib <= 0 {
		return nil
	}
	have := also + weightOf(p, agent)
	// guard: quota-bytes
	if int64(have+kib) > own.Bytes>>10 {
		return own.Refuse(agent, "bytes", have<<10, 0)
	}
	return nil
}

// refusesNew refuses a task that is stored by itself.
func (q *quotas) refusesNew(p *partition, sub *store.Submission, w wanted, now moment.Millis) error {
	if err := q.refuses(sub.Agent, w, p.liveOf(sub.Agent), &gain{}, now); err != nil {
		return err
	}
	return q.tooHeavy(p, sub.Agent, p.heavier(sub), 0, w.bound)
}

// adds is by how many a task changes the number of those that recur.
func (own *quota) adds(w wanted) (n int) {
	if w.recurs {
		n++
	}
	if own.recurring[w.id] {
		n--
	}
	return n
}

// use is how much of the quota of an agent is used; nil if it has none.
func (q *quotas) use(p *partition, agent string, now moment.Millis) *store.QuotaUse {
	own, has := q.of[agent]
	if !has {
		return nil
	}
	u := &store.QuotaUse{Live: p.liveOf(agent), Recurring: len(own.recurring), Bytes: int64(weightOf(p, agent)) << 10}
	u.Submits, _ = own.submitted(0, now)
	return u
}
