package core

// The pull: one call of RunDue from its first claim to its last settlement.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/booking"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/internal/leases"
	"github.com/seed-6f6f2c11/duly/core/internal/printing"
	"github.com/seed-6f6f2c11/duly/core/internal/replan"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/internal/term"
	"github.com/seed-6f6f2c11/duly/core/internal/ticks"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// pull is one call of RunDue: it runs and settles all that it claims before it returns.
type pull struct {
	term.Term
	contexts
	progress

	s     *Scheduler
	slots *slots.Slots // the scheduler's, unless it lends
	scope Scope

	outlook   horizon.Outlook
	tally     tally
	open      ticks.Open
	calls     sync.WaitGroup // of handlers that have not returned, or were abandoned
	alarm     booking.Pull
	settler   *settler
	own       settler // its settler, unless it is of a series
	heartbeat leases.Heartbeat[*run, *call]
	workers   workers
	openCalls openCalls
	batches   batches

	toReplan replan.Marks // about due times
	moved    moves        // by the policy
}

// contexts say how long a pull may claim and run: see bound. A pull lives as long as its call, so that it may have them.
type contexts struct {
	ctx      context.Context //nolint:containedctx // the caller's
	claiming context.Context //nolint:containedctx // done when nothing more may be claimed
	running  context.Context //nolint:containedctx // what handlers get; done when they have to end
	cancel   context.CancelCauseFunc
	timers   []func() bool
}

// over reports whether nothing more may be claimed.
func (c *contexts) over() bool { return c.claiming.Err() != nil }

// progress is how far a pull has come.
type progress struct {
	immediate   bool // it runs tasks that a living process has started at once, and claims nothing
	left        int  // tasks that the budget still allows
	claimed     bool // whether anything was claimed, so that the first look is out of date
	full        bool // the last slots were some that are kept for urgent tasks
	dry         bool // the last round brought nothing
	turn        int  // of partitions, where there is not enough for all
	lastClaim   time.Time
	noticed     time.Time   // when the notice is over that one of its claims has given; zero for none
	gaveBack    atomic.Bool // it has released tasks that it could not start: the host decides when to try again
	madeMoreDue atomic.Bool // a run made something else due: an occurrence that became a task of its own, a task in line, or one whose signal had come
}

// newPull is a pull that has claimed nothing yet. Its context ends with the caller's, or when the pull
// is stopped.
func newPull(ctx context.Context, s *Scheduler, scope Scope) *pull {
	ctx = model.OfProcess(ctx)
	p := &pull{s: s, slots: s.slots, scope: scope}
	p.ctx, p.left = ctx, math.MaxInt
	p.Clock, p.Margin, p.Begun = s.config.Clock, s.config.Margin, s.config.Clock.Now()
	p.tally.agents = map[string]struct{}{}
	if scope.MaxTasks > 0 {
		p.left = scope.MaxTasks
	}
	p.open.Clock, p.batches.pull = s.config.Clock, p
	h := &p.heartbeat
	h.Base, h.Fences, h.Default, h.Ctx, h.Pull = s.base, s.partitions.Fences, s.config.Default.Lease, ctx, p
	if scope.OnTick != nil || s.config.OnTick != nil {
		p.open.On = p.onTick
	}
	if p.settler = &p.own; scope.Series != nil {
		p.settler = &scope.Series.settler
	}
	if s.config.Alarm != nil && scope.Series == nil { // pulls of a series are of a process that lives on
		p.alarm.By = &s.alarm
	}
	p.own.s, p.toReplan.Base = s, s.base
	p.bound()
	p.outlook.Aim(&s.partitions, scope.Series.horizon(), scope.Agents, scope.Partitions)
	s.pulls.add(p)
	return p
}

// onTick reports a tick, to the caller of the pull and to the program.
func (p *pull) onTick(agent string, ended bool, tasks int, took time.Duration) {
	t := Tick{Agent: agent, Ended: ended, Tasks: tasks, Duration: took}
	if p.scope.OnTick != nil {
		p.scope.OnTick(t)
	}
	if p.s.config.OnTick != nil {
		p.s.config.OnTick(t)
	}
}

// bound sets up when claiming stops and when handlers are cancelled.
func (p *pull) bound() {
	clock := p.s.config.Clock
	// Two contexts, as a pull ends in two steps: first it claims no more, and later, when the grace
	// period is over, its runs are cancelled. Handlers therefore get one that does not end with the
	// caller's, only its values.
	// guard: stop-claims
	claiming, stop := context.WithCancel(p.ctx)
	p.claiming = claiming
	p.running, p.cancel = context.WithCancelCause(context.WithoutCancel(p.ctx))
	if deadline, ok := p.ctx.Deadline(); ok {
		// The context's deadline is by the machine's clock, ours may be another one.
		// guard: margin
		p.End = p.Begun.Add(time.Until(deadline) - p.s.config.Margin) //nolint:forbidigo // see above
	}
	if d := p.scope.MaxDuration; d > 0 && (p.End.IsZero() || p.Begun.Add(d).Before(p.End)) {
		p.End = p.Begun.Add(d)
	}
	if !p.End.IsZero() {
		p.timers = append(p.timers, clock.AfterFunc(max(p.End.Sub(p.Begun), 0), func() {
			// Noted first: a run that the cancellation ends asks for it when its outcome is decided.
			p.Spent.Store(true)
			p.heartbeat.Leave()
			stop()
			p.cancel(ErrStopping)
		}))
	}
	p.timers = append(p.timers,
		context.AfterFunc(p.ctx, func() {
			p.heartbeat.Leave()
			if p.scope.Grace <= 0 {
				p.cancel(ErrStopping)
				return
			}
			clock.AfterFunc(p.scope.Grace, func() { p.cancel(ErrStopping) })
		}),
		context.AfterFunc(p.running, p.openCalls.end),
		context.AfterFunc(p.claiming, func() {
			if q := p.scope.Series; q != nil {
				q.leave(p)
			}
		}),
		func() bool { stop(); return true },
	)
}

