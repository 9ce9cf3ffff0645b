package core

// Leases that were lost though their process lives: their runs are taken back, unless another process has begun them.

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The store gives notice of a lease that is over before it takes the tasks back: as it may have been away itself when the lease ended,
// the process has that time to extend it. The notice is a part of the lease, so that the work of a dead process is taken over no later.
const (
	shortestNotice = time.Second
	longestNotice  = 5 * time.Second
)

// leasePlace is where the lease of a run is.
type leasePlace struct {
	key   claimKey
	index int
}

// noticeOf is how long the notice of a lease is.
func noticeOf(lease time.Duration) time.Duration {
	return min(lease/2, max(shortestNotice, lease/6), longestNotice).Truncate(time.Millisecond)
}

// stored is how long a lease is as the store holds it: without its notice.
func stored(lease time.Duration) time.Duration { return lease - noticeOf(lease) }

// heldUntil is until when the store certainly holds a lease that was asked for by a call which was sent at a time: it counts in whole
// milliseconds.
func heldUntil(sent time.Time, lease time.Duration) time.Time {
	return sent.Add(stored(lease) - time.Millisecond)
}

// nonceFor is a nonce of this process: who repeats a call gets the same answer.
func (s *Scheduler) nonceFor() string { return s.nonce + rand.Text()[:store.NonceLen-len(s.nonce)] }

// awaitsNotice waits until a notice is over that the pull has given, and reports whether there is one: a host that is called once a minute
// would come too late for the work of the dead. A series comes back by itself.
func (p *pull) awaitsNotice() bool {
	wait := p.noticed.Sub(p.s.config.Clock.Now())
	if p.noticed.IsZero() || p.scope.Series != nil || p.over() || p.left == 0 {
		return false
	}
	news := p.outlook.Linger()
	if lingerFor(p, wait+time.Millisecond, news); p.s.config.Clock.Now().After(p.noticed) {
		p.noticed = time.Time{}
	}
	return !p.over()
}

// recoverLease takes back the runs of a lost lease that no other process has begun. The others end: their handlers are cancelled.
func (h *heartbeat) recoverLease(held *heldClaim) {
	h.mu.Lock()
	var runs []*Claimed
	for i := range held.runs {
		if r := &held.runs[i]; !r.ended {
			runs = append(runs, r.claimed)
		}
	}
	lease := held.lease
	h.mu.Unlock()
	if len(runs) == 0 || h.reclaim(runs, lease) != nil {
		return // the next beat tries again
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	held.lost = true
	for _, r := range held.runs {
		if r.call != nil && !r.ended && !h.reclaimedPartly(r.call) {
			r.call.cancel(ErrLeaseLost)
		}
	}
}

// reclaimedPartly reports whether a run of a call was taken back: then the others of its batch end with it. The mutex is held.
func (h *heartbeat) reclaimedPartly(c *call) bool {
	for _, r := range c.runs {
		if _, moved := h.moved[r.claimed]; moved {
			return true
		}
	}
	return false
}

// reclaim asks the store for runs of one lost lease, and moves those that it gives to their new lease.
func (h *heartbeat) reclaim(runs []*Claimed, lease time.Duration) error {
	h.mu.Lock()
	from := h.leaseOf(runs[0]).key
	e := store.Extension{Partition: from.partition, Fence: from.fence, Lease: stored(lease), Nonce: h.pull.s.nonceFor()}
	if h.pull.serial() { // another run of the agent may have begun
		e.Lease = 0
	}
	for _, c := range runs {
		e.Back = append(e.Back, store.Run{Partition: from.partition, Fence: from.fence, Agent: c.Agent, ID: c.ID, Ref: c.Ref})
	}
	h.mu.Unlock()
	sent := h.pull.s.config.Clock.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.pull.ctx), base.LongestLook)
	defer cancel()
	answers, err := h.pull.s.store.Extend(ctx, []store.Extension{e})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.move(from, answers[0].Back, lease, sent)
	return nil
}

