package world

// What the auditor makes of the calls of handlers, of events and of reports.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// runAudit is the part of the auditor that looks at runs.
type runAudit struct{ *auditor }

// began is called when a handler was called.
// A claim may have many tasks, so that both are compared: the record of the claim for the process as a
// whole, and the lease of the task, which another process may have taken meanwhile.
func (a runAudit) began(r *run) {
	a.starts++
	now, i := a.now(), r.info
	name := ref{i.Agent, i.ID}
	record := a.model.claims[claimName{a.model.partition(i.Agent), i.Fence}]
	if a.w.restored && (record == nil || record.holder != r.p) {
		return // of a claim that the store has forgotten
	}
	// The later ones of a batch have begun with the call: by when the handler comes to them the store may have been away for a lease.
	if !a.must(startUnderLease, record != nil && (record.end > now || r.later) && record.holder == r.p, "%s under %s", name, a.w.fence(i.Fence)) {
		return
	}
	a.beside(r)
	t := a.model.live(name)
	if t == nil || t.phase != claimed || t.lease.fence != i.Fence {
		return // it was deleted since
	}
	r.task = t
	a.must(startUnderLease, t.lease.end > now || r.later, "%s under %s, which was over at %s", name, a.w.fence(i.Fence), ms(t.lease.end))
	a.must(startOnce, t.lease.began == nil, "%s under %s", name, a.w.fence(i.Fence))
	t.lease.began = r
	a.must(noStartCancelled, !t.lease.ends, "%s", name)
	// After a replacement or a cancel the model already knows the next definition, and the run still
	// has the one that was claimed.
	if t.renewed == nil && !t.ending {
		a.must(startAsClaimed, r.number == t.number && i.Kind == t.kind, "%s is number %d of %s, and was claimed as %d of %s", name, r.number, i.Kind, t.number, t.kind)
	}
	// This is the promise of the due time once more, seen from the handler and from the definition as
	// the client wrote it, so that a rounding on the way to the store would show.
	def := t.def
	if t.ending { // the model may know what the task had become, which was cancelled: the run is of what was claimed
		def = a.w.defs[r.number]
	}
	if def != nil && t.renewed == nil && !t.history.moved {
		a.must(neverEarly, !a.w.clock.Now().Before(def.At), "%s starts at %s, and is due at %s", name, a.w.storeTime(), def.At)
	}
	h := &t.history
	// Every way to another run leaves its reason in the history; a start uses it up.
	a.must(startHasAReason, !h.begun || h.reason != "", "%s", name)
	h.begun, h.reason, h.own = true, "", false
	a.must(crashesAtMost, t.lease.crashes <= a.w.plan.Settings.MaxCrashes, "%s has crashed %d times", name, t.lease.crashes)
	a.must(attemptIsCounted, i.Attempt == h.info.Attempt, "%s is told %d, and it is %d", name, i.Attempt, h.info.Attempt)
	if t.activity != nil || t.def != nil {
		a.must(attemptsAtMost, i.Attempt <= a.w.attempts(t), "%s: %d of %d", name, i.Attempt, a.w.attempts(t))
	}
	// The interval is measured from claim to claim, of tasks that recur in place; what was claimed ahead of its time starts when it is due.
	if t.def != nil && t.def.MinInterval > 0 && h.last != 0 && t.parent == "" {
		a.must(minIntervalKept, max(t.lease.from, t.lease.due) >= h.last.Add(t.def.MinInterval), "%s: claimed at %s, and before at %s", name, ms(t.lease.from), ms(h.last))
	}
	h.last = t.lease.from
	a.model.each(func(w *watcher) {
		if w.began != nil {
			w.began(r)
		}
	})
}

// beside holds what may run at once in a process.
// Runs whose context is done do not count: the scheduler may have given their slots to others already.
func (a runAudit) beside(r *run) {
	all, same, suspects := 0, 0, [store.SuspectSorts]int{}
	for _, o := range a.w.runs {
		if o.p != r.p || o.ctx.Err() != nil {
			continue
		}
		all++
		if o.info.Kind == r.info.Kind {
			same++
		}
		if sort := store.SuspectSort(o.info.Crashes); sort >= 0 {
			suspects[sort]++
		}
	}
	if r.lent { // asks for what it has room for, and knows no more
		return
	}
	a.must(slotsAtMost, all <= r.p.plan.Concurrency, "%s runs %d with %d slots", r.p.name, all, r.p.plan.Concurrency)
	a.must(kindSlotsAtMost, r.info.Kind != "tight" || same <= 1, "%s runs %d of %s", r.p.name, same, r.info.Kind)
	for sort, most := range [store.SuspectSorts]int{max(1, r.p.plan.Concurrency/2), min(2, r.p.plan.Concurrency), 1} {
		a.must(suspectsAtMost, suspects[sort] <= most, "%s runs %d with %d crashes, and has %d slots", r.p.name, suspects[sort], sort+1, r.p.plan.Concurrency)
	}
}

