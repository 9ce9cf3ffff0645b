package world

// What the auditor makes of what operators do.

import (
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// orderAudit is the part of the auditor that looks at what operators do.
type orderAudit struct{ *auditor }

// settle what is unknown about a task before an order is looked at: the store may have taken it back.
func (a orderAudit) asIs(agent, id string) *task {
	t := a.model.live(ref{agent, id})
	if t != nil && t.phase == claimed && a.takenBack(t) {
		a.model.crash(t)
	}
	return t
}

// A waiting task ends at once. A running one ends with its run, and its handler is notified at the next
// heartbeat; until then it still counts as live.
func (a orderAudit) cancelled(r *store.Cancellation, e *store.Effect) {
	t := a.asIs(r.Agent, r.ID)
	switch e.Code {
	case store.EffectDone:
		if a.must(cancelKnows, t != nil && t.phase == waiting, "%s/%s was cancelled at once", r.Agent, r.ID) {
			a.w.trace("%s is cancelled", t.ref)
			a.model.end(t, core.StatusCancelled, a.now())
			a.model.look(t)
			a.model.over(t)
		}
	case store.EffectOrdered:
		if a.must(cancelKnows, t != nil && t.phase == claimed, "%s/%s is to end with its run", r.Agent, r.ID) {
			a.w.trace("%s is to end as cancelled", t.ref)
			if !t.ending && t.renewed != nil { // what it had become is cancelled
				a.model.define(t, &t.renewed.sub)
				t.renewed = nil
			}
			if !t.ending {
				t.history.order = r.Order
			}
			t.ending, t.queued, t.inHand = true, false, 0
		}
	case store.EffectNone:
		a.must(cancelKnows, t == nil, "%s/%s was not found", r.Agent, r.ID)
	default: // it is read again
	}
}

// Nothing of the task remains in the model, not even its id: a submit of that id may create it again
// at once. The claim that holds it keeps its record, so that its run is still recognised.
func (a orderAudit) deleted(r *store.Deletion, e *store.Effect) {
	a.called([]store.Deletion{*r}, e)
	name := ref{r.Agent, r.ID}
	t := a.asIs(r.Agent, r.ID)
	must, may := a.known(name)
	switch e.Code {
	case store.EffectDone:
		a.must(deleteKnows, may, "%s was forgotten, and was not known", name)
		a.w.trace("%s is deleted", name)
		if t != nil {
			a.model.group(t.agent, t.group).Live--
			a.model.totals.Deleted++
			delete(a.model.holds, store.Target{Agent: t.agent, ID: t.id})
		}
		delete(a.model.tasks, name)
	case store.EffectNone:
		a.must(deleteKnows, !must, "%s was not found", name)
	default:
	}
}

// A pause of everything, of an agent, a kind or a key may be given ahead of any task; one of a single
// task needs the task, as it ends with that.
func (a orderAudit) held(h *store.Hold, e *store.Effect) {
	now := a.now()
	if h.Target.ID != "" {
		t := a.asIs(h.Target.Agent, h.Target.ID)
		a.must(holdNeedsATask, (e.Code == store.EffectDone) == (t != nil), "%s: %d", h.Target, e.Code)
	}
	if e.Code != store.EffectDone {
		return
	}
	// Zero is a pause without end.
	begun := hold{since: now, until: h.Until.At}
	if h.Until.At == 0 && h.Until.After > 0 {
		begun.until = now.Add(h.Until.After)
	}
	if old, ok := a.model.holds[h.Target]; ok && h.Prolong && old.inForce(now) { // else the last word counts
		begun.since = old.since
	}
	a.model.holds[h.Target] = begun
	a.w.trace("%s is paused until %s", h.Target, ms(begun.until))
}

// A pause whose time is over may or may not have been tidied away: about it either answer is right.
func (a orderAudit) unheld(target *store.Target, e *store.Effect) {
	h, ok := a.model.holds[*target]
	if ok && h.inForce(a.now()) {
		a.must(unholdIsReal, e.Code == store.EffectDone, "%s: %d", *target, e.Code)
	}
	if !ok {
		a.must(unholdIsReal, e.Code == store.EffectNone, "%s: %d", *target, e.Code)
	}
	delete(a.model.holds, *target)
	// What this pause held was put aside, and needs a turn to come back. inTime allows for it.
	a.model.freed = a.now()
	a.w.trace("%s is resumed", *target)
}

// A task that waits is due now, also under a pause, unless that is one of everything. One that runs is
// due once more when its run ends.
func (a orderAudit) ranNow(r *store.RunNow, e *store.Effect) {
	t := a.asIs(r.Agent, r.ID)
	now := a.now()
	everything, ok := a.model.holds[store.Target{}]
	stopped := ok && everything.inForce(now)
	switch e.Code {
	case store.EffectDone:
		// Claims take nothing while everything is paused: the order would wait without a notice.
		a.must(runNowKnows, !stopped, "%s/%s is to run though everything is paused", r.Agent, r.ID)
		if !a.must(runNowKnows, t != nil && t.phase == waiting && !t.ending, "%s/%s is due now", r.Agent, r.ID) {
			return
		}
		a.must(runNowIsNow, e.Due <= now, "%s is due at %s", t.ref, ms(e.Due))
		if len(a.model.held(t, now)) > 0 {
			t.byHand = now
		}
		t.due, t.parked, t.history.moved, t.history.hand, t.history.last = e.Due, false, true, true, 0
		if t.activity != nil && t.activity.first == 0 {
			t.activity.first = now
		}
		t.stirred = true
		a.w.trace("%s is asked for by hand", t.ref)
	case store.EffectOrdered:
		if a.must(runNowKnows, t != nil && t.phase == claimed && !t.ending, "%s/%s is to run once more", r.Agent, r.ID) {
			t.history.moved, t.history.hand, t.history.again = true, true, true
			if t.renewed != nil {
				t.renewed.due = min(t.renewed.due, now)
			} else {
				t.queued, t.inHand = true, 0
			}
		}
	case store.EffectRunning:
		a.must(runNowKnows, t != nil && t.phase == claimed, "%s/%s runs", r.Agent, r.ID)
	case store.EffectEnding:
		a.must(runNowKnows, t != nil && t.ending, "%s/%s ends", r.Agent, r.ID)
	case store.EffectStopped:
		a.must(runNowKnows, stopped, "%s/%s is not to run, as everything is paused", r.Agent, r.ID)
	case store.EffectNone:
		a.must(runNowKnows, t == nil, "%s/%s was not found", r.Agent, r.ID)
	default:
	}
}

// Only a dead task can be replayed. Refusals are not compared, as the record may have been dropped by
// then.
func (a orderAudit) replayed(r *store.Replay, e *store.Effect) {
	name := ref{r.Agent, r.ID}
	t, now := a.model.tasks[name], a.now()
	if e.Code != store.EffectDone {
		return
	}
	if !a.must(replayKnows, t != nil && t.phase == ended && t.status == core.StatusFailed && e.Due == now, "%s, due at %s", name, ms(e.Due)) {
		return
	}
	g := a.model.group(t.agent, r.Group)
	g.Failed--
	g.Live++
	a.model.totals.Replayed++
	t.submitted, t.state = now, r.State
	t.history.renew()
	t.history.reason, t.history.moved = "replayed", true
	t.wait(e.Due)
	a.model.look(t)
	a.w.trace("%s is replayed", name)
}

// audited is called with a page of an audit.
func (a orderAudit) audited(_ *audit.Page, page *audit.Result) {
	a.must(auditIsClean, len(page.Faults) == 0, "%v", page.Faults)
}

// sound is called with the report of an audit of the whole store.
func (a orderAudit) sound(report *inspect.AuditReport) {
	a.must(auditIsClean, report.Found == 0, "%v", report.Faults)
}

// wasCancelled is called with the answer that a client got.
// The answer may arrive long after the cancel. By then the task may have been submitted again, so that
// the question is whether it was cancelled at any time.
func (a orderAudit) wasCancelled(agent, id string, status core.Status) {
	if status == core.StatusCancelled {
		a.must(cancelAnswer, a.w.restored || a.model.cancelled[ref{agent, id}], "%s/%s", agent, id)
	}
}