// move notes that runs of a lost lease have another one now. The mutex is held.
func (h *heartbeat) move(from claimKey, back []store.Run, lease time.Duration, sent time.Time) {
	old := h.claims[from]
	if old == nil || len(back) == 0 {
		return
	}
	h.pull.s.partitions.Fences.Seen(from.partition, back[0].Fence)
	held := &heldClaim{lease: lease, known: true, deadline: heldUntil(sent, lease), next: sent.Add(lease / 3)}
	key := claimKey{from.partition, back[0].Fence}
	for _, run := range back {
		for i := range old.runs {
			r := &old.runs[i]
			if r.ended || r.claimed.Agent != run.Agent || r.claimed.ID != run.ID {
				continue
			}
			held.runs = append(held.runs, heldRun{index: int32(run.Index), claimed: r.claimed, run: r.run, call: r.call}) //nolint:gosec // below MaxClaim
			held.open++
			if h.moved == nil {
				h.moved = map[*Claimed]leasePlace{}
			}
			h.moved[r.claimed] = leasePlace{key, run.Index}
			*r = heldRun{index: r.index, ended: true}
			old.open--
		}
	}
	if old.open == 0 {
		delete(h.claims, from)
	}
	if held.open > 0 {
		h.claims[key] = held
	}
}

// undone are releases of runs whose outcomes were stored, and that the store has as running: a failover has undone their outcomes, and the claim keeps
// them from others for as long as its last run takes. Another process may have been given the same fence since: its claim is left alone.
func (c *heldClaim) undone(key claimKey, e *store.Extended, nonce string) (releases []store.Settlement) {
	// guard: outcome-undone
	if e.Running <= c.asked || e.Holder != nonce {
		return nil
	}
	for _, r := range c.runs {
		if r.ended && r.claimed != nil {
			s := decide.Release(r.claimed)
			s.Run = leasePlace{key, int(r.index)}.run(r.claimed)
			releases = append(releases, s)
		}
	}
	return releases
}

// giveUndone gives runs back whose outcomes are lost, so that they begin again now. If the store does not answer, the next beat finds them
// again; those that it does not have as running are refused.
func (h *heartbeat) giveUndone(ctx context.Context, releases []store.Settlement) {
	if len(releases) == 0 {
		return
	}
	answers, err := h.pull.s.store.Settle(ctx, releases)
	if err != nil {
		h.pull.s.config.Logger.WarnContext(ctx, "runs whose outcomes the store has lost could not be given back: it is tried again", slog.Any("err", err))
		return
	}
	for i := range answers {
		if answers[i].Err == nil && answers[i].Due != 0 { // one whose outcome is there is confirmed, and not due
			h.pull.s.config.Logger.WarnContext(ctx, "the store has lost the outcome of a run, as after a failover: it runs again",
				slog.String("agent", releases[i].Agent), slog.String("task", releases[i].ID))
		}
	}
}

// leaseOf is where the lease of a task is. The mutex is held.
func (h *heartbeat) leaseOf(c *Claimed) leasePlace {
	if to, moved := h.moved[c]; moved {
		return to
	}
	return leasePlace{claimKey{c.Partition, c.Fence}, c.Index}
}

// runOf is the run of a task as the store knows it now.
func (h *heartbeat) runOf(c *Claimed) store.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaseOf(c).run(c)
}

// run is the run of a task under the lease that is there.
func (p leasePlace) run(c *Claimed) store.Run {
	run := c.Run
	run.Partition, run.Fence, run.Index = p.key.partition, p.key.fence, p.index
	return run
}

// reclaimed reports whether a run that the store would not settle, as its lease is lost, was taken back. It fails if the store did not
// answer.
func (r *run) reclaimed() (bool, error) {
	h := &r.pull.heartbeat
	h.mu.Lock()
	from := h.leaseOf(r.claimed).key
	held := h.claims[from]
	lost := held == nil || held.lost
	h.mu.Unlock()
	if lost {
		return false, nil
	}
	if err := h.reclaim([]*Claimed{r.claimed}, h.longestOf([]*run{r})); err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaseOf(r.claimed).key != from, nil
}

// logFailing logs that heartbeats begin to fail, and that they reach the store again, but not each of them.
func (h *heartbeat) logFailing(err error) {
	h.mu.Lock()
	since, now := h.failing, h.pull.s.config.Clock.Now()
	switch {
	case err == nil:
		h.failing = time.Time{}
	case since.IsZero():
		h.failing = now
	default:
	}
	h.mu.Unlock()
	log, ctx := h.pull.s.config.Logger, h.pull.ctx
	switch {
	case err != nil && since.IsZero():
		log.WarnContext(ctx, "a heartbeat failed: it is tried again until the store answers, and handlers go on meanwhile", slog.Any("err", err))
	case err == nil && !since.IsZero():
		log.InfoContext(ctx, "heartbeats reach the store again", slog.Duration("after", now.Sub(since)))
	}
}
