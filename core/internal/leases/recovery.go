package leases

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

// Place is where the lease of a run is.
type Place struct {
	key   claimKey
	Index int
}

// Notice is how long the notice of a lease is.
func Notice(lease time.Duration) time.Duration {
	return min(lease/2, max(shortestNotice, lease/6), longestNotice).Truncate(time.Millisecond)
}

// Stored is how long a lease is as the store holds it: without its notice.
func Stored(lease time.Duration) time.Duration { return lease - Notice(lease) }

// Nonce is a nonce of a process, whose nonces begin with a tag: who repeats a call gets the same answer.
func Nonce(tag string) string { return tag + rand.Text()[:store.NonceLen-len(tag)] }

// HeldUntil is until when the store certainly holds a lease that was asked for by a call which was sent at a time: it counts in whole
// milliseconds.
func HeldUntil(sent time.Time, lease time.Duration) time.Time {
	return sent.Add(Stored(lease) - time.Millisecond)
}

// recoverLease takes back the runs of a lost lease that no other process has begun. The others end: their handlers are cancelled.
func (h *Heartbeat[R, C]) recoverLease(held *heldClaim[R, C]) {
	h.mu.Lock()
	var runs []*store.Claimed
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
	var none C
	for _, r := range held.runs {
		if r.call != none && !r.ended && !h.reclaimedPartly(r.call) {
			r.call.Cancel(store.ErrLeaseLost)
		}
	}
}

// reclaimedPartly reports whether a run of a call was taken back: then the others of its batch end with it. The mutex is held.
func (h *Heartbeat[R, C]) reclaimedPartly(c C) bool {
	return c.Has(func(of *store.Claimed) bool {
		_, moved := h.moved[of]
		return moved
	})
}

// reclaim asks the store for runs of one lost lease, and moves those that it gives to their new lease.
func (h *Heartbeat[R, C]) reclaim(runs []*store.Claimed, lease time.Duration) error {
	h.mu.Lock()
	from := h.leaseOf(runs[0]).key
	e := store.Extension{Partition: from.partition, Fence: from.fence, Lease: Stored(lease), Nonce: Nonce(h.Base.Tag)}
	if h.Pull.Serial() { // another run of the agent may have begun
		e.Lease = 0
	}
	for _, c := range runs {
		e.Back = append(e.Back, store.Run{Partition: from.partition, Fence: from.fence, Agent: c.Agent, ID: c.ID, Ref: c.Ref})
	}
	h.mu.Unlock()
	sent := h.Base.Config.Clock.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.Ctx), base.LongestLook)
	defer cancel()
	answers, err := h.Base.Store.Extend(ctx, []store.Extension{e})
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
func (h *Heartbeat[R, C]) move(from claimKey, back []store.Run, lease time.Duration, sent time.Time) {
	old := h.claims[from]
	if old == nil || len(back) == 0 {
		return
	}
	h.Fences.Seen(from.partition, back[0].Fence)
	held := &heldClaim[R, C]{lease: lease, known: true, deadline: HeldUntil(sent, lease), next: sent.Add(lease / 3)}
	key := claimKey{from.partition, back[0].Fence}
	for _, run := range back {
		for i := range old.runs {
			r := &old.runs[i]
			if r.ended || r.claimed.Agent != run.Agent || r.claimed.ID != run.ID {
				continue
			}
			held.runs = append(held.runs, heldRun[R, C]{index: int32(run.Index), claimed: r.claimed, run: r.run, call: r.call}) //nolint:gosec // below MaxClaim
			held.open++
			if h.moved == nil {
				h.moved = map[*store.Claimed]Place{}
			}
			h.moved[r.claimed] = Place{key, run.Index}
			*r = heldRun[R, C]{index: r.index, ended: true}
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
func (c *heldClaim[R, C]) undone(key claimKey, e *store.Extended, nonce string) (releases []store.Settlement) {
	// guard: outcome-undone
	if e.Running <= c.asked || e.Holder != nonce {
		return nil
	}
	for _, r := range c.runs {
		if r.ended && r.claimed != nil {
			s := decide.Release(r.claimed)
			s.Run = Place{key, int(r.index)}.Run(r.claimed)
			releases = append(releases, s)
		}
	}
	return releases
}

// giveUndone gives runs back whose outcomes are lost, so that they begin again now. If the store does not answer, the next beat finds them
// again; those that it does not have as running are refused.
func (h *Heartbeat[R, C]) giveUndone(ctx context.Context, releases []store.Settlement) {
	if len(releases) == 0 {
		return
	}
	answers, err := h.Base.Store.Settle(ctx, releases)
	if err != nil {
		h.Base.Config.Logger.WarnContext(ctx, "runs whose outcomes the store has lost could not be given back: it is tried again", slog.Any("err", err))
		return
	}
	for i := range answers {
		if answers[i].Err == nil && answers[i].Due != 0 { // one whose outcome is there is confirmed, and not due
			h.Base.Config.Logger.WarnContext(ctx, "the store has lost the outcome of a run, as after a failover: it runs again",
				slog.String("agent", releases[i].Agent), slog.String("task", releases[i].ID))
		}
	}
}

// leaseOf is where the lease of a task is. The mutex is held.
func (h *Heartbeat[R, C]) leaseOf(c *store.Claimed) Place {
	if to, moved := h.moved[c]; moved {
		return to
	}
	return Place{claimKey{c.Partition, c.Fence}, c.Index}
}

// RunOf is the run of a task as the store knows it now.
func (h *Heartbeat[R, C]) RunOf(c *store.Claimed) store.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaseOf(c).Run(c)
}

// Run is the run of a task under the lease that is there.
func (p Place) Run(c *store.Claimed) store.Run {
	run := c.Run
	run.Partition, run.Fence, run.Index = p.key.partition, p.key.fence, p.Index
	return run
}

// Reclaimed reports whether a run that the store would not settle, as its lease is lost, was taken back. It fails if the store did not
// answer.
func (h *Heartbeat[R, C]) Reclaimed(r R) (bool, error) {
	c := r.Claimed()
	h.mu.Lock()
	from := h.leaseOf(c).key
	held := h.claims[from]
	lost := held == nil || held.lost
	h.mu.Unlock()
	if lost {
		return false, nil
	}
	if err := h.reclaim([]*store.Claimed{c}, h.LongestOf([]R{r})); err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaseOf(c).key != from, nil
}

// logFailing logs that heartbeats begin to fail, and that they reach the store again, but not each of them.
func (h *Heartbeat[R, C]) logFailing(err error) {
	h.mu.Lock()
	since, now := h.failing, h.Base.Config.Clock.Now()
	switch {
	case err == nil:
		h.failing = time.Time{}
	case since.IsZero():
		h.failing = now
	default:
	}
	h.mu.Unlock()
	log, ctx := h.Base.Config.Logger, h.Ctx
	switch {
	case err != nil && since.IsZero():
		log.WarnContext(ctx, "a heartbeat failed: it is tried again until the store answers, and handlers go on meanwhile", slog.Any("err", err))
	case err == nil && !since.IsZero():
		log.InfoContext(ctx, "heartbeats reach the store again", slog.Duration("after", now.Sub(since)))
	}
}
