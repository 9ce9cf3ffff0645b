package world

// What the auditor makes of settlements.

import (
	"errors"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
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

func (t *task) until() store.Millis {
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
		due = now.Add(max(s.Due.After, 0))
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
func (a settlementAudit) rested(t *task, s *store.Settlement, due store.Millis) store.Millis {
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
