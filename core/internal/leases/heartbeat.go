// Package leases is how a pull keeps its leases, and learns which it has lost.
package leases

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/internal/notices"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Pull is the pull whose leases are kept.
type Pull[R Run] interface {
	// LeaseOf is the lease of a run: its task's, or its kind's.
	LeaseOf(r R) time.Duration
	// Serial reports whether runs of an agent come one after the other.
	Serial() bool
	// Announce stores what the process runs, unless it has just done so, for some time.
	Announce(every, keep time.Duration)
}

// Heartbeat keeps the leases of a pull's claims alive: it extends all of them in one call, three times in a lease. Where the store does not
// answer it asks again, for as long as that takes: handlers continue, as the store may be away for every process. Only a store that reports a
// lease as lost ends its runs, and only those that another process has begun meanwhile.
//
// Its exported fields are set before it is used.
type Heartbeat[R Run, C Call] struct {
	Base    *base.Base
	Fences  horizon.Fences
	Default time.Duration   // the lease of runs of which it is not known
	Ctx     context.Context //nolint:containedctx // the pull's; a heartbeat lives as long as it
	Pull    Pull[R]

	mu           sync.Mutex
	claims       map[claimKey]*heldClaim[R, C]
	moved        map[*store.Claimed]Place // runs that were leased again under another fence
	stopAt       func() bool              // stops the timer of the next beat
	nextAt       time.Time                // when that is
	halted       bool
	beating      bool
	progressNews bool      // a run has come further since the beat under way began
	leaving      bool      // the process is about to end, and reports it
	failing      time.Time // since when the store has not answered; zero while it does
	beats        sync.WaitGroup
}

// Add adds a claim that was just made.
func (h *Heartbeat[R, C]) Add(c *store.Claim, deadline time.Time, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims == nil {
		h.claims = map[claimKey]*heldClaim[R, C]{}
	}
	// Entries for all its runs from the start: a claim without any is forgotten as soon as one of them is
	// settled.
	held := &heldClaim[R, C]{lease: lease, deadline: deadline, runs: make([]heldRun[R, C], len(c.Tasks)), open: len(c.Tasks)}
	for i := range c.Tasks {
		held.runs[i].index, held.runs[i].claimed = int32(c.Tasks[i].Index), &c.Tasks[i] //nolint:gosec // below MaxClaim
	}
	h.claims[claimKey{c.Partition, c.Fence}] = held
	// Three beats in a lease: two may fail before it is lost.
	held.next = h.Base.Config.Clock.Now().Add(lease / 3)
	h.plan(lease / 3)
}

// AddClaimed adds tasks that were claimed elsewhere, for a pull that has begun at a time; how much of their lease is left is not known.
func (h *Heartbeat[R, C]) AddClaimed(tasks []store.Claimed, begun time.Time) {
	byClaim := map[claimKey]*store.Claim{}
	for i := range tasks {
		key := claimKey{tasks[i].Partition, tasks[i].Fence}
		if byClaim[key] == nil {
			byClaim[key] = &store.Claim{Look: store.Look{Partition: key.partition}, Fence: key.fence}
		}
		byClaim[key].Tasks = append(byClaim[key].Tasks, tasks[i])
	}
	for _, c := range byClaim {
		lease := h.Default
		h.Add(c, begun.Add(lease), lease)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.claims {
		held.next = begun
	}
	h.plan(0) // the answer says what is still held, and the leases are ours from then on
}

// plan makes sure that the next beat comes within d. The mutex is held. A beat under way plans the next one itself, from
// all claims.
func (h *Heartbeat[R, C]) plan(d time.Duration) {
	at := h.Base.Config.Clock.Now().Add(d)
	switch {
	case h.halted || h.beating:
	case h.stopAt == nil:
		h.schedule(d)
	case at.Before(h.nextAt):
		h.stopAt()
		h.schedule(d)
	}
}

// Watch sets the run of a task, and the call that is cancelled when its lease is lost.
func (h *Heartbeat[R, C]) Watch(r R, call C) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(r.Claimed())
	held := h.claims[at.key]
	if held == nil {
		return
	}
	if of := held.of(at.Index); of != nil {
		of.run, of.call = r, call
		// A claim is extended as a whole, so the longest lease of its runs counts: all have the lease of their kind, except tasks with one
		// of their own.
		own := h.Pull.LeaseOf(r)
		if !held.known && own < held.lease {
			held.next = h.Base.Config.Clock.Now()
			h.plan(0) // the store holds it for too long
		}
		if !held.known || own > held.lease {
			held.lease, held.known = own, true
		}
	}
}

