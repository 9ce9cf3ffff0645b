package world

// A process: a scheduler that pulls and sleeps, and that may die, freeze or be asked to end at any moment.

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// Fields that the driver alone uses need no lock, as it acts while all else waits; timers, naps and
// pulling are shared with the goroutines of the process and guarded by World.mu.
type process struct {
	w      *World
	name   string
	index  int
	plan   *draw.Process
	s      *core.Scheduler
	series *core.Series // of its pulls for all agents; nil for one that looks before each
	worker *worker      // nil for one that runs handlers
	timers []*timer
	naps   []*nap

	ctx       context.Context //nolint:containedctx // of its pulls, until it is asked to end
	stop      context.CancelFunc
	stopping  bool
	stopped   int // after so many steps
	dead      bool
	deaf      bool          // no wake-up reaches it
	withdrew  moment.Millis // when it was last asked for what it had claimed ahead
	frozen    time.Duration // until when
	cutUntil  time.Duration
	mute      time.Duration // until when none of its settlements gets through
	ended     atomic.Bool   // its loop has returned
	pulls     int
	completed map[string]bool // kinds that a run of has succeeded
	pulling   bool
	since     time.Duration // of the pull
}

// nap is a goroutine that waits for a time.
type nap struct {
	at   time.Duration
	wake chan struct{}
	deep bool // nothing but its time ends it
}

// newProcess makes a process.
// Its index is its place among all processes of the history, dead ones included, and sorts what it
// does.
func (w *World) newProcess(plan *draw.Process, name string) *process {
	p := &process{w: w, name: name, index: len(w.processes), plan: plan, deaf: plan.Deaf, completed: map[string]bool{}}
	p.ctx, p.stop = context.WithCancel(w.ctx)
	config := w.config(p)
	for _, f := range w.features {
		if f.config != nil {
			f.config(w, p, &config)
		}
	}
	config.Presence = neighbours{p}
	s, err := core.New(storeOf(p), config)
	if err != nil {
		panic(err) // a mistake in the plan
	}
	p.s = s
	if p.index%2 == 0 && !w.plan.Settings.Alarm { // else no pull follows another
		p.series = s.NewSeries(plan.Tick)
	}
	if plan.Worker {
		p.worker = newWorker(p, config)
	} else {
		for _, kind := range plan.Kinds {
			p.handle(kind)
		}
	}
	for _, f := range w.features {
		if f.ready != nil {
			f.ready(p)
		}
	}
	w.processes = append(w.processes, p)
	return p
}

// config is how the schedulers of the world work.
// MaxAbandoned is unlimited: a process that claims nothing more because its handlers ignore their
// contexts would end many histories before anything happens.
func (w *World) config(p *process) core.Config {
	o := &w.plan.Settings
	act, quiet := o.Activity, o.Quiet
	return core.Config{
		Name: p.name, Concurrency: p.plan.Concurrency, Serial: o.Serial, MaxCrashes: o.MaxCrashes, MaxAbandoned: -1, Limits: o.Limits,
		Clock: clock{p}, Random: func(most time.Duration) time.Duration { return p.random(most) }, OnEvent: func(e core.Event) { w.saw(p, &e) },
		Default: core.KindConfig{
			Lease: o.Lease, Backoff: o.Backoff, MaxBackoff: 4 * o.Backoff, MaxAttempts: o.MaxAttempts, PauseAfter: o.PauseAfter,
			Grace: o.Grace, Spread: o.Spread, CatchUp: o.CatchUp, MaxRetryAfters: o.MaxRetryAfters,
		},
		Kinds: map[string]core.KindConfig{
			"tight": {Slots: 1}, "timed": {Timeout: o.Timeout}, draw.KindAct: {Activity: &act}, draw.KindQuiet: {Activity: &quiet},
		},
	}
}

// random is a pause that depends on nothing but how many were asked for.
// All processes share one stream of draws. As one goroutine runs at a time, a second play asks in the
// same order.
func (p *process) random(most time.Duration) time.Duration {
	if most < time.Millisecond {
		return most
	}
	return p.w.pauses.Span(time.Millisecond, most)
}

// loop pulls and sleeps until the process has ended.
// It takes the place of a daemon. An error of a pull ends nothing: the process sleeps and pulls again,
// for as long as it lives.
func (p *process) loop() {
	defer p.ended.Store(true)
	if p.worker != nil {
		p.worker.loop()
		return
	}
	for p.ctx.Err() == nil && !p.w.over.Load() {
		scope, shared := p.scope()
		pull := p.s.RunDue
		if shared {
			pull = p.s.RunShared
		}
		p.pullFrom(true)
		report, err := pull(p.ctx, scope)
		p.pullFrom(false)
		p.w.reported(p, &report, err)
		p.s.Announce(p.ctx)
		p.sleep(p.wait(&report))
	}
}

// pullFrom notes that a pull begins, or ends.
func (p *process) pullFrom(begins bool) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.pulling, p.since = begins, p.w.elapsed()
}

