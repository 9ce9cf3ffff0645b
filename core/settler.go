package core

// The settler: how outcomes reach the store, in batches.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/internal/notices"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// holdBusy holds the limit keys of runs that returned RetryAfter, for all agents: each key once, until the
// latest time that was asked for. It is tried once. Without it the other tasks of the key get the same answer one by one.
func (t *settler) holdBusy(ctx context.Context, batch []*run) {
	var holds []store.Hold
	for i := range batch {
		c := batch[i].verdict.Busy
		if c == nil {
			continue
		}
		same := func(other store.Hold) bool { return other.Target == c.Target }
		if at := slices.IndexFunc(holds, same); at < 0 {
			holds = append(holds, *c)
		} else if c.Until.After > holds[at].Until.After {
			holds[at] = *c
		}
	}
	if len(holds) == 0 {
		return
	}
	effects, err := t.s.store.Hold(ctx, holds)
	if err != nil {
		t.s.config.Logger.WarnContext(ctx, "the tasks of a limit key could not be paused together; each retries by itself", slog.Any("err", err))
		return
	}
	for i := range effects {
		if t.s.base.HasListeners() && effects[i].Code != store.EffectNone {
			why := codec.Order(holds[i].Note)
			t.s.base.Emit(Event{Type: model.EventHold, Key: holds[i].Target.Key, By: why.By, Reason: why.Reason, Next: t.s.base.StoreNow().Add(holds[i].Until.After).Time()})
		}
	}
}

// settler stores the outcomes of runs: of one pull, or of all pulls of a series. Outcomes that are added while one batch is under way
// go with the next: batches grow with the load. In a series an outcome also waits for others, but only where some are to be
// expected, and hardly longer than the pace: another handler that runs, or a claim that it can travel with.
type settler struct {
	s             *Scheduler
	series        *Series // nil for that of a single pull
	held          bool    // a claim follows at once, and takes all along that waits
	mu            sync.Mutex
	waiting       []*run // decided, and not stored
	working       bool
	inlinePending bool        // the goroutine of a handler that has returned is about to store the waiting outcomes
	disarm        func() bool // stops the timer of the batch that waits for company; nil if none does
	until         time.Time   // when that goes off
	since         time.Time   // what millis counts from
}

// settleAfter is how long an outcome waits for a claim at the pace, which is left the time to take it along.
const settleAfter = horizon.Pace + horizon.Pace/2

// largestSettle is the most outcomes that are stored together, and enoughToSettle how many wait for no more.
const (
	largestSettle  = 800
	enoughToSettle = 64
)

// add hands over a run with the verdict on it. It stays open until that is stored.
func (t *settler) add(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.decided = t.millis() + 1 // rounded up, so that no wait is too long, and no task due too early
	t.waiting = append(t.waiting, r)
	wait := t.patience(r)
	switch {
	case t.working || t.held:
	case len(t.waiting) >= enoughToSettle || wait <= 0:
		// The goroutine that ran the handler has nothing else to do, and is awake.
		if t.inlinePending = t.inlinePending || r.settlesInline; !r.settlesInline {
			t.begin()
		}
	default:
		t.within(wait)
	}
}

// patience is how long an outcome waits for others, at most. An outcome that an agent waits for, or a pull that is about to end, is stored at
// once, and so is a pause that other tasks are to have too.
func (t *settler) patience(r *run) time.Duration {
	s := &r.verdict.Settlement
	if t.series == nil || s.Verb == store.VerbRelease || r.pull.over() || r.pull.Serial() || r.verdict.Busy != nil {
		return 0
	}
	if !r.EndsWithCallback() && !r.endsWatched() && (r.waits == forOthers || r.waits == ifDueAgain && s.Verb == store.VerbAgain) {
		if d := t.series.untilOthers(); d > 0 {
			return d
		}
	}
	if t.series.known.Company(&t.s.calls, t.series.waiting.First) {
		return settleAfter
	}
	return 0
}

// within makes sure that the waiting outcomes are stored within d. The mutex is held.
func (t *settler) within(d time.Duration) {
	at := t.s.config.Clock.Now().Add(d)
	if t.disarm != nil && !at.Before(t.until) {
		return
	}
	t.stopTimer()
	t.until, t.disarm = at, t.s.config.Clock.AfterFunc(d, t.due)
}

// flush stores what waits.
func (t *settler) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = false
	if len(t.waiting) > 0 && !t.working {
		t.begin()
	}
}

// storeInline stores the waiting outcomes if that is to happen at once. The goroutine of a handler calls it when it has returned its slots.
func (t *settler) storeInline() {
	t.mu.Lock()
	if !t.inlinePending || t.working {
		t.mu.Unlock()
		return
	}
	t.stopTimer()
	t.inlinePending, t.working = false, true
	t.mu.Unlock()
	t.work()
}