// Lapsed reports whether the lease of a task is over by our clock, so that others may have taken it, and whether it is known to be lost;
// fence is that of the lease, which is another one than the claim's if the task was taken back.
func (h *Heartbeat[R, C]) Lapsed(c *store.Claimed) (fence store.Fence, over, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(c).key
	held := h.claims[at]
	lost = held == nil || held.lost
	return at.fence, lost || !h.Base.Config.Clock.Now().Before(held.deadline), lost
}

// Release forgets a task whose run has ended: its outcome is stored, or given up.
func (h *Heartbeat[R, C]) Release(c *store.Claimed, stored bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(c)
	delete(h.moved, c)
	held := h.claims[at.key]
	if held == nil {
		return
	}
	if r := held.of(at.Index); r != nil {
		*r = heldRun[R, C]{index: r.index, ended: true}
		if stored {
			r.claimed = c
		}
		held.open--
	}
	if held.open == 0 {
		delete(h.claims, at.key)
	}
}

// ProgressWithin is how soon the store knows how far a run has come, if it answers at once.
const ProgressWithin = time.Second

// Progressed makes sure that the store soon knows how far a run has come. A run that reports progress all the time costs one call in each such time.
func (h *Heartbeat[R, C]) Progressed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progressNews = true
	if len(h.claims) > 0 {
		h.plan(ProgressWithin)
	}
}

// Leave notifies the store that the process is about to end: a run that it cannot end by then is no suspect.
func (h *Heartbeat[R, C]) Leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaving = true
	if len(h.claims) > 0 {
		h.plan(0)
	}
}

// schedule plans the next beat. The mutex is held.
func (h *Heartbeat[R, C]) schedule(d time.Duration) {
	h.nextAt = h.Base.Config.Clock.Now().Add(d)
	h.stopAt = h.Base.Config.Clock.AfterFunc(d, func() {
		h.mu.Lock()
		// A timer that has fired can no longer be stopped: it may come after the end, or during another
		// beat.
		if h.halted || h.beating || h.stopAt == nil {
			h.mu.Unlock()
			return
		}
		h.beating = true
		h.beats.Add(1)
		h.mu.Unlock()
		defer h.beats.Done()
		h.beat()
	})
}

// Pauses between heartbeats while the store does not answer: a tenth of the shortest lease, within these.
const (
	shortestBeatPause = 5 * time.Millisecond
	longestBeatPause  = 250 * time.Millisecond
)

