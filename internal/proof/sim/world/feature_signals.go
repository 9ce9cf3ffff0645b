package world

// The row of signals: tasks that wait for a signal, the clients that send one, and a crowd that waits for the same key.

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	signalTellsAll   = invariant("signal-tells-all", "41", "A signal that was sent has told every task that waited for its key, however many there are.")
	signalToOneOnly  = invariant("signal-to-one-occurrence", "41", "What was heard is told to the runs of one occurrence, also when that fails, and to no other.")
	signalIsKept     = invariant("signal-is-kept", "41", "A signal that nobody waits for is kept for the first that does, and for nobody else.")
	signalTimesOut   = invariant("signal-times-out", "41", "A task that nobody has told anything in time runs, fails or is cancelled, as it said.")
	awaitIsUncharged = invariant("await-uncharged", "41", "A run that waits for a signal charges nothing, and its task is due when its patience is over.")
)

// The requests and the outcome of signals.
const (
	AskSignal draw.RequestKind = "signal"
	Await     draw.Outcome     = "await"
)

// What the tasks of a crowd wait for, whose they are, and how many there are: more than one step of a signal tells.
const (
	crowdAgent = "dan"
	crowdKey   = "crowd"
	crowdSize  = 105
)

var signals = &feature{
	name:  "signals",
	verbs: []string{"Signal", "Heard"},
	holds: []held{
		{signalTellsAll, "signal-page"},
		{signalToOneOnly, "signal-outlives-failure"},
		{signalIsKept, "signal-overwritten"},
		{signalTimesOut, "signal-never-too-late"},
		{awaitIsUncharged, "await-charged"},
	},
	plan:    planSignals,
	asks:    map[draw.RequestKind]asking{AskSignal: askSignal},
	returns: map[draw.Outcome]func(r *run) error{Await: func(r *run) error { return core.Await(r.script.Signal, r.number) }},
	watch:   watchSignals,
}

// planSignals draws tasks that wait, and signals, some of which come first.
func planSignals(g *draw.Generator) {
	if g.In(70) {
		return
	}
	key := func() string { return draw.One(g.Dice, "yes", "yes", "no") }
	script := func() draw.Script {
		s := g.Script(false)
		s.Then, s.Submits = Await, nil
		s.Signal = core.Signal{Key: key(), OnTimeout: draw.One(g.Dice, "", core.TimeoutRun, core.TimeoutFail, core.TimeoutCancel)}
		if g.In(60) {
			s.Signal.Timeout = g.Span(100*time.Millisecond, 15*time.Second)
		}
		return s
	}
	for range 1 + g.IntN(4) {
		r := draw.Request{At: g.Span(0, g.Plan.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: g.Agent(), ID: g.ID()}
		def := g.Definition(r.Agent, r.ID, false)
		if def.Kind == "batch" {
			def.Kind = "plain"
		}
		def.Scripts = append([]draw.Script{script()}, def.Scripts...)
		if g.In(50) { // another occurrence, or attempt, waits too
			def.Scripts = append(def.Scripts, script(), g.Script(false))
		}
		r.Tasks = []*draw.Definition{def}
		g.Plan.Requests = append(g.Plan.Requests, r)
	}
	for range 2 + g.IntN(6) {
		g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: g.Span(0, g.Plan.Horizon), Process: g.IntN(4), Kind: AskSignal, Agent: g.Agent(), Key: key()})
	}
	if g.Plan.Settings.MaxTasks == 0 && g.In(15) {
		crowd(g)
	}
}

// crowd draws tasks of one agent that wait for the same signal, without a timeout.
func crowd(g *draw.Generator) {
	for at := 0; at < crowdSize; at += 35 {
		r := draw.Request{At: 0, Process: g.IntN(4), Kind: draw.AskSubmit, Agent: crowdAgent}
		for i := at; i < at+35; i++ {
			g.Numbers++
			def := &draw.Definition{Number: g.Numbers, Scripts: []draw.Script{{Then: Await, Signal: core.Signal{Key: crowdKey}}}}
			def.NewTask = core.NewTask{Agent: r.Agent, ID: fmt.Sprintf("w%03d", i), Kind: "plain", Payload: draw.Payload{Number: def.Number}}
			r.Tasks = append(r.Tasks, def)
		}
		g.Plan.Requests = append(g.Plan.Requests, r)
	}
	g.Plan.Requests = append(g.Plan.Requests, draw.Request{At: g.Plan.Horizon - time.Second, Process: g.IntN(4), Kind: AskSignal, Agent: crowdAgent, Key: crowdKey})
}

