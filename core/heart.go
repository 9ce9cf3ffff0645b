package core

// The heartbeat: how a pull keeps its leases, and learns what has been taken from it.

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// heart keeps the leases of a pull's claims alive: it extends all of them in one call, three times in a lease. A lease
// that is lost, or that may be lost because the store has not answered in time, cancels the contexts of its runs.
type heart struct {
	pull *pull

	mu      sync.Mutex
	claims  map[claimKey]*heldClaim
	stopAt  func() bool // stops the timer of the next beat
	nextAt  time.Time   // when that is
	halted  bool
	beating bool
	beats   sync.WaitGroup
}

// claimKey names a claim: fences are numbered by partition.
type claimKey struct {
	partition int
	fence     Fence
}

// heldClaim is a claim whose lease the heart keeps.
type heldClaim struct {
	lease    time.Duration // the longest of its runs'; as claimed until they are known
	known    bool
	given    bool      // its runs have been told that it is lost
	deadline time.Time // by our clock, counted from before the claim was sent
	runs     []heldRun
	open     int // of them, not settled
}

// heldRun is one of its runs, and the call of its handler.
type heldRun struct {
	index int
	ended bool
	run   *run // nil before it has begun
	call  *call
}

// of is a run of the claim by its index, which is its place unless the claim has come again without some; nil if it has ended.
func (c *heldClaim) of(index int) *heldRun {
	i := index
	if i < 0 || i >= len(c.runs) || c.runs[i].index != index {
		i = slices.IndexFunc(c.runs, func(r heldRun) bool { return r.index == index })
	}
	if i < 0 || c.runs[i].ended {
		return nil
	}
	return &c.runs[i]
}

// hold adds a claim that was just made.
func (h *heart) hold(c *store.Claim, deadline time.Time, lease time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims == nil {
		h.claims = map[claimKey]*heldClaim{}
	}
	// Entries for all its runs from the start: a claim without any is forgotten as soon as one of them is
	// settled.
	held := &heldClaim{lease: lease, deadline: deadline, runs: make([]heldRun, len(c.Tasks)), open: len(c.Tasks)}
	for i := range c.Tasks {
		held.runs[i].index = c.Tasks[i].Index
	}
	h.claims[claimKey{c.Partition, c.Fence}] = held
	// Three beats in a lease: two may fail before it is lost.
	h.plan(lease / 3)
}

// holdAll adds tasks that were claimed elsewhere; how much of their lease is left is not known.
func (h *heart) holdAll(tasks []Claimed) {
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
		h.hold(c, h.pull.begun.Add(lease), lease)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plan(0) // the answer tells what is still held, and the leases are ours from then on
}

// plan makes sure that the next beat comes within d. The mutex is held. A beat under way plans the next one itself, from
// all claims.
func (h *heart) plan(d time.Duration) {
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
func (h *heart) watch(r *run, call *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := r.claimed
	held := h.claims[claimKey{c.Partition, c.Fence}]
	if held == nil {
		return
	}
	if of := held.of(c.Index); of != nil {
		of.run, of.call = r, call
		// A claim is extended as a whole, so the longest lease counts. The one it was claimed with is
		// no measure: it was the shortest of all kinds.
		if own := h.pull.lease(r); !held.known || own > held.lease {
			held.lease, held.known = own, true
		}
	}
}

// lease of a run: its task's, or its kind's.
func (p *pull) lease(r *run) time.Duration {
	if r.body.Lease != 0 {
		return r.body.Lease
	}
	return p.s.kind(r.claimed.Kind).Lease
}

// lapsed reports whether the lease of a task is over by our clock: others may have taken it.
func (h *heart) lapsed(c *Claimed) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.claims[claimKey{c.Partition, c.Fence}]
	return held == nil || held.given || !h.pull.s.config.Clock.Now().Before(held.deadline)
}

// release forgets a task that is settled.
func (h *heart) release(c *Claimed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := claimKey{c.Partition, c.Fence}
	held := h.claims[key]
	if held == nil {
		return
	}
	if r := held.of(c.Index); r != nil {
		*r = heldRun{index: r.index, ended: true}
		held.open--
	}
	if held.open == 0 {
		delete(h.claims, key)
	}
}

