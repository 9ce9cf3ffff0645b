// Package callback reports the ends of tasks. None is lost: the delivery is stored before the end that it follows, due when that has long happened or cannot
// happen any more. Once the end is stored, the delivery is made due. If a process dies in between, the delivery checks whether the end exists: see deliver.
package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Margin is how long after the lease of a run its delivery looks whether the run has ended the task.
const Margin = 10 * time.Second

// Outbox is where deliveries are stored, and what makes them. Its fields are set before it is used.
type Outbox struct {
	Base      *base.Base
	View      *inspect.View
	Callbacks Deliverer     // nil if this process delivers to no URL
	Wait      time.Duration // how long after a command has announced the end of a task its delivery looks whether it came
	Submit    func(ctx context.Context, tasks ...model.NewTask) ([]model.Submitted, error)
	Signal    func(ctx context.Context, agent, key string, payload json.RawMessage) (model.Signalled, error)
}

// Deliverer is what core.Callbacks says.
type Deliverer interface {
	Check(url string) error
	Deliver(ctx context.Context, url, id string, message []byte) error
}

// Ending is a run with the verdict on it.
type Ending interface {
	comparable

	// EndsWithCallback reports whether the verdict ends a task with a callback.
	EndsWithCallback() bool
	// Delivery is the delivery that follows.
	Delivery() (store.Submission, error)
	// Ends are the task that was claimed, its definition, and the record of its end.
	Ends() (c *store.Claimed, b *codec.Body, rec []byte)
}

// Store stores the deliveries that follow the ends of runs, and returns those runs for which that has failed: they must not be settled. It
// costs nothing where no task has a callback.
func Store[R Ending](ctx context.Context, o *Outbox, batch []R) (failed []R, err error) {
	var subs []store.Submission
	var of []R
	send := func() {
		if len(subs) == 0 {
			return
		}
		placed, lost := o.Base.Store.Submit(ctx, subs)
		if lost != nil {
			failed, err = append(failed, of...), lost
		} else {
			emitAll(o, of, subs, placed)
		}
		subs, of = nil, nil
	}
	size := 0
	for _, r := range batch {
		// guard: callback-foretold
		if !r.EndsWithCallback() {
			continue
		}
		sub, wrong := r.Delivery()
		if wrong != nil {
			failed, err = append(failed, r), wrong
			continue
		}
		// Deliveries of one partition are stored together: others may be away.
		if n := len(of); n > 0 && (partition(of[n-1]) != partition(r) || size+len(sub.Body) > operate.ImportBytes) {
			send()
			size = 0
		}
		subs, of, size = append(subs, sub), append(of, r), size+len(sub.Body)
	}
	send()
	return failed, err
}

// partition is that of a run.
func partition[R Ending](r R) int {
	c, _, _ := r.Ends()
	return c.Partition
}

// emitAll reports the deliveries that are new.
func emitAll[R Ending](o *Outbox, of []R, subs []store.Submission, placed []store.Submitted) {
	if !o.Base.HasListeners() {
		return
	}
	for i := range placed {
		if placed[i].Created {
			c, body, _ := of[i].Ends()
			o.emit(&subs[i], c.ID, body, placed[i].Due)
		}
	}
}

// emit reports a delivery that is new, of the task of an id and with a body.
func (o *Outbox) emit(sub *store.Submission, of string, b *codec.Body, due moment.Millis) {
	o.Base.Emit(model.Event{
		Type: model.EventEnqueue, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, TraceID: b.TraceID, Due: due.Time(), Status: store.StatusWaiting, By: check.ByDuly,
		SessionID: b.SessionID, Labels: b.AllLabels(), Reason: check.Clip("callback of " + of),
	})
}

