package operate

// Commands of an operator for one task: run now, cancel, delete, replay.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/late"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// asRead carries out a command that depends on the state of a task: it reads the task and lets try decide and act. If the task has
// changed between the two, as its run has just ended or it was replayed, it is decided again. It fails with ErrNotFound if
// there is no such task, and with ErrChanged if the task keeps changing.
func (s *Desk) asRead(ctx context.Context, agent, id string, try func(t *store.Stored) error) error {
	for range base.MostTries {
		t, err := s.base.Stored(ctx, agent, id)
		if err != nil {
			return err
		}
		if err := try(&t); !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
	return store.ErrChanged
}

// effect is the effect of one request for a task that was read. ErrChanged says that the task has changed since.
func effect(t *store.Stored, effects []store.Effect, err error) (store.Effect, error) {
	if err != nil {
		return store.Effect{}, err
	}
	switch effects[0].Code {
	case store.EffectNone, store.EffectChanged:
		return store.Effect{}, store.ErrChanged
	case store.EffectRunning:
		return store.Effect{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: "is running"}
	case store.EffectStopped:
		return store.Effect{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: "cannot run now, as everything is paused: resume that first, or pause agents or kinds instead"}
	case store.EffectEnding:
		return store.Effect{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: store.ConflictEnding}
	default:
		return effects[0], nil
	}
}

// RunNow makes a waiting task due now, also when it, its agent or its kind is paused, and returns when it is due. While everything is
// paused it fails with a *ConflictError. The occurrence that was planned
// stays planned. A pause that begins later holds the task all the same. A task that runs is due again if its overlap
// policy is OverlapQueueOne; else, and if it was cancelled, it fails with a *ConflictError. It fails with ErrNotFound if
// there is no live task of that id.
func (s *Desk) RunNow(ctx context.Context, agent, id string) (due time.Time, err error) {
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		due, err = s.runNow(ctx, t)
		return err
	})
	return due, err
}

// runNow orders a run of a task as it was just read. Whether it waits or runs decides what the order
// means.
func (s *Desk) runNow(ctx context.Context, t *store.Stored) (time.Time, error) {
	if t.Status.Finished() {
		return time.Time{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s: replay it if it failed, or submit it again", t.Status)}
	}
	b, err := codec.DecodeBody(t.Body)
	if err != nil {
		return time.Time{}, err
	}
	change := base.Transition(model.EventRunNow, t, store.StatusWaiting, model.OrderOf(ctx, model.Order{}))
	if err := s.base.Allow(ctx, change); err != nil {
		return time.Time{}, err
	}
	passes, err := s.passQuiet(ctx, t, &b)
	if err != nil {
		return time.Time{}, err
	}
	effects, err := s.base.Store.RunNow(ctx, []store.RunNow{{Agent: t.Agent, ID: t.ID, Group: b.Group, Queue: b.OverlapPolicy() == model.OverlapQueueOne}})
	if err == nil && passes && effects[0].Code == store.EffectStopped { // a refused run must not start in quiet hours later
		err = s.asRead(ctx, t.Agent, t.ID, func(marked *store.Stored) error {
			if marked.Status != store.StatusWaiting || marked.Due != t.Due {
				return nil
			}
			return s.replanAs(ctx, marked, t.State)
		})
	}
	e, err := effect(t, effects, err)
	if err == nil {
		s.base.Changed(change, &b, e.Due)
	}
	return e.Due.Time(), err
}

// passQuiet lets a task that waits start although its agent has quiet hours now. It reports whether it has changed the task for that.
func (s *Desk) passQuiet(ctx context.Context, t *store.Stored, b *codec.Body) (passes bool, err error) {
	h, err := s.base.ProfileOf(ctx, t.Agent)
	stopped := slices.ContainsFunc(t.Holds, func(h store.Held) bool { return h.Target == store.Target{} })
	if err != nil || t.Status != store.StatusWaiting || stopped { // it is about to be refused
		return false, err
	}
	now, err := s.base.AskedNow(ctx)
	if err != nil || h.Until(now, t.Level, b.Urgent) == now {
		return false, err
	}
	st, err := record.DecodeState(t.State)
	if err != nil || st.Hand {
		return false, nil //nolint:nilerr // whoever claims it says what is wrong
	}
	st.Hand = true
	return true, s.replanAs(ctx, t, st.Encode())
}

// replanAs gives a waiting task another state, and keeps the due time that was read.
func (s *Desk) replanAs(ctx context.Context, t *store.Stored, state []byte) error {
	effects, err := s.base.Store.Replan(ctx, []store.Replan{{Agent: t.Agent, ID: t.ID, Version: t.Version, Was: t.Due, Due: t.Due, State: state}})
	if err == nil && effects[0].Code == store.EffectChanged {
		err = store.ErrChanged
	}
	return err
}

// Cancel ends a task for good: at once if it waits; if it runs, its context is cancelled with the next heartbeat, unless
// it shares a call of its handler with other tasks, and it is cancelled when its run ends, no matter what the run returns. It
// returns the task's new status: StatusCancelled, or StatusInProgress. Until the run has ended the task cannot be replaced.
// Cancelling a cancelled task changes nothing; one that has completed or failed is a *ConflictError.
func (s *Desk) Cancel(ctx context.Context, agent, id string, by model.Order) (store.Status, error) {
	if err := check.ValidText("reason", by.Reason, check.MaxErrorLen); err != nil {
		return "", err
	}
	if err := check.ValidText("by", by.By, check.MaxTextLen); err != nil {
		return "", err
	}
	return s.cancelAs(ctx, agent, id, model.OrderOf(ctx, by), s.base.Allow)
}

// cancelAs reads the task, and cancels it at that version; if it has changed in between, both are done
// again. allow is asked before.
func (s *Desk) cancelAs(
	ctx context.Context, agent, id string, by model.Order, allow func(context.Context, *model.Transition) error,
) (status store.Status, err error) {
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		status, err = s.tryCancel(ctx, t, by, allow)
		return err
	})
	return status, err
}

