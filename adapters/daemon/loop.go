package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The loop: when to pull, for whom, and how long to sleep. One pull claims at a time: agents that are registered or marked
// while it does join it, and tasks that fall due once it only waits for its handlers come with the next one, concurrently.

// busyFor is how long after its last run the daemon counts as having work.
// For so long it sleeps a tick at most: others' work, and tasks that its own runs submit, are found sooner.
const busyFor = 10 * time.Second

// loop is the state of one Run. Only the goroutine of run touches it, except the channels and deaf.
// Everything that its goroutine has to know comes over a channel, so that it needs no lock.
type loop struct {
	*Daemon

	// steps is not buffered: a pull continues when the loop has taken note.
	steps   chan step
	wakeups chan store.Wakeup
	deaf    atomic.Bool // no wake-ups are to be expected
	works   atomic.Bool // something has run since the last page of an audit
	telling sync.Mutex  // of errors
	// timer and pokes have room for one signal: a second one would add nothing.
	timer  chan struct{} // the time may have come to pull
	disarm func() bool
	armed  time.Time // when the timer goes off; zero: it is not set
	jobs   jobs      // for pulls

	series *core.Series // the shared knowledge of its pulls about when something is due

	// What it knows about pulls:
	pulls    int       // begun so far
	open     int       // of them, those that have not returned
	claiming bool      // one of them claims
	pulledAt time.Time // when the last one began
	lookedAt time.Time // when the last one began that was for all agents there are, or looked for them
	ranAt    time.Time // when one that ran something returned last
	next     time.Time // when something is due by the store's clock that the series does not know, by the news since the last pull began

	// What it knows about pulls that brought nothing:
	fruitless int       // pulls in a row that did nothing although something was overdue
	failures  int       // pulls in a row that the store failed, or that claimed nothing because of stuck handlers
	over      func()    // reports that a failure is over; nil while nothing has failed
	retryAt   time.Time // when to pull after a failure
	good      int       // the last pull that the store did not fail
}

// step is news of a pull: it claims no more, or it has returned.
// A pull sends one or two of them.
type step struct {
	pull     int
	agents   []string  // that were asked for; nil for all
	look     bool      // it looked when something is due for any agent, and found
	due      time.Time // that
	next     time.Time // when something is due next, for those that were asked for
	claims   bool      // it may still claim, or return without having reported that it does not
	returned bool
	report   core.Report
	err      error
}

// newLoop is deaf until the subscription is up.
func newLoop(d *Daemon) *loop {
	l := &loop{
		Daemon: d, steps: make(chan step), wakeups: make(chan store.Wakeup), timer: make(chan struct{}, 1),
		disarm: func() bool { return true }, jobs: newJobs(), series: d.scheduler.NewSeries(d.config.Tick),
	}
	l.deaf.Store(true)
	return l
}

// run pulls until ctx is done or an error shows that pulling makes no sense, then waits for the pulls under way.
func (l *loop) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	if l.config.Waker != nil {
		listening.Go(func() { l.listen(ctx) })
	}
	if l.config.Patrol > 0 {
		listening.Go(func() { l.patrol(ctx) })
	}
	startsEnd := l.startAtOnce(ctx)
	// The order matters: no new pulls, then those under way, then the listeners.
	err := l.turn(ctx)
	cancel()
	startsEnd()
	l.disarm()
	// They return within their grace; their settlements are still taken note of.
	for l.open > 0 {
		l.take(ctx, <-l.steps)
	}
	listening.Wait()
	l.jobs.end()
	return err
}

// startAtOnce lets urgent tasks that this process submits start in that call. Those of registered agents start with a
// pull, which knows who is registered by then.
func (l *loop) startAtOnce(ctx context.Context) (end func()) {
	if l.registry != nil {
		return func() {}
	}
	mine := func(agent string) bool {
		return l.config.Partitions == nil || slices.Contains(l.config.Partitions, store.PartitionOf(agent, l.scheduler.Partitions()))
	}
	return l.scheduler.AtOnce(ctx, core.AtOnce{Agents: mine, Alone: true, Grace: l.config.Grace, Done: func(_ core.Report, err error) {
		l.works.Store(true)
		if err != nil {
			l.tell(err)
		}
	}})
}

// tell hands an error to the host's callback, one at a time.
func (l *loop) tell(err error) {
	l.telling.Lock()
	defer l.telling.Unlock()
	l.config.OnError(err)
}

