package core

// How outcomes reach the store otherwise than in batches of their own: with a claim, or again and again until the store answers.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/callback"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Pauses between attempts to store outcomes while the store does not answer.
const (
	firstSettlePause = 50 * time.Millisecond
	lastSettlePause  = 2 * time.Second
	shortestTry      = 500 * time.Millisecond
)

// settleCall is the context of one try: it may take no longer than a lease, so that one whose answer is lost is soon sent again. The caller's end
// is no reason to lose an outcome.
func settleCall(batch []*run) (context.Context, context.CancelFunc) {
	p := batch[0].pull
	return context.WithTimeout(context.WithoutCancel(p.ctx), longestStore(p, p.heartbeat.LongestOf(batch[:1])))
}

// longestStore is how long a call may take that stores what a run has become, with a lease of so long.
func longestStore(p *pull, lease time.Duration) time.Duration {
	longest := min(longestCall, max(lease, shortestTry))
	if !p.End.IsZero() {
		longest = min(longest, max(p.SettleBy().Sub(p.s.config.Clock.Now()), time.Millisecond))
	}
	return longest
}

// patienceFor is how long the store is tried for outcomes whose pull will not live on: for one lease, and no longer than its host lets
// it. A process that lives on keeps them until the store answers: they are the work of handlers, which would have to do it again.
func patienceFor(batch []*run) time.Duration {
	var longest time.Duration
	for from := 0; from < len(batch); {
		p, to := batch[from].pull, from+1
		for to < len(batch) && batch[to].pull == p {
			to++
		}
		lease := p.heartbeat.LongestOf(batch[from:to])
		if !p.End.IsZero() {
			lease = min(lease, max(p.SettleBy().Sub(p.s.config.Clock.Now()), 0))
		}
		longest = max(longest, lease)
		from = to
	}
	return longest
}

// livesOn reports whether the pull of a run belongs to a host that pulls repeatedly, and is not to end, or has other runs under way:
// while it keeps a lease for these, no other process could take over a run that it gives up.
func (r *run) livesOn() bool {
	p := r.pull
	if (p.scope.Series != nil || p.immediate) && !p.over() {
		return true
	}
	return p.openCalls.some() && (p.End.IsZero() || p.s.config.Clock.Now().Before(p.SettleBy()))
}

// settleTimeout is the time that outcomes have left whose process is about to end; none while it lives on. It is the machine's time, as a process
// ends by it, regardless of the clock of the configuration.
type settleTimeout struct {
	over <-chan struct{}
	stop context.CancelFunc
}

// start lets the time of a batch run, if it does not yet.
func (e *settleTimeout) start(batch []*run) {
	if e.stop == nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(batch[0].pull.ctx), patienceFor(batch))
		e.over, e.stop = ctx.Done(), stop
	}
}

// clear notes that the process lives on.
func (e *settleTimeout) clear() {
	if e.stop != nil {
		e.stop()
		e.over, e.stop = nil, nil
	}
}

// try settles once, and then what had to be decided a second time. It returns the runs that the store did not answer for, and why.
func (t *settler) try(ctx context.Context, batch []*run, runs []store.Settlement) ([]*run, []store.Settlement, error) {
	var failed []*run
	var left []store.Settlement
	var lost error
	for len(batch) > 0 {
		// A callback's delivery is stored before the end that it reports.
		now, err := callback.Store(ctx, &t.s.callbacks, batch)
		if err != nil {
			var of []store.Settlement
			batch, runs, of = callback.Without(batch, runs, now)
			failed, left, lost = append(failed, now...), append(left, of...), err
			continue
		}
		results, err := t.s.store.Settle(ctx, runs)
		if err == nil {
			callback.Confirm(ctx, &t.s.callbacks, batch, results)
			disarmEnded(ctx, t.s, batch, results)
			batch, runs, err = sortOut(batch, runs, results)
		}
		if err != nil {
			return append(batch, failed...), append(runs, left...), err
		}
	}
	return failed, left, lost
}

