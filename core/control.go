package core

import (
	"context"
	"errors"
	"fmt"
)

// Hold is who paused or cancelled something, and why.
type Hold struct {
	By, Reason string

	group string // of a cancelled task, as it was when it was told to end: it may have been replaced since its run began
}

// byDuly is who pauses what keeps failing.
const byDuly = "duly"

const (
	holdBy = iota + 1
	holdReason
	holdGroup
)

func (h Hold) encode() []byte {
	w := make(wire, 0, 8+len(h.By)+len(h.Reason))
	w.str(holdBy, h.By)
	w.str(holdReason, h.Reason)
	w.str(holdGroup, h.group)
	return w
}

func decodeHold(data []byte) Hold {
	var h Hold
	if err := readWire(data, func(field uint64, _ int64, b []byte) {
		switch field {
		case holdBy:
			h.By = string(b)
		case holdReason:
			h.Reason = string(b)
		case holdGroup:
			h.group = string(b)
		}
	}); err != nil {
		h.Reason = err.Error()
	}
	return h
}

// failureNote is a failed run as the statistics of its kind show it.
type failureNote struct{ Agent, ID, Error string }

const (
	failureAgent = iota + 1
	failureID
	failureError
)

func (f failureNote) encode() []byte {
	w := make(wire, 0, 8+len(f.Agent)+len(f.ID)+len(f.Error))
	w.str(failureAgent, f.Agent)
	w.str(failureID, f.ID)
	w.str(failureError, f.Error)
	return w
}

func decodeFailure(data []byte) failureNote {
	var f failureNote
	if err := readWire(data, func(field uint64, _ int64, b []byte) {
		switch field {
		case failureAgent:
			f.Agent = string(b)
		case failureID:
			f.ID = string(b)
		case failureError:
			f.Error = string(b)
		}
	}); err != nil {
		f.Error = err.Error()
	}
	return f
}

// RunNow makes a waiting task due now, also when it is paused, and returns when it is due. The occurrence that was planned
// stays planned. A task that runs is due once more if its overlap policy is OverlapQueueOne; else it fails with a
// *ConflictError. It fails with ErrNotFound if there is no live task of that id.
func (s *Scheduler) RunNow(ctx context.Context, agent, id string) (Millis, error) {
	t, err := s.stored(ctx, agent, id)
	if err != nil {
		return 0, err
	}
	if t.Status.Finished() {
		return 0, &ConflictError{Agent: agent, ID: id, Reason: fmt.Sprintf("is %s: replay it if it failed, or submit it again", t.Status)}
	}
	b, err := decodeBody(t.Body)
	if err != nil {
		return 0, err
	}
	effects, err := s.store.Control(ctx, []Command{{
		Op: OpRun, Submission: Submission{Agent: agent, ID: id, Group: b.Group}, Queue: b.Overlap == OverlapQueueOne,
	}})
	if err != nil {
		return 0, err
	}
	switch effects[0].Code {
	case EffectNone:
		return 0, ErrNotFound
	case EffectRunning:
		return 0, &ConflictError{Agent: agent, ID: id, Reason: "is running"}
	default:
		return effects[0].Due, nil
	}
}

// Cancel ends a task for good: at once if it waits; if it runs, its context is cancelled with the next heartbeat, unless
// it shares a call of its handler with other tasks, and it is cancelled when its run ends. It returns the task's status then: StatusCancelled, or StatusInProgress. Cancelling a
// cancelled task changes nothing; one that has completed or failed is a *ConflictError.
func (s *Scheduler) Cancel(ctx context.Context, agent, id string, by Hold) (Status, error) {
	if err := validText("reason", by.Reason, maxErrorLen); err != nil {
		return "", err
	}
	if err := validText("by", by.By, MaxTextLen); err != nil {
		return "", err
	}
	return s.cancel(ctx, agent, id, by)
}

// mostTries is how often a command that is about a task as it was read is tried again when the task has changed.
const mostTries = 8

func (s *Scheduler) cancel(ctx context.Context, agent, id string, by Hold) (Status, error) {
	for range mostTries {
		t, err := s.stored(ctx, agent, id)
		if err != nil {
			return "", err
		}
		switch t.Status {
		case StatusCancelled:
			return t.Status, nil
		case StatusCompleted, StatusFailed:
			return "", &ConflictError{Agent: agent, ID: id, Reason: fmt.Sprintf("is %s", t.Status)}
		default:
		}
		status, err := s.tryCancel(ctx, &t, by)
		if !errors.Is(err, ErrChanged) {
			return status, err
		}
	}
	return "", ErrChanged
}