// Without takes runs out of a batch, and returns it and them with their settlements.
func Without[R Ending](batch []R, runs []store.Settlement, failed []R) (rest []R, ready, left []store.Settlement) {
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

// Confirm makes the deliveries of runs due whose ends are stored. A delivery that it fails for is due later by itself.
func Confirm[R Ending](ctx context.Context, o *Outbox, batch []R, results []store.Settled) {
	for i, r := range batch {
		if !r.EndsWithCallback() || results[i].Err != nil {
			continue
		}
		c, _, end := r.Ends()
		rec, err := record.DecodeFinished(end)
		if err == nil {
			err = o.confirm(ctx, c.Agent, c.ID, rec.Callback, r.Delivery)
		}
		if err != nil {
			o.unconfirmed(ctx, c.Agent, rec.Callback, err)
		}
	}
}

// confirm makes a delivery due, as the end of its task is stored. One that has looked too early, as this process was stopped for longer than
// the lease of its run, is stored once more; again makes it.
func (o *Outbox) confirm(ctx context.Context, agent, task, delivery string, again func() (store.Submission, error)) error {
	for range base.MostTries {
		page, err := o.Base.Store.Get(ctx, store.Get{Agent: agent, IDs: []string{delivery, task}})
		if err != nil {
			return err
		}
		d, of, end := &page.Tasks[0], &page.Tasks[1], page.Now
		if of.Status.Finished() {
			end = of.Finished
		}
		changed, err := o.confirmAs(ctx, d, noted{At: wire.Stamp(end.Time())}.encode(), page.Now, again)
		if err != nil || !changed {
			return err
		}
	}
	return store.ErrChanged
}

// confirmAs confirms a delivery as it was just read; true if it has changed since.
func (o *Outbox) confirmAs(
	ctx context.Context, d *store.Stored, known []byte, now moment.Millis, again func() (store.Submission, error),
) (changed bool, err error) {
	switch {
	case d.Status == store.StatusWaiting:
		code, err := o.confirmWaiting(ctx, d, known, now)
		if code == store.EffectRunning && again == nil { // a caller had it run in spite of a pause, or it was claimed since
			err = o.confirmRunning(ctx, d, known)
		}
		if errors.Is(err, store.ErrChanged) {
			return true, nil
		}
		return code == store.EffectChanged, err
	case d.Status != store.StatusInProgress:
		return false, o.deliverAgain(ctx, d, known, again)
	case again != nil:
		return false, nil // it looks for itself, and finds the end
	default:
		if err := o.confirmRunning(ctx, d, known); !errors.Is(err, store.ErrChanged) {
			return false, err
		}
		return true, nil
	}
}

// confirmWaiting makes a delivery due that waits.
func (o *Outbox) confirmWaiting(ctx context.Context, d *store.Stored, known []byte, now moment.Millis) (store.EffectCode, error) {
	st, err := record.DecodeState(d.State)
	if err != nil || len(st.Progress) > 0 {
		return store.EffectNone, err
	}
	st.Progress = known
	effects, err := o.Base.Store.Replan(ctx, []store.Replan{{
		Agent: d.Agent, ID: d.ID, Version: d.Version, Was: d.Due, Due: min(d.Due, now), State: st.First(),
	}})
	if err != nil {
		return store.EffectNone, err
	}
	return effects[0].Code, nil
}

// confirmRunning makes sure of a delivery that runs, or whose process has died: its replacement knows of the end, and is delivered again
// if its run delivers it too.
func (o *Outbox) confirmRunning(ctx context.Context, d *store.Stored, known []byte) error {
	st, err := record.DecodeState(d.State)
	if err != nil || len(st.Progress) > 0 || d.Order != nil {
		return err
	}
	b, err := codec.DecodeBody(d.Body)
	if err != nil {
		return err
	}
	var m Message
	if err := json.Unmarshal(b.Payload, &m); err != nil || m.Ended != nil {
		return err
	}
	m.Ended = known
	if b.Payload, err = json.Marshal(m); err != nil {
		return err
	}
	_, err = o.Base.Store.Submit(ctx, []store.Submission{{
		Agent: d.Agent, ID: d.ID, Kind: d.Kind, Level: d.Level, Body: b.Encode(), Conflict: store.ConflictReplace, Owed: true, Version: d.Version, OldLen: len(d.Body),
	}})
	return err
}

// deliverAgain stores again a delivery that has ended without an end of its task to report, or was deleted.
func (o *Outbox) deliverAgain(ctx context.Context, d *store.Stored, known []byte, again func() (store.Submission, error)) error {
	rec, err := record.DecodeFinished(d.Record)
	if err != nil || again == nil {
		return err
	}
	if st, err := record.DecodeState(rec.State); err != nil || d.Dropped || d.Status != store.StatusCompleted || len(st.Progress) > 0 {
		return err // it is delivered, or was given up
	}
	sub, err := again()
	if err != nil {
		return err
	}
	sub.Conflict, sub.Version, sub.Due = store.ConflictReplace, d.Version, moment.When{}
	sub.State = (&codec.State{Progress: bytes.Clone(known)}).First()
	_, err = o.Base.Store.Submit(ctx, []store.Submission{sub})
	return err
}

// Ensure makes sure of the delivery of a task that has ended, before that end is undone by another life of the task, or forgotten: after that
// no process could find out that it has ended.
func (o *Outbox) Ensure(ctx context.Context, t *store.Stored) error {
	// guard: callback-undone
	if !t.Status.Finished() || t.Dropped {
		return nil
	}
	rec, err := record.DecodeFinished(t.Record)
	if err != nil || rec.Callback == "" {
		return nil //nolint:nilerr // a record that cannot be read keeps nobody from forgetting it
	}
	return o.confirm(ctx, t.Agent, t.ID, rec.Callback, nil)
}

// StoreCancel stores the delivery that follows the cancel of a task that waits, and notes it in the record. The task may run by then:
// nothing is delivered for that, as its run has an end of its own.
func (o *Outbox) StoreCancel(ctx context.Context, t *store.Stored, b *codec.Body, rec *record.Finished) (*store.Submission, error) {
	if b.Callback == nil {
		return nil, nil //nolint:nilnil // there is nobody to tell
	}
	rec.Callback = newEnd(t.ID)
	of := store.Stored{Agent: t.Agent, ID: t.ID, Status: store.StatusCancelled, Record: rec.Encode()}
	// guard: callback-named
	sub, err := Of(&of, b, 0, o.Wait)
	if err != nil {
		return nil, err
	}
	placed, err := o.Base.Store.Submit(ctx, []store.Submission{sub})
	if err == nil && o.Base.HasListeners() {
		o.emit(&sub, t.ID, b, placed[0].Due)
	}
	return &sub, err
}

// ConfirmCancel makes that delivery due.
func (o *Outbox) ConfirmCancel(ctx context.Context, t *store.Stored, sub *store.Submission) {
	if sub == nil {
		return
	}
	if err := o.confirm(ctx, t.Agent, t.ID, sub.ID, func() (store.Submission, error) { return *sub, nil }); err != nil {
		o.unconfirmed(ctx, t.Agent, sub.ID, err)
	}
}