// sortOut takes those out of a batch that are stored or refused, and returns the rest, which is to be settled again.
func sortOut(batch []*run, runs []store.Settlement, results []store.Settled) ([]*run, []store.Settlement, error) {
	var again []*run
	var left []store.Settlement
	var err error
	for i := range batch {
		// The partition did not answer, so it is not known whether the outcome is stored: it is sent
		// again.
		if failed, ok := errors.AsType[*store.Error](results[i].Err); ok {
			again, left, err = append(again, batch[i]), append(left, runs[i]), failed
			continue
		}
		// Another process has taken the lease while the store was out of reach, and has not begun the task.
		if errors.Is(results[i].Err, ErrLeaseLost) {
			reclaimed, failed := batch[i].pull.heartbeat.Reclaimed(batch[i])
			if reclaimed || failed != nil {
				again, left, err = append(again, batch[i]), append(left, settlements(batch[i:i+1])...), cmp.Or(failed, err)
				continue
			}
		}
		// The store refused the outcome for a reason that the verdict can take into account, such as
		// an order for the task while it ran.
		if batch[i].revise(results[i].Err) {
			again = append(again, batch[i])
			left = append(left, settlements(batch[i:i+1])...)
			continue
		}
		batch[i].stored(results[i])
	}
	return again, left, err
}

// givenUpError is why an outcome is not stored that the store has not refused: the time for it was over. It may be stored all the same.
type givenUpError struct{ error }

// Unwrap makes it an ErrLeaseLost too, as others run the task.
func (g givenUpError) Unwrap() []error { return []error{ErrLeaseLost, g.error} }

// retryUntilStored tries again until a batch is stored. One whose pulls are about to end is given up after a lease: others run its tasks then.
func (t *settler) retryUntilStored(batch []*run, runs []store.Settlement, err error) {
	var end settleTimeout
	defer end.clear()
	for pause := firstSettlePause; len(batch) > 0; pause = min(2*pause, lastSettlePause) {
		if slices.ContainsFunc(batch, (*run).livesOn) {
			end.clear()
		} else {
			end.start(batch)
		}
		if !t.wait(end.over, pause) {
			t.s.config.Logger.ErrorContext(batch[0].pull.ctx, "outcomes could not be stored before their process ended: the tasks run again",
				slog.Int("runs", len(runs)), slog.Any("err", err))
			for i := range batch {
				batch[i].stored(store.Settled{Err: givenUpError{err}})
			}
			return
		}
		ctx, cancel := settleCall(batch)
		batch, runs, err = t.try(ctx, batch, runs)
		cancel()
	}
}

// wait waits between attempts; false if the time of the process is over before.
func (t *settler) wait(over <-chan struct{}, d time.Duration) bool {
	done := make(chan struct{})
	stop := t.s.config.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
		return true
	case <-over:
		return false
	}
}

// takeForClaim takes what waits for company, for a claim that begins.
func (t *settler) takeForClaim() []*run {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.series == nil && !t.held {
		return nil
	}
	held := t.held
	// guard: turn-held
	t.held = false // what the claim brings may end at once
	// A batch is already being stored, or one of its runs needs a callback, which takes an extra write.
	if t.working || slices.ContainsFunc(t.waiting, (*run).EndsWithCallback) {
		if held && !t.working {
			t.begin()
		}
		return nil
	}
	t.stopTimer()
	return t.take()
}

// settledWithClaim takes note of how outcomes were settled that have travelled with a claim. Those that the store did not answer for, or
// that had to be decided a second time, are settled by themselves.
func (t *settler) settledWithClaim(batch []*run, runs []store.Settlement, settled []store.Settled, err error) {
	if err == nil {
		batch, runs, err = sortOut(batch, runs, settled)
	}
	if len(batch) == 0 {
		return
	}
	go func() {
		if err == nil {
			ctx, cancel := settleCall(batch)
			batch, runs, err = t.try(ctx, batch, runs)
			cancel()
		}
		t.retryUntilStored(batch, runs, err)
	}()
}
