package core

// What an operator orders for one task: run now, cancel, delete, replay.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Order is who paused or cancelled something, and why.
type Order struct {
	// By is the name of the credential that it was ordered with; what the caller says of itself is Note then. A caller without a credential, such
	// as this process, is whoever it says.
	By     string
	Reason string
	Note   string
}

// byDuly is who pauses what keeps failing.
const byDuly = "duly"

// encode is the order as a store keeps it.
func (h Order) encode() []byte {
	return (&record.Hold{By: h.By, Reason: h.Reason, Note: h.Note}).Encode()
}

// decodeHold reads one. It never fails: an order that cannot be read says so in its reason.
func decodeHold(data []byte) Order {
	h := record.DecodeHold(data)
	return Order{By: h.By, Reason: h.Reason, Note: h.Note}
}

// mostTries is how often a command that is about a task as it was read is tried again when the task has changed.
const mostTries = 10

// asRead carries out a command that depends on how a task is: it reads the task and lets try decide and act. If the task has
// changed between the two, as its run has just ended or it was replayed, it is decided again. It fails with ErrNotFound if
// there is no such task, and with ErrChanged if the task never stays as it was read.
func (s *Scheduler) asRead(ctx context.Context, agent, id string, try func(t *store.Stored) error) error {
	for range mostTries {
		t, err := s.stored(ctx, agent, id)
		if err != nil {
			return err
		}
		if err := try(&t); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return store.ErrChanged
}

// effect is what one request for a task that was read did. ErrChanged says that the task is not as it was.
func effect(t *store.Stored, effects []store.Effect, err error) (store.Effect, error) {
	if err != nil {
		return store.Effect{}, err
	}
	switch effects[0].Code {
	case store.EffectNone, store.EffectChanged:
		return store.Effect{}, store.ErrChanged
	case store.EffectRunning:
		return store.Effect{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: "is running"}
	case store.EffectStopped:
		return store.Effect{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: "cannot run now, as everything is paused: resume that first, or pause agents or kinds instead"}
	case store.EffectEnding:
		return store.Effect{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: store.ConflictEnding}
	default:
		return effects[0], nil
	}
}

// RunNow makes a waiting task due now, also when it, its agent or its kind is paused, and returns when it is due. While everything is
// paused it fails with a *ConflictError. The occurrence that was planned
// stays planned. A pause that begins later holds the task all the same. A task that runs is due again if its overlap
// policy is OverlapQueueOne; else, and if it was cancelled, it fails with a *ConflictError. It fails with ErrNotFound if
// there is no live task of that id.
func (s *Scheduler) RunNow(ctx context.Context, agent, id string) (due time.Time, err error) {
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		due, err = s.runNow(ctx, t)
		return err
	})
	return due, err
}

