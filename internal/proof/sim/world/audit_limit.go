package world

// What the auditor makes of limits: how many run under leases in force, and how many have started.

import (
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// limitAudit is the part of the auditor that looks at limits.
type limitAudit struct{ *auditor }

// counts reports whether a task counts in a limit, and in which of its buckets.
func counts(l *core.Limit, t *task) (bucket string, is bool) {
	prefix, open := strings.CutSuffix(l.About.Key, "*")
	keyed := l.About.Key == "" || t.key != "" && (l.About.Key == t.key || open && strings.HasPrefix(t.key, prefix))
	if l.About.Kind != "" && l.About.Kind != t.kind || !keyed {
		return "", false
	}
	switch l.About.Each {
	case core.EachAgent:
		return t.agent, true
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
		if _, is := counts(&m.w.plan.Settings.Limits[i], t); is {
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
		bucket, is := counts(l, t)
		if !is {
			continue
		}
		t.lease.buckets = append(t.lease.buckets, inBucket{i, bucket})
		running := 0
		for _, o := range m.tasks {
			for _, b := range o.lease.buckets {
				if o.phase == claimed && o.lease.end > now && b == (inBucket{i, bucket}) {
					running++
				}
			}
		}
		a.must(limitOfRuns, l.Concurrency == 0 || running <= l.Concurrency, "%d run under %s", running, l.About)
		at := append(m.starts[inBucket{i, bucket}], now)
		m.starts[inBucket{i, bucket}] = at
		most := l.Rate + l.Burst
		a.must(limitOfStarts, l.Rate == 0 || len(at) <= most || at[len(at)-1-most] <= now-store.Millis(l.Per.Milliseconds()),
			"more than %d have started in %s under %s", most, l.Per, l.About)
	}
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

func (m *storeModel) heldAll(now store.Millis) bool {
	h, ok := m.holds[store.Target{}]
	return ok && h.inForce(now)
}