// close stops the timers of a pull and ends its context, for everything that still uses it.
func (p *pull) close() {
	p.s.pulls.remove(p)
	for _, stop := range p.timers {
		stop()
	}
	p.cancel(ErrStopping)
}

// run is the pull from beginning to end: rounds, the wait for handlers, and the last settlements. It
// returns when nothing of it is under lease any more.
func (p *pull) run() (Report, error) {
	err := p.rounds()
	follows := p.idle()
	if err == nil && !follows { // a partition that was away may be back, and no pull follows
		err = p.claimRecovered()
	}
	stop := p.alarm.WhileRunning(p.ctx, p.claimed, &p.outlook)
	p.open.Wait()
	// Tasks that its runs have made due are for this pull too, unless another follows it anyway.
	for err == nil && !follows && p.madeMoreDue.Swap(false) {
		err = p.rounds()
		p.open.Wait()
	}
	stop()
	p.toReplan.CarryOut(p.ctx)
	p.moved.carryOut(p.ctx, p.s)
	// The heartbeat stops only when nothing is under lease any more, so that no lease expires while a
	// handler takes its time to end.
	p.heartbeat.Stop()
	p.outlook.Recovered()
	if left, _, _ := p.outlook.Missed(); left > 0 {
		p.tellLeft()
	}
	ended := p.claiming.Err() != nil
	if _, silent := p.outlook.Unknown(); ended && (p.ctx.Err() != nil || !silent) {
		err = nil // the end was asked for, so a call that it cut off is no error; but a store that has not answered once is a failure
	}
	if err == nil && !follows && (p.claimed || ended) && p.scope.Agents == nil && p.ctx.Err() == nil {
		err = p.lookAgain(ended)
	}
	return p.finish(err)
}

// lookAgain finds out what is left, for hosts that do not pull again before the time that the report names. When the pull had
// to end there is little time for that: anything not known then may be due.
func (p *pull) lookAgain(ended bool) error {
	if o := p.scope.loan; o != nil && o.follows(time.Time{}) { // its handlers had not yet taken the runs when it was idle
		return nil
	}
	err := p.refresh(0)
	if err != nil && ended {
		p.outlook.Forget()
		err = nil
	}
	return err
}

// idle reports that the pull claims no more for now, and returns whether another pull follows it.
func (p *pull) idle() bool {
	return p.scope.Idle != nil && p.claiming.Err() == nil && p.scope.Idle(p.outlook.Next().Time())
}

// runTick runs tasks that the caller has claimed: it never asks the store for more.
func (p *pull) runTick(agent string, claimed []Claimed) (Report, error) {
	p.outlook.AimAtNothing() // no partition is asked, so none is left to ask
	p.heartbeat.AddClaimed(claimed, p.Begun)
	p.open.Enter(agent, len(claimed))
	for len(claimed) > 0 {
		most := len(claimed)
		// Runs of an agent that come one after the other: the next starts when the handler has
		// returned, not when the pull has given it up.
		if p.Serial() {
			p.calls.Wait()
			most = 1
		}
		g := p.slots.Take(p.claiming, most, p.Begun)
		// They start in their order. Where the kind of one has no slot, those after it wait too, rather
		// than overtake it.
		n := g.Fit(claimed)
		p.slots.Keep(g, claimed[:n])
		switch {
		case g.N == 0:
			p.releaseAll(claimed)
			claimed = nil
		case n == 0: // the first one's kind has no slot
			p.slots.Await(p.claiming, g.News, p.s.config.Clock.Now().Add(lookEvery))
		default:
			p.tick(agent, claimed[:n], atOnce)
			p.batches.startAll()
			claimed = claimed[n:]
		}
	}
	p.open.Wait()
	p.heartbeat.Stop()
	return p.finish(nil)
}

