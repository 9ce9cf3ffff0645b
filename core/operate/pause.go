package operate

// Pauses: how they begin and end.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// checkTarget refuses a target that names things which do not go together.
func checkTarget(t store.Target) error {
	switch {
	case t.Kind != "" && (t.Agent != "" || t.Key != ""), t.Key != "" && t.Agent != "":
		return check.Invalid("target", "must be a task, an agent, a kind or a limit key, not several of them")
	case t.ID != "" && t.Agent == "":
		return check.Invalid("agent_id", "is required with id")
	case t.Kind != "":
		return check.ValidKind("kind", t.Kind)
	case t.Key != "":
		return check.ValidText("limit_key", t.Key, check.MaxKeyLen)
	case t.Agent == "":
		return nil
	}
	if err := check.ValidID("agent_id", t.Agent); err != nil {
		return err
	}
	return check.ValidText("id", t.ID, check.MaxIDLen)
}

// Pause keeps tasks from being started until they are resumed, or until the time that p names. Runs under way continue. It is
// stored, so that it holds for all processes. Pausing what is paused begins the pause again, with the new reason and end: it also holds
// what [Desk.RunNow] has ordered meanwhile. It fails with
// ErrNotFound for a task that is not live and, unless p sets Ahead, with an *[UnknownTargetError] for an
// agent or a kind that does not exist.
func (s *Desk) Pause(ctx context.Context, t store.Target, p model.Pause) error {
	if err := checkTarget(t); err != nil {
		return err
	}
	if err := check.ValidText("reason", p.Reason, check.MaxErrorLen); err != nil {
		return err
	}
	if err := check.ValidText("by", p.By, check.MaxTextLen); err != nil {
		return err
	}
	until, err := s.pauseEnd(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case p.Ahead && t.ID != "":
		return check.Invalid("ahead", "is for an agent, a kind or a key: a task that does not exist cannot be paused")
	case !p.Ahead:
		if err := s.mustExist(ctx, t); err != nil {
			return err
		}
	}
	by := model.OrderOf(ctx, model.Order{By: p.By, Reason: p.Reason})
	change, err := s.base.AllowTarget(ctx, model.EventPause, t, by)
	if err != nil {
		return err
	}
	effects, err := s.base.Store.Hold(ctx, []store.Hold{{Target: t, Note: by.Encode(), Until: until}})
	switch {
	case err != nil:
		return err
	case effects[0].Code == store.EffectNone:
		return model.ErrNotFound
	}
	// guard: pause-waits
	awaitStarts(ctx, s.base, effects[0].Due)
	s.base.ChangedAll(change, s.ends(until))
	return nil
}

// awaitStarts waits until no task starts any more that was claimed ahead of its time, by a process that may not have heard of the pause yet.
func awaitStarts(ctx context.Context, b *base.Base, last moment.Millis) {
	if last == 0 {
		return
	}
	passed := make(chan struct{})
	stop := b.Config.Clock.AfterFunc(max(last.Sub(b.StoreNow()), 0)+ahead.StartWithin, func() { close(passed) })
	defer stop()
	select {
	case <-passed:
	case <-ctx.Done(): // it is paused all the same
	}
}

// ends is when a pause ends that has just begun; the zero time for never.
func (s *Desk) ends(until moment.When) time.Time {
	switch {
	case until.At != 0:
		return until.At.Time()
	case until.After != 0:
		return s.base.StoreNow().Add(until.After).Time()
	default:
		return time.Time{}
	}
}

// pauseEnd is when a pause ends by itself; never if it is zero.
func (s *Desk) pauseEnd(ctx context.Context, p model.Pause) (moment.When, error) {
	switch {
	case !p.Until.IsZero() && p.For != 0:
		return moment.When{}, check.Invalid("until", "excludes for")
	case p.For != 0 && (p.For < time.Millisecond || p.For > check.MaxDelay):
		return moment.When{}, check.Invalid("for", "must be between 1ms and %s, not %s", check.MaxDelay, p.For)
	case p.Until.IsZero(), p.Until.Year() > check.MaxYear: // some callers say never like this
		return moment.When{After: p.For}, nil
	}
	now, err := s.base.AskedNow(ctx)
	if err == nil && moment.Of(p.Until) <= now {
		err = check.Invalid("until", "has passed: it is %s now", now.Time().Format(time.RFC3339))
	}
	return moment.When{At: moment.Of(p.Until)}, err
}

// Resume ends a pause. What fell due meanwhile is due now. Resuming what is not paused changes nothing, but it fails with
// ErrNotFound for a task that does not exist, and with an *[UnknownTargetError] for an agent or a kind that does not.
func (s *Desk) Resume(ctx context.Context, t store.Target) error {
	if err := checkTarget(t); err != nil {
		return err
	}
	change, err := s.base.AllowTarget(ctx, model.EventResume, t, model.OrderOf(ctx, model.Order{}))
	if err != nil {
		return err
	}
	effects, err := s.base.Store.Unhold(ctx, []store.Target{t})
	switch {
	case err != nil:
		return err
	case effects[0].Code != store.EffectNone:
		s.base.ChangedAll(change, time.Time{})
		return nil
	case t.ID != "":
		_, err = s.base.Stored(ctx, t.Agent, t.ID)
		return err
	default:
		return s.mustExist(ctx, t)
	}
}