// turn is the loop itself: after each event it decides again when to pull.
func (l *loop) turn(ctx context.Context) error {
	// At once, and not after the first tick: tasks may have waited for the daemon's start.
	l.pull(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-l.steps:
			l.take(ctx, s)
			// No repetition mends it, for instance a partition that does not exist.
			if core.CodeOf(s.err) == core.CodeInvalid {
				return s.err
			}
		case w := <-l.wakeups:
			l.woken(w) //nolint:contextcheck // what it gives back is stored in the context of its pull
		case <-l.series.Earlier():
		case <-l.timer:
			l.armed = time.Time{}
		case <-l.pokes:
		}
		// Every piece of news may change when to pull next.
		l.arm(ctx)
	}
}

// woken takes note of a wake-up.
func (l *loop) woken(w store.Wakeup) {
	switch {
	case w.Withdrawn:
		l.series.Withdraw(w.Partition)
	case w.Urgent:
		l.series.Hurry(w.Partition)
	case w.Due.Time().IsZero(): // only an order makes it due, and is announced itself
	case w.Due == 1: // made up: anything may be due
		l.series.Forget()
		l.expect(w.Due.Time())
	case l.registry == nil:
		l.series.Expect(w.Partition, w.Due.Time())
	default: // only the registered agents of that partition may be meant
		l.registry.expect(w, l.scheduler.Partitions())
	}
}

// pull runs what is due, in a goroutine of its own that signals the loop when it has stopped claiming and when it has returned.
func (l *loop) pull(ctx context.Context) {
	l.pulls++
	l.open++
	l.claiming = true
	l.pulledAt = l.config.Clock.Now()
	// It counts as claiming until it reports otherwise.
	s := step{pull: l.pulls, claims: true}
	scope := core.Scope{Partitions: l.config.Partitions, Grace: l.config.Grace, Series: l.series}
	if l.registry != nil {
		due := func(next time.Time) bool { return l.scheduler.Until(next) <= 0 }
		s.agents = l.registry.takeAll(due)
		// Agents that are added or taken out while it claims join or leave it: none waits for another pull.
		scope.Agents = s.agents
		scope.OnDue = l.registry.again
		scope.Join = func() (in, out []string) {
			in, out = l.registry.take(due), l.registry.out()
			s.agents = append(s.agents, in...)
			return in, out
		}
	}
	// While some agents keep the daemon busy, it has to look for the others too.
	s.look = l.registry != nil && (len(s.agents) == 0 || l.lookIn(l.pulledAt) <= 0)
	if s.look || l.registry == nil {
		l.next, l.lookedAt = time.Time{}, l.pulledAt
	}
	// Called when the pull has nothing more to claim, and only waits for handlers:
	// another pull may then claim at the same time.
	scope.Idle = func(next time.Time) bool {
		s.claims = false
		l.steps <- step{pull: s.pull, agents: s.agents, next: next}
		return true
	}
	l.jobs.do(func() {
		// The look is part of the pull's goroutine, as it may take as long as the store does.
		if s.look {
			s.due, s.err = l.scheduler.NextDue(ctx)
		}
		if s.err == nil && (l.registry == nil || len(s.agents) > 0) {
			s.report, s.err = l.scheduler.RunDue(ctx, scope)
			s.next = s.report.NextDueAt
		}
		l.scheduler.Announce(ctx) // another pull may claim by now, which need not wait for this
		s.returned = true
		l.steps <- s
	})
}

// take learns from a pull.
// It is called for both steps of a pull.
func (l *loop) take(ctx context.Context, s step) {
	l.learn(s)
	if !s.returned {
		l.claiming = false
		l.retryAt = l.config.Clock.Now().Add(pause(l.failures)) // if the store is still away, which it does not report
		return
	}
	l.open--
	// It returned without having reported that it claims no more.
	if s.claims {
		l.claiming = false
	}
	r := &s.report
	if r.Ran > 0 {
		l.ranAt = l.config.Clock.Now()
		l.works.Store(true)
	}
	// Something is due, and this process got nothing of it: others may
	// be faster, or it may not take it.
	if r.More && r.Ran+r.Parked+r.Recovered == 0 {
		l.fruitless++
	} else {
		l.fruitless = 0
	}
	if s.err != nil {
		l.tell(s.err)
	}
	_, partly := errors.AsType[*core.AwayError](s.err)
	switch code := core.CodeOf(s.err); {
	case partly || code == "" || code == core.CodeRunsFailed: // the other partitions were served, and are served on
		l.succeeded(s.pull)
	// turn ends because of it.
	case code == core.CodeInvalid:
	default:
		l.failed(ctx, s)
	}
}

