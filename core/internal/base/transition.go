package base

// Requested changes: the host's rule is asked before, and they are reported afterwards.

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Allow asks the rule about a change, if there is one.
func (s *Base) Allow(ctx context.Context, t *model.Transition) error {
	if s.Config.Allow == nil {
		return nil
	}
	if err := s.Config.Allow(ctx, *t); err != nil {
		return &model.VetoError{Transition: *t, Err: err}
	}
	return nil
}

// Transition is the change of a task as it was read. A task that runs keeps its status.
func Transition(typ model.EventType, t *store.Stored, to store.Status, by model.Order) *model.Transition {
	if t.Status == store.StatusInProgress && typ != model.EventDelete {
		to = t.Status
	}
	kind := t.Kind // that of a finished task is in its record
	if rec, err := record.DecodeFinished(t.Record); err == nil && t.Status.Finished() {
		kind = rec.Kind
	}
	return &model.Transition{Type: typ, Agent: t.Agent, ID: t.ID, Kind: kind, Key: t.Key, From: t.Status, To: to, Order: by}
}

// AllowTarget asks the rule about a pause or its end, and returns the change. A single task is read for its status, if there is a
// rule; the store reports one that does not exist.
func (s *Base) AllowTarget(ctx context.Context, typ model.EventType, about store.Target, by model.Order) (*model.Transition, error) {
	t := &model.Transition{Type: typ, Agent: about.Agent, ID: about.ID, Kind: about.Kind, Key: about.Key, Order: by}
	if s.Config.Allow == nil {
		return t, nil
	}
	if about.ID != "" {
		stored, err := s.Stored(ctx, about.Agent, about.ID)
		if err != nil {
			return t, err
		}
		t = Transition(typ, &stored, stored.Status, by)
	}
	return t, s.Allow(ctx, t)
}

// AllowActivity asks the rule about an activity, if there is one: it reads the task of its subject.
func (s *Base) AllowActivity(ctx context.Context, t *model.Transition) error {
	if s.Config.Allow == nil {
		return nil
	}
	page, err := s.Store.Get(ctx, store.Get{Agent: t.Agent, IDs: []string{t.ID}})
	if err != nil {
		return err
	}
	if t.From = page.Tasks[0].Status; t.From == store.StatusInProgress {
		t.To = t.From
	}
	return s.Allow(ctx, t)
}

// Existing are the statuses of those tasks that exist already, by agent and id. Generated ids belong to none.
func (s *Base) Existing(ctx context.Context, tasks []model.NewTask, subs []store.Submission) (map[[2]string]store.Status, error) {
	ids := map[string][]string{}
	for i := range subs {
		if cmp.Or(tasks[i].ID, tasks[i].UniqueKey) != "" {
			ids[subs[i].Agent] = append(ids[subs[i].Agent], subs[i].ID)
		}
	}
	found := map[[2]string]store.Status{}
	for agent, of := range ids {
		page, err := s.Store.Get(ctx, store.Get{Agent: agent, IDs: of})
		if err != nil {
			return nil, err
		}
		for i := range page.Tasks {
			found[[2]string{agent, page.Tasks[i].ID}] = page.Tasks[i].Status
		}
	}
	return found, nil
}

// Unasked allows what duly does by itself: no rule is asked about it.
func Unasked(context.Context, *model.Transition) error { return nil }

// Changed reports a stored change of a task, with its body, and when it is due; zero for never.
func (s *Base) Changed(t *model.Transition, b *codec.Body, due moment.Millis) {
	if !s.HasListeners() {
		return
	}
	e := t.Event()
	e.Group, e.TraceID, e.SessionID, e.Labels, e.Next = b.Group, b.TraceID, b.SessionID, b.AllLabels(), due.Time()
	s.Emit(e)
}

// ChangedAll reports a pause, or its end.
func (s *Base) ChangedAll(t *model.Transition, until time.Time) {
	if !s.HasListeners() {
		return
	}
	e := t.Event()
	e.Next = until
	s.Emit(e)
}

// Aside is why a task is parked, in words.
func Aside(why store.Why) string {
	switch why {
	case store.WhyHeld:
		return "it is paused"
	case store.WhyLimit:
		return "a limit has no room"
	case store.WhyBudget:
		return "a budget is used up"
	default:
		return "no handler of its kind"
	}
}
