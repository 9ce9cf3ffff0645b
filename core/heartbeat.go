package core

// The heartbeat: how a pull keeps its leases, and learns which it has lost.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/notices"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// heartbeat keeps the leases of a pull's claims alive: it extends all of them in one call, three times in a lease. Where the store does not
// answer it asks again, for as long as that takes: handlers continue, as the store may be away for every process. Only a store that reports a
// lease as lost ends its runs, and only those that another process has begun meanwhile.
type heartbeat struct {
	pull *pull

	mu           sync.Mutex
	claims       map[claimKey]*heldClaim
	moved        map[*Claimed]leasePlace // runs that were leased again under another fence
	stopAt       func() bool             // stops the timer of the next beat
	nextAt       time.Time               // when that is
	halted       bool
	beating      bool
	progressNews bool      // a run has come further since the beat under way began
	leaving      bool      // the process is about to end, and reports it
	failing      time.Time // since when the store has not answered; zero while it does
	beats        sync.WaitGroup
}

// claimKey names a claim: fences are numbered by partition.
type claimKey struct {
	partition int
	fence     store.Fence
}

func (k claimKey) compare(o claimKey) int {
	return cmp.Or(cmp.Compare(k.partition, o.partition), cmp.Compare(k.fence, o.fence))
}

// heldClaim is a claim whose lease the heartbeat keeps.
type heldClaim struct {
	lease     time.Duration // the longest of its runs'; as claimed until they are known
	known     bool
	lost      bool      // it is lost, and its runs have been notified
	leaveSent bool      // the store knows that the process leaves
	deadline  time.Time // by our clock, counted from before the claim was sent
	next      time.Time // when it is extended at the latest
	runs      []heldRun
	open      int // of them, not settled
	asked     int // open when its extension was sent
}

// heldRun is one of its runs, and the call of its handler.
type heldRun struct {
	index   int32
	ended   bool
	claimed *Claimed // of one that has ended, only if its outcome is stored
	run     *run     // nil before it has begun
	call    *call
}

// of is a run of the claim by its index, which is its place unless the claim has come again without some; nil if it has ended.
func (c *heldClaim) of(index int) *heldRun {
	i := index
	if i < 0 || i >= len(c.runs) || int(c.runs[i].index) != index {
		i = slices.IndexFunc(c.runs, func(r heldRun) bool { return int(r.index) == index })
	}
	if i < 0 || c.runs[i].ended {
		return nil
	}
	return &c.runs[i]
}

// add adds a claim that was just made.
func (h *heartbeat) add(c *store.Claim, deadline time.Time, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims == nil {
		h.claims = map[claimKey]*heldClaim{}
	}
	// Entries for all its runs from the start: a claim without any is forgotten as soon as one of them is
	// settled.
	held := &heldClaim{lease: lease, deadline: deadline, runs: make([]heldRun, len(c.Tasks)), open: len(c.Tasks)}
	for i := range c.Tasks {
		held.runs[i].index, held.runs[i].claimed = int32(c.Tasks[i].Index), &c.Tasks[i] //nolint:gosec // below MaxClaim
	}
	h.claims[claimKey{c.Partition, c.Fence}] = held
	// Three beats in a lease: two may fail before it is lost.
	held.next = h.pull.s.config.Clock.Now().Add(lease / 3)
	h.plan(lease / 3)
}

