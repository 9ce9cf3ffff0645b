package worker

// Signs of life: they extend the leases of runs, store what the runs report, and bring the order to end.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
)

// together is how long news of runs wait for others.
const together = 500 * time.Millisecond

// beat keeps the runs: all of them each third of a lease, and soon those that have news.
func (w *worker) beat(ctx context.Context) {
	every := w.Lease / 3
	due := time.Now().Add(every)
	for ctx.Err() == nil {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-w.news:
			timer.Reset(min(together, time.Until(due)))
			<-timer.C
		}
		timer.Stop()
		all := !time.Now().Before(due)
		if all {
			due = time.Now().Add(every)
		}
		w.keepAll(ctx, all)
	}
}

// keepAll keeps all runs, or those that have news. One that is just being kept is left to that call.
func (w *worker) keepAll(ctx context.Context, all bool) {
	w.mu.Lock()
	runs := make([]*run, 0, len(w.runs))
	for r := range w.runs {
		runs = append(runs, r)
	}
	w.mu.Unlock()
	var of []*run
	var sent []operation.KeepRun
	size := 0
	send := func() {
		if len(of) > 0 {
			_ = w.keep(ctx, of, sent) // the next call is for what has failed in this one
		}
		for _, r := range of {
			r.sending.Unlock()
		}
		of, sent, size = nil, nil, 0
	}
	for _, r := range runs {
		if !r.sending.TryLock() {
			continue
		}
		k := r.sign()
		if !all && k.Number == 0 && k.Output == nil {
			r.sending.Unlock()
			continue
		}
		of, sent, size = append(of, r), append(sent, k), size+sizeOf(&k)
		// Another may have as much to store as a request has room for beside this.
		if len(of) == core.MaxLent || size > mostBody-core.MaxCheckpoint {
			send()
		}
	}
	send()
}

// sizeOf is about how long a sign of life is as JSON.
func sizeOf(k *operation.KeepRun) int {
	size := len(k.Ticket) + len(k.Progress) + len(k.Checkpoint)
	if k.Output != nil {
		size += escaped(len(k.Output.Text))
	}
	return size
}

// save stores a checkpoint while its run goes on, as [core.RunInfo.Save] promises it.
func (w *worker) save(ctx context.Context, r *run, checkpoint json.RawMessage) error {
	if err := core.CheckJSON("checkpoint", checkpoint); err != nil {
		return err
	}
	r.mu.Lock()
	r.checkpoint = checkpoint
	r.mu.Unlock()
	err := w.store(context.WithoutCancel(ctx), r) // the save of a run whose time is up is the one that counts
	switch {
	case errors.Is(err, core.ErrLeaseLost):
		return fmt.Errorf("save: %w", err)
	case err != nil:
		return fmt.Errorf("save: the checkpoint may not be stored yet: %w", err)
	}
	return nil
}

// store keeps one run, once, with what it has to store.
func (w *worker) store(ctx context.Context, r *run) error {
	r.sending.Lock()
	defer r.sending.Unlock()
	return w.keep(ctx, []*run{r}, []operation.KeepRun{r.sign()})
}

// keep sends signs of life, and returns the first error of any.
func (w *worker) keep(ctx context.Context, runs []*run, sent []operation.KeepRun) error {
	var q operation.Keep
	for i := range sent {
		data, err := json.Marshal(&sent[i])
		if err != nil {
			return err
		}
		q.Runs = append(q.Runs, data)
	}
	ctx, cancel := context.WithTimeout(ctx, min(callWithin, max(w.Lease/3, time.Second)))
	defer cancel()
	kept, err := w.Server.KeepRuns(ctx, q)
	if err == nil && len(kept.Runs) != len(runs) {
		err = errShort
	}
	if w.answered("keep", err) != nil {
		return err
	}
	for i, r := range runs {
		if one := w.heard(r, &sent[i], &kept.Runs[i]); err == nil {
			err = one
		}
	}
	return err
}

// saves reports whether a run has a checkpoint that is not stored yet.
func (r *run) saves() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkpoint != nil
}

// sign is the sign of life of a run, with its news. Its number is zero if it has none. The run's sending is held.
func (r *run) sign() operation.KeepRun {
	t := r.lent.Task
	r.mu.Lock()
	defer r.mu.Unlock()
	k := operation.KeepRun{Ticket: r.lent.Ticket, Checkpoint: r.checkpoint, Output: r.printed.piece(false)}
	// What no server takes for JSON is left to the end of the run, which fails by it.
	if _, p := t.Recorded(); !bytes.Equal(p, r.progress) && core.CheckJSON("progress", p) == nil {
		k.Progress = p
	}
	if used := t.Used(); !maps.Equal(used, r.used) {
		k.Usage = used
	}
	if k.Checkpoint != nil || k.Progress != nil || k.Usage != nil {
		r.number++
		k.Number = r.number
	}
	return k
}

// heard takes the answer to a sign of life. Its error says that what was sent may not be stored.
func (w *worker) heard(r *run, sent *operation.KeepRun, a *operation.KeptRun) error {
	if a.Error != "" && a.Kept { // all of it goes with the next
		return errors.New(a.Error)
	}
	r.printed.took(a.Printed)
	r.mu.Lock()
	if sent.Progress != nil {
		r.progress = sent.Progress
	}
	if sent.Usage != nil {
		r.used = sent.Usage
	}
	if bytes.Equal(r.checkpoint, sent.Checkpoint) {
		r.checkpoint = nil
	}
	r.mu.Unlock()
	switch {
	case a.Error != "": // it is not sent again, as it would be refused again
		w.Logger.Warn("the server does not store what a run reports", slog.String("agent", r.lent.Task.Agent), slog.String("task", r.lent.Task.ID), slog.String("err", a.Error))
		return errors.New(a.Error)
	case !a.Kept:
		r.cancel(core.ErrLeaseLost)
		return core.ErrLeaseLost
	case a.End != "":
		r.cancel(causes[a.End])
	}
	return nil
}

// causes are why runs have to end.
var causes = map[operation.Ending]error{
	operation.EndCancelled: core.ErrCancelled, operation.EndBudget: core.ErrBudgetSpent, operation.EndTimeout: core.ErrTimeout,
}