// runNow orders a run of a task as it was just read. Whether it waits or runs decides what the order
// means.
func (s *Scheduler) runNow(ctx context.Context, t *store.Stored) (time.Time, error) {
	if t.Status.Finished() {
		return time.Time{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s: replay it if it failed, or submit it again", t.Status)}
	}
	b, err := decodeBody(t.Body)
	if err != nil {
		return time.Time{}, err
	}
	change := transition(EventRunNow, t, StatusWaiting, orderOf(ctx, Order{}))
	if err := s.allow(ctx, change); err != nil {
		return time.Time{}, err
	}
	passes, err := s.passQuiet(ctx, t, &b)
	if err != nil {
		return time.Time{}, err
	}
	effects, err := s.store.RunNow(ctx, []store.RunNow{{Agent: t.Agent, ID: t.ID, Group: b.Group, Queue: b.overlap() == OverlapQueueOne}})
	if err == nil && passes && effects[0].Code == store.EffectStopped { // what was refused is not to start in quiet hours later
		err = s.asRead(ctx, t.Agent, t.ID, func(marked *store.Stored) error {
			if marked.Status != StatusWaiting || marked.Due != t.Due {
				return nil
			}
			return s.replanAs(ctx, marked, t.State)
		})
	}
	e, err := effect(t, effects, err)
	if err == nil {
		s.changed(change, &b, e.Due)
	}
	return e.Due.Time(), err
}

// passQuiet lets a task that waits start although its agent has quiet hours now. It reports whether it has changed the task for that.
func (s *Scheduler) passQuiet(ctx context.Context, t *store.Stored, b *body) (passes bool, err error) {
	h, err := s.habitsOf(ctx, t.Agent)
	stopped := slices.ContainsFunc(t.Holds, func(h store.Held) bool { return h.Target == Target{} })
	if err != nil || t.Status != StatusWaiting || stopped { // it is about to be refused
		return false, err
	}
	now, err := s.askedNow(ctx)
	if err != nil || h.until(now, t.Level, b.Urgent) == now {
		return false, err
	}
	st, err := record.DecodeState(t.State)
	if err != nil || st.Hand {
		return false, nil //nolint:nilerr // whoever claims it says what is wrong
	}
	st.Hand = true
	return true, s.replanAs(ctx, t, st.Encode())
}

// replanAs gives a task that waits another state, and leaves it due as it was read.
func (s *Scheduler) replanAs(ctx context.Context, t *store.Stored, state []byte) error {
	effects, err := s.store.Replan(ctx, []store.Replan{{Agent: t.Agent, ID: t.ID, Version: t.Version, Was: t.Due, Due: t.Due, State: state}})
	if err == nil && effects[0].Code == store.EffectChanged {
		err = store.ErrChanged
	}
	return err
}

// Cancel ends a task for good: at once if it waits; if it runs, its context is cancelled with the next heartbeat, unless
// it shares a call of its handler with other tasks, and it is cancelled when its run ends, whatever the run returns. It
// returns the task's status then: StatusCancelled, or StatusInProgress. Until the run has ended the task cannot be replaced.
// Cancelling a cancelled task changes nothing; one that has completed or failed is a *ConflictError.
func (s *Scheduler) Cancel(ctx context.Context, agent, id string, by Order) (Status, error) {
	if err := validText("reason", by.Reason, maxErrorLen); err != nil {
		return "", err
	}
	if err := validText("by", by.By, MaxTextLen); err != nil {
		return "", err
	}
	return s.cancel(ctx, agent, id, orderOf(ctx, by), s.allow)
}

// cancel reads the task, and cancels it at that version; if it has changed in between, both are done
// again. allow is asked before.
func (s *Scheduler) cancel(
	ctx context.Context, agent, id string, by Order, allow func(context.Context, *Transition) error,
) (status Status, err error) {
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		status, err = s.tryCancel(ctx, t, by, allow)
		return err
	})
	return status, err
}

// tryCancel cancels a task as it was read. A task that is cancelled already is no error: that is what
// the caller wanted.
func (s *Scheduler) tryCancel(
	ctx context.Context, t *store.Stored, by Order, allow func(context.Context, *Transition) error,
) (Status, error) {
	switch t.Status {
	case StatusCancelled:
		return t.Status, nil
	case StatusCompleted, StatusFailed:
		return "", &ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s", t.Status)}
	default:
	}
	b, err := decodeBody(t.Body)
	if err != nil {
		return "", err
	}
	change := transition(EventCancel, t, StatusCancelled, by)
	if err := allow(ctx, change); err != nil {
		return "", err
	}
	order := record.Hold{By: by.By, Reason: by.Reason, Note: by.Note, Group: b.Group, Kind: t.Kind, Level: t.Level, Callback: record.NoCallback}
	if b.Callback != nil {
		order.Callback = b.Callback.URL
	}
	rec := record.Finished{
		Kind: t.Kind, Level: t.Level, Submitted: t.Submitted, Due: t.Due, Reason: cancelReason(by), Group: b.Group, State: t.State, Origin: b.Origin,
	}
	delivery, err := s.foretellCancel(ctx, t, &b, &rec)
	if err != nil {
		return "", err
	}
	effects, err := s.store.Cancel(ctx, []store.Cancellation{{
		Agent: t.Agent, ID: t.ID, Group: b.Group, Version: t.Version, Record: rec.Encode(), Order: order.Encode(),
	}})
	e, err := effect(t, effects, err)
	switch {
	case err != nil:
		return "", err
	case e.Code == store.EffectOrdered:
		change.To = StatusInProgress
	default:
		change.To = StatusCancelled
		s.confirmCancel(ctx, t, delivery)
	}
	s.changed(change, &b, 0)
	return change.To, nil
}