// addClaimed adds tasks that were claimed elsewhere; how much of their lease is left is not known.
func (h *heartbeat) addClaimed(tasks []Claimed) {
	byClaim := map[claimKey]*store.Claim{}
	for i := range tasks {
		key := claimKey{tasks[i].Partition, tasks[i].Fence}
		if byClaim[key] == nil {
			byClaim[key] = &store.Claim{Look: store.Look{Partition: key.partition}, Fence: key.fence}
		}
		byClaim[key].Tasks = append(byClaim[key].Tasks, tasks[i])
	}
	for _, c := range byClaim {
		lease := h.pull.s.config.Default.Lease
		h.add(c, h.pull.begun.Add(lease), lease)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.claims {
		held.next = h.pull.begun
	}
	h.plan(0) // the answer says what is still held, and the leases are ours from then on
}

// plan makes sure that the next beat comes within d. The mutex is held. A beat under way plans the next one itself, from
// all claims.
func (h *heartbeat) plan(d time.Duration) {
	at := h.pull.s.config.Clock.Now().Add(d)
	switch {
	case h.halted || h.beating:
	case h.stopAt == nil:
		h.schedule(d)
	case at.Before(h.nextAt):
		h.stopAt()
		h.schedule(d)
	}
}

// watch sets the run of a task, and the call that is cancelled when its lease is lost.
func (h *heartbeat) watch(r *run, call *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(r.claimed)
	held := h.claims[at.key]
	if held == nil {
		return
	}
	if of := held.of(at.index); of != nil {
		of.run, of.call = r, call
		// A claim is extended as a whole, so the longest lease of its runs counts: all have the lease of their kind, except tasks with one
		// of their own.
		own := h.pull.lease(r)
		if !held.known && own < held.lease {
			held.next = h.pull.s.config.Clock.Now()
			h.plan(0) // the store holds it for too long
		}
		if !held.known || own > held.lease {
			held.lease, held.known = own, true
		}
	}
}

// lease of a run: its task's, or its kind's.
func (p *pull) lease(r *run) time.Duration {
	if r.body.Lease != 0 && p.scope.loan == nil {
		return r.body.Lease
	}
	return leaseFor(p, r.claimed.Kind)
}

// lapsed reports whether the lease of a task is over by our clock, so that others may have taken it, and whether it is known to be lost;
// fence is that of the lease, which is another one than the claim's if the task was taken back.
func (h *heartbeat) lapsed(c *Claimed) (fence store.Fence, over, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(c).key
	held := h.claims[at]
	lost = held == nil || held.lost
	return at.fence, lost || !h.pull.s.config.Clock.Now().Before(held.deadline), lost
}

// release forgets a task whose run has ended: its outcome is stored, or given up.
func (h *heartbeat) release(c *Claimed, stored bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(c)
	delete(h.moved, c)
	held := h.claims[at.key]
	if held == nil {
		return
	}
	if r := held.of(at.index); r != nil {
		*r = heldRun{index: r.index, ended: true}
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

// progressed makes sure that the store soon knows how far a run has come. A run that reports progress all the time costs one call in each such time.
func (h *heartbeat) progressed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progressNews = true
	if len(h.claims) > 0 {
		h.plan(ProgressWithin)
	}
}

// leave notifies the store that the process is about to end: a run that it cannot end by then is no suspect.
func (h *heartbeat) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaving = true
	if len(h.claims) > 0 {
		h.plan(0)
	}
}

// schedule plans the next beat. The mutex is held.
func (h *heartbeat) schedule(d time.Duration) {
	h.nextAt = h.pull.s.config.Clock.Now().Add(d)
	h.stopAt = h.pull.s.config.Clock.AfterFunc(d, func() {
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
func (h *heartbeat) beat() {
	extensions, keys := h.extensions()
	failed := false
	if len(extensions) > 0 {
		// The leases are needed until the last run is settled, also when the caller has gone.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.pull.ctx), h.patience(keys))
		_, err := h.extend(ctx, extensions, keys)
		cancel()
		failed = err != nil
		h.pull.announce(base.AnnounceEvery, base.AnnounceFor)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopAt, h.beating = nil, false
	if h.halted || len(h.claims) == 0 {
		return
	}
	next, retry, tell, now := check.MaxLease, check.MaxLease, false, h.pull.s.config.Clock.Now()
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
func (h *heartbeat) extensions() ([]store.Extension, []claimKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progressNews = false
	now := h.pull.s.config.Clock.Now()
	var extensions []store.Extension
	var keys []claimKey
	// In their order, which is also that in which what was lost meanwhile is taken back: histories are played again.
	for _, key := range slices.SortedFunc(maps.Keys(h.claims), claimKey.compare) {
		held := h.claims[key]
		if held.lost {
			continue
		}
		e := store.Extension{Partition: key.partition, Fence: key.fence, Lease: stored(held.lease), Leave: h.leaving}
		e.Progress = held.progress(key)
		if len(e.Progress) > 0 || h.leaving && !held.leaveSent || held.next.Sub(now) <= held.lease/6 {
			extensions, keys, held.asked = append(extensions, e), append(keys, key), held.open
		}
	}
	return extensions, keys
}

// progress is how far runs of the claim have come since it was last asked for.
func (c *heldClaim) progress(key claimKey) (all []store.Progress) {
	for _, r := range c.runs {
		// Not started yet, so it has no progress; its lease is extended with the claim.
		if r.run == nil {
			continue
		}
		if state, number := r.run.progress(false); state != nil {
			at := leasePlace{key, int(r.index)}
			all = append(all, store.Progress{Run: at.run(r.claimed), State: state, Number: number})
		}
	}
	return all
}

// extend sends extensions, and takes note of each run that is to end and each lease that is lost. It fails if some of the store did not
// answer.
func (h *heartbeat) extend(ctx context.Context, extensions []store.Extension, keys []claimKey) ([]store.Extended, error) {
	sent := h.pull.s.config.Clock.Now()
	alive, err := h.pull.s.store.Extend(ctx, extensions)
	whole := err
	var lost []*heldClaim
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
			held.deadline, held.next, held.leaveSent = heldUntil(sent, held.lease), sent.Add(held.lease/3), extensions[i].Leave
			held.cancelEnded(alive[i].Ended)
			undone = append(undone, held.undone(key, &alive[i], h.pull.s.nonce)...)
		default:
			lost = append(lost, held)
		}
	}
	h.mu.Unlock()
	h.logFailing(err)
	for i := range alive {
		if c := alive[i].Crossed; c != nil {
			notices.Crossed(h.pull.s.base, c.Budgets)
		}
	}
	for _, held := range lost {
		h.recoverLease(held)
	}
	h.giveUndone(ctx, undone)
	return alive, err
}

// cancelEnded ends the runs of tasks that were cancelled or deleted. One that shares its handler's call with others is not
// interrupted, as they would be too: it ends with the call.
func (c *heldClaim) cancelEnded(ended []store.Ended) {
	for _, e := range ended {
		r := c.of(e.Index)
		if r == nil || r.call == nil {
			continue
		}
		cause := ErrLeaseLost
		if !e.Deleted && !e.Spent {
			r.run.order.Store(&e.Order)
			cause = ErrCancelled
		}
		if e.Spent {
			cause = ErrBudgetSpent
		}
		// guard: cancel-reaches-run
		if len(r.call.runs) == 1 {
			r.call.cancel(cause)
		}
	}
}

// patience is how long a beat may take: a third of the shortest lease, and no longer than a look, so that one that hangs is not waited
// for when the store is back.
func (h *heartbeat) patience(keys []claimKey) time.Duration {
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

// longestOf is the longest lease of some runs.
func (h *heartbeat) longestOf(runs []*run) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest := check.MinLease
	for _, r := range runs {
		if held := h.claims[h.leaseOf(r.claimed).key]; held != nil {
			longest = max(longest, held.lease)
		} else {
			longest = max(longest, h.pull.s.config.Default.Lease)
		}
	}
	return longest
}

// stop ends the heartbeats and waits for one that is under way.
func (h *heartbeat) stop() {
	h.mu.Lock()
	h.halted = true
	if h.stopAt != nil {
		h.stopAt()
	}
	h.mu.Unlock()
	h.beats.Wait()
}
