package world

// What the auditor makes of limits: how many run under leases in force, and how many have started.

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// limitAudit is the part of the auditor that looks at limits.
type limitAudit struct{ *auditor }

// counts reports whether a task counts in a limit or a budget, and in which of its buckets.
func counts(about *core.LimitTarget, t *task) (bucket string, is bool) {
	prefix, open := strings.CutSuffix(about.Key, "*")
	keyed := about.Key == "" || t.key != "" && (about.Key == t.key || open && strings.HasPrefix(t.key, prefix))
	if about.Kind != "" && about.Kind != t.kind || !keyed {
		return "", false
	}
	switch about.Each {
	case core.EachAgent:
		return t.agent, true
	case bound.EachTask:
		return t.agent + ":" + t.id, true
	case core.EachKey:
		return t.key, t.key != ""
	default:
		return "", true
	}
}

// limited reports whether a limit is about a task: it may stand in a line then, where neither its agent's order nor what is due
// says when it is claimed.
func (m *storeModel) limited(t *task) bool {
	if m.w.plan.Settings.Budget > 0 && t.key == spendKey {
		return true
	}
	for i := range m.w.plan.Settings.Limits {
		if _, is := counts(&m.w.plan.Settings.Limits[i].About, t); is {
			return true
		}
	}
	return false
}

// inBucket names a bucket of one of the limits.
type inBucket struct {
	limit int
	name  string
}

// started notes that a task was claimed, and holds that no more of its sort run, or have started, than its limits allow.
func (a limitAudit) started(t *task) {
	m, now := a.model, a.now()
	for i := range m.w.plan.Settings.Limits {
		l := &m.w.plan.Settings.Limits[i]
		bucket, is := counts(&l.About, t)
		if !is {
			continue
		}
		t.lease.buckets = append(t.lease.buckets, inBucket{i, bucket})
		running := a.running(inBucket{i, bucket})
		a.must(limitOfRuns, l.Concurrency == 0 || running <= l.Concurrency, "%d run under %s", running, l.About)
		start := max(now, t.lease.due) // what was claimed ahead of its time
		at := m.starts[inBucket{i, bucket}]
		place, _ := slices.BinarySearch(at, start)
		at = slices.Insert(at, place, start)
		m.starts[inBucket{i, bucket}] = at
		most := l.Rate + l.Burst
		for last := max(place, most); l.Rate > 0 && last < min(len(at), place+most+1); last++ {
			a.must(limitOfStarts, at[last-most] <= at[last]-moment.Millis(l.Per.Milliseconds()), "more than %d have started in %s under %s", most, l.Per, l.About)
		}
	}
}

// running counts the runs in a bucket that hold their tasks.
func (a limitAudit) running(in inBucket) (n int) {
	for _, o := range a.model.tasks {
		if o.phase == claimed && o.lease.end > a.now() && slices.Contains(o.lease.buckets, in) {
			n++
		}
	}
	return n
}

// hasRoomAhead reports whether each limit of a task has as much room as runs in it, this one among them, or lets one run that is this one.
func (a limitAudit) hasRoomAhead(t *task) bool {
	return !slices.ContainsFunc(t.lease.buckets, func(in inBucket) bool {
		l := &a.w.plan.Settings.Limits[in.limit]
		return l.Concurrency > 0 && a.running(in) > max(l.Concurrency/2, 1)
	})
}

// underRates is how long what is live needs at most to start, one after the other, where limits have rates: what recurs needs less than a rate
// allows, and leaves a quarter of it at least.
func (a limitAudit) underRates() (most time.Duration) {
	for i := range a.w.plan.Settings.Limits {
		l := &a.w.plan.Settings.Limits[i]
		n := 0
		for _, t := range a.model.tasks {
			if _, is := counts(&l.About, t); is && l.Rate > 0 && t.phase != ended {
				n++
			}
		}
		most = max(most, 4*time.Duration(n)*l.Per/time.Duration(max(l.Rate, 1)))
	}
	return most
}

// balance compares how many run, as each limit says, and as the line of each task says that waits, with the runs that there are.
func (a limitAudit) balance() {
	m := a.model
	if len(m.w.plan.Settings.Limits) == 0 || a.w.over.Load() {
		return
	}
	all, err := a.w.store.Limits(a.w.ctx)
	if err != nil {
		return // the store is full, or gone
	}
	running, together := map[inBucket]int64{}, make([]int64, len(m.w.plan.Settings.Limits))
	for _, t := range m.sorted() {
		if t.phase != claimed || len(t.lease.buckets) == 0 || a.takenBack(t) {
			continue
		}
		for _, b := range t.lease.buckets {
			running[b]++
			together[b.limit]++
		}
	}
	for i := range all {
		if at := m.limitOf(all[i].About); at >= 0 {
			a.must(limitCounts, all[i].Running == together[at], "%d run, says the limit of %s, and %d do", all[i].Running, all[i].About, together[at])
		}
	}
	for _, t := range m.sorted() {
		if t.phase != waiting || !m.limited(t) {
			continue
		}
		found, err := a.w.store.Get(a.w.ctx, store.Get{Agent: t.agent, IDs: []string{t.id}, Explain: true})
		if err != nil {
			continue
		}
		line := &found.Tasks[0].Line
		if at := m.limitOf(line.Limit.About); at >= 0 && line.Limit.Concurrency+line.Limit.Rate > 0 {
			want := running[inBucket{at, line.Of}]
			a.must(limitCounts, line.Limit.Running == want, "%d run where %s waits, says the limit of %s, and %d do", line.Limit.Running, t.ref, line.Limit.About, want)
		}
	}
}

// limitOf is the place of a limit in the plan; -1 if it is none of those.
func (m *storeModel) limitOf(about core.LimitTarget) int {
	return slices.IndexFunc(m.w.plan.Settings.Limits, func(l core.Limit) bool { return l.About == about })
}

// serialWaits reports whether a task has to wait for another of its agent.
func (a limitAudit) serialWaits(t *task) bool {
	if a.w.plan.Settings.Serial != core.SerialAgent {
		return false
	}
	for _, o := range a.model.tasks {
		if o.agent == t.agent && o.phase == claimed {
			return true
		}
	}
	return false
}

func (m *storeModel) heldAll(now moment.Millis) bool {
	h, ok := m.holds[store.Target{}]
	return ok && h.inForce(now)
}
