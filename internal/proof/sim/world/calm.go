package world

// The end of a history: the world becomes kind, and everything has to come to an end.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// calm ends all faults, starts a process that can do everything, and waits until all that can end has.
// It does so twice: first under the pauses that operators have left, when only what is held may wait,
// then with all of them resumed, when nothing may.
func (w *World) calm() {
	for _, t := range w.audit.model.sorted() {
		w.audit.balances.explained(t)
	}
	w.audit.balances.balancePauses()
	w.kind = true
	now := w.elapsed()
	w.kindAt, w.fullUntil = now, 0
	for _, p := range w.processes {
		p.frozen, p.cutUntil, p.mute = min(p.frozen, now), 0, 0
	}
	w.mu.Lock()
	// Calls that are still under way arrive now instead of seconds later.
	for _, c := range w.calls {
		c.at = min(c.at, now)
	}
	w.mu.Unlock()
	w.trace("the world is kind from now on")
	plan := &draw.Process{Concurrency: 5, Kinds: draw.AllKinds(), Tick: 2 * time.Second, Pulls: []draw.Pull{{}}}
	if w.plan.Settings.Alarm { // a pull waits for what falls due within a moment: it would never end where much recurs
		plan.Pulls[0].MaxDuration = 20 * time.Second
	}
	p := w.newProcess(plan, fmt.Sprintf("p%d", len(w.processes)+1))
	go p.loop()
	// Forty seconds of virtual time cost little, and are longer than any single wait that a plan draws
	// for a task that does not recur.
	w.settleDown(now + 40*time.Second)
	w.audit.atRest("in a kind world")
	if w.audit.failed() {
		return
	}
	w.unpauseAll()
	w.audit.model.each(func(e *watcher) {
		if e.kind != nil {
			e.kind()
		}
	})
	w.settleDown(w.elapsed() + 40*time.Second)
	if last := lastDelivery(w.audit); last > 0 { // its process could not make it due when its end was stored
		w.play(last+soon, func() bool { return lastDelivery(w.audit) == 0 })
		w.settleDown(w.elapsed() + 40*time.Second)
	}
	w.audit.atRest("with nothing paused")
	if !w.audit.failed() {
		w.audit.model.each(func(e *watcher) {
			if e.rest != nil {
				e.rest()
			}
		})
		w.audit.pullsEnd()
		w.audit.balances.balance()
	}
}

// settleDown plays until nothing is to be done, or the time is up.
// It waits for a lease at least, so that what dead processes had claimed is back before anything
// counts as settled.
func (w *World) settleDown(until time.Duration) {
	until += w.audit.limits.underRates()
	settled := w.elapsed() + w.plan.Settings.Lease + soon
	w.play(until, func() bool { return w.elapsed() > settled && w.audit.quiet() })
}

// It asks through the last process, which is the healthy one.
func (w *World) unpauseAll() {
	p := w.processes[len(w.processes)-1]
	for _, target := range w.audit.model.targetsInForce(w.audit.now()) {
		w.ask(&draw.Request{Kind: draw.AskResume, Agent: target.Agent, ID: target.ID, Target: target, Process: p.index})
	}
}

// quiet reports whether nothing is due or under way.
// A task that is due soon and does not recur is waited for; a recurring one never comes to an end, and
// only has to be on time.
func (a *auditor) quiet() bool {
	now := a.now()
	for _, t := range a.model.tasks {
		if t.phase == claimed || t.phase == waiting && !t.resting() && len(a.model.held(t, now)) == 0 && (t.due <= now || !t.recurs() && t.agent != watchAgent && t.due <= now.Add(30*time.Second)) {
			return false
		}
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return len(a.w.calls) == 0 && a.w.clients == 0
}

// lastDelivery is when the last of the deliveries is due that have not ended; zero if all have.
func lastDelivery(a *auditor) (last time.Duration) {
	for _, t := range a.model.tasks {
		if (t.kind == model.KindCallback || t.kind == tellKind) && (t.phase == waiting || t.phase == claimed) {
			last = max(last, t.due.Time().Sub(draw.Begin))
		}
	}
	return last
}

// pullsEnd holds that no process is stuck in a pull.
func (a *auditor) pullsEnd() {
	now := a.w.elapsed()
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	for _, p := range a.w.processes {
		if !p.dead && p.pulling {
			a.must(pullEnds, now-p.since < time.Minute, "%s has been pulling since %s", p.name, p.since)
		}
	}
	a.must(pullEnds, true, "")
}

// holder names who holds a task.
func (t *task) holder() string {
	if t.lease.holder == nil {
		return "nobody"
	}
	return t.lease.holder.name
}

// atRest holds that everything has come to an end that could.
// A lease that is over may have been taken back by a claim: takenBack looks that up first.
func (a *auditor) atRest(when string) {
	now := a.now()
	for _, t := range a.model.sorted() {
		if t.phase == claimed && a.takenBack(t) {
			a.model.crash(t)
		}
		dead := t.phase == claimed && t.lease.holder.dead && t.lease.end.Add(soon) < now
		a.must(recovered, !dead, "%s, %s is held until %s by a process that is dead", when, t.ref, ms(t.lease.end))
		stuck := t.phase == claimed && !t.lease.over && now.Sub(t.lease.from) > 30*time.Second // no handler takes half of that
		a.must(everyTaskEnds, !stuck, "%s, %s has been held by %s since %s", when, t.ref, t.holder(), ms(t.lease.from))
		if t.phase != waiting {
			continue
		}
		late := now.Sub(t.due)
		held := len(a.model.held(t, now)) > 0 || a.model.usedUp(t)
		if t.recurs() && !held {
			most := max(t.every(), schedule.MaxStretch, 15*time.Minute)
			a.must(recursForEver, t.await != nil || t.due.Sub(now) <= most, "%s, %s is due again at %s", when, t.ref, ms(t.due))
		}
		a.must(everyTaskEnds, held || t.resting() || late < soon, "%s, %s (number %d) has been due since %s, and it is %s", when, t.ref, t.number, ms(t.due), ms(now))
	}
}
