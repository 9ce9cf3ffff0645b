package world

// What the auditor makes of settlements and heartbeats, and of processes that live although their leases were lost.

import (
	"errors"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// settlementAudit is the part of the auditor that looks at settlements.
type settlementAudit struct{ *auditor }

// settled is called with settlements that reached the store.
func (a settlementAudit) settled(p *process, runs []store.Settlement, answers []store.Settled) {
	for i := range runs {
		a.settledOne(p, &runs[i], &answers[i])
	}
}

// The refusals come first: each has to have its cause in the model. A settlement that was not refused
// must come from the claim that holds the task now, or repeat one that was already applied.
func (a settlementAudit) settledOne(p *process, s *store.Settlement, answer *store.Settled) {
	r := ref{s.Agent, s.ID}
	t := a.model.live(r)
	holds := t != nil && t.phase == claimed && t.lease.fence == s.Fence && t.lease.index == s.Index
	var order *store.EndingError
	switch {
	case errors.Is(answer.Err, store.ErrLeaseLost):
		a.must(leaseIsKept, !holds || t.lease.end <= a.now(), "%s under %s, until %s", r, a.w.fence(s.Fence), ms(t.until()))
		// A stale settlement that is refused is what the invariant asks for, and counts as tried.
		a.must(staleChanges, true, "")
		return
	case errors.As(answer.Err, &order):
		a.must(cancelHasACause, holds && t.ending, "%s under %s", r, a.w.fence(s.Fence))
		return
	case errors.Is(answer.Err, store.ErrReplaced):
		a.must(replaceHasACause, holds && t.renewed != nil, "%s under %s", r, a.w.fence(s.Fence))
		return
	// Any other error promises nothing about the task.
	case answer.Err != nil:
		return
	}
	// A settlement whose answer was lost is sent again with the same fence. It must change nothing:
	// the task may have been claimed by others meanwhile.
	key := settledRun{r, s.Fence}
	if a.model.settled[key] {
		a.must(settleTwice, answer.Due == 0, "%s under %s is due at %s", r, a.w.fence(s.Fence), ms(answer.Due))
		return
	}
	if !a.must(staleChanges, holds, "%s was settled with %q by %s under %s, which %s", r, s.Verb, p.name, a.w.fence(s.Fence), a.whoHolds(r)) {
		return
	}
	a.must(cancelWins, !t.ending || s.Verb == store.VerbCancel, "%s ended with %q", r, s.Verb)
	a.must(replaceIsTold, t.renewed == nil || s.Renewed, "%s ended with %q", r, s.Verb)
	a.model.settled[key] = true
	// The process learns of it with the answer, which may be lost or late: until then its heartbeats
	// may still name the claim.
	a.model.claims[claimName{s.Partition, s.Fence}].ends(r, a.w, knownBy)
	a.w.trace("%s  stores %q of %s, under %s, due at %s", p.name, s.Verb, r, a.w.fence(s.Fence), ms(answer.Due))
	a.apply(p, t, s, answer)
}

func (t *task) until() moment.Millis {
	if t == nil {
		return 0
	}
	return t.lease.end
}

// whoHolds says who holds a task, for people.
func (a settlementAudit) whoHolds(r ref) string {
	t := a.model.tasks[r]
	switch {
	case t == nil:
		return "is of a task that does not exist"
	case t.phase == claimed:
		return "lost it to " + a.w.fence(t.lease.fence).String()
	case t.phase == ended:
		return "is over, as the task is " + string(t.status)
	default:
		return "lost it: it waits"
	}
}

// apply carries a settlement out in the model, and holds what it makes of its task.
// The task is read back past the bus right after the settlement, while nothing else can happen: what
// the tracker says now is what this settlement has made of it.
func (a settlementAudit) apply(p *process, t *task, s *store.Settlement, answer *store.Settled) {
	m, now, was := a.model, a.now(), t.lease
	before, ending, renewed := t.history.info, t.ending, t.renewed != nil
	// A pause for ever that is in force stays as it was; one that would end becomes one for ever, and
	// keeps its beginning.
	if s.Hold != nil {
		target := store.Target{Agent: t.agent, ID: t.id}
		if h, ok := m.holds[target]; !ok || !h.inForce(now) || h.until != 0 {
			since := now
			if ok && h.inForce(now) {
				since = h.since
			}
			m.holds[target] = hold{since: since}
		}
	}
	m.each(func(w *watcher) {
		if w.settled != nil {
			w.settled(s, t, answer)
		}
	})
	switch s.Verb {
	case store.VerbComplete:
		m.end(t, core.StatusCompleted, now)
	case store.VerbFail:
		m.end(t, core.StatusFailed, now)
	case store.VerbCancel:
		m.end(t, core.StatusCancelled, now)
	default:
		a.again(t, s, answer, was)
	}
	info, err := a.w.reader.Task(a.w.ctx, t.agent, t.id)
	// A store that keeps few finished tasks may have dropped this one already.
	if kept := a.w.plan.Settings.Kept; err != nil && (t.phase != ended || kept == 0) {
		a.must(nothingIsLost, false, "%s cannot be read: %v", t.ref, err)
		return
	}
	t.history.info = info
	if t.phase == ended && err == nil {
		m.over(t)
	}
	a.must(statusIsTrue, err != nil || info.Status == t.expected() || info.Dropped, "%s is %s, not %s", t.ref, info.Status, t.expected())
	// What a replaced task becomes is decided by its replacement, not by how the run went.
	if info.Dropped || err != nil || renewed {
		return
	}
	o := &outcome{t: t, s: s, run: was.began, lease: was, before: before, after: info, ending: ending, due: answer.Due}
	a.outcomes.decided(p, o)
}

// expected is the status of a task.
func (t *task) expected() store.Status {
	switch t.phase {
	case waiting:
		return core.StatusWaiting
	case claimed:
		return core.StatusInProgress
	default:
		return t.status
	}
}

// again puts a task back that is to run again, and holds when it is due.
// The due time has up to three sources: a replacement that waited for the run comes first, then an
// order to run once more, then the settlement itself.
func (a settlementAudit) again(t *task, s *store.Settlement, answer *store.Settled, was lease) {
	now := a.now()
	due := s.Due.At
	if due == 0 {
		due = now.Add(max(s.Due.After-s.Waited, 0))
	}
	release := s.Verb == store.VerbRelease
	if release {
		a.must(releaseIsDue, answer.Due == was.due || t.queued || t.renewed != nil, "%s is due at %s, and was at %s", t.ref, ms(answer.Due), ms(was.due))
		a.model.totals.Released++
		t.history.last = 0 // as if it had not been claimed
		t.stirred = true
	} else {
		a.model.totals.Again++
	}
	// A settlement without a state leaves the task the state that it has.
	if s.State != nil {
		t.state = s.State
		if !release && !s.Unrun {
			t.crashes, t.lost = 0, 0
		}
	}
	if s.Floor != nil && t.activity != nil {
		due = a.rested(t, s, due)
	}
	t.history.reason = "its run ended with " + string(s.Verb)
	switch {
	case t.renewed != nil:
		due = t.renewed.due
		t.renewed.sub.State = t.state // with what the run has left behind
		a.model.renew(t)
	case t.queued && !release:
		due = min(due, now)
		t.queued, t.history.last = false, 0 // by hand, in spite of what keeps it apart from the run before
		if t.activity != nil && t.activity.first == 0 {
			t.activity.first = now
		}
	// The order was not executed, and so counts for the next claim.
	case t.inHand != 0 && release:
		t.byHand = t.inHand
	}
	t.inHand = 0
	if t.await != nil && t.await.early { // its signal came before it began to wait
		due, t.await.early = min(due, now), false
	}
	a.must(againIsDue, answer.Due == due, "%s is due at %s, not at %s", t.ref, ms(answer.Due), ms(due))
	t.wait(answer.Due)
	t.waits = now
}

// rested is when an activity task is due after a run.
// A run that is repeated keeps its own due time and takes the activity during it along. A task that
// rests is due again only if there was activity meanwhile, and no earlier than the floor of the
// settlement.
func (a settlementAudit) rested(t *task, s *store.Settlement, due moment.Millis) moment.Millis {
	now, u := a.now(), t.activity
	from, to := u.from, u.to
	u.from, u.to = 0, 0
	if s.Verb != store.VerbRest {
		u.first = from
		if from == 0 {
			u.first = now
		}
		return due
	}
	u.first = from
	if from == 0 {
		return due
	}
	next := from.Add(u.pulse.Delay)
	if u.pulse.Debounce {
		next = min(to.Add(u.pulse.Delay), from.Add(u.pulse.MaxWait))
	}
	return max(next, s.Floor.At, now)
}

// lastRun is the last run in the history of a task; false if there is none.
// Skipped occurrences are left out: no handler ran for them.
func lastRun(info *core.TaskInfo) (model.TaskRun, bool) {
	runs := slices.DeleteFunc(slices.Clone(info.Runs), func(r model.TaskRun) bool { return r.Outcome == model.OutcomeSkipped })
	if len(runs) == 0 {
		return model.TaskRun{}, false
	}
	return runs[len(runs)-1], true
}

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
	name, end := claimName{e.Partition, run.Fence}, moment.Millis(m.w.clock.Now().UnixMilli()).Add(e.Lease)
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