// cancelReason is the reason that a cancelled task is kept with: who and why, as far as they said so.
func cancelReason(by Order) string {
	text := "cancelled"
	if who := by.Who(); who != "" {
		text += " by " + who
	}
	if by.Reason != "" {
		text += ": " + by.Reason
	}
	return text
}

// Who is By, and Note in brackets.
func (h Order) Who() string {
	if h.Note == "" {
		return h.By
	}
	return h.By + " (" + h.Note + ")"
}

// Delete forgets a task, whether it is live or finished. A run of it loses its lease: its context is cancelled with the
// next heartbeat, and what it returns is refused. It fails with ErrNotFound if there is no such task.
func (s *Scheduler) Delete(ctx context.Context, agent, id string) error {
	return s.asRead(ctx, agent, id, func(t *store.Stored) error {
		b, err := decodeBody(t.Body)
		if err != nil {
			return err
		}
		change := transition(EventDelete, t, "", orderOf(ctx, Order{}))
		if err := s.allow(ctx, change); err != nil {
			return err
		}
		if err := s.sureOf(ctx, t); err != nil {
			return err
		}
		effects, err := s.store.Delete(ctx, []store.Deletion{{Agent: agent, ID: id, Group: b.Group}})
		_, err = effect(t, effects, err)
		if err == nil {
			s.changed(change, &b, 0)
		}
		return err
	})
}

// Replay makes a dead task live again: due now, with all its attempts and its history. It fails with ErrNotFound if there
// is no such task, and with a *ConflictError if it has not failed.
func (s *Scheduler) Replay(ctx context.Context, agent, id string) (due time.Time, err error) {
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		due, err = s.replay(ctx, t)
		return err
	})
	return due, err
}

// replay makes a dead task live again, with its body and a fresh state.
func (s *Scheduler) replay(ctx context.Context, t *store.Stored) (time.Time, error) {
	switch {
	case t.Status != StatusFailed:
		return time.Time{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s: only failed tasks can be replayed", t.Status)}
	case t.Dropped:
		return time.Time{}, &ConflictError{
			Agent: t.Agent, ID: t.ID, Reason: "cannot be replayed: " + droppedReason + "; submit it again with on_conflict replace",
		}
	}
	rec, err := record.DecodeFinished(t.Record)
	if err != nil {
		return time.Time{}, err
	}
	b, err := decodeBody(rec.Body)
	if err != nil {
		return time.Time{}, err
	}
	old, err := record.DecodeState(rec.State)
	if err != nil {
		return time.Time{}, err
	}
	change := transition(EventReplay, t, StatusWaiting, orderOf(ctx, Order{}))
	change.Kind, change.Key = rec.Kind, b.LimitKey
	if err := s.allow(ctx, change); err != nil {
		return time.Time{}, err
	}
	if err := s.sureOf(ctx, t); err != nil {
		return time.Time{}, err
	}
	kept := old.Carry()
	kept.Calls++ // what is replayed is to be handled, also if it was before
	effects, err := s.store.Replay(ctx, []store.Replay{{
		Agent: t.Agent, ID: t.ID, Kind: rec.Kind, Group: rec.Group, Key: b.LimitKey, Level: rec.Level, Body: rec.Body, State: kept.First(),
		Activity: b.Activity != nil,
	}})
	e, err := effect(t, effects, err)
	if err == nil {
		s.changed(change, &b, e.Due)
	}
	return e.Due.Time(), err
}
