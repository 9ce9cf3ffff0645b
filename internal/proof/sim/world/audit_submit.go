package world

// What the auditor makes of submits, and of activity.

import (
	"bytes"
	"errors"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// submitAudit is the part of the auditor that looks at submits and touches.
type submitAudit struct{ *auditor }

// submitted is called with a submit that reached the store.
// A submit is all or nothing: either each task has an answer, or none was stored. A refusal for any
// reason changes nothing in the model.
func (a submitAudit) submitted(tasks []store.Submission, placed []store.Submitted, err error) {
	if err != nil {
		a.submitRefused(tasks, err)
		return
	}
	for i := range tasks {
		a.placed(&tasks[i], &placed[i])
		a.model.each(func(w *watcher) {
			if w.submitted != nil {
				w.submitted(&tasks[i], &placed[i])
			}
		})
	}
	// Dead tasks are replayed also beyond the limit.
	created := slices.ContainsFunc(placed, func(p store.Submitted) bool { return p.Created })
	if most := a.w.plan.Settings.MaxTasks; most > 0 && created {
		n := a.model.liveOf(tasks[0].Agent) - a.model.owedOf(tasks[0].Agent)
		a.must(limitIsKept, n <= most, "agent %s has %d live tasks", tasks[0].Agent, n)
	}
}

// It goes by what the store answered, not by what the model expects, so that a first difference is
// reported under the invariant that it breaks and does not spread.
func (a submitAudit) placed(sub *store.Submission, p *store.Submitted) {
	m, now := a.model, a.now()
	r := ref{sub.Agent, sub.ID}
	must, may := a.known(r)
	live := m.live(r)
	switch {
	case p.Created:
		a.must(acceptedOnce, live == nil && (!must || sub.Conflict == store.ConflictReplace), "%s was created, and is known", r)
	case p.Replaced:
		a.must(replacedWasLive, live != nil && sub.Conflict == store.ConflictReplace, "%s was replaced", r)
	default:
		a.must(keptIsKnown, may, "%s was left as it is, and is not known", r)
		return
	}
	// Here the task was created or replaced. A submit that wants a new task has to be refused if the
	// id must be known; if it only may be, either answer is right.
	a.must(conflictIsTold, sub.Conflict != store.ConflictFail || !must, "%s was taken, and is known", r)
	due := max(sub.Due.At, now)
	// A delay counts from the moment when the store takes the submit, by the store's clock: neither
	// the client's clock nor the time on the way matters.
	if sub.Due.At == 0 {
		due = now.Add(max(sub.Due.After, 0))
	}
	a.must(submittedAtDue, p.Due == due, "%s is due at %s, not at %s", r, ms(p.Due), ms(due))
	if p.Created {
		old := m.tasks[r]
		t := &task{ref: r, submitted: now, state: sub.State, owed: sub.Owed}
		m.define(t, sub)
		a.spawned(t)
		t.history.begin()
		m.tasks[r] = t
		t.wait(p.Due)
		m.group(r.agent, t.group).Live++
		m.totals.Submitted++
		m.look(t)
		// A client that asked before the task ended, or after its record was dropped, knows nothing of its history.
		if must && sub.Conflict == store.ConflictReplace && now.Sub(old.at) > patience && a.w.plan.Settings.Kept == 0 {
			a.keptHistory(t, &old.history.info)
		}
		return
	}
	a.replaced(live, sub, p.Due)
}

// spawned asserts that an occurrence is made once.
// An occurrence is booked while its parent is claimed, so that the parent, its definition and the time
// for which it was due name the occurrence, in any process and however often it is booked. define
// recognises an occurrence by the number in the body.
func (a submitAudit) spawned(t *task) {
	parent := a.model.live(ref{t.agent, t.parent})
	if parent == nil || parent.phase != claimed {
		return
	}
	key := spawning{parent.ref, parent.number, parent.lease.due}
	other := a.model.spawned[key]
	a.must(occurrenceOnce, a.w.restored || other == "" || other == t.id, "%s and %s for what was due at %s", t.id, other, ms(key.due))
	a.model.spawned[key] = t.id
}

// replaced gives a task another definition, at once or when its run ends.
func (a submitAudit) replaced(t *task, sub *store.Submission, due moment.Millis) {
	m := a.model
	m.stored[numberOf(sub.Body)] = true
	// The group changes at once, also if the rest of the definition has to wait for a run to end: a
	// submitter who asks for the counts of the new group right away finds the task in it.
	if sub.Group != t.group {
		m.group(t.agent, t.group).Live--
		m.group(t.agent, sub.Group).Live++
	}
	// A run under way keeps the definition that it was claimed with. An order to run once more, or in
	// spite of a pause, was meant for what the task was, and ends here.
	if t.phase == claimed && !a.takenBack(t) {
		t.group = sub.Group // it counts there from now on
		t.renewed, t.queued, t.byHand, t.inHand = &renewal{*sub, due}, false, 0, 0
		return
	}
	if t.phase == claimed {
		m.crash(t)
	}
	m.define(t, sub)
	t.await = nil
	t.state, t.crashes, t.lost, t.ending, t.byHand, t.inHand, t.queued = sub.State, 0, 0, false, 0, 0, false
	t.history.renew()
	t.stirred = true // it joins the line behind the others
	t.wait(due)
	before := t.history.info
	m.look(t)
	a.keptHistory(t, &before)
}

// keptHistory holds that a task which was replaced keeps what it has been through.
// It is off after a restore, as the scheduler may have read the task before the store lost its last
// writes, and for a record that was dropped, of which little is left to compare.
func (a submitAudit) keptHistory(t *task, before *core.TaskInfo) {
	after := &t.history.info
	// Crashes are shown among its runs, and forgotten with the definition that crashed.
	runs := len(before.Runs) - (before.Crashes - after.Crashes)
	same := after.RunCount == before.RunCount && after.ErrorCount == before.ErrorCount && (len(after.Runs) == runs || len(before.Runs) == 20) && bytes.Equal(after.Result, before.Result)
	a.must(replaceKeeps, a.w.restored || same || before.Dropped || t.activity != nil, "%s: %d runs, result %s; before: %d, %s", t.ref, after.RunCount, after.Result, before.RunCount, before.Result)
}

// Any other error is one of the connection or of a full store, and promises nothing.
func (a submitAudit) submitRefused(tasks []store.Submission, err error) {
	var limit *store.LimitError
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &limit) && limit.Quota != "":
		a.model.each(func(w *watcher) {
			if w.refused != nil {
				w.refused(tasks, limit)
			}
		})
	case errors.As(err, &limit):
		// A task that replaces a live one takes no further place, so that only the others count.
		fresh := 0
		for i := range tasks {
			if a.model.live(ref{tasks[i].Agent, tasks[i].ID}) == nil {
				fresh++
			}
		}
		n := a.model.liveOf(limit.Agent)
		a.must(limitIsReal, n+fresh > a.w.plan.Settings.MaxTasks, "agent %s has %d live tasks and was to get %d more", limit.Agent, n, fresh)
	case errors.As(err, &conflict):
		_, may := a.known(ref{conflict.Agent, conflict.ID})
		a.must(conflictIsReal, may, "%v", err)
	}
}