// finish makes the report. An error of the caller's context is no error of the pull: it asked for the end.
func (p *pull) finish(err error) (Report, error) {
	p.s.runCounters.Flush(p.ctx, inspect.TallyEvery)
	p.s.printing.Flush(printing.Every) // the host may freeze its process
	next := p.outlook.Next()
	unknown, _ := p.outlook.Unknown()
	p.tally.mu.Lock()
	defer p.tally.mu.Unlock()
	r := p.tally.report
	r.Agents = len(p.tally.agents)
	r.Duration = p.s.config.Clock.Now().Sub(p.Begun)
	r.NextDueAt = next.Time()
	r.More = next != 0 && next <= p.s.base.StoreNow() || unknown
	if !p.outlook.Empty() && p.ctx.Err() != nil { // cut off by its caller, it did not look what is left
		r.More = true
	}
	var away error
	r.Left, r.Away, away = p.outlook.Missed()
	if r.Left > 0 {
		p.s.config.Logger.WarnContext(p.ctx, "tasks were left: their runs usually take longer than the pull had time for",
			slog.Int("left", r.Left), slog.Duration("had", p.End.Sub(p.Begun)))
	}
	switch {
	case err != nil && p.ctx.Err() != nil:
		err = nil
	case err == nil && away != nil && p.ctx.Err() == nil:
		err = away
	}
	// Failed runs are reported next to partitions that are away, but never hide the error that ended
	// the pull.
	// They are no matter of a worker that asks for runs.
	// guard: lent-failures
	if p.tally.failed.Count > 0 && p.scope.loan == nil && (err == nil || err == away) { //nolint:errorlint // it is the one made here
		err = errors.Join(err, &p.tally.failed)
	}
	// They are returned also where another error, or the end of the caller's context, hides the RunsError.
	r.Failures = p.tally.failed.Failures
	return r, err
}

// fits reports whether a run of a kind that is started now would usually end before the pull has to. A pull that has most
// of its time left takes every kind: if that is too little, waiting for another pull would not help.
func (p *pull) fits(kind string, now time.Time) bool {
	if p.End.IsZero() || p.Fresh(now) {
		return true
	}
	return p.s.runTimes.Percentile90(kind) <= p.End.Sub(now)
}

// mostFailures is how many failures a RunsError names.
const mostFailures = 5

// tally gathers a report from many goroutines.
type tally struct {
	mu     sync.Mutex
	report Report
	agents map[string]struct{}
	failed RunsError
}

// add changes the report under its lock, as runs end at the same time.
func (t *tally) add(change func(r *Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.report)
}

// failure counts a failed run, and names it while there is room.
func (t *tally) failure(f model.RunFailure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed.Count++
	if len(t.failed.Failures) < mostFailures {
		t.failed.Failures = append(t.failed.Failures, f)
	}
}

// LeaseOf is the lease of a run: its task's, or its kind's.
func (p *pull) LeaseOf(r *run) time.Duration {
	if r.body.Lease != 0 && p.scope.loan == nil {
		return r.body.Lease
	}
	return leaseFor(p, r.claimed.Kind)
}

// tellLeft announces which kinds the pull has left for lack of time.
func (p *pull) tellLeft() {
	now := p.s.config.Clock.Now()
	p.s.presence.Leave(func(kind string) (left model.LeftKind, is bool) {
		if p.fits(kind, now) {
			return left, false
		}
		return model.LeftKind{Usual: p.s.runTimes.Percentile90(kind), Had: p.End.Sub(p.Begun), At: p.s.base.StoreNow().Time()}, true
	})
	p.Announce(0, base.LeftTold)
}

// Announce stores what the process runs, within the pull.
func (p *pull) Announce(every, keep time.Duration) {
	if p.s.config.Presence == nil {
		return
	}
	ctx, cancel := p.Call(p.ctx, base.LongestLook)
	defer cancel()
	p.s.presence.Announce(ctx, every, keep)
}

// mostRunning is how many of its runs a process announces: the oldest, as operators look for those.
const mostRunning = 10

// openPulls are the pulls under way. They cost a pull two steps, and a task nothing.
type openPulls struct {
	mu  sync.Mutex
	all map[*pull]struct{}
}

func (o *openPulls) add(p *pull) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*pull]struct{}{}
	}
	o.all[p] = struct{}{}
}

func (o *openPulls) remove(p *pull) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, p)
}

// each calls f for each run under way.
func (o *openPulls) each(f func(r *run, begun time.Time)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p := range o.all {
		p.openCalls.mu.Lock()
		for _, c := range p.openCalls.all {
			for _, r := range c.runs {
				f(r, c.begun)
			}
		}
		p.openCalls.mu.Unlock()
	}
}

// ofOneAgent is how many runs the agent has that has the most.
func (o *openPulls) ofOneAgent() (most int) {
	of := map[string]int{}
	o.each(func(r *run, _ time.Time) {
		of[r.claimed.Agent]++
		most = max(most, of[r.claimed.Agent])
	})
	return most
}

// running are the oldest runs under way.
func (o *openPulls) running() []model.RunningTask {
	var all []model.RunningTask
	o.each(func(r *run, begun time.Time) {
		all = append(all, model.RunningTask{Agent: r.claimed.Agent, ID: r.claimed.ID, Kind: r.claimed.Kind, Since: begun})
	})
	store.Sort(all, func(a, b *model.RunningTask) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.ID, b.ID))
	})
	return slices.Clip(all[:min(len(all), mostRunning)])
}