// tryCancel cancels a task as it was read. A task that is cancelled already is no error: that is what
// the caller wanted.
func (s *Desk) tryCancel(
	ctx context.Context, t *store.Stored, by model.Order, allow func(context.Context, *model.Transition) error,
) (store.Status, error) {
	switch t.Status {
	case store.StatusCancelled:
		return t.Status, nil
	case store.StatusCompleted, store.StatusFailed:
		return "", &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s", t.Status)}
	default:
	}
	b, err := codec.DecodeBody(t.Body)
	if err != nil {
		return "", err
	}
	change := base.Transition(model.EventCancel, t, store.StatusCancelled, by)
	if err := allow(ctx, change); err != nil {
		return "", err
	}
	order := record.Hold{By: by.By, Reason: by.Reason, Note: by.Note, Group: b.Group, Kind: t.Kind, Level: t.Level, Callback: record.NoCallback}
	if b.Callback != nil {
		order.Callback = b.Callback.URL
	}
	rec := record.Finished{
		Kind: t.Kind, Level: t.Level, Submitted: t.Submitted, Due: t.Due, Reason: codec.CancelReason(by), Group: b.Group, State: t.State, Origin: b.Origin,
	}
	delivery, err := s.engine.StoreCancelDelivery(ctx, t, &b, &rec)
	if err != nil {
		return "", err
	}
	effects, err := s.base.Store.Cancel(ctx, []store.Cancellation{{
		Agent: t.Agent, ID: t.ID, Group: b.Group, Version: t.Version, Record: rec.Encode(), Order: order.Encode(),
	}})
	e, err := effect(t, effects, err)
	switch {
	case err != nil:
		return "", err
	case e.Code == store.EffectOrdered:
		change.To = store.StatusInProgress
	default:
		change.To = store.StatusCancelled
		s.engine.ConfirmCancel(ctx, t, delivery)
		disarm(ctx, s.base, t)
	}
	s.base.Changed(change, &b, 0)
	return change.To, nil
}

// Delete forgets a task, whether it is live or finished. A run of it loses its lease: its context is cancelled with the
// next heartbeat, and what it returns is refused. It fails with ErrNotFound if there is no such task.
func (s *Desk) Delete(ctx context.Context, agent, id string) error {
	return s.asRead(ctx, agent, id, func(t *store.Stored) error {
		b, err := codec.DecodeBody(t.Body)
		if err != nil {
			return err
		}
		change := base.Transition(model.EventDelete, t, "", model.OrderOf(ctx, model.Order{}))
		if err := s.base.Allow(ctx, change); err != nil {
			return err
		}
		if err := s.engine.EnsureDelivery(ctx, t); err != nil {
			return err
		}
		effects, err := s.base.Store.Delete(ctx, []store.Deletion{{Agent: agent, ID: id, Group: b.Group}})
		_, err = effect(t, effects, err)
		if err == nil {
			disarm(ctx, s.base, t)
			s.base.Changed(change, &b, 0)
		}
		return err
	})
}

// disarm ends the watches of tasks that have ended by an order, as they were read.
func disarm(ctx context.Context, of *base.Base, tasks ...*store.Stored) {
	var watched []late.Task
	for _, t := range tasks {
		b, err := codec.DecodeBody(t.Body)
		st, wrong := record.DecodeState(t.State)
		if errors.Join(err, wrong) == nil && (b.Expects != nil || st.Watched != nil) {
			watched = append(watched, late.Task{Agent: t.Agent, ID: t.ID})
		}
	}
	// guard: watched-undone
	late.Disarm(ctx, of, watched)
}

