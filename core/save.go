package core

// Saves: a checkpoint that is stored while its run goes on.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Save stores a checkpoint, as JSON of up to [MaxCheckpoint] bytes, while the run goes on, with the progress that was reported, and extends the
// lease. When it has returned nil the checkpoint outlives the process: the next run of this occurrence finds it with [RunInfo.Checkpoint],
// whatever ends this one. It is one call of the store.
//
// It fails with [ErrLeaseLost] when another process has the task, or may have it: the run is to stop, and must not do what comes next. With any
// other error of the store the checkpoint may be stored or not; the run keeps it, and it is stored with the next heartbeat or with the outcome.
// What cannot be stored, as it is too large or no JSON, is refused before any call: a handler that returns that error fails for good.
func (t *RunInfo) Save(ctx context.Context, checkpoint any) error {
	r := t.recorder()
	if r == nil {
		return errNoRunInfo
	}
	data, err := outcome.EncodeCheckpoint("save", checkpoint)
	if err != nil {
		return err
	}
	r.mu.Lock()
	ended := r.ended
	if !ended {
		r.state.Checkpoint, r.dirty = data, true
	}
	r.mu.Unlock()
	switch {
	case t.run == nil:
		return nil
	case ended:
		return fmt.Errorf("save: the run has ended: %w", ErrLeaseLost)
	default:
		return t.run.save(ctx)
	}
}

// checkpoint is the last one that was saved; nil for none.
func (r *recorder) checkpoint() []byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Checkpoint
}

// save stores the state of the run by the lease that it has: after an outage longer than a lease that is another one, if nobody has begun the
// task meanwhile, and the state is sent again under it.
func (r *run) save(ctx context.Context) error {
	h := &r.pull.heartbeat
	err := errors.New("its lease is over, and is not taken back yet")
	for range 2 {
		lease, at, held := h.extensionOf(r.claimed)
		state, number := r.progress(true)
		if !held || state == nil {
			return fmt.Errorf("save: %w", ErrLeaseLost)
		}
		run := r.claimed.Run
		run.Partition, run.Fence, run.Index = at.key.partition, at.key.fence, at.index
		lease.Progress = []store.Progress{{Run: run, State: state, Number: number}}
		call, cancel := context.WithTimeout(ctx, min(longestCall, max(lease.Lease, shortestTry)))
		answers, failed := h.extend(call, []store.Extension{lease}, []claimKey{at.key})
		cancel()
		switch {
		case failed != nil && ctx.Err() != nil:
			err = context.Cause(ctx)
		case failed != nil:
			err = failed
		case !answers[0].Held:
			continue
		case slices.ContainsFunc(answers[0].Ended, func(e store.Ended) bool { return e.Deleted && e.Index == at.index }):
			return fmt.Errorf("save: the task was deleted: %w", ErrLeaseLost)
		default:
			return nil
		}
		break
	}
	r.unsaved()
	return fmt.Errorf("save: the checkpoint may not be stored yet: %w", err)
}

// unsaved has the next heartbeat send the state of the run again.
func (r *run) unsaved() {
	r.mu.Lock()
	r.dirty = !r.ended
	r.mu.Unlock()
	r.pull.heartbeat.progressed()
}

// extensionOf is an extension of the lease of a task, and where that lease is; false if it is lost.
func (h *heartbeat) extensionOf(c *Claimed) (store.Extension, leasePlace, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.leaseOf(c)
	held := h.claims[at.key]
	// guard: save-lost
	if held == nil || held.lost {
		return store.Extension{}, at, false
	}
	return store.Extension{Partition: at.key.partition, Fence: at.key.fence, Lease: stored(held.lease), Leave: h.leaving}, at, true
}
