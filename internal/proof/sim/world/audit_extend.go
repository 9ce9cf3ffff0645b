package world

// What the auditor makes of heartbeats, and of processes that live although their leases were lost.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// heartbeatAudit is the part of the auditor that looks at heartbeats.
type heartbeatAudit struct{ *auditor }

// extended is called with heartbeats that reached the store.
// A heartbeat extends a claim as a whole, for as long as one of its tasks is still held under that
// fence.
func (a heartbeatAudit) extended(p *process, leases []store.Extension, answers []store.Extended) {
	now := a.now()
	for i := range leases {
		e, held := &leases[i], answers[i].Held
		if answers[i].Err != nil {
			continue
		}
		if len(e.Back) > 0 {
			a.back(p, e, answers[i].Back)
			continue
		}
		record := a.model.claims[claimName{e.Partition, e.Fence}]
		if record == nil || a.w.restored && record.holder != p { // the store has forgotten it
			continue
		}
		var mine []*task
		for _, r := range record.refs {
			if t := a.model.live(r); t != nil && t.phase == claimed && t.lease.fence == e.Fence {
				mine = append(mine, t)
			}
		}
		a.w.trace("%s  extends %s to %s: %v", p.name, a.w.fence(e.Fence), ms(now.Add(e.Lease)), held)
		inForce := len(mine) > 0 && record.end > now
		a.must(extendHolds, held || !inForce, "%s, which is in force until %s", a.w.fence(e.Fence), ms(record.end))
		// It counts what the process knew when it sent the heartbeat, not what it knows when that
		// arrives.
		a.must(leaseOfNobody, len(mine) == 0 || !record.nobodys(a.w.making.born), "%s extends %s, of which it has given all up", p.name, a.w.fence(e.Fence))
		a.must(extendTellsLoss, !held || len(mine) > 0, "%s, of which nothing runs", a.w.fence(e.Fence))
		if held {
			a.kept(e, &answers[i], mine)
			record.end = now.Add(e.Lease)
		} else {
			for _, t := range mine {
				t.lease.told = true
			}
		}
	}
}

// kept records that a lease was extended.
// The run must be notified only if a handler has begun: World.expected then requires its context
// to be done after the answer. The tasks of a batch share one context, which is not ended for one of them.
func (a heartbeatAudit) kept(e *store.Extension, answer *store.Extended, mine []*task) {
	now := a.now()
	for _, t := range mine {
		t.lease.end, t.lease.over, t.lease.noticed = now.Add(e.Lease), false, false
		t.lease.leaving = t.lease.leaving || e.Leave
		told := slices.ContainsFunc(answer.Ended, func(o store.Ended) bool { return o.Index == t.lease.index && !o.Deleted && !o.Spent })
		if told && t.lease.began != nil && t.lease.began.info.Kind != "batch" && a.w.making.reaches(t.lease.began) {
			a.w.making.told = append(a.w.making.told, t.lease.began)
		}
		a.must(cancelTellsRun, told == t.ending, "%s: told %v, and it was %v", t.ref, told, t.ending)
		for _, p := range e.Progress {
			if p.Index != t.lease.index || p.Agent != t.agent || p.ID != t.id { // else it is of a claim that a failover has undone
				continue
			}
			if p.Number == 0 || p.Number >= t.lease.number {
				t.state, t.lease.number = p.State, p.Number
			}
			stateInOrder(a.auditor, t)
			a.model.books.charges(a.w, t, p.Used)
		}
	}
	for _, o := range answer.Ended {
		if o.Deleted {
			gone := !slices.ContainsFunc(mine, func(t *task) bool { return t.lease.index == o.Index })
			a.must(deletedTellsRun, gone, "run %d of %s, which was not deleted", o.Index, a.w.fence(e.Fence))
		}
	}
}

// back is called when a process has asked for the runs of a lost lease: their crash no longer counts, and the process holds those that it gets
// under another fence.
func (a heartbeatAudit) back(p *process, e *store.Extension, got []store.Run) {
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
		again := slices.ContainsFunc(got, func(r store.Run) bool { return r.Agent == run.Agent && r.ID == run.ID })
		if t.phase == claimed && t.lease.over && (again || a.takenBack(t)) { // the store has taken it back before
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

// regained records that a run continues under another fence.
func (m *storeModel) regained(p *process, e *store.Extension, old *claimRecord, t *task, run store.Run) {
	name, end := claimName{e.Partition, run.Fence}, store.Millis(m.w.clock.Now().UnixMilli()).Add(e.Lease)
	if m.claims[name] == nil {
		m.claims[name] = &claimRecord{fence: run.Fence, holder: p, over: old.over}
		m.nonces[e.Nonce] = m.claims[name]
	}
	m.claims[name].end = end
	m.claims[name].refs = append(m.claims[name].refs, t.ref)
	m.w.mu.Lock()
	if open, was := m.w.answers[asked{t.ref, e.Fence}]; was { // its gate was asked before
		m.w.answers[asked{t.ref, run.Fence}] = open
	}
	m.w.mu.Unlock()
	t.phase, t.lease = claimed, t.was
	t.lease.due, t.lease.back = t.due, end.Add(-e.Lease) // it may have been asked for by hand since
	t.lease.fence, t.lease.index, t.lease.end = run.Fence, run.Index, end
	t.lease.over, t.lease.noticed, t.lease.told, t.lease.number = false, false, false, 0
}