// A signal contains the number of its request, so that its receiver can be matched with it.
func askSignal(ctx context.Context, w *World, p *process, r *draw.Request) (func(), error) {
	m, before := w.audit.model, map[ref]store.Fence{}
	for name, t := range m.tasks { // the driver waits while a request begins
		if t.await != nil && t.await.key == r.Key && t.agent == r.Agent && t.phase == waiting {
			before[name] = t.await.fence
		}
	}
	out, err := p.s.Signal(ctx, r.Agent, r.Key, json.RawMessage(strconv.Itoa(w.signalled(r))))
	return func() {
		if err != nil || w.restored {
			return
		}
		w.audit.must(signalIsKept, !out.Kept || out.Resumed == 0, "%s of %s was told to %d, and is kept", r.Key, r.Agent, out.Resumed)
		for name, fence := range before {
			t := w.audit.model.live(name)
			left := t != nil && t.phase == waiting && t.await != nil && t.await.fence == fence && t.await.told == ""
			w.audit.must(signalTellsAll, !left, "%s waits for %s, which was sent and is answered", name, r.Key)
		}
	}, err
}

// signalled is a number for a signal, which no other has.
func (w *World) signalled(r *draw.Request) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said++
	_ = r
	return w.said
}

// awaiting is the signal that a task waits for, as stored, and what it has received.
type awaiting struct {
	key   string
	fence store.Fence // of the run that has begun to wait
	told  string
	early bool

	wait     store.Fence // what distinguishes it from other waits of the task
	approval bool        // only an approval ends the wait
}

// earlySignal is a signal that no task has waited for yet.
type earlySignal struct {
	payload  string
	until    moment.Millis
	approval bool
}

// watchSignals keeps what waits and what was said.
func watchSignals(a *auditor, m *storeModel) watcher {
	kept := map[[2]string]earlySignal{}
	return watcher{
		called: func(_ *call, request, answer any) {
			if all, ok := request.([]store.Signal); ok {
				answers, _ := answer.([]store.Signalled)
				for i := range all {
					a.signalled(m, kept, &all[i], &answers[i])
				}
			}
		},
		settled: func(s *store.Settlement, t *task, answer *store.Settled) { a.waits(kept, s, t, answer) },
		began:   a.hears,
		decided: a.awaits,
		kind:    a.w.tellAll,
	}
}

// signalled is called with a signal that reached the store. Which tasks a step of many reached is read behind the bus.
func (a *auditor) signalled(m *storeModel, kept map[[2]string]earlySignal, n *store.Signal, answer *store.Signalled) {
	if repeated(n, answer) {
		return
	}
	now, name := a.now(), [2]string{n.Agent, n.Key}
	told, left, unapproved := 0, "", false
	for _, t := range m.sorted() {
		if t.agent != n.Agent || t.await == nil || t.await.key != n.Key || t.await.told != "" || t.phase == ended {
			continue
		}
		if t.phase == claimed && !a.takenBack(t) { // it has waited for too long, and runs
			continue
		}
		if t.phase == claimed {
			m.crash(t)
		}
		if t.await == nil { // it was replaced
			continue
		}
		if !a.meant(n, t) {
			unapproved = unapproved || t.await.approval && (n.ID == "" || n.ID == t.id && n.Wait == t.await.wait)
			continue
		}
		heard, err := a.w.store.Heard(a.w.ctx, []store.Wait{{Agent: t.agent, ID: t.id, Key: n.Key}})
		if err != nil || heard[0] == nil {
			left = t.id
			continue
		}
		told++
		t.await.told = string(heard[0].Payload)
		if t.due > now {
			t.due, t.parked, t.history.last = now, false, 0 // in spite of what keeps it apart from the run before
		}
	}
	a.must(signalTellsAll, answer.More || left == "", "%s of %s was not told %s", left, n.Agent, n.Key)
	a.must(signalTellsAll, answer.Resumed == told, "%d tasks were told %s, not %d", told, n.Key, answer.Resumed)
	early := kept[name]
	switch answer.Code {
	case store.SignalTaken:
		a.must(signalIsKept, told == 0 && early.until > now, "%s of %s was refused, and none is kept", n.Key, n.Agent)
	case store.SignalResumed:
	case store.SignalKept:
		a.must(signalIsKept, told == 0 && left == "" && early.until <= now, "%s of %s is kept", n.Key, n.Agent)
		a.must(answerIsForOne, n.ID == "", "the answer to %s of %s is kept for others", n.Key, n.Agent)
		kept[name] = earlySignal{string(n.Payload), now.Add(n.Keep), n.Approval}
	case store.SignalClosed:
		a.must(answerIsForOne, told == 0 && n.ID != "", "%s of %s is for a wait that has ended, and has told %d", n.Key, n.Agent, told)
	case store.SignalUnapproved:
		a.must(approvalCounts, told == 0 && unapproved && !n.Approval, "%s of %s is refused as no approval, and nobody wants one", n.Key, n.Agent)
	}
	a.w.trace("the signal %s of %s tells %d tasks (%d)", n.Key, n.Agent, told, answer.Code)
}

