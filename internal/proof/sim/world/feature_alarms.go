package world

// The row of alarms: a fleet that lives only while it is called, for what falls due.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var alarmNoLater = invariant("alarm-no-later", "40", "While nothing runs there is an alarm for whatever is due next, no later than that: ends of pauses and of waits in line, too.")

var alarms = &feature{
	name:  "alarms",
	verbs: []string{"Book", "Confirm"},
	holds: []held{{alarmNoLater, "alarm-of-a-pause"}},
	plan:  planAlarms,
	config: func(w *World, p *process, c *core.Config) {
		if w.plan.Settings.Alarm {
			c.Alarm = bell{p}
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher {
		return watcher{step: func() {
			if a.w.plan.Settings.Alarm && !a.w.over.Load() {
				a.alarmed()
			}
		}}
	},
}

// planAlarms lets no process look on its own, and nothing fail but clocks: the watchdog covers the cost of a lost alarm.
func planAlarms(g *draw.Generator) {
	p := g.Plan
	if g.In(88) {
		return
	}
	p.Settings.Alarm, p.CallFaults, p.Faults = true, 0, nil
	p.Requests = slices.DeleteFunc(p.Requests, func(r draw.Request) bool { return r.Agent == crowdAgent }) // it takes hosts that wait
	for i := range p.Processes {
		of := &p.Processes[i]
		of.Kinds, of.Deaf, of.Tick = draw.AllKinds(), true, 24*time.Hour
		for k := range of.Pulls {
			of.Pulls[k].Agents, of.Pulls[k].MaxDuration = nil, 20*time.Second
		}
	}
	for range 1 + g.IntN(4) { // pauses that end by themselves
		r := draw.Request{At: g.Span(0, p.Horizon), Process: g.IntN(4), Kind: draw.AskPause, Agent: g.Agent(), ID: g.ID(), For: g.Span(time.Second, 20*time.Second)}
		r.Target = g.Target(r.Agent, r.ID)
		p.Requests = append(p.Requests, r)
	}
	if p.Settings.Partitions == 1 && g.In(50) {
		p.Settings.Limits = append(p.Settings.Limits, core.Limit{About: core.LimitTarget{Key: "slow"}, Rate: 1, Per: g.Span(2*time.Second, 6*time.Second), Burst: 1})
		for range 2 + g.IntN(3) { // they wait in its line, and nothing that recurs does
			r := draw.Request{At: g.Span(0, p.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: g.Agent()}
			def := g.Definition(r.Agent, g.ID(), false)
			def.NewTask = core.NewTask{Agent: def.Agent, ID: def.ID, Kind: "plain", Payload: def.Payload, LimitKey: "slow", OnConflict: def.OnConflict}
			def.Scripts, r.Tasks = nil, []*draw.Definition{def}
			p.Requests = append(p.Requests, r)
		}
	}
}

// bell is the clock outside of a process: it calls the whole fleet.
type bell struct{ p *process }

// Set has all processes pull at a time.
func (b bell) Set(_ context.Context, at time.Time) error {
	w, in := b.p.w, at.Sub(clock(b).Now()) // it agrees with the clock of the process, however wrong that is
	w.mu.Lock()
	defer w.mu.Unlock()
	ring := w.elapsed() + max(in, 0)
	w.rings = append(w.rings, ring)
	for _, p := range w.processes {
		for _, n := range p.naps {
			if !n.deep {
				n.at = min(n.at, ring)
			}
		}
	}
	return nil
}

// nextRing is when the next alarm rings. The mutex is held.
func (w *World) nextRing() time.Duration {
	next := w.never()
	for _, r := range w.rings {
		if r > w.elapsed() {
			next = min(next, r)
		}
	}
	return next
}

// alarmed asserts that a host is called for the task that is due next.
func (a *auditor) alarmed() {
	w, now := a.w, a.now()
	called, asleep := a.calledAt()
	if !asleep || w.befallen > 0 || w.faults > 0 || w.restored {
		return
	}
	ring := moment.Millis(draw.Begin.UnixMilli()).Add(min(called, 1000*time.Hour))
	for _, t := range a.model.sorted() {
		if at := a.startsAt(t, now); at != 0 {
			a.must(alarmNoLater, ring <= at.Add(2100*time.Millisecond), "%s may start at %s, and nobody is called before %s", t.ref, ms(at), ms(ring))
		}
	}
}

// calledAt is when the first process is called, if all of them sleep and nothing is under way.
func (a *auditor) calledAt() (at time.Duration, asleep bool) {
	w := a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls)+len(w.runs)+w.clients > 0 {
		return 0, false
	}
	at = w.never()
	for _, p := range w.processes {
		if p.pulling || len(p.naps) == 0 {
			return 0, false
		}
		for _, n := range p.naps {
			if !n.deep {
				at = min(at, n.at)
			}
		}
	}
	return at, true
}

// startsAt is the latest time at which a waiting task can start if a process pulls; zero if that is unknown.
func (a *auditor) startsAt(t *task, now moment.Millis) moment.Millis {
	if t.phase != waiting || t.resting() || t.due >= moment.Never || t.ending {
		return 0
	}
	at := max(t.due, now)
	for _, target := range a.model.held(t, now) {
		until := a.model.holds[target].until
		if until == 0 {
			return 0
		}
		at = max(at, until)
	}
	if a.model.usedUp(t) {
		if a.w.period() > 0 { // until the next hour
			return 0
		}
		at = max(at, moment.Millis(draw.Begin.Add(a.w.plan.Settings.Period).UnixMilli()))
	}
	for i := range a.w.plan.Settings.Limits {
		l := &a.w.plan.Settings.Limits[i]
		if _, is := counts(&l.About, t); is && l.Rate > 0 { // other tasks may come first, but one of them starts
			at = at.Add(l.Per)
		}
	}
	return at
}