// ended is called when a handler returns.
// It sees what the handler returns before the scheduler does. The cause is noted now because the
// context of a run may be done later for reasons that had no part in it.
func (a runAudit) ended(r *run) {
	r.ended = true
	if def := a.w.defs[r.number]; r.task != nil && def != nil {
		r.task.history.own = r.outcome == draw.Cancel
		r.task.history.tells = r.task.history.own && def.Callback != ""
	}
	if r.outcome != draw.Fail && r.ctx.Err() == nil {
		r.p.completed[r.info.Kind] = true
	}
	a.inItsTime(r)
	if r.ctx.Err() != nil && !r.stuck {
		r.cause = context.Cause(r.ctx)
	}
}

// inItsTime asserts that a handler's context was cancelled when its time was up.
// A process that was frozen during the run could not do that, and is not blamed.
func (a runAudit) inItsTime(r *run) {
	late := a.w.elapsed() - r.begun - a.w.plan.Settings.Timeout
	if r.info.Kind == "timed" && r.p.frozen < r.begun {
		a.must(timeoutIsTold, late <= 0 || r.ctx.Err() != nil, "%s/%s goes on %s after its timeout", r.info.Agent, r.info.ID, late)
	}
}

// reached asserts that runs were notified of what their heartbeats reported.
func (a runAudit) reached(runs []*run) {
	for _, r := range runs {
		a.must(cancelReachesRun, r.ended || r.ctx.Err() != nil, "%s/%s on %s", r.info.Agent, r.info.ID, r.p.name)
	}
}

// The model needs neither: what a dead process had claimed is known from its leases.
func (runAudit) died(*process)    {}
func (runAudit) stopped(*process) {}

// saw is called with each event, from many goroutines.
// It runs in goroutines of the process, so that its lines of the story are sorted later.
func (w *World) saw(p *process, e *core.Event) {
	switch e.Type {
	case model.EventStuck:
		w.stuck(p, e)
	case model.EventStart, model.EventFinish, model.EventRelease, model.EventLost:
		if w.over.Load() {
			return
		}
		w.traceEvent(p, e)
		record := w.audit.model.claims[claimName{w.audit.model.partition(e.Agent), e.Fence}]
		w.audit.must(eventsAreEarned, w.restored || record != nil && record.holder == p, "%s of %s/%s under %d", e.Type, e.Agent, e.ID, e.Fence)
		if e.Type == model.EventLost {
			record.ends(ref{e.Agent, e.ID}, w, 0)
		}
	default:
	}
}

// traceEvent traces a run that a process has given up. Events come from many goroutines in no order: they are sorted and written
// once all of these wait.
func (w *World) traceEvent(p *process, e *core.Event) {
	if w.story != nil && e.Type == model.EventLost {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.news = append(w.news, news{fmt.Sprintf("%s  gives %s/%s up", p.name, e.Agent, e.ID), e.Fence, e.Error})
	}
}

// news is something that an event reported.
type news struct {
	what  string
	fence store.Fence
	why   string
}

// tellNews adds what events reported to the story.
func (w *World) tellNews() {
	if w.story == nil {
		return
	}
	w.mu.Lock()
	all := w.news
	w.news = nil
	w.mu.Unlock()
	slices.SortFunc(all, func(a, b news) int { return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.fence, b.fence)) })
	for _, n := range all {
		w.trace("%s, under %s: %s", n.what, w.fence(n.fence), n.why)
	}
}

// stuck records that the handler of a run was abandoned: what it returns no longer counts.
// The auditor takes such a run for a failed one, and for what ended its context: see outcome.said.
func (w *World) stuck(p *process, e *core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		if r.p == p && r.info.Agent == e.Agent && r.info.ID == e.ID && r.info.Fence == e.Fence {
			r.stuck, r.cause = true, context.Cause(r.ctx)
		}
	}
}

// reported is called with the report of a pull.
func (w *World) reported(p *process, r *core.Report, err error) {
	if w.over.Load() {
		return
	}
	w.audit.must(reportAddsUp, r.Completed <= r.Ran, "%s: %d ran, %d completed (%v)", p.name, r.Ran, r.Completed, err)
}

// activityScript is what a run of an activity task does: every third one fails.
// Activity tasks have no definition of their own to hold a script.
func (w *World) activityScript(r *run) *draw.Script {
	w.begunRuns[0]++
	s := &draw.Script{Heed: true, Then: draw.Succeed, Work: w.pauses.Span(0, w.plan.Settings.Lease)}
	if w.begunRuns[0]%3 == 0 {
		s.Then = draw.Fail
	}
	_ = r
	return s
}

// mostAtOnce is far more than all that a history has to do in one moment.
const mostAtOnce = 20_000

// timePasses asserts that a history comes to an end: however much there is to do, time passes at some point.
func (a runAudit) timePasses() {
	if now := a.w.elapsed(); now != a.since {
		a.since, a.atOnce = now, 0
	}
	a.atOnce++
	a.must(nobodySpins, a.atOnce < mostAtOnce, "%d steps, and no time has passed", a.atOnce)
}
