package core

// The settler: how outcomes reach the store, in batches and until their leases are over.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// settler stores the outcomes of a pull's runs. Whatever was added while one batch is under way goes with the next:
// batches grow with the load, and nobody waits for a timer.
type settler struct {
	pull    *pull
	mu      sync.Mutex
	waiting []settling
	working bool
}

// settling is a run with the verdict on it, on its way to the store.
type settling struct {
	run        *run
	settlement store.Settlement
	verdict    verdict
}

// largestSettle is the most outcomes that are stored together.
const largestSettle = 800

// add hands over an outcome. The run stays open until it is stored.
func (t *settler) add(r *run, s store.Settlement, v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, settling{run: r, settlement: s, verdict: v})
	if !t.working {
		t.working = true
		go t.work()
	}
}

// work stores what waits, batch after batch, until nothing waits: the next outcome starts it again.
func (t *settler) work() {
	for {
		runtime.Gosched() // handlers that are about to end come along
		t.mu.Lock()
		n := min(len(t.waiting), largestSettle)
		batch := t.waiting[:n:n]
		t.waiting = t.waiting[n:]
		if n == 0 {
			t.working = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		t.store(batch)
	}
}

// Pauses between attempts to store outcomes while the store does not answer.
const (
	firstSettlePause = 50 * time.Millisecond
	lastSettlePause  = 2 * time.Second
)

// store settles a batch. What the store does not answer for is tried again beside the settler, so that a partition that is
// away keeps the outcomes of the others waiting once at most.
func (t *settler) store(batch []settling) {
	runs := make([]store.Settlement, len(batch))
	for i := range batch {
		runs[i] = batch[i].settlement
	}
	// The caller's end is no reason to lose an outcome: only the end of the leases is, as others may
	// run the tasks then.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.pull.ctx), t.pull.heart.untilOver(runs))
	t.holdBusy(ctx, batch)
	batch, runs, err := t.try(ctx, batch, runs)
	if len(batch) == 0 {
		cancel()
		return
	}
	go func() {
		defer cancel()
		t.insist(ctx, batch, runs, err)
	}()
}

// try settles once, and then what had to be decided a second time. It returns what the store did not answer for, and why.
func (t *settler) try(ctx context.Context, batch []settling, runs []store.Settlement) ([]settling, []store.Settlement, error) {
	for len(batch) > 0 {
		for i := range batch {
			runs[i].BodyLen = len(batch[i].run.claimed.Body)
		}
		results, err := t.pull.s.store.Settle(ctx, runs)
		if err == nil {
			batch, runs, err = t.sort(batch, runs, results)
		}
		if err != nil {
			return batch, runs, err
		}
	}
	return nil, nil, nil
}

// insist tries again until a batch is stored, but no longer than what was left of the leases at first: then they are let
// go, and others run the tasks.
func (t *settler) insist(ctx context.Context, batch []settling, runs []store.Settlement, err error) {
	for pause := firstSettlePause; len(batch) > 0; pause = min(2*pause, lastSettlePause) {
		t.wait(ctx, pause)
		if ctx.Err() == nil {
			batch, runs, err = t.try(ctx, batch, runs)
			continue
		}
		t.pull.s.config.Logger.ErrorContext(ctx, "outcomes could not be stored before their leases ended: the tasks run again",
			slog.Int("runs", len(runs)), slog.Any("err", err))
		for i := range batch {
			t.stored(&batch[i], store.Settled{Err: errors.Join(ErrLeaseLost, err)})
		}
		return
	}
}

// sort takes those out of a batch that are stored or refused, and returns the rest, which is to be settled again.
func (t *settler) sort(batch []settling, runs []store.Settlement, results []store.Settled) ([]settling, []store.Settlement, error) {
	var again []settling
	var left []store.Settlement
	var err error
	for i := range batch {
		// The partition did not answer, so nobody knows whether the outcome is stored: it is sent
		// again.
		if failed, ok := errors.AsType[*StoreError](results[i].Err); ok {
			again, left, err = append(again, batch[i]), append(left, runs[i]), failed
			continue
		}
		// The store refused the outcome for a reason that the verdict can take into account, such as
		// what happened to the task while it ran.
		if batch[i].verdict.revise(results[i].Err) {
			again, left = append(again, batch[i]), append(left, batch[i].verdict.settlement)
			continue
		}
		t.stored(&batch[i], results[i])
	}
	return again, left, err
}

// wait waits between attempts, or until ctx is done.
func (t *settler) wait(ctx context.Context, d time.Duration) {
	done := make(chan struct{})
	stop := t.pull.s.config.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// stored counts an outcome and closes its run.
func (t *settler) stored(b *settling, result store.Settled) {
	p, v := t.pull, &b.verdict
	defer p.leave(b.run.claimed.Agent)
	p.heart.release(b.run.claimed)
	e := b.run.event(EventFinish)
	e.Duration, e.Outcome, e.Retried, e.Status, e.Next = v.took, v.outcome, v.retried, v.status, result.Due.Time()
	e.Because = v.because
	if v.because == BecauseResting {
		if result.Due == v.settlement.Due.At {
			e.Next = time.Time{} // its due time is when it has rested for long enough
		} else {
			e.Because = "" // there was activity while it ran
		}
	}
	if err := cmp.Or(v.err, v.why); err != nil {
		e.Error = clip(err.Error())
	}
	switch {
	case result.Err != nil:
		e.Type = EventLost
		p.tally.add(func(r *Report) { r.Lost++ })
	case v.released:
		e.Type = EventRelease
		p.tally.add(func(r *Report) {
			r.Released++
			if v.tooLong {
				r.Parked++
			}
		})
		p.again(b.run.claimed, result.Due)
	case v.quiet:
		e.Type = ""
		p.again(b.run.claimed, result.Due)
	default:
		p.tally.count(v)
		p.again(b.run.claimed, result.Due)
		if v.err != nil {
			c := b.run.claimed
			p.tally.failure(RunFailure{Agent: c.Agent, ID: c.ID, Kind: c.Kind, Err: v.err})
		}
	}
	if e.Type != "" {
		p.s.emit(e)
	}
	if v.settlement.Hold != nil && result.Err == nil {
		e.Type, e.Error = EventPause, decodeHold(v.settlement.Hold).Reason
		p.s.emit(e)
	}
}

// again notes when a task is due again, if it is.
func (p *pull) again(c *Claimed, due store.Millis) {
	if due == 0 {
		return
	}
	p.outlook.settle(c.Partition, due)
	if p.scope.OnDue != nil {
		p.scope.OnDue(c.Agent, due.Time())
	}
}

// count puts a verdict into the report, once it is stored.
func (t *tally) count(v *verdict) {
	t.add(func(r *Report) {
		switch {
		case v.outcome == OutcomeSkipped:
			r.Skipped++
		case v.retried:
			r.Retried++
		case v.err != nil:
			r.Failed++
		case v.outcome == OutcomeSuccess:
			r.Completed++
		case v.outcome == OutcomeCancelled:
			r.Cancelled++
		default:
			r.Snoozed++
		}
	})
}