// waits notes what a settlement says that its task waits for. One that was replaced waits for nothing any more.
func (a *auditor) waits(kept map[[2]string]earlySignal, s *store.Settlement, t *task, _ *store.Settled) {
	if t.renewed != nil || s.Verb.Ends() {
		t.await = nil
		return
	}
	if s.Await == nil {
		return
	}
	if s.Await.Heard {
		t.await = nil
	}
	if s.Await.Key == "" {
		return
	}
	name := [2]string{t.agent, s.Await.Key}
	t.await = &awaiting{key: s.Await.Key, fence: s.Fence, wait: s.Await.Wait, approval: s.Await.Approval}
	early := kept[name]
	if early.until > a.now() && t.await.approval && !early.approval {
		return // it is kept for another task
	}
	if early.until > a.now() {
		t.await.told, t.await.early = early.payload, true
	}
	delete(kept, name)
}

// hears checks the signal that a run receives, by the history of its occurrence: what the store recorded about it does not count.
func (a *auditor) hears(r *run) {
	t := r.task
	if t == nil || t.renewed != nil || t.ending {
		return
	}
	heard, waited := r.info.Heard()
	// A store that is restored may have forgotten that the run that asked for the wait had begun.
	a.must(signalToOneOnly, a.w.restored || waited == t.history.awaits, "%s is told of a wait: %v, and has waited: %v", t.ref, waited, t.history.awaits)
	if !waited || t.await == nil {
		return
	}
	a.must(signalToOneOnly, heard.Told == (t.await.told != "") && string(heard.Payload) == t.await.told, "%s is told %q, not %q", t.ref, heard.Payload, t.await.told)
	if !heard.Told && t.history.patience != 0 {
		late := heard.TimedOut && (t.history.patience <= a.now() || t.def.MinInterval > 0) && t.history.then != core.TimeoutFail && t.history.then != core.TimeoutCancel
		a.must(signalTimesOut, late || !heard.TimedOut, "%s was to wait until %s, and then to %s", t.ref, ms(t.history.patience), t.history.then)
		a.must(signalTimesOut, heard.TimedOut || t.history.patience > t.lease.from, "%s is not told that nobody came until %s", t.ref, ms(t.history.patience))
	}
}

// awaits checks the outcome of a task that waits, or has waited, and reports whether its occurrence still does.
func (a *auditor) awaits(o *outcome) bool {
	h := &o.t.history
	switch {
	case o.ending, o.t.spawns(), o.s.Verb == store.VerbRelease, o.run != nil && o.cutOff():
		return false
	case o.run == nil:
		return h.awaits && a.gaveUp(o)
	}
	switch said := o.said(); {
	case said == Await:
		same := o.after.Attempt == o.before.Attempt && o.after.ErrorCount == o.before.ErrorCount+int64(o.lease.crashes)
		a.must(awaitIsUncharged, o.s.Verb == store.VerbAgain && same, "%s: %q, attempt %d after %d", o.t.ref, o.s.Verb, o.after.Attempt, o.before.Attempt)
		h.awaits, h.last, h.patience, h.then, h.cuts = true, 0, 0, o.run.script.Signal.OnTimeout, 0
		if o.run.script.Signal.Timeout != 0 {
			h.patience = o.s.Due.At
			late := h.patience.Sub(a.now()) <= o.run.script.Signal.Timeout+o.t.def.MinInterval
			a.must(awaitIsUncharged, late, "%s waits until %s, not for %s", o.t.ref, ms(h.patience), o.run.script.Signal.Timeout)
		}
		return true
	case said == draw.Yield, said == draw.Succeed, said == draw.NextIn, a.outcomes.failedAttempt(o) && o.after.Attempt == 1:
		h.awaits = false
	}
	return false
}

// gaveUp checks the outcome of a task whose handler was not called, as no signal came, or as the process could not read it.
func (a *auditor) gaveUp(o *outcome) bool {
	h := &o.t.history
	// The wait may have ended before its task was due, which keeps its minimum interval; a run by hand then finds no signal.
	over := h.patience != 0 && h.patience <= a.now().Add(o.t.def.MinInterval)
	switch {
	case o.s.Verb == store.VerbAgain && o.s.Due.After != 0 && o.after.Attempt == o.before.Attempt && o.after.ConsecutiveFailures == o.before.ConsecutiveFailures:
		return true // the store did not return the signal
	case o.lease.crashes > a.w.plan.Settings.MaxCrashes:
		return false
	case o.s.Verb == store.VerbCancel:
		a.must(signalTimesOut, h.then == core.TimeoutCancel && over, "%s was cancelled, and was to wait until %s", o.t.ref, ms(h.patience))
	default:
		a.must(signalTimesOut, h.then == core.TimeoutFail && over, "%s has failed, and was to wait until %s", o.t.ref, ms(h.patience))
	}
	h.awaits = false
	return true
}

// tellAll sends each signal that a task waits for.
func (w *World) tellAll() {
	asked := map[[2]string]bool{}
	p := w.processes[len(w.processes)-1]
	for _, t := range w.audit.model.sorted() {
		if t.phase == ended || t.await == nil || t.await.told != "" || strings.HasPrefix(t.await.key, overKey) || asked[[2]string{t.agent, t.await.key}] {
			continue
		}
		asked[[2]string{t.agent, t.await.key}] = true
		w.ask(&draw.Request{Kind: AskSignal, Agent: t.agent, Key: t.await.key, Process: p.index})
	}
}
