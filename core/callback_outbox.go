package core

// How no callback is lost: the delivery is stored before the end that it follows, due when that has long happened or cannot happen any more.
// Once the end is stored, the delivery is made due. If a process dies in between, the delivery checks whether the end exists: see deliver.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// callbackMargin is how long after the lease of a run its delivery looks whether the run has ended the task.
const callbackMargin = 10 * time.Second

// commandMargin is how long after a command has announced the end of a task its delivery looks whether it came.
func (s *Scheduler) commandMargin() time.Duration { return s.config.Default.Lease + callbackMargin }

// endsWithCallback reports whether the verdict on a run ends a task with a callback.
func (r *run) endsWithCallback() bool {
	return r.body.Callback != nil && r.verdict.Settlement.Verb.Ends()
}

// storeDeliveries stores the deliveries that follow the ends of runs, and returns those runs for which that has failed: they must not be settled. It
// costs nothing where no task has a callback.
func (s *Scheduler) storeDeliveries(ctx context.Context, batch []*run) (failed []*run, err error) {
	var subs []store.Submission
	var of []*run
	send := func() {
		if len(subs) == 0 {
			return
		}
		placed, lost := s.store.Submit(ctx, subs)
		if lost != nil {
			failed, err = append(failed, of...), lost
		} else {
			s.emitDeliveries(of, subs, placed)
		}
		subs, of = nil, nil
	}
	size := 0
	for _, r := range batch {
		// guard: callback-foretold
		if !r.endsWithCallback() {
			continue
		}
		sub, wrong := r.delivery()
		if wrong != nil {
			failed, err = append(failed, r), wrong
			continue
		}
		// Deliveries of one partition are stored together: others may be away.
		if n := len(of); n > 0 && (of[n-1].claimed.Partition != r.claimed.Partition || size+len(sub.Body) > operate.ImportBytes) {
			send()
			size = 0
		}
		subs, of, size = append(subs, sub), append(of, r), size+len(sub.Body)
	}
	send()
	return failed, err
}

// delivery is the delivery that follows the end of a run.
func (r *run) delivery() (store.Submission, error) {
	c, v := r.claimed, &r.verdict
	of := store.Stored{Agent: c.Agent, ID: c.ID, Status: v.Status, Record: v.Settlement.Record}
	return callbackOf(&of, &r.body, r.pull.heartbeat.runOf(c).Fence, r.pull.lease(r)+callbackMargin)
}

// emitDeliveries reports the deliveries that are new.
func (s *Scheduler) emitDeliveries(of []*run, subs []store.Submission, placed []store.Submitted) {
	if !s.base.HasListeners() {
		return
	}
	for i := range placed {
		if placed[i].Created {
			s.emitDelivery(&subs[i], of[i].claimed.ID, &of[i].body, placed[i].Due)
		}
	}
}

// emitDelivery reports a delivery that is new, of the task of an id and with a body.
func (s *Scheduler) emitDelivery(sub *store.Submission, of string, b *codec.Body, due store.Millis) {
	s.base.Emit(Event{
		Type: model.EventEnqueue, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, TraceID: b.TraceID, Due: due.Time(), Status: StatusWaiting, By: check.ByDuly,
		SessionID: b.SessionID, Labels: b.AllLabels(), Reason: check.Clip("callback of " + of),
	})
}

// without takes runs out of a batch, and returns it and them with their settlements.
func without(batch []*run, runs []store.Settlement, failed []*run) (rest []*run, ready, left []store.Settlement) {
	if len(failed) == 0 {
		return batch, runs, nil
	}
	for i, r := range batch {
		if slices.Contains(failed, r) {
			left = append(left, runs[i])
			continue
		}
		rest, ready = append(rest, r), append(ready, runs[i])
	}
	return rest, ready, left
}

// confirmAll makes the deliveries of runs due whose ends are stored. A delivery that it fails for is due later by itself.
func (s *Scheduler) confirmAll(ctx context.Context, batch []*run, results []store.Settled) {
	for i, r := range batch {
		if !r.endsWithCallback() || results[i].Err != nil {
			continue
		}
		rec, err := record.DecodeFinished(r.verdict.Settlement.Record)
		if err == nil {
			err = s.confirm(ctx, r.claimed.Agent, r.claimed.ID, rec.Callback, r.delivery)
		}
		if err != nil {
			s.unconfirmed(ctx, r.claimed.Agent, rec.Callback, err)
		}
	}
}

// confirm makes a delivery due, as the end of its task is stored. One that has looked too early, as this process was stopped for longer than
// the lease of its run, is stored once more; again makes it.
func (s *Scheduler) confirm(ctx context.Context, agent, task, delivery string, again func() (store.Submission, error)) error {
	for range base.MostTries {
		page, err := s.store.Get(ctx, store.Get{Agent: agent, IDs: []string{delivery, task}})
		if err != nil {
			return err
		}
		d, of, end := &page.Tasks[0], &page.Tasks[1], page.Now
		if of.Status.Finished() {
			end = of.Finished
		}
		changed, err := s.confirmAs(ctx, d, noted{At: wire.Stamp(end.Time())}.encode(), page.Now, again)
		if err != nil || !changed {
			return err
		}
	}
	return store.ErrChanged
}