// late reports whether the time of the pull is up, and the process has not noticed yet, as it was frozen.
// The auditor asks it about a claim that leaves kinds out: a process that has no time left may leave
// any.
func (p *process) late() bool {
	most := p.plan.Pulls[(p.pulls+len(p.plan.Pulls)-1)%len(p.plan.Pulls)].MaxDuration
	return most > 0 && (p.w.elapsed()-p.since >= most || p.frozen > 0) // a claim may be under way when its pull has ended
}

// wait is how long a process sleeps after a pull: until something is due, and a while if what is due is not for it.
func (p *process) wait(r *core.Report) time.Duration {
	const later = 500 * time.Millisecond // what is due is for others
	until := p.plan.Tick
	next := r.NextDueAt
	if p.series != nil { // it knows who comes first
		next = p.series.Next()
	}
	if !next.IsZero() {
		until = p.s.Until(next)
	}
	switch {
	case until > 0 && !r.More:
		return min(until, p.plan.Tick)
	case r.Ran > 0:
		return time.Millisecond
	default:
		return later
	}
}

// scope is the scope of the next pull.
// Pulls repeat their list, so that each process keeps its habits however long the history is.
func (p *process) scope() (core.Scope, bool) {
	plan := p.plan.Pulls[p.pulls%len(p.plan.Pulls)]
	p.pulls++
	scope := core.Scope{
		Agents: plan.Agents, MaxTasks: plan.MaxTasks, PerAgent: plan.PerAgent, MaxDuration: plan.MaxDuration, Grace: plan.Grace,
	}
	if p.series != nil && !plan.Shared {
		// A daemon follows with another pull, as this loop does.
		scope.Series, scope.Idle = p.series, func(time.Time) bool { return true }
	}
	return scope, plan.Shared
}

// sleep waits, as long as the driver lets it.
// The driver ends the sleep when its time has come, or earlier when a wake-up reaches the process.
func (p *process) sleep(d time.Duration) {
	n := &nap{wake: make(chan struct{})}
	p.w.mu.Lock()
	n.at = p.w.elapsed() + d
	if p.w.plan.Settings.Alarm {
		n.at = p.w.nextRing()
	}
	p.naps = append(p.naps, n)
	p.w.mu.Unlock()
	<-n.wake
}

// asleep reports whether nothing may happen in a process for now.
// Nothing of it comes up in the line then: neither calls nor timers, handlers or sleeps.
func (p *process) asleep(now time.Duration) bool { return p.dead || p.frozen > now }

// kill ends a process as kill -9 does: no call of it reaches the store again, and its handlers get no notice.
func (w *World) kill(p *process, how string) {
	if p.dead {
		return
	}
	p.dead = true
	w.trace("%s  is killed %s", p.name, how)
	// Its goroutines are not unwound, as nothing is by a real kill -9: they block where they next need
	// the driver, and stay so until the end of the history. What the process had claimed is found by
	// others once its leases run out.
	w.audit.runs.died(p)
}

// befall lets a fault happen.
func (w *World) befall(f *draw.Fault) {
	now := w.elapsed()
	p := w.processes[f.Process%len(w.processes)]
	switch f.Kind {
	case draw.FaultKill:
		w.kill(p, "")
	case draw.FaultFreeze:
		p.frozen = max(p.frozen, now+f.For)
		w.trace("%s  is frozen for %s", p.name, f.For)
	case draw.FaultCut:
		p.cutUntil = max(p.cutUntil, now+f.For)
		w.trace("%s  does not reach the store for %s", p.name, f.For)
	// Only the context of the pulls ends. What the scheduler makes of it, within its grace, is its own
	// affair.
	case draw.FaultStop:
		if !p.dead && !p.stopping {
			p.stopping, p.stopped = true, w.steps
			w.trace("%s  is asked to end", p.name)
			w.audit.runs.stopped(p)
			p.stop()
		}
	case FaultMute:
		p.mute = max(p.mute, now+f.For)
		w.trace("%s  settles nothing for %s", p.name, f.For)
	// Only Submit and Touch are refused then: what ends or reads tasks has to work in a full store.
	case draw.FaultFull:
		w.fullUntil = max(w.fullUntil, now+f.For)
		w.trace("the store is full for %s", f.For)
	case draw.FaultStart:
		n := w.newProcess(f.Plan, fmt.Sprintf("p%d", len(w.processes)+1))
		w.trace("%s  starts", n.name)
		go n.loop()
	case draw.FaultRestore:
		w.restore(f.For)
	}
}

// runs reports whether a process has a handler for a kind.
func (p *process) runs(kind string) bool {
	return slices.Contains(p.plan.Kinds, kind) || kind == gateKind && p.w.plan.Settings.Gates || kind == tellKind || kind == watchKind || kind == model.KindCallback && p.w.plan.Settings.Callbacks
}

// neighbours answer a process that reports: what it learns decides who comes first where several wait for the same tasks. They keep no report, as that is no
// part of what is simulated.
type neighbours struct{ p *process }

// Announce says how many other processes live.
func (c neighbours) Announce(context.Context, string, []byte, time.Duration) (others int, err error) {
	w := c.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p != c.p && !p.dead && p.worker == nil {
			others++
		}
	}
	return others, nil
}

// Processes knows none.
func (neighbours) Processes(context.Context) (map[string][]byte, error) {
	return map[string][]byte{}, nil
}
