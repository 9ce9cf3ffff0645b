// Package activity books the tasks that the activity of users makes due.
package activity

import (
	"context"
	"errors"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Notice records that a subject was active, as core.Scheduler.Notice says; origin is the run that says so, or nil.
func Notice(ctx context.Context, b *base.Base, origin *model.Origin, kind string, subject model.Subject) (model.Noticed, error) {
	sub, err := taskOf(b, kind, subject)
	if err != nil {
		return model.Noticed{}, err
	}
	if err := b.Authorize(ctx, subject.Access(kind)); err != nil {
		return model.Noticed{}, err
	}
	if sub.ID == "" {
		if sub, err = ruled(ctx, b, kind, subject); err != nil {
			return model.Noticed{}, err
		}
	}
	change := &model.Transition{Type: model.EventActivity, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, To: store.StatusWaiting, Order: model.OrderOf(ctx, model.Order{})}
	if err := b.AllowActivity(ctx, change); err != nil {
		return model.Noticed{}, err
	}
	touched, err := touch(ctx, b, origin, &sub)
	if err != nil {
		return model.Noticed{}, err
	}
	t := touched[0]
	if t.Booked {
		if t.Due == 0 {
			change.To = store.StatusInProgress
		}
		b.ChangedAll(change, t.Due.Time())
	}
	return model.Noticed{Scheduled: t.Booked, Reason: t.Reason, Due: t.Due.Time(), Agent: sub.Agent, ID: sub.ID}, nil
}

// touch stores a touch, which may make a task if the quota of its agent has room. It is checked again if that has changed.
func touch(ctx context.Context, b *base.Base, origin *model.Origin, sub *store.Touch) (touched []store.Touched, err error) {
	for try := 1; ; try++ {
		if err := base.WallTouch(ctx, b, origin, sub, try > 1); err != nil {
			return nil, err
		}
		touched, err = b.Store.Touch(ctx, []store.Touch{*sub})
		if !errors.Is(err, store.ErrChanged) || try == base.MostTries {
			return touched, err
		}
	}
}

// taskOf is the touch that a notice becomes: the task of its subject, whether it exists or not; none if only that task can have the rule.
// Everything is checked before the store is called.
func taskOf(b *base.Base, kind string, subject model.Subject) (store.Touch, error) {
	if err := check.ValidKind("kind", kind); err != nil {
		return store.Touch{}, err
	}
	if err := check.ValidID("user_id", subject.User); err != nil {
		return store.Touch{}, err
	}
	if err := check.ValidText("device_id", subject.Device, check.MaxIDLen); err != nil {
		return store.Touch{}, err
	}
	if err := check.ValidText("agent_id", subject.Agent, check.MaxIDLen); err != nil {
		return store.Touch{}, err
	}
	config := b.Kind(kind)
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
	body := record.Body{Payload: payload, Activity: &rule, MinInterval: a.MinInterval, UserID: subject.User}
	level := a.Level
	if level == 0 {
		level = store.LevelLow
	}
	return store.Touch{Agent: owner, ID: id, Kind: kind, Level: level, Body: body.Encode(), Pulse: rule.Pulse}, nil
}

// ruled is the touch of a subject whose own task holds the rule for activity. How many dimensions the kind distinguishes is only
// known where its settings are: the task with the most dimensions is the subject's.
func ruled(ctx context.Context, b *base.Base, kind string, subject model.Subject) (store.Touch, error) {
	for dimensions := 3; dimensions > 0; dimensions-- {
		owner, id := (&model.Activity{Dimensions: dimensions}).Subject(kind, subject)
		page, err := b.Store.Get(ctx, store.Get{Agent: owner, IDs: []string{id}})
		if err != nil {
			return store.Touch{}, err
		}
		t := &page.Tasks[0]
		body, err := record.DecodeBody(t.Body)
		if err != nil || body.Activity == nil || t.Kind != kind {
			continue
		}
		if body.Payload, err = subject.Payload(); err != nil {
			return store.Touch{}, err
		}
		return store.Touch{Agent: owner, ID: id, Kind: kind, Level: t.Level, Body: body.Encode(), Pulse: body.Activity.Pulse}, nil
	}
	return store.Touch{}, check.Invalid("kind", "%q has no activity schedule here, and the subject has no task of this kind yet", kind)
}
