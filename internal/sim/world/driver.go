package world

// The driver: whatever can happen next stands in a line, and one of it does.

import (
	"cmp"
	"slices"
	"testing/synctest"
	"time"
)

// candidate is something that can happen now.
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
func (w *World) play(until time.Duration, done func() bool) {
	for !w.audit.failed() {
		synctest.Wait()
		w.tellNews()
		w.meetRuns()
		w.hearClients()
		w.audit.reached(w.expected)
		w.expected = w.expected[:0]
		if w.audit.failed() || done() {
			return
		}
		next := w.candidates()
		if len(w.line) > 0 {
			w.steps++
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
	w.full = w.fullUntil > now
	w.lineUpCalls(now, &next)
	for _, p := range w.processes {
		if p.asleep(now) {
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
	if !w.kind {
		if w.asked < len(w.plan.Requests) {
			w.lineUp(candidate{kind: aRequest}, w.plan.Requests[w.asked].At, now, &next)
		}
		if w.befallen < len(w.plan.Faults) {
			w.lineUp(candidate{kind: aFault}, w.plan.Faults[w.befallen].At, now, &next)
		}
		next = min(next, w.plan.Horizon)
	}
	return max(next, now+1)
}

func (w *World) lineUp(c candidate, at, now time.Duration, next *time.Duration) {
	if at <= now {
		w.line = append(w.line, c)
		return
	}
	*next = min(*next, at)
}

// lineUpCalls adds the calls of the store that wait to be decided about, or for whom it is too late. The mutex is held.
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
	w.remember(func() { w.audit.began(r) })
	w.audit.began(r)
	r.script = w.script(r)
	r.at = r.begun + r.script.Work
	if r.script.Submits != nil || r.script.Progress {
		r.at = r.begun + r.script.Work/2
	}
}

// script is what a run does: what its definition says, or, in a kind world, just success.
func (w *World) script(r *run) *Script {
	kindly := &Script{Heed: true, Then: Succeed, Work: 10 * time.Millisecond}
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
func (w *World) goOn(r *run) {
	do := stepReturn
	early := r.ctx.Err() != nil && r.script.Heed
	switch {
	case early:
	case r.step == 0 && r.script.Progress:
		do, r.step = stepProgress, 1
	case r.step <= 1 && r.script.Submits != nil:
		do, r.step, r.busy = stepSubmit, 2, true
	}
	if do != stepReturn {
		r.at = r.begun + r.script.Work
		r.next <- do
		return
	}
	r.outcome, r.asked, r.result = r.script.Then, r.script.For, `"`+r.begun.String()+`"`
	if early {
		r.outcome = Fail
	}
	w.mu.Lock()
	w.runs = slices.DeleteFunc(w.runs, func(o *run) bool { return o == r })
	w.mu.Unlock()
	w.trace("%s  returns %s from %s/%s, fence %s", r.p.name, r.outcome, r.info.Agent, r.info.ID, w.fence(r.info.Fence))
	w.audit.ended(r)
	r.next <- do
}