// accepted is called with the answer that a client got.
// The answer arrives later than the store stored the task: by then it may have ended or been
// replaced. What remains true is that its number was stored at some time, unless the store has lost
// its last writes.
func (a submitAudit) accepted(r *draw.Request, out []core.Submitted) {
	for i := range out {
		of := r.Tasks[i]
		a.must(answerIsTrue, out[i].Agent == of.Agent && out[i].ID == of.ID && out[i].Kind == of.Kind, "%s was answered with %+v", of, out[i])
		a.must(nothingIsLost, a.w.restored || a.model.stored[of.Number] || !out[i].Created && !out[i].Replaced, "%s was acknowledged, and never stored", of)
	}
}

// refused is called when a client's submit was refused.
func (submitAudit) refused(*draw.Request, error) {}

// touched is called with activity that reached the store.
func (a submitAudit) touched(touches []store.Touch, out []store.Touched, err error) {
	if err != nil {
		return
	}
	m, now := a.model, a.now()
	for i := range touches {
		in := &touches[i]
		r := ref{in.Agent, in.ID}
		t := m.live(r)
		if t == nil {
			a.firstTouch(in, &out[i])
			continue
		}
		if t.phase == claimed && a.takenBack(t) {
			m.crash(t)
		}
		u := t.activity
		switch {
		// Activity during a run is kept for when it ends: nothing is due yet, and only the first such
		// touch books anything.
		case t.phase == claimed:
			a.must(touchWhileRunning, out[i].Booked == (u.from == 0) && out[i].Due == 0, "%s: %+v", r, out[i])
			if u.from == 0 {
				u.from = now
			}
			u.to = now
		// The task rests. It may be due later than its quiet time says, as the distance to its last
		// run is kept.
		case u.first == 0:
			a.must(touchIsDue, out[i].Booked && out[i].Due >= now.Add(u.pulse.Delay), "%s: due at %s", r, ms(out[i].Due))
			u.first, t.due, t.body = now, out[i].Due, in.Body
		default:
			a.againTouched(t, in, &out[i])
		}
	}
}

func (a submitAudit) firstTouch(in *store.Touch, out *store.Touched) {
	now := a.now()
	a.must(touchIsDue, out.Booked && out.Due == now.Add(in.Pulse.Delay), "%s/%s: due at %s, not %s after %s", in.Agent, in.ID, ms(out.Due), in.Pulse.Delay, ms(now))
	t := &task{ref: ref{in.Agent, in.ID}, submitted: now}
	sub := store.Submission{Agent: in.Agent, ID: in.ID, Kind: in.Kind, Level: in.Level, Body: in.Body}
	a.model.define(t, &sub)
	t.activity = &activity{pulse: in.Pulse, first: now}
	t.history.begin()
	a.model.tasks[t.ref] = t
	t.wait(out.Due)
	a.model.totals.Submitted++
}

// The first touch of a booked run bounds how far later ones may put it off, so that steady activity
// cannot keep a subject waiting for ever.
func (a submitAudit) againTouched(t *task, in *store.Touch, out *store.Touched) {
	now, u := a.now(), t.activity
	if !in.Pulse.Debounce {
		a.must(touchThrottles, out.Due == t.due && !out.Booked, "%s: due at %s, and before at %s", t.ref, ms(out.Due), ms(t.due))
	} else {
		want := max(t.due, min(now.Add(in.Pulse.Delay), u.first.Add(in.Pulse.MaxWait)))
		a.must(touchDebounces, out.Due == want && !out.Booked, "%s: due at %s, not at %s", t.ref, ms(out.Due), ms(want))
	}
	t.due = out.Due
}

// noticed is called with the answer that a client got for recording activity.
func (submitAudit) noticed(*model.Noticed) {}