// beat extends all leases and plans the next beat.
func (h *Heartbeat[R, C]) beat() {
	extensions, keys := h.extensions()
	failed := false
	if len(extensions) > 0 {
		// The leases are needed until the last run is settled, also when the caller has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.Ctx), h.patience(keys))
		_, err := h.extend(ctx, extensions, keys)
		cancel()
		failed = err != nil
		h.Pull.Announce(base.AnnounceEvery, base.AnnounceFor)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopAt, h.beating = nil, false
	if h.halted || len(h.claims) == 0 {
		return
	}
	next, retry, tell, now := check.MaxLease, check.MaxLease, false, h.Base.Config.Clock.Now()
	for _, held := range h.claims {
		if !held.lost {
			next, retry = min(next, max(held.next.Sub(now), 0)), min(retry, held.lease/10)
			tell = tell || h.leaving && !held.leaveSent
		}
	}
	if h.progressNews {
		next = min(next, ProgressWithin)
	}
	switch {
	case failed:
		next = min(max(retry, shortestBeatPause), longestBeatPause)
	case tell:
		next = 0
	}
	h.schedule(next)
}

// extensions are what one heartbeat sends: the claims whose time has come, or comes soon, and those of whose runs there is progress since
// the last one.
func (h *Heartbeat[R, C]) extensions() ([]store.Extension, []claimKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progressNews = false
	now := h.Base.Config.Clock.Now()
	var extensions []store.Extension
	var keys []claimKey
	// In their order, which is also that in which what was lost meanwhile is taken back: histories are played again.
	for _, key := range slices.SortedFunc(maps.Keys(h.claims), claimKey.compare) {
		held := h.claims[key]
		if held.lost {
			continue
		}
		e := store.Extension{Partition: key.partition, Fence: key.fence, Lease: Stored(held.lease), Leave: h.leaving}
		e.Progress = held.progress(key)
		if len(e.Progress) > 0 || h.leaving && !held.leaveSent || held.next.Sub(now) <= held.lease/6 {
			extensions, keys, held.asked = append(extensions, e), append(keys, key), held.open
		}
	}
	return extensions, keys
}

// extend sends extensions, and takes note of each run that is to end and each lease that is lost. It fails if some of the store did not
// answer.
func (h *Heartbeat[R, C]) extend(ctx context.Context, extensions []store.Extension, keys []claimKey) ([]store.Extended, error) {
	sent := h.Base.Config.Clock.Now()
	alive, err := h.Base.Store.Extend(ctx, extensions)
	whole := err
	var lost []*heldClaim[R, C]
	var undone []store.Settlement
	h.mu.Lock()
	for i, key := range keys {
		held := h.claims[key]
		one := whole
		if one == nil {
			one = alive[i].Err
		}
		switch {
		case held == nil: // all its runs were settled while the beat was under way
		case one != nil:
			err = one
		case alive[i].Held:
			// From when it was sent, as for the claim: the store's lease is never over before ours.
			held.deadline, held.next, held.leaveSent = HeldUntil(sent, held.lease), sent.Add(held.lease/3), extensions[i].Leave
			held.cancelEnded(alive[i].Ended)
			undone = append(undone, held.undone(key, &alive[i], h.Base.Tag)...)
		default:
			lost = append(lost, held)
		}
	}
	h.mu.Unlock()
	h.logFailing(err)
	for i := range alive {
		if c := alive[i].Crossed; c != nil {
			notices.Crossed(h.Base, c.Budgets)
		}
	}
	for _, held := range lost {
		h.recoverLease(held)
	}
	h.giveUndone(ctx, undone)
	return alive, err
}

// patience is how long a beat may take: a third of the shortest lease, and no longer than a look, so that one that hangs is not waited
// for when the store is back.
func (h *Heartbeat[R, C]) patience(keys []claimKey) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	patience := base.LongestLook
	for _, key := range keys {
		if held := h.claims[key]; held != nil {
			patience = min(patience, held.lease/3)
		}
	}
	return max(patience, time.Millisecond)
}

// LongestOf is the longest lease of some runs.
func (h *Heartbeat[R, C]) LongestOf(runs []R) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest := check.MinLease
	for _, r := range runs {
		if held := h.claims[h.leaseOf(r.Claimed()).key]; held != nil {
			longest = max(longest, held.lease)
		} else {
			longest = max(longest, h.Default)
		}
	}
	return longest
}

// Stop ends the heartbeats and waits for one that is under way.
func (h *Heartbeat[R, C]) Stop() {
	h.mu.Lock()
	h.halted = true
	if h.stopAt != nil {
		h.stopAt()
	}
	h.mu.Unlock()
	h.beats.Wait()
}

// ExtensionOf is an extension of the lease of a task, and where that lease is; false if it is lost.
func (h *Heartbeat[R, C]) ExtensionOf(c *store.Claimed) (store.Extension, Place, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(c)
	held := h.claims[at.key]
	if held == nil || held.lost {
		return store.Extension{}, at, false
	}
	// guard: outcome-asked
	held.asked = held.open
	return store.Extension{Partition: at.key.partition, Fence: at.key.fence, Lease: Stored(held.lease), Leave: h.leaving}, at, true
}

// ExtendOne sends the extension of one lease. It fails if the store did not answer.
func (h *Heartbeat[R, C]) ExtendOne(ctx context.Context, e store.Extension, at Place) (store.Extended, error) {
	answers, err := h.extend(ctx, []store.Extension{e}, []claimKey{at.key})
	if err != nil {
		return store.Extended{}, err
	}
	return answers[0], nil
}
