package core

// Activity of users: the tasks that it makes due.

import (
	"context"
	"errors"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Notice records that a subject was active. It books a run of the kind's task for that subject; see [Activity]. The task is
// owned by the agent, or by the user if no agent is given or the kind does not distinguish agents. A scheduler whose kind has no Activity takes the
// rule from the subject's task, which every task keeps, so that a process without the settings can record activity too; the first
// activity of a subject needs a process that has them.
func (s *Scheduler) Notice(ctx context.Context, kind string, subject Subject) (model.Noticed, error) {
	sub, err := s.activityTask(kind, subject)
	if err != nil {
		return model.Noticed{}, err
	}
	if err := s.base.Authorize(ctx, subject.Access(kind)); err != nil {
		return model.Noticed{}, err
	}
	if sub.ID == "" {
		if sub, err = s.ruled(ctx, kind, subject); err != nil {
			return model.Noticed{}, err
		}
	}
	change := &Transition{Type: model.EventActivity, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, To: StatusWaiting, Order: model.OrderOf(ctx, Order{})}
	if err := s.base.AllowActivity(ctx, change); err != nil {
		return model.Noticed{}, err
	}
	touched, err := touch(ctx, s, &sub)
	if err != nil {
		return model.Noticed{}, err
	}
	t := touched[0]
	if t.Booked {
		if t.Due == 0 {
			change.To = StatusInProgress
		}
		s.base.ChangedAll(change, t.Due.Time())
	}
	return model.Noticed{Scheduled: t.Booked, Reason: t.Reason, Due: t.Due.Time(), Agent: sub.Agent, ID: sub.ID}, nil
}

// touch stores a touch, which may make a task if the quota of its agent has room. It is checked again if that has changed.
func touch(ctx context.Context, s *Scheduler, sub *store.Touch) (touched []store.Touched, err error) {
	for try := 1; ; try++ {
		if err := base.WallTouch(ctx, s.base, originOf(ctx), sub, try > 1); err != nil {
			return nil, err
		}
		touched, err = s.store.Touch(ctx, []store.Touch{*sub})
		if !errors.Is(err, store.ErrChanged) || try == base.MostTries {
			return touched, err
		}
	}
}

// activityTask is the touch that a notice becomes: the task of its subject, whether it exists or not; none if only that task can have the rule.
// Everything is checked before the store is called.
func (s *Scheduler) activityTask(kind string, subject Subject) (store.Touch, error) {
	if err := check.ValidKind("kind", kind); err != nil {
		return store.Touch{}, err
	}
	if err := check.ValidID("user_id", subject.User); err != nil {
		return store.Touch{}, err
	}
	if err := check.ValidText("device_id", subject.Device, MaxIDLen); err != nil {
		return store.Touch{}, err
	}
	if err := check.ValidText("agent_id", subject.Agent, MaxIDLen); err != nil {
		return store.Touch{}, err
	}
	config := s.base.Kind(kind)
	switch {
	case config.Disabled:
		return store.Touch{}, &model.DisabledError{Kind: kind}
	case config.Activity == nil:
		return store.Touch{}, nil
	}
	a := config.Activity
	owner, id := a.Subject(kind, subject)
	payload, err := subject.Payload()
	if err != nil {
		return store.Touch{}, err
	}
	rule := a.Rule()
	b := record.Body{Payload: payload, Activity: &rule, MinInterval: a.MinInterval, UserID: subject.User}
	level := a.Level
	if level == 0 {
		level = LevelLow
	}
	return store.Touch{Agent: owner, ID: id, Kind: kind, Level: level, Body: b.Encode(), Pulse: rule.Pulse}, nil
}

// ruled is the touch of a subject whose own task holds the rule for activity. How many dimensions the kind distinguishes is only
// known where its settings are: the task with the most dimensions is the subject's.
func (s *Scheduler) ruled(ctx context.Context, kind string, subject Subject) (store.Touch, error) {
	for dimensions := 3; dimensions > 0; dimensions-- {
		owner, id := (&Activity{Dimensions: dimensions}).Subject(kind, subject)
		page, err := s.store.Get(ctx, store.Get{Agent: owner, IDs: []string{id}})
		if err != nil {
			return store.Touch{}, err
		}
		t := &page.Tasks[0]
		b, err := record.DecodeBody(t.Body)
		if err != nil || b.Activity == nil || t.Kind != kind {
			continue
		}
		if b.Payload, err = subject.Payload(); err != nil {
			return store.Touch{}, err
		}
		return store.Touch{Agent: owner, ID: id, Kind: kind, Level: t.Level, Body: b.Encode(), Pulse: b.Activity.Pulse}, nil
	}
	return store.Touch{}, check.Invalid("kind", "%q has no activity schedule here, and the subject has no task of this kind yet", kind)
}