func (s *Scheduler) tryCancel(ctx context.Context, t *Stored, by Hold) (Status, error) {
	b, err := decodeBody(t.Body)
	if err != nil {
		return "", err
	}
	by.group = b.Group
	rec := record{
		Kind: t.Kind, Level: t.Level, Submitted: t.Submitted, Due: t.Due, Reason: cancelReason(by), Group: b.Group, State: t.State,
	}
	effects, err := s.store.Control(ctx, []Command{{
		Op: OpCancel, Submission: Submission{Agent: t.Agent, ID: t.ID, Group: b.Group, Version: t.Version},
		Record: rec.encode(), Order: by.encode(),
	}})
	if err != nil {
		return "", err
	}
	switch effects[0].Code {
	case EffectDone:
		return StatusCancelled, nil
	case EffectOrdered:
		return StatusInProgress, nil
	case EffectChanged:
		return "", ErrChanged
	default:
		return "", ErrNotFound
	}
}

func cancelReason(by Hold) string {
	switch {
	case by.By == "" && by.Reason == "":
		return "cancelled"
	case by.By == "":
		return "cancelled: " + by.Reason
	case by.Reason == "":
		return "cancelled by " + by.By
	default:
		return "cancelled by " + by.By + ": " + by.Reason
	}
}

// Delete forgets a task, whether it is live or finished. A run of it loses its lease: its context is cancelled with the
// next heartbeat, and what it returns is refused. It fails with ErrNotFound if there is no such task.
func (s *Scheduler) Delete(ctx context.Context, agent, id string) error {
	t, err := s.stored(ctx, agent, id)
	if err != nil {
		return err
	}
	b, err := decodeBody(t.Body)
	if err != nil {
		return err
	}
	effects, err := s.store.Control(ctx, []Command{{Op: OpDelete, Submission: Submission{Agent: agent, ID: id, Group: b.Group}}})
	if err == nil && effects[0].Code == EffectNone {
		err = ErrNotFound
	}
	return err
}

// Replay makes a dead task live again: due now, with all its attempts and its history. It fails with ErrNotFound if there
// is no such task, and with a *ConflictError if it has not failed.
func (s *Scheduler) Replay(ctx context.Context, agent, id string) (Millis, error) {
	t, err := s.stored(ctx, agent, id)
	if err != nil {
		return 0, err
	}
	if t.Status != StatusFailed {
		return 0, &ConflictError{Agent: agent, ID: id, Reason: fmt.Sprintf("is %s: only failed tasks can be replayed", t.Status)}
	}
	if t.Dropped {
		return 0, &ConflictError{Agent: agent, ID: id, Reason: "cannot be replayed: " + droppedReason + "; submit it again with on_conflict replace"}
	}
	rec, err := decodeRecord(t.Record)
	if err != nil {
		return 0, err
	}
	b, err := decodeBody(rec.Body)
	if err != nil {
		return 0, err
	}
	old, err := decodeState(rec.State)
	if err != nil {
		return 0, err
	}
	kept := old.carry()
	sub := Submission{
		Agent: agent, ID: id, Kind: rec.Kind, Group: rec.Group, Key: b.SnoozeKey, Level: rec.Level, Body: rec.Body, State: kept.first(),
	}
	if b.Activity != nil {
		sub.Pulse = &b.Activity.Pulse // it answers to activity again
	}
	effects, err := s.store.Control(ctx, []Command{{Op: OpReplay, Submission: sub}})
	if err != nil {
		return 0, err
	}
	if effects[0].Code != EffectDone {
		return 0, ErrNotFound
	}
	return effects[0].Due, nil
}

// cancelled is what was said when the task was told to end, if it was.
func (r *run) cancelled() ([]byte, bool) {
	if order := r.order.Load(); order != nil {
		return *order, true
	}
	return nil, false
}

// endCancelled ends a task that was told to end. What its run returned is recorded.
func (r *run) endCancelled(v *verdict, err error, order []byte, ran bool) {
	switch {
	case !ran:
		r.crashes(nil)
	case err == nil:
		r.note(v, OutcomeSuccess, nil)
	default:
		r.note(v, OutcomeCancelled, err)
	}
	r.endAsTold(v, order)
}

// endAsTold settles a task as cancelled, in the group that it was in when it was told to end.
func (r *run) endAsTold(v *verdict, order []byte) {
	by := decodeHold(order)
	v.outcome = OutcomeCancelled
	r.body.Group = by.group
	v.settlement.Group = by.group
	r.end(v, VerbCancel, StatusCancelled, cancelReason(by))
}

// decideAnew revises a verdict that could not stand, as the task was cancelled or replaced while it ran. What has been
// noted of the run stays.
func (r *run) decideAnew(v *verdict, err error) bool {
	cancelled, told := errors.AsType[*CancelledError](err)
	tally := v.settlement.Tally
	switch {
	case told:
		v.released, v.retried, v.err = false, false, nil
		v.settlement = Settlement{Run: r.claimed.Run, Kind: r.claimed.Kind, Tally: tally}
		r.order.Store(&cancelled.Order)
		r.endAsTold(v, cancelled.Order)
	case errors.Is(err, ErrReplaced):
		v.status = StatusWaiting
		kept := r.state.carry() // what belongs to the old definition is not left in place
		v.settlement = Settlement{
			Run: r.claimed.Run, Group: r.body.Group, Kind: r.claimed.Kind, Tally: tally, Verb: VerbAgain, Renewed: true, State: kept.encode(),
		}
	default:
		return false
	}
	return true
}