// due ends the wait of a batch.
func (t *settler) due() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.disarm != nil && !t.working { // otherwise it went with a claim, or others have filled the batch
		t.begin()
	}
}

// begin stores the waiting outcomes, in a goroutine of its own. The mutex is held.
func (t *settler) begin() {
	t.stopTimer()
	t.inlinePending, t.working = false, true
	go t.work()
}

// stopTimer stops the timer of the batch. The mutex is held.
func (t *settler) stopTimer() {
	if t.disarm != nil {
		t.disarm()
		t.disarm = nil
	}
}

// work stores the waiting outcomes, batch after batch, until none waits: the next outcome starts it again.
func (t *settler) work() {
	for {
		runtime.Gosched() // handlers that are about to end come along
		t.mu.Lock()
		batch := t.take()
		if len(batch) == 0 {
			t.working = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.store(batch)
	}
}

// millis is how long the settler has been in use, in milliseconds. It is small, and starts from zero again after 49 days: only differences mean
// something. The mutex is held.
func (t *settler) millis() uint32 {
	now := t.s.config.Clock.Now()
	if t.since.IsZero() {
		t.since = now
	}
	return uint32(now.Sub(t.since).Milliseconds()) //nolint:gosec // it is meant to wrap
}

// take takes a batch out of those that wait. What an outcome has waited is no part of the delay until its task is due again. The mutex is held.
func (t *settler) take() []*run {
	n := min(len(t.waiting), largestSettle)
	if n == 0 {
		return nil
	}
	batch := t.waiting[:n:n]
	now := t.millis()
	for _, r := range batch {
		// guard: waits-not-twice
		r.verdict.Settlement.Waited = time.Duration(max(int32(now-r.decided), 0)) * time.Millisecond //nolint:gosec // it may be negative
	}
	if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
		t.waiting = nil // otherwise those that are stored would be kept in memory for those that come
	}
	return batch
}

// store settles a batch. Outcomes that the store does not answer for are tried again in the background, so that a partition that is
// away keeps the outcomes of the others waiting once at most.
func (t *settler) store(batch []*run) {
	runs := settlements(batch)
	if t.series != nil {
		t.series.known.Sends()
	}
	ctx, cancel := settleCall(batch)
	t.holdBusy(ctx, batch)
	batch, runs, err := t.try(ctx, batch, runs)
	cancel()
	if len(batch) > 0 {
		go t.retryUntilStored(batch, runs, err)
	}
}

// settlements are those of a batch, as the store gets them.
func settlements(batch []*run) []store.Settlement {
	runs := make([]store.Settlement, len(batch))
	for i, r := range batch {
		runs[i] = r.verdict.Settlement
		runs[i].Run = r.pull.heartbeat.RunOf(r.claimed)
		runs[i].BodyLen = len(r.claimed.Body)
		runs[i].Quiet = r.quiet()
	}
	return runs
}

// quiet reports whether no process has to be woken for what a settlement makes due again: another pull of this process follows that
// knows it from the answer, and has a slot for it as far as one can see. An agent that was named may be another process's next.
func (r *run) quiet() bool {
	p := r.pull
	return p.outlook.Follows() && !p.over() && r.verdict.Settlement.Verb != store.VerbRelease && !p.slots.Scarce()
}

// revise decides a second time, by why the store has refused the verdict; false if that changes nothing.
func (r *run) revise(err error) bool {
	if err == nil {
		return false
	}
	// guard: refused-release
	d := decide.Decision{Facts: r.facts(), Group: r.body.Group}
	return d.Revise(&r.verdict, err)
}

// stored counts an outcome and closes its run.
func (r *run) stored(result store.Settled) {
	p, v, c := r.pull, &r.verdict, r.claimed
	defer p.open.Leave(c.Agent)
	// guard: given-up
	p.heartbeat.Release(c, result.Err == nil)
	typ := model.EventFinish
	switch {
	case p.scope.loan != nil && errors.As(result.Err, new(givenUpError)):
		typ = "" // its worker sends it again
	case result.Err != nil:
		typ = model.EventLost
		p.tally.add(func(r *Report) { r.Lost++ })
	case v.Released:
		typ = model.EventRelease
		p.gaveBack.Store(p.scope.Series != nil)
		p.tally.add(func(r *Report) {
			r.Released++
			if v.TooLong {
				r.Parked++
			}
		})
	case v.Quiet:
		typ = ""
	default:
		p.tally.count(v)
		if v.Err != nil {
			p.tally.failure(model.RunFailure{Agent: c.Agent, ID: c.ID, Kind: c.Kind, Err: v.Err})
		}
	}
	if o := p.scope.loan; o != nil && o.ended != nil {
		o.ended(r, result)
	}
	if result.Crossed != nil {
		notices.Crossed(p.s.base, result.Crossed.Budgets)
	}
	if result.Err == nil {
		if r.followsProfile() {
			p.toReplan.Add(c.Agent, c.ID)
		}
		p.s.runCounters.Count(v.Settlement.Tally)
		r.again(result.Due)
		r.noteMadeDue(result)
	}
	r.noteRoom(result)
	if p.s.base.HasListeners() {
		r.tellStored(typ, result)
	}
}