// Replay makes a dead task live again: due now, with all its attempts and its history. It fails with ErrNotFound if there
// is no such task, and with a *ConflictError if it has not failed.
func (s *Desk) Replay(ctx context.Context, agent, id string) (due time.Time, err error) {
	return s.ReplayWith(ctx, agent, id, nil)
}

// ReplayWith is Replay with another payload, in one step: no run starts with the old one. An empty payload is none, and nil the old one. The caller
// needs the right to submit such a task, too.
func (s *Desk) ReplayWith(ctx context.Context, agent, id string, payload json.RawMessage) (due time.Time, err error) {
	if _, err := (&model.NewTask{Payload: payload}).PayloadJSON(s.base.Config.MaxPayload); err != nil {
		return time.Time{}, err
	}
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		due, err = replay(ctx, s, t, payload)
		return err
	})
	return due, err
}

// bodyWith is the body of a dead task, with another payload if there is one. The record gets it too.
func bodyWith(ctx context.Context, of *base.Base, t *store.Stored, rec *record.Finished, payload json.RawMessage) (codec.Body, error) {
	b, err := codec.DecodeBody(rec.Body)
	if err != nil || payload == nil {
		return b, err
	}
	if err := of.Authorize(ctx, model.Access{Action: model.ActionSubmit, Agent: t.Agent, User: b.UserID, Kind: rec.Kind, ID: t.ID}); err != nil {
		return b, err
	}
	b.Payload = payload
	rec.Body = b.Encode()
	return b, nil
}

// replay makes a dead task live again, with a fresh state, and its body but for the payload, if there is a new one.
func replay(ctx context.Context, s *Desk, t *store.Stored, payload json.RawMessage) (time.Time, error) {
	switch {
	case t.Status != store.StatusFailed:
		return time.Time{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s: only failed tasks can be replayed", t.Status)}
	case t.Dropped:
		return time.Time{}, &store.ConflictError{
			Agent: t.Agent, ID: t.ID, Reason: "cannot be replayed: " + codec.DroppedReason + "; submit it again with on_conflict replace",
		}
	}
	rec, err := record.DecodeFinished(t.Record)
	if err != nil {
		return time.Time{}, err
	}
	b, err := bodyWith(ctx, s.base, t, &rec, payload)
	if err != nil {
		return time.Time{}, err
	}
	old, err := record.DecodeState(rec.State)
	if err != nil {
		return time.Time{}, err
	}
	change := base.Transition(model.EventReplay, t, store.StatusWaiting, model.OrderOf(ctx, model.Order{}))
	change.Kind, change.Key = rec.Kind, b.LimitKey
	if err := s.base.Allow(ctx, change); err != nil {
		return time.Time{}, err
	}
	if err := s.engine.EnsureDelivery(ctx, t); err != nil {
		return time.Time{}, err
	}
	if expects := late.Of(s.base, t.Agent, rec.Kind, &b); expects != nil {
		if _, err := s.base.AskedNow(ctx); err != nil {
			return time.Time{}, err
		}
		if _, err := late.Arm(ctx, s.base, []late.Task{{Agent: t.Agent, ID: t.ID, Expects: expects, From: s.base.StoreNow(), Recurs: b.Recurs()}}, true); err != nil {
			return time.Time{}, err
		}
	}
	kept := old.Carry()
	kept.Watched = nil // what is expected of it begins again
	kept.Calls++       // a replayed task is to be handled again, also if it was before
	effects, err := s.base.Store.Replay(ctx, []store.Replay{{
		Agent: t.Agent, ID: t.ID, Kind: rec.Kind, Group: rec.Group, Key: b.LimitKey, Level: rec.Level, Body: rec.Body, State: kept.First(),
		Activity: b.Activity != nil, Recurs: b.Recurs() && !b.Manual, Bound: base.BoundReplay(ctx, s.base),
	}})
	if err == nil && effects[0].Refused != nil {
		return time.Time{}, effects[0].Refused
	}
	e, err := effect(t, effects, err)
	if err == nil {
		s.base.Changed(change, &b, e.Due)
	}
	return e.Due.Time(), err
}

// CancelBySelf is [Desk.Cancel] for what duly cancels by itself: no rule is asked about it.
func CancelBySelf(ctx context.Context, d *Desk, agent, id string, by model.Order) (store.Status, error) {
	return d.cancelAs(ctx, agent, id, by, base.Unasked)
}
