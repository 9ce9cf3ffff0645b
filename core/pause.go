package core

// Pauses: how they begin and end.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Pause says why tasks are paused, and how long.
type Pause struct {
	Reason string    // for people; at most 1 KiB
	By     string    // who
	Until  time.Time // when they are resumed by themselves; zero, or after the year 2285, for never. To snooze is to pause until a time
	For    time.Duration
	// Ahead pauses an agent or a kind that does not exist yet. A single task cannot be paused before it exists.
	Ahead bool
}

// checkTarget refuses a target that names things which do not go together.
func checkTarget(t Target) error {
	switch {
	case t.Kind != "" && (t.Agent != "" || t.Key != ""), t.Key != "" && t.Agent != "":
		return invalid("target", "must be a task, an agent, a kind or a limit key, not several of them")
	case t.ID != "" && t.Agent == "":
		return invalid("agent_id", "is required with id")
	case t.Kind != "":
		return validKind("kind", t.Kind)
	case t.Key != "":
		return validText("limit_key", t.Key, maxKeyLen)
	case t.Agent == "":
		return nil
	}
	if err := validID("agent_id", t.Agent); err != nil {
		return err
	}
	return validText("id", t.ID, MaxIDLen)
}

// Pause keeps tasks from being started until they are resumed, or until the time that p names. Runs under way continue. It is
// stored, so that it holds for all processes. Pausing what is paused begins the pause again, with the new reason and end: it holds
// what [Scheduler.RunNow] has ordered meanwhile too. It fails with
// ErrNotFound for a task that is not live and, unless p says that it is ahead of them, with an *[UnknownTargetError] for an
// agent or a kind that does not exist.
func (s *Scheduler) Pause(ctx context.Context, t Target, p Pause) error {
	if err := checkTarget(t); err != nil {
		return err
	}
	if err := validText("reason", p.Reason, maxErrorLen); err != nil {
		return err
	}
	if err := validText("by", p.By, MaxTextLen); err != nil {
		return err
	}
	until, err := s.pauseEnd(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case p.Ahead && t.ID != "":
		return invalid("ahead", "is for an agent, a kind or a key: a task that does not exist cannot be paused")
	case !p.Ahead:
		if err := s.mustExist(ctx, t); err != nil {
			return err
		}
	}
	by := orderOf(ctx, Order{By: p.By, Reason: p.Reason})
	change, err := s.allowTarget(ctx, EventPause, t, by)
	if err != nil {
		return err
	}
	effects, err := s.store.Hold(ctx, []store.Hold{{Target: t, Note: by.encode(), Until: until}})
	switch {
	case err != nil:
		return err
	case effects[0].Code == store.EffectNone:
		return ErrNotFound
	}
	s.changedAll(change, s.ends(until))
	return nil
}

// ends is when a pause ends that has just begun; the zero time for never.
func (s *Scheduler) ends(until store.When) time.Time {
	switch {
	case until.At != 0:
		return until.At.Time()
	case until.After != 0:
		return s.storeNow().Add(until.After).Time()
	default:
		return time.Time{}
	}
}

// pauseEnd is when a pause ends by itself; never if it is zero.
func (s *Scheduler) pauseEnd(ctx context.Context, p Pause) (store.When, error) {
	switch {
	case !p.Until.IsZero() && p.For != 0:
		return store.When{}, invalid("until", "excludes for")
	case p.For != 0 && (p.For < time.Millisecond || p.For > maxDelay):
		return store.When{}, invalid("for", "must be between 1ms and %s, not %s", maxDelay, p.For)
	case p.Until.IsZero(), p.Until.Year() > maxYear: // that is how some say never
		return store.When{After: p.For}, nil
	}
	now, err := s.askedNow(ctx)
	if err == nil && store.MillisOf(p.Until) <= now {
		err = invalid("until", "has passed: it is %s now", now.Time().Format(time.RFC3339))
	}
	return store.When{At: store.MillisOf(p.Until)}, err
}

// Resume ends a pause. What fell due meanwhile is due now. Resuming what is not paused changes nothing, but it fails with
// ErrNotFound for a task that does not exist, and with an *[UnknownTargetError] for an agent or a kind that does not.
func (s *Scheduler) Resume(ctx context.Context, t Target) error {
	if err := checkTarget(t); err != nil {
		return err
	}
	change, err := s.allowTarget(ctx, EventResume, t, orderOf(ctx, Order{}))
	if err != nil {
		return err
	}
	effects, err := s.store.Unhold(ctx, []Target{t})
	switch {
	case err != nil:
		return err
	case effects[0].Code != store.EffectNone:
		s.changedAll(change, time.Time{})
		return nil
	case t.ID != "":
		_, err = s.stored(ctx, t.Agent, t.ID)
		return err
	default:
		return s.mustExist(ctx, t)
	}
}

// holdNew gives the submissions of tasks that are to be paused from the beginning their holds. The store sets each in the step that
// creates its task, so that no process ever finds the one without the other.
func holdNew(ctx context.Context, tasks []NewTask, subs []store.Submission) {
	for i := range tasks {
		subs[i].Hold = tasks[i].hold(ctx)
	}
}

// hold is the pause that a task has from the beginning; nil for none.
func (t *NewTask) hold(ctx context.Context) *store.Hold {
	switch {
	case t.restored != nil && t.restored.hold != nil:
		return t.restored.hold
	case t.Paused:
		return &store.Hold{Note: orderOf(ctx, Order{Reason: t.PausedReason}).encode()}
	default:
		return nil
	}
}