// followsProfile reports whether the time follows from a profile at which the task is due again.
func (r *run) followsProfile() bool {
	return r.verdict.Settlement.Verb == store.VerbAgain && (r.state.PutOff != nil || r.body.Zone == ZoneOfAgent)
}

// noteRoom notes for which tasks in line the end of the run has made room.
func (r *run) noteRoom(result store.Settled) {
	p := r.pull
	if result.Freed && !r.verdict.Released { // a task that was released would come again, and again
		p.madeMoreDue.Store(true)
		r.again(p.s.base.StoreNow())
		p.outlook.Freed(r.claimed.Partition)
	}
	for _, partition := range result.Opened {
		p.madeMoreDue.Store(true)
		p.outlook.Settle(partition, p.s.base.StoreNow())
		p.outlook.Freed(partition)
	}
	if !r.verdict.Released && p.scope.Series == nil {
		p.outlook.Rouse()
	}
}

// noteMadeDue notes what the end of the run has made due besides its task: for a signal that came before, or the delivery of a callback.
func (r *run) noteMadeDue(result store.Settled) {
	p, s := r.pull, &r.verdict.Settlement
	if a := s.Await; a != nil && a.Key != "" && result.Due < s.Due.At {
		p.madeMoreDue.Store(true)
		p.outlook.Freed(r.claimed.Partition)
	}
	if r.EndsWithCallback() {
		p.madeMoreDue.Store(true)
		r.again(p.s.base.StoreNow())
	}
}

// tellStored reports how an outcome was stored, with an event of a type; none if that is empty.
func (r *run) tellStored(typ model.EventType, result store.Settled) {
	s, v := r.pull.s, &r.verdict
	e := r.event(typ)
	e.Duration, e.Outcome, e.Retried, e.Status, e.Next = v.Took, v.Outcome, v.Retried, v.Status, result.Due.Time()
	e.Because, e.Used = v.Because.Code(), r.used
	if v.Because == decide.WaitsResting {
		if result.Due == v.Settlement.Due.At {
			e.Next = time.Time{} // its due time is when it has rested for long enough
		} else {
			e.Because = "" // there was activity while it ran
		}
	}
	switch {
	case result.Err != nil:
		e.Status = "" // another process may have it by now
	case v.Released:
		e.Status, e.By, e.Reason = StatusWaiting, check.ByDuly, r.whyReleased()
	case r.order.Load() != nil:
		order := codec.Order(*r.order.Load())
		e.By, e.Reason, e.Note = order.By, order.Reason, order.Note
	}
	if err := cmp.Or(v.Err, v.Why); err != nil {
		e.Error = check.Clip(err.Error())
	}
	if typ != "" {
		s.base.Emit(e)
	}
	if v.Settlement.Hold != nil && result.Err == nil {
		order := codec.Order(v.Settlement.Hold)
		e.Type, e.From, e.Error, e.By, e.Reason = model.EventPause, e.Status, order.Reason, order.By, order.Reason
		s.base.Emit(e)
	}
}

// whyReleased is why the run was given back.
func (r *run) whyReleased() string {
	switch p := r.pull; {
	case p.Spent.Load():
		return "the time of its pull was up"
	case p.claiming.Err() != nil:
		return "its process stopped"
	default:
		return "it has no handler here"
	}
}

// again notes when a task is due again, if it is.
func (r *run) again(due moment.Millis) {
	if due == 0 || due >= moment.Never {
		return
	}
	c, p := r.claimed, r.pull
	p.outlook.Settle(c.Partition, due)
	if p.scope.OnDue != nil {
		p.scope.OnDue(c.Agent, due.Time())
	}
}

// count puts a verdict into the report, once it is stored.
func (t *tally) count(v *decide.Verdict) {
	t.add(func(r *Report) {
		switch {
		case v.Outcome == model.OutcomeSkipped:
			r.Skipped++
		case v.Retried:
			r.Retried++
		case v.Err != nil:
			r.Failed++
		case v.Outcome == model.OutcomeSuccess:
			r.Completed++
		case v.Outcome == model.OutcomeCancelled:
			r.Cancelled++
		default:
			r.Snoozed++
		}
	})
}
