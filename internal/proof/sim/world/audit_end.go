package world

// What has to be true of the store when a history is over: counters, lists, groups, explanations.

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// balanceAudit is the part of the auditor that looks at what is true of the store when a history is over.
type balanceAudit struct{ *auditor }

// targetsInForce are the pauses in force, in one order.
// The model drops no pause when its time is over, as the store need not either: those are left out here.
func (m *storeModel) targetsInForce(now moment.Millis) []store.Target {
	var all []store.Target
	for target, h := range m.holds {
		if h.inForce(now) {
			all = append(all, target)
		}
	}
	slices.SortFunc(all, func(a, b store.Target) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// balance compares all that the store says of itself with the model.
// It reads everything through a scheduler of its own, past the bus, so that no fault can come in
// between.
func (a balanceAudit) balance() {
	report, err := a.w.reader.Audit(a.w.ctx, inspect.AuditOptions{})
	live := 0
	for _, t := range a.model.tasks {
		if t.phase != ended {
			live++
		}
	}
	a.must(auditIsClean, err == nil && report.Found == 0, "%v %v", report.Faults, err)
	a.must(auditIsWhole, report.Tasks == live, "%d tasks, not %d", report.Tasks, live)
	a.balanceStats(live)
	a.balanceGroups()
	for _, agent := range everybody {
		a.balanceList(agent)
	}
	for _, t := range a.model.sorted() {
		a.explained(t)
	}
	a.balancePauses()
	a.balanceAgents()
}

// The total of recovered leases is not compared: the store counts them when it finds them,
// which the model learns only afterwards.
func (a balanceAudit) balanceStats(live int) {
	st, err := a.w.reader.Stats(a.w.ctx)
	if err != nil {
		a.must(statsAreTrue, false, "%v", err)
		return
	}
	running, ofKind := 0, map[string]int{}
	for _, t := range a.model.tasks {
		if t.phase == claimed && !t.lease.over {
			running++
		}
		if t.phase != ended {
			ofKind[t.shown()]++
		}
	}
	a.must(statsAreTrue, int(st.Waiting+st.Resting+st.InProgress) == live, "%d waiting, %d resting, %d running; %d are live", st.Waiting, st.Resting, st.InProgress, live)
	// A run whose lease is over is counted as in progress until a claim finds it, so that this is a
	// bound.
	a.must(statsAreTrue, int(st.InProgress) >= running, "%d running, not %d", st.InProgress, running)
	seen := map[string]bool{}
	for i := range st.Kinds {
		k := &st.Kinds[i]
		seen[k.Kind] = true
		a.must(kindsAreTrue, int(k.Live) == ofKind[k.Kind], "%s: %d, not %d", k.Kind, k.Live, ofKind[k.Kind])
	}
	for kind, n := range ofKind {
		a.must(kindsAreTrue, seen[kind], "%s is missing, and has %d", kind, n)
	}
	want := &a.model.totals
	got := count.Counters{
		Submitted: st.Submitted, Completed: st.Completed, Failed: st.Failed, Cancelled: st.Cancelled, Again: st.Again, Released: st.Released,
		Replayed: st.Replayed, Deleted: st.Deleted, Recovered: want.Recovered,
	}
	a.must(totalsAreTrue, got == *want, "%+v, not %+v", got, *want)
}

// shown is the kind that a task is counted under: if a definition waits for its run to end, that definition's kind.
func (t *task) shown() string {
	if t.renewed != nil {
		return t.renewed.sub.Kind
	}
	return t.kind
}

func (a balanceAudit) balanceGroups() {
	if a.w.plan.Settings.Retention != 0 {
		return // those that are over are forgotten
	}
	for _, agent := range everybody {
		for _, name := range draw.Groups[2:] {
			want := a.model.group(agent, name)
			got, _ := a.w.reader.Group(a.w.ctx, agent, name) // an error: there is none, and so are the counts
			a.must(groupIsTrue, store.GroupCounts(got) == *want, "%s of %s: %+v, not %+v", name, agent, got, *want)
			status := core.Status("")
			switch {
			case want.Failed > 0:
				status = core.StatusFailed
			case want.Live > 0:
				status = core.StatusInProgress
			case want.Completed > 0:
				status = core.StatusCompleted
			case want.Cancelled > 0:
				status = core.StatusCancelled
			}
			a.must(groupStatus, got.Status() == status, "%s of %s is %s, not %s", name, agent, got.Status(), status)
		}
	}
}

// balanceList compares the list of an agent's tasks.
// Pages are small, so that a list takes several, and a task that falls between two pages is missing here.
func (a balanceAudit) balanceList(agent string) {
	seen := map[string]core.TaskInfo{}
	for cursor := ""; ; {
		page, next, err := a.w.reader.Tasks(a.w.ctx, core.List{Agent: agent, Cursor: cursor, Limit: 7})
		if err != nil {
			a.must(listIsWhole, false, "%v", err)
			return
		}
		for _, info := range page {
			_, twice := seen[info.ID]
			a.must(listIsTrue, !twice, "%s/%s is listed twice", agent, info.ID)
			seen[info.ID] = info
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	now, finished := a.now(), map[bool]int{}
	known := map[bool]int{}
	for _, t := range a.model.sorted() {
		if t.agent != agent {
			continue
		}
		info, listed := seen[t.id]
		if t.phase != ended {
			a.must(listIsWhole, listed && !info.Status.Finished(), "%s is not listed", t.ref)
			a.must(statusIsTrue, info.Status == t.expected() || t.phase == claimed && t.lease.over, "%s is listed as %s, not %s", t.ref, info.Status, t.expected())
			continue
		}
		if age := now - t.at; age >= a.model.retention() {
			a.must(retentionApplies, !listed, "%s ended at %s, and is listed", t.ref, ms(t.at))
			continue
		}
		// Failed tasks have a cap of their own: many that succeed must not push out those that an
		// operator has to look at.
		dead := t.status == core.StatusFailed
		known[dead]++
		if listed && !info.Dropped {
			finished[dead]++
		}
		info, err := a.w.reader.Task(a.w.ctx, agent, t.id)
		a.must(idIsKnown, err == nil && info.Status == t.status, "%s is %s: %v", t.ref, info.Status, err)
	}
	for id := range seen {
		a.must(listIsTrue, a.model.tasks[ref{agent, id}] != nil, "%s/%s does not exist", agent, id)
	}
	kept := a.w.plan.Settings.Kept
	for _, dead := range []bool{false, true} {
		most := known[dead]
		if kept > 0 {
			most = min(most, kept)
		}
		a.must(historyCap, finished[dead] <= most, "%d finished tasks of %s are kept, not %d", finished[dead], agent, most)
		a.must(historyKept, finished[dead] >= most || a.deletions(), "%d finished tasks of %s are kept, not %d", finished[dead], agent, most)
	}
}

// deletions reports whether a history has requests that take records away in the middle.
// In such a history fewer records than the cap allows may be left, and only the upper bound is held.
func (a balanceAudit) deletions() bool {
	return slices.ContainsFunc(a.w.plan.Requests, func(r draw.Request) bool {
		return r.Kind == draw.AskDelete || r.Kind == draw.AskReplay || r.Kind == draw.AskSubmit && a.w.plan.Settings.Kept > 0
	})
}

// Three agents fit into one page.
func (a balanceAudit) balanceAgents() {
	page, _, err := a.w.reader.Agents(a.w.ctx, 0, "")
	got := map[string]int{}
	for _, agent := range page {
		got[agent.Agent] = int(agent.Live)
	}
	for _, agent := range everybody {
		n := a.model.liveOf(agent)
		a.must(agentsAreListed, err == nil && got[agent] == n, "%s has %d live tasks, and is listed with %d: %v", agent, n, got[agent], err)
	}
}

func (a balanceAudit) balancePauses() {
	var got []store.Target
	for cursor := ""; ; {
		page, next, err := a.w.reader.Pauses(a.w.ctx, 0, cursor)
		if err != nil {
			a.must(pausesAreListed, false, "%v", err)
			return
		}
		for _, p := range page {
			got = append(got, p.Target)
			h := a.model.holds[p.Target]
			// One that was given in the millisecond of an order to run begins in the next.
			late := p.Since.Sub(h.since.Time())
			a.must(pausesAreTrue, late >= 0 && late <= 2*time.Millisecond && p.Until.Equal(h.until.Time()), "%s: since %s until %s, not %s until %s", p.Target, p.Since, p.Until, ms(h.since), ms(h.until))
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	slices.SortFunc(got, func(a, b store.Target) int { return strings.Compare(a.String(), b.String()) })
	want := a.model.targetsInForce(a.now())
	a.must(pausesAreListed, slices.Equal(got, want), "%v, not %v", got, want)
}

// explained compares an explanation with what is known of its task.
// It is called in the middle of histories too, so that explanations are compared while tasks run.
func (a balanceAudit) explained(t *task) {
	e, err := a.w.reader.Explain(a.w.ctx, t.agent, t.id)
	if err != nil {
		must, _ := a.known(t.ref)
		a.must(explainFinished, !must, "%s: %v", t.ref, err)
		return
	}
	if t.phase == claimed && t.lease.over {
		return // the store may have taken it back
	}
	has := func(code model.BecauseCode) bool {
		return slices.ContainsFunc(e.Reasons, func(b model.Because) bool { return b.Code == code })
	}
	first := e.Reasons[0]
	now := a.now()
	a.must(explainFinished, has(model.BecauseFinished) == (t.phase == ended), "%s: %s", t.ref, first.Text)
	a.must(explainRuns, has(model.BecauseRunning) == (t.phase == claimed), "%s: %s", t.ref, first.Text)
	a.must(explainEnding, has(model.BecauseEnding) == t.ending, "%s: %s", t.ref, first.Text)
	// A task that is about to end or to become another is under no pause that matters to a reader.
	if t.phase == ended || t.ending || t.renewed != nil {
		return
	}
	pauses := 0
	for _, b := range e.Reasons {
		if b.Code == model.BecausePaused {
			pauses++
		}
	}
	held := a.model.held(t, now)
	a.must(explainPaused, pauses == len(held), "%s: %s, and it is under %v", t.ref, first.Text, held)
	if t.phase != waiting || len(held) > 0 || t.resting() {
		return
	}
	// For a kind that no process has a handler for, that may be the first reason instead.
	if t.due > now {
		a.must(explainDue, first.Until.Equal(t.due.Time()) || has(model.BecauseNoHandler), "%s: %s, and it is due at %s", t.ref, first.Text, ms(t.due))
	} else {
		limited := (has(model.BecauseLimited) || has(model.BecauseBudget)) && a.model.limited(t)
		a.must(explainOverdue, limited || has(model.BecauseWaiting) || has(model.BecauseNoHandler) || has(model.BecauseSerial), "%s: %s", t.ref, first.Text)
	}
}