// schedule plans the next beat. The mutex is held.
func (h *heart) schedule(d time.Duration) {
	h.nextAt = h.pull.s.config.Clock.Now().Add(d)
	h.stopAt = h.pull.s.config.Clock.AfterFunc(d, func() {
		h.mu.Lock()
		// A timer that has fired can no longer be stopped: it may come after the end, or beside another
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

// beat extends all leases and plans the next beat.
func (h *heart) beat() {
	extensions, keys := h.extensions()
	if len(extensions) > 0 {
		h.extend(extensions, keys)
		h.pull.announce(announceEvery, announceFor)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopAt, h.beating = nil, false
	if h.halted || len(h.claims) == 0 {
		return
	}
	now, next := h.pull.s.config.Clock.Now(), maxLease
	for _, held := range h.claims {
		if !held.given { // a lease that could not be extended is given up in time
			next = min(next, held.lease/3, held.deadline.Add(-held.lease/10).Sub(now))
		}
	}
	h.schedule(max(next, time.Millisecond))
}

// extensions are what one heartbeat sends: every claim, with the progress of its runs since the last
// one.
func (h *heart) extensions() ([]store.Extension, []claimKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var extensions []store.Extension
	var keys []claimKey
	for key, held := range h.claims {
		e := store.Extension{Partition: key.partition, Fence: key.fence, Lease: held.lease}
		for _, r := range held.runs {
			// Not started yet, so it has no progress; its lease is extended with the claim.
			if r.run == nil {
				continue
			}
			if state := r.run.progress(); state != nil {
				e.Progress = append(e.Progress, store.Progress{Run: r.run.claimed.Run, State: state})
			}
		}
		extensions, keys = append(extensions, e), append(keys, key)
	}
	return extensions, keys
}

// extend sends a heartbeat, and takes note of each lease that is lost and each run that is to end. It
// may take a part of the shortest lease only.
func (h *heart) extend(extensions []store.Extension, keys []claimKey) {
	p := h.pull
	sent := p.s.config.Clock.Now()
	// The leases are needed until the last run is settled, also when the caller has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), h.patience(keys))
	alive, err := p.s.store.Extend(ctx, extensions)
	cancel()
	if err != nil {
		p.s.config.Logger.WarnContext(p.ctx, "a heartbeat failed", slog.Int("claims", len(extensions)), slog.Any("err", err))
	}
	now := p.s.config.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, key := range keys {
		held := h.claims[key]
		err := err
		if err == nil {
			err = alive[i].Err
		}
		switch {
		// All its runs were settled while the beat was under way.
		case held == nil:
		case err == nil && alive[i].Held:
			// From when it was sent, as for the claim: the store's lease is never over before ours.
			held.deadline = sent.Add(held.lease)
			held.told(alive[i].Ended)
		// No answer is taken for a lost lease only shortly before its end: handlers then have the rest
		// of it to stop before others start.
		case err == nil, !now.Before(held.deadline.Add(-held.lease / 10)):
			held.given = true
			for _, r := range held.runs {
				if r.call != nil {
					r.call.cancel(ErrLeaseLost)
				}
			}
		}
	}
}

// told ends the runs of tasks that were cancelled or deleted. One that shares its handler's call with others is not
// interrupted, as they would be too: it ends with the call.
func (c *heldClaim) told(ended []store.Ended) {
	for _, e := range ended {
		r := c.of(e.Index)
		if r == nil || r.call == nil {
			continue
		}
		cause := ErrLeaseLost
		if !e.Deleted {
			r.run.order.Store(&e.Order)
			cause = ErrCancelled
		}
		if len(r.call.runs) == 1 {
			r.call.cancel(cause)
		}
	}
}

// patience is how long a beat may take: a third of the shortest lease, but no longer than until one of them has to be
// given up. A beat for leases that are lost already, or for claims whose runs have all ended meanwhile, has no longer: the end of the
// pull waits for it.
func (h *heart) patience(keys []claimKey) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.pull.s.config.Clock.Now()
	patience := maxLease
	for _, key := range keys {
		held := h.claims[key]
		switch {
		case held == nil:
			patience = min(patience, h.pull.s.config.Default.Lease/3)
		case held.given:
			patience = min(patience, held.lease/3)
		default:
			patience = min(patience, held.lease/3, held.deadline.Add(-held.lease/10).Sub(now))
		}
	}
	return max(patience, time.Millisecond)
}

// untilOver is how long it is until the last lease of these runs is surely over.
func (h *heart) untilOver(runs []store.Settlement) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.pull.s.config.Clock.Now()
	longest := minLease
	for i := range runs {
		if held := h.claims[claimKey{runs[i].Partition, runs[i].Fence}]; held != nil {
			longest = max(longest, held.deadline.Sub(now))
		} else {
			longest = max(longest, h.pull.s.config.Default.Lease)
		}
	}
	// A host that stops the process at its limit leaves no time for more; a part of the margin is for
	// the report.
	if end := h.pull.end; !end.IsZero() {
		longest = min(longest, max(end.Sub(now), 0)+h.pull.s.config.Margin*3/4)
	}
	return longest
}

// stop ends the heartbeats and waits for one that is under way.
func (h *heart) stop() {
	h.mu.Lock()
	h.halted = true
	if h.stopAt != nil {
		h.stopAt()
	}
	h.mu.Unlock()
	h.beats.Wait()
}
