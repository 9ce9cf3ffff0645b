package world

// The driver: all possible next steps are in a line, and it lets one of them happen.

import (
	"cmp"
	"slices"
	"testing/synctest"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// candidate is something that can happen now.
// Its kind says which of the other fields is set. Requests and faults have none: they happen in the
// order of the plan.
type candidate struct {
	kind  int
	index int // of its process
	call  *call
	timer *timer
	nap   *nap
	run   *run
}

const (
	aCall = iota
	anExpiry
	aTimer
	aNap
	aRun
	aRequest
	aFault
)

// play lets things happen until a time, or until done says so.
// Each round first waits until no goroutine can go on, then shows the auditor what has come of the
// step before, and only then chooses. So what the auditor is shown here is the whole of a step.
func (w *World) play(until time.Duration, done func() bool) {
	for !w.audit.failed() {
		synctest.Wait()
		// What goroutines have reported since the last step comes in no order: each of these sorts it
		// first.
		w.tellNews()
		w.meetRuns()
		w.hearClients()
		w.audit.model.each(func(e *watcher) {
			if e.step != nil {
				e.step()
			}
		})
		// The runs whose heartbeat was answered in the last step have had their chance to be notified
		// by now.
		w.audit.runs.reached(w.expected)
		w.expected = w.expected[:0]
		if w.audit.failed() || done() {
			return
		}
		// Time passes only when nothing can happen now. A history is thus as dense as its plan allows,
		// and two things that could happen at once are tried in either order by different seeds.
		next := w.candidates()
		if len(w.line) > 0 {
			w.steps++
			w.audit.runs.timePasses()
			w.happen(&w.line[w.choices.IntN(len(w.line))])
			continue
		}
		if next > until {
			if until > w.elapsed() {
				time.Sleep(until - w.elapsed())
			}
			return
		}
		time.Sleep(next - w.elapsed())
	}
}

// candidates fills the line with what can happen now, in one order, and returns when more can.
func (w *World) candidates() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = w.line[:0]
	now := w.elapsed()
	next := w.never()
	// Whether the store is full is decided once for a step, so that a call that is made twice meets
	// the same.
	w.full = w.fullUntil > now
	w.lineUpCalls(now, &next)
	for _, p := range w.processes {
		if p.asleep(now) {
			// A frozen process can act again when it thaws: the clock must not jump past that.
			if !p.dead {
				next = min(next, p.frozen)
			}
			continue
		}
		for _, t := range p.timers {
			w.lineUp(candidate{kind: aTimer, index: p.index, timer: t}, t.at, now, &next)
		}
		for _, n := range p.naps {
			w.lineUp(candidate{kind: aNap, index: p.index, nap: n}, n.at, now, &next)
		}
	}
	w.lineUpRuns(now, &next)
	// The kind world plays no planned request or fault. What was planned for later than the horizon
	// never happens.
	if !w.kind {
		if w.asked < len(w.plan.Requests) {
			w.lineUp(candidate{kind: aRequest}, w.plan.Requests[w.asked].At, now, &next)
		}
		if w.befallen < len(w.plan.Faults) {
			w.lineUp(candidate{kind: aFault}, w.plan.Faults[w.befallen].At, now, &next)
		}
		next = min(next, w.plan.Horizon)
	}
	// Time always advances, also if something is due at this very moment that could not be lined up.
	return max(next, now+1)
}

// What is not yet due only brings the next moment nearer.
func (w *World) lineUp(c candidate, at, now time.Duration, next *time.Duration) {
	if at <= now {
		w.line = append(w.line, c)
		return
	}
	*next = min(*next, at)
}

// lineUpCalls adds the calls of the store that wait to be decided about, or for whom it is too late. The mutex is held.
// A process that is dead or frozen neither sends nor receives: its calls stay where they are, also those
// that were sent before. The sort makes the line depend on what is called, not on which goroutine was
// first.
func (w *World) lineUpCalls(now time.Duration, next *time.Duration) {
	begin := len(w.line)
	for _, c := range w.calls {
		if c.p.asleep(now) {
			continue
		}
		if !c.given {
			if c.ctx.Err() != nil {
				w.line = append(w.line, candidate{kind: anExpiry, index: c.p.index, call: c})
				continue
			}
			if at, ends := w.deadline(c.ctx); ends {
				*next = min(*next, max(at, now+1))
			}
		}
		w.lineUp(candidate{kind: aCall, index: c.p.index, call: c}, c.at, now, next)
	}
	if mine := w.line[begin:]; len(mine) > 1 {
		slices.SortStableFunc(mine, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.call.label(), b.call.label()))
		})
	}
}

// lineUpRuns adds the handlers whose next step has come. The mutex is held.
// A handler that heeds its context may return as soon as that is done; one that does not returns only
// when its work is over, as a handler that ignores its context does.
func (w *World) lineUpRuns(now time.Duration, next *time.Duration) {
	for _, r := range w.runs {
		if r.p.asleep(now) || r.busy {
			continue
		}
		at := r.at
		if r.ctx.Err() != nil && r.script.Heed {
			at = now
		}
		w.lineUp(candidate{kind: aRun, index: r.p.index, run: r}, at, now, next)
	}
}

