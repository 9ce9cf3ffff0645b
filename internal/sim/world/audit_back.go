package world

// What the auditor makes of processes that live although their leases were lost.

import "github.com/seed-6f6f2c11/duly/core/store"

// back is told that a process has asked for the runs of a lost lease: no crash of them counts any more, and those that it gets are its own
// under another fence.
func (a *auditor) back(p *process, e *store.Extension, got []store.Run) {
	if a.model.nonces[e.Nonce] != nil { // it came twice
		return
	}
	old := a.model.claims[claimName{e.Partition, e.Fence}]
	if len(got) > 0 {
		a.must(fencesGrow, got[0].Fence > a.model.fences[e.Partition], "%s after %s", a.w.fence(got[0].Fence), a.w.fence(a.model.fences[e.Partition]))
		a.model.fences[e.Partition] = max(a.model.fences[e.Partition], got[0].Fence)
	}
	for _, run := range e.Back {
		t := a.model.live(ref{run.Agent, run.ID})
		if t == nil {
			continue
		}
		if t.phase == claimed && t.lease.over { // the store has taken it back before
			a.model.crash(t)
		}
		if t.lost == e.Fence {
			t.crashes, t.lost = t.crashes-1, 0
		}
	}
	for _, run := range got {
		t := a.model.live(ref{run.Agent, run.ID})
		if !a.must(backIsFree, t != nil && t.phase == waiting && !t.since, "%s under %s", ref{run.Agent, run.ID}, a.w.fence(run.Fence)) || old == nil {
			continue
		}
		a.model.regained(p, e, old, t, run)
	}
}

// regained notes that a run goes on under another fence.
func (m *model) regained(p *process, e *store.Extension, old *claimRecord, t *task, run store.Run) {
	name, end := claimName{e.Partition, run.Fence}, store.Millis(m.w.clock.Now().UnixMilli()).Add(e.Lease)
	if m.claims[name] == nil {
		m.claims[name] = &claimRecord{fence: run.Fence, holder: p, over: old.over}
		m.nonces[e.Nonce] = m.claims[name]
	}
	m.claims[name].end = end
	m.claims[name].refs = append(m.claims[name].refs, t.ref)
	t.phase, t.lease = claimed, t.was
	t.lease.fence, t.lease.index, t.lease.end = run.Fence, run.Index, end
	t.lease.over, t.lease.noticed, t.lease.told = false, false, false
}