// learn notes when something is due next. A task that a look found due for any agent may be a registered agent's.
func (l *loop) learn(s step) {
	if l.registry == nil {
		return // the series knows
	}
	// Nothing was due for these agents before that time.
	l.registry.learn(s.agents, s.next)
	switch {
	case !s.look || !s.returned:
	// Some agent is due, and it is not known which: all are asked for.
	case !s.due.IsZero() && l.scheduler.Until(s.due) <= 0:
		l.registry.expectAll(s.due)
	default:
		l.expect(s.due)
	}
}

// expect learns that something is due at a time of the store's clock, if it is not zero.
// The earliest one counts; a pull that begins clears it.
func (l *loop) expect(due time.Time) {
	if !due.IsZero() && (l.next.IsZero() || due.Before(l.next)) {
		l.next = due
	}
}

// arm pulls if the time has come, or sets the timer to when it will.
// It is called after each piece of news, so there is one timer at a time.
func (l *loop) arm(ctx context.Context) {
	// The pull that claims will report what it has learnt.
	if l.claiming {
		return
	}
	now := l.config.Clock.Now()
	wait := l.wait(now)
	if wait <= 0 {
		l.pull(ctx)
		return
	}
	// Most news change nothing. The store's clock is known to a millisecond.
	if early := now.Add(wait).Sub(l.armed); early >= 0 && early < time.Millisecond {
		return
	}
	l.disarm()
	l.armed = now.Add(wait)
	l.disarm = l.config.Clock.AfterFunc(wait, func() {
		select {
		case l.timer <- struct{}{}:
		default: // a signal is already pending
		}
	})
}

// wait is how long to sleep before the next pull.
// Zero or less is at once.
func (l *loop) wait(now time.Time) time.Duration {
	if l.failures > 0 {
		return l.retryAt.Sub(now)
	}
	wait := l.lookIn(now)
	if !l.next.IsZero() {
		wait = min(wait, l.scheduler.Until(l.next))
	}
	if l.registry != nil {
		if next, known := l.registry.next(); known {
			wait = min(wait, l.scheduler.Until(next)) // long past if an agent is dirty
		}
	} else if next := l.series.Next(); !next.IsZero() {
		wait = min(wait, l.scheduler.Until(next))
	}
	wait = max(wait, l.series.Pause()) // a pull that may not claim yet would wait for it
	// Otherwise it would pull without end while something is overdue that it cannot have.
	if l.fruitless > 0 {
		pause := min(fruitlessPause<<min(l.fruitless, 20), l.config.Tick)
		wait = max(wait, l.pulledAt.Add(pause).Sub(now))
	}
	return wait
}

// lookIn is how long it may be until the daemon looks for due tasks of all agents.
func (l *loop) lookIn(now time.Time) time.Duration { return l.lookedAt.Add(l.longest(now)).Sub(now) }

// fruitlessPause is the first pause after a pull that did nothing although something was overdue: this process may not
// take it, or another took it first.
const fruitlessPause = time.Millisecond

// longest is the longest sleep between two pulls.
// An idle daemon sleeps longer, which is what makes it cost less than a command a second.
func (l *loop) longest(now time.Time) time.Duration {
	if l.deaf.Load() || l.open > 0 || now.Sub(l.ranAt) < busyFor {
		return l.config.Tick
	}
	return l.config.Safety
}

// failed notes that the store failed a pull and puts the next one off. A pull whose store failed while it still had
// handlers to wait for may report an old state, as later pulls have run meanwhile.
func (l *loop) failed(ctx context.Context, s step) {
	// A later pull has succeeded, so the store is back; or the daemon ends,
	// and its calls fail for that reason.
	if s.pull < l.good || ctx.Err() != nil {
		return
	}
	l.failures++
	l.retryAt = l.config.Clock.Now().Add(pause(l.failures))
	// The log has a line when it begins and one when it ends, and nothing in between.
	if l.over != nil {
		return
	}
	// It is this process that has to be mended, not the store, and Ready reports which.
	if core.CodeOf(s.err) == core.CodeAbandoned {
		l.over = func() {
			l.config.Logger.LogAttrs(ctx, slog.LevelInfo, "abandoned handlers have returned; claiming again")
		}
		l.config.Logger.LogAttrs(ctx, slog.LevelError, "claiming has stopped", slog.Any("err", s.err))
		return
	}
	l.over = func() { l.config.Logger.LogAttrs(ctx, slog.LevelInfo, "the store is available again") }
	l.setAway(s.err)
	l.config.Logger.LogAttrs(ctx, slog.LevelWarn, "the store is unavailable; retrying", slog.Any("err", s.err))
}

// succeeded notes that the store served a pull, and logs that an earlier failure is over.
func (l *loop) succeeded(pull int) {
	l.good = max(l.good, pull)
	l.setAway(nil)
	l.failures = 0
	if l.over != nil {
		l.over()
		l.over = nil
	}
}