// happen lets one thing happen.
// Everything that it sets off has come to rest before the next thing happens, except for what waits
// for the driver itself.
func (w *World) happen(c *candidate) {
	switch c.kind {
	case aCall:
		w.meet(c.call)
	case anExpiry:
		w.expire(c.call)
	case aTimer:
		w.fire(w.processes[c.index], c.timer)
	case aNap:
		p := w.processes[c.index]
		w.mu.Lock()
		p.naps = slices.DeleteFunc(p.naps, func(n *nap) bool { return n == c.nap })
		w.mu.Unlock()
		close(c.nap.wake)
	case aRun:
		w.goOn(c.run)
	case aRequest:
		r := &w.plan.Requests[w.asked]
		w.asked++
		w.ask(r)
	case aFault:
		f := &w.plan.Faults[w.befallen]
		w.befallen++
		w.befall(f)
	}
}

// The callback has a goroutine of its own, as it may call the store, and thus wait for the driver.
func (w *World) fire(p *process, t *timer) {
	w.mu.Lock()
	at := slices.Index(p.timers, t)
	p.timers = slices.Delete(p.timers, at, at+1)
	w.mu.Unlock()
	go t.call()
}

// forget takes a call out of the line.
func (w *World) forget(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := slices.Index(w.calls, c); at >= 0 {
		w.calls = slices.Delete(w.calls, at, at+1)
	}
}

// meetRuns shows the auditor the runs that have begun.
// Several handlers may have been called in one step, by goroutines in any order. They are sorted by
// task and fence, so that scripts, and the draws for them, fall to the same runs in each play.
func (w *World) meetRuns() {
	w.mu.Lock()
	fresh := slices.ContainsFunc(w.runs, func(r *run) bool { return r.fresh })
	if fresh {
		slices.SortStableFunc(w.runs, func(a, b *run) int {
			return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.info.Agent, b.info.Agent), cmp.Compare(a.info.ID, b.info.ID),
				cmp.Compare(a.info.Fence, b.info.Fence))
		})
	}
	runs := slices.Clone(w.runs)
	w.mu.Unlock()
	if !fresh {
		return
	}
	for _, r := range runs {
		if r.fresh {
			r.fresh = false
			w.start(r)
		}
	}
}

// start gives a run its script.
func (w *World) start(r *run) {
	r.begun = w.elapsed()
	w.trace("%s  runs %s/%s, attempt %d, fence %s", r.p.name, r.info.Agent, r.info.ID, r.info.Attempt, w.fence(r.info.Fence))
	// A start is no call of the store, but the model knows of it: a restored model has to see it as
	// well.
	w.remember(func() { w.audit.runs.began(r) })
	w.audit.runs.began(r)
	r.script = w.script(r)
	r.at = r.begun + r.script.Work
	// The first step of a script that has one is half way through its work; what it does after that
	// comes when the work is over.
	if r.script.Submits != nil || r.script.Progress {
		r.at = r.begun + r.script.Work/2
	}
}

// script is what a run does: what its definition says, or, in a kind world, just success.
// Scripts are used up by run, not by attempt: a run that loses its lease has used its own up too. A
// run behind the last of them just succeeds, so that every definition can come to an end.
func (w *World) script(r *run) *draw.Script {
	kindly := &draw.Script{Heed: true, Then: draw.Succeed, Work: 10 * time.Millisecond}
	def := w.defs[r.number]
	if w.kind {
		return kindly
	}
	if def == nil {
		return w.activityScript(r)
	}
	n := w.begunRuns[r.number]
	w.begunRuns[r.number]++
	if n < len(def.Scripts) {
		return &def.Scripts[n]
	}
	return kindly
}

// goOn lets a handler do its next step.
// It sets the outcome before the handler returns, and tells the auditor first: the settlement that
// follows is judged by it.
func (w *World) goOn(r *run) {
	do := stepReturn
	early := r.ctx.Err() != nil && r.script.Heed
	switch {
	case early:
	case r.step == 0 && r.script.Progress:
		do, r.step = stepProgress, 1
	case r.step <= 1 && r.script.Submits != nil:
		do, r.step, r.busy = stepSubmit, 2, true
	case r.saves < r.script.Saves:
		w.saves++
		do, r.saves, r.saving, r.busy = stepSave, r.saves+1, w.saves, true
	}
	if do != stepReturn {
		r.at = max(w.elapsed(), r.begun+r.script.Work*time.Duration(1+r.saves)/time.Duration(1+r.script.Saves))
		r.next <- do
		return
	}
	r.over = w.elapsed()
	r.outcome, r.asked, r.result = r.script.Then, r.script.For, `"`+r.begun.String()+`"`
	// A handler that heeds its context returns the context's error instead of its script's outcome.
	if early {
		r.outcome = draw.Fail
	}
	w.mu.Lock()
	w.runs = slices.DeleteFunc(w.runs, func(o *run) bool { return o == r })
	w.mu.Unlock()
	w.trace("%s  returns %s from %s/%s, fence %s", r.p.name, r.outcome, r.info.Agent, r.info.ID, w.fence(r.info.Fence))
	w.audit.runs.ended(r)
	r.next <- do
}