// confirmAs confirms a delivery as it was just read; true if it has changed since.
func (s *Scheduler) confirmAs(
	ctx context.Context, d *store.Stored, known []byte, now store.Millis, again func() (store.Submission, error),
) (changed bool, err error) {
	switch {
	case d.Status == StatusWaiting:
		code, err := s.confirmWaiting(ctx, d, known, now)
		if code == store.EffectRunning && again == nil { // a caller had it run in spite of a pause, or it was claimed since
			err = s.confirmRunning(ctx, d, known)
		}
		if errors.Is(err, store.ErrChanged) {
			return true, nil
		}
		return code == store.EffectChanged, err
	case d.Status != StatusInProgress:
		return false, s.deliverAgain(ctx, d, known, again)
	case again != nil:
		return false, nil // it looks for itself, and finds the end
	default:
		if err := s.confirmRunning(ctx, d, known); !errors.Is(err, store.ErrChanged) {
			return false, err
		}
		return true, nil
	}
}

// confirmWaiting makes a delivery due that waits.
func (s *Scheduler) confirmWaiting(ctx context.Context, d *store.Stored, known []byte, now store.Millis) (store.EffectCode, error) {
	st, err := record.DecodeState(d.State)
	if err != nil || len(st.Progress) > 0 {
		return store.EffectNone, err
	}
	st.Progress = known
	effects, err := s.store.Replan(ctx, []store.Replan{{
		Agent: d.Agent, ID: d.ID, Version: d.Version, Was: d.Due, Due: min(d.Due, now), State: st.First(),
	}})
	if err != nil {
		return store.EffectNone, err
	}
	return effects[0].Code, nil
}

// confirmRunning makes sure of a delivery that runs, or whose process has died: its replacement knows of the end, and is delivered again
// if its run delivers it too.
func (s *Scheduler) confirmRunning(ctx context.Context, d *store.Stored, known []byte) error {
	st, err := record.DecodeState(d.State)
	if err != nil || len(st.Progress) > 0 || d.Order != nil {
		return err
	}
	b, err := codec.DecodeBody(d.Body)
	if err != nil {
		return err
	}
	var m callbackMessage
	if err := json.Unmarshal(b.Payload, &m); err != nil || m.Ended != nil {
		return err
	}
	m.Ended = known
	if b.Payload, err = json.Marshal(m); err != nil {
		return err
	}
	_, err = s.store.Submit(ctx, []store.Submission{{
		Agent: d.Agent, ID: d.ID, Kind: d.Kind, Level: d.Level, Body: b.Encode(), Conflict: store.ConflictReplace, Owed: true, Version: d.Version, OldLen: len(d.Body),
	}})
	return err
}

// deliverAgain stores again a delivery that has ended without an end of its task to report, or was deleted.
func (s *Scheduler) deliverAgain(ctx context.Context, d *store.Stored, known []byte, again func() (store.Submission, error)) error {
	rec, err := record.DecodeFinished(d.Record)
	if err != nil || again == nil {
		return err
	}
	if st, err := record.DecodeState(rec.State); err != nil || d.Dropped || d.Status != StatusCompleted || len(st.Progress) > 0 {
		return err // it is delivered, or was given up
	}
	sub, err := again()
	if err != nil {
		return err
	}
	sub.Conflict, sub.Version, sub.Due = store.ConflictReplace, d.Version, store.When{}
	sub.State = (&codec.State{Progress: bytes.Clone(known)}).First()
	_, err = s.store.Submit(ctx, []store.Submission{sub})
	return err
}

// ensureDelivery makes sure of the delivery of a task that has ended, before that end is undone by another life of the task, or forgotten: after that
// no process could find out that it has ended.
func (s *Scheduler) ensureDelivery(ctx context.Context, t *store.Stored) error {
	// guard: callback-undone
	if !t.Status.Finished() || t.Dropped {
		return nil
	}
	rec, err := record.DecodeFinished(t.Record)
	if err != nil || rec.Callback == "" {
		return nil //nolint:nilerr // a record that cannot be read keeps nobody from forgetting it
	}
	return s.confirm(ctx, t.Agent, t.ID, rec.Callback, nil)
}

// storeCancelDelivery stores the delivery that follows the cancel of a task that waits, and notes it in the record. The task may run by then:
// nothing is delivered for that, as its run has an end of its own.
func (s *Scheduler) storeCancelDelivery(ctx context.Context, t *store.Stored, b *codec.Body, rec *record.Finished) (*store.Submission, error) {
	if b.Callback == nil {
		return nil, nil //nolint:nilnil // there is nobody to tell
	}
	rec.Callback = newEnd(t.ID)
	of := store.Stored{Agent: t.Agent, ID: t.ID, Status: StatusCancelled, Record: rec.Encode()}
	// guard: callback-named
	sub, err := callbackOf(&of, b, 0, s.commandMargin())
	if err != nil {
		return nil, err
	}
	placed, err := s.store.Submit(ctx, []store.Submission{sub})
	if err == nil && s.base.HasListeners() {
		s.emitDelivery(&sub, t.ID, b, placed[0].Due)
	}
	return &sub, err
}

// confirmCancel makes that delivery due.
func (s *Scheduler) confirmCancel(ctx context.Context, t *store.Stored, sub *store.Submission) {
	if sub == nil {
		return
	}
	if err := s.confirm(ctx, t.Agent, t.ID, sub.ID, func() (store.Submission, error) { return *sub, nil }); err != nil {
		s.unconfirmed(ctx, t.Agent, sub.ID, err)
	}
}
