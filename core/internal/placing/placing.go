// Package placing places tasks that are submitted: it checks them against the tree that they grow, watches those that are to succeed within a time, stores them, and
// finds the outcome for each, with its differences from one that existed.
package placing

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Placer places tasks. Its fields are set before it is used.
type Placer struct {
	Base       *base.Base
	Steered    bool                                             // by a policy
	Ensure     func(ctx context.Context, t *store.Stored) error // that the end of a task is reported before it is undone
	MaxDepth   int                                              // of a tree of tasks; no bound if zero
	MaxSpawned int                                              // tasks of a tree within an hour; no bound if zero
}

// Describe fills in the status of tasks that were there before. A task whose record has just gone stays as it
// is.
func (p *Placer) Describe(ctx context.Context, out []model.Submitted, subs []store.Submission) error {
	ids := map[string][]string{}
	for i := range out {
		if !out[i].Created {
			ids[out[i].Agent] = append(ids[out[i].Agent], out[i].ID)
		}
	}
	for agent, want := range ids {
		page, err := p.Base.Store.Get(ctx, store.Get{Agent: agent, IDs: want})
		if err != nil {
			return err
		}
		found := map[string]*store.Stored{}
		for i := range page.Tasks {
			found[page.Tasks[i].ID] = &page.Tasks[i]
		}
		for i := range out {
			if t := found[out[i].ID]; out[i].Agent == agent && t != nil {
				describe(&out[i], t, &subs[i], p.Steered)
			}
		}
	}
	return nil
}

// describe fills in the fields of a task that existed before.
func describe(s *model.Submitted, t *store.Stored, sub *store.Submission, steered bool) {
	if s.Created || t.Status == "" {
		return
	}
	s.Status = t.Status
	if !s.Replaced {
		s.Due, s.Differs = t.Due.Time(), differs(sub, t, steered)
	}
}

// differs reports whether a task has another definition than what is submitted, as far as that is kept. Fields that a policy may have
// steered are not compared: the same submit is the same, regardless of the figures.
func differs(sub *store.Submission, t *store.Stored, steered bool) bool {
	if t.Dropped { // nothing is kept to compare with
		return false
	}
	kind, level, data := t.Kind, t.Level, t.Body
	if t.Status.Finished() {
		rec, err := record.DecodeFinished(t.Record)
		if err != nil {
			return false
		}
		kind, level, data = rec.Kind, rec.Level, rec.Body
	}
	if steered {
		return sub.Kind != kind || len(data) > 0 && !alike(sub.Body, data)
	}
	return sub.Kind != kind || sub.Level != level || len(data) > 0 && !sameBody(sub.Body, data)
}

// same reports whether a live task, with a body, has this very schedule and definition already: replacing it would only disturb it.
func same(sub *store.Submission, t *store.Stored, b *codec.Body) bool {
	return t.Order == nil && t.Status != "" && !t.Status.Finished() && sub.Kind == t.Kind && sub.Key == t.Key && sub.Level == t.Level && sameBody(sub.Body, t.Body) &&
		(b.Cron != "" || b.Manual || b.Every != 0 && sub.Due == moment.When{After: spread.Jitter(b.Jitter, sub.Agent, sub.ID, 0)})
}

// sameBody reports whether two bodies are the same, regardless of the runs that submitted them and of their traces.
func sameBody(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err1 := record.DecodeBody(a)
	y, err2 := record.DecodeBody(b)
	if err1 != nil || err2 != nil || x.Origin == nil && y.Origin == nil && x.Traceparent == y.Traceparent {
		return false
	}
	x.Origin, y.Origin, x.Traceparent, y.Traceparent = nil, nil, "", ""
	return bytes.Equal(x.Encode(), y.Encode())
}

// Place stores submissions. Those that replace a task take over its history; if one of these changes meanwhile, or the quota of an agent, all are
// tried again. changed is ErrChanged if they were tried already. was are the statuses that those had before, in order; nil if none was to replace another.
func (p *Placer) Place(ctx context.Context, origin *model.Origin, tasks []model.NewTask, subs []store.Submission, changed error) (placed []store.Submitted, was []store.Status, err error) {
	var replacing []int
	planned := make([][]byte, len(subs))
	for i := range subs {
		if subs[i].Conflict == store.ConflictReplace {
			replacing = append(replacing, i)
			planned[i] = subs[i].State
		}
	}
	if replacing != nil {
		was = make([]store.Status, len(subs))
	}
	for try := 1; ; try++ {
		if changed != nil {
			if err := base.Wall(ctx, p.Base, origin, tasks, subs, true); err != nil {
				return nil, nil, err
			}
		}
		if err := p.takeOverAll(ctx, subs, replacing, planned, was); err != nil {
			return nil, nil, err
		}
		placed, err = p.Base.Store.Submit(ctx, subs)
		if !errors.Is(err, store.ErrChanged) || try == base.MostTries {
			return placed, was, err
		}
		changed = err
	}
}

// takeOverAll gives the submissions that replace a task the history of that task, and notes the statuses.
func (p *Placer) takeOverAll(ctx context.Context, subs []store.Submission, replacing []int, planned [][]byte, was []store.Status) (err error) {
	old := 0
	for _, i := range replacing {
		if was[i], err = p.takeOver(ctx, &subs[i], planned[i]); err != nil {
			return err
		}
		old += subs[i].OldLen
	}
	if old > mostBytes && len(replacing) > 1 { // the store compares each with the definition read here
		return check.Invalid("tasks", "replace tasks of %d bytes in all: the limit is %d a call; submit them in several calls", old, mostBytes)
	}
	return nil
}

// Emit reports what a submit has stored; parent names the task of the run that has submitted it. was are the statuses of tasks that were to be replaced.
func (p *Placer) Emit(ctx context.Context, parent string, tasks []model.NewTask, out []model.Submitted, was []store.Status) {
	by := model.OrderOf(ctx, model.Order{})
	for i := range out {
		e := model.Event{
			Type: model.EventEnqueue, Agent: out[i].Agent, ID: out[i].ID, Kind: out[i].Kind, Group: tasks[i].Group, TraceID: tasks[i].TraceID,
			SessionID: tasks[i].SessionID, Labels: maps.Clone(tasks[i].Labels),
			Due: out[i].Due, Status: store.StatusWaiting, By: by.By, Key: tasks[i].LimitKey,
		}
		if parent != "" {
			e.Reason = check.Clip("submitted by the run of " + parent)
		}
		switch {
		case out[i].Created:
		case out[i].Replaced:
			e.Type, e.From = model.EventReplace, was[i]
			if e.From == store.StatusInProgress { // the new definition holds when its run has ended
				e.Status = e.From
			}
		default:
			continue
		}
		p.Base.Emit(e)
		if hold := codec.HoldOf(ctx, &tasks[i]); hold != nil && out[i].Created {
			order := codec.Order(hold.Note)
			p.Base.Emit(model.Event{
				Type: model.EventPause, Agent: e.Agent, ID: e.ID, Kind: e.Kind, Key: e.Key, From: store.StatusWaiting, Status: store.StatusWaiting,
				By: order.By, Reason: order.Reason, Note: order.Note, Next: hold.Until.At.Time(),
			})
		}
	}
}

// takeOver gives a submission the history of the task that it replaces, and returns the status of that.
func (p *Placer) takeOver(ctx context.Context, sub *store.Submission, planned []byte) (store.Status, error) {
	page, err := p.Base.Store.Get(ctx, store.Get{Agent: sub.Agent, IDs: []string{sub.ID}})
	if err != nil {
		return "", err
	}
	t := &page.Tasks[0]
	if operate.Unseen(ctx, t) {
		return "", store.ErrChanged
	}
	stored := t.State
	if t.Status.Finished() {
		rec, err := record.DecodeFinished(t.Record)
		if err != nil {
			return "", err
		}
		stored = rec.State
		if err := p.Ensure(ctx, t); err != nil {
			return "", err
		}
	}
	b, err1 := codec.DecodeBody(t.Body)
	old, err2 := record.DecodeState(stored)
	plan, err3 := record.DecodeState(planned)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	kept := old.Carry()
	kept.Nominal = plan.Nominal
	if t.Status.Finished() { // what is expected of it begins again
		kept.Watched = nil
	}
	sub.Conflict = store.ConflictReplace
	if same(sub, t, &b) {
		sub.Conflict, sub.State, sub.OldLen = store.ConflictKeep, nil, 0
		return t.Status, nil
	}
	base.NotTooSoon(p.Base, sub, &kept.Runs, t.Status == store.StatusInProgress)
	sub.Version, sub.OldGroup, sub.OldLen, sub.State = t.Version, b.Group, len(t.Body), kept.First()
	return t.Status, nil
}

// Admit works out when tasks are first due, and refuses them by the rule for submits and by the quotas of their agents.
func (p *Placer) Admit(ctx context.Context, origin *model.Origin, tasks []model.NewTask, subs []store.Submission) error {
	if err := p.Base.Plan(ctx, tasks, subs); err != nil {
		return err
	}
	if err := p.allow(ctx, tasks, subs); err != nil {
		return err
	}
	return p.Broken(origin, subs, base.Wall(ctx, p.Base, origin, tasks, subs, false))
}

// allow calls the rule for submitted tasks, if it is set: it reads those that may exist. A task that exists and
// is kept does not change.
func (p *Placer) allow(ctx context.Context, tasks []model.NewTask, subs []store.Submission) error {
	if p.Base.Config.Allow == nil {
		return nil
	}
	found, err := p.Base.Existing(ctx, tasks, subs)
	if err != nil {
		return err
	}
	for i := range subs {
		sub := &subs[i]
		t := &model.Transition{Type: model.EventEnqueue, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, Key: sub.Key, To: store.StatusWaiting, Task: &tasks[i]}
		if old := found[[2]string{sub.Agent, sub.ID}]; old != "" {
			if sub.Conflict != store.ConflictReplace {
				continue
			}
			t.Type, t.From = model.EventReplace, old
			if old == store.StatusInProgress { // the new definition holds when its run has ended
				t.To = old
			}
		}
		t.Order = model.OrderOf(ctx, t.Order)
		if err := p.Base.Allow(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// alike reports whether two bodies are the same except for the limit key, which a policy may have set in one, and for the runs and
// traces that have submitted them.
func alike(a, b []byte) bool {
	x, err1 := record.DecodeBody(a)
	y, err2 := record.DecodeBody(b)
	x.LimitKey, y.LimitKey, x.Origin, y.Origin, x.Traceparent, y.Traceparent = "", "", nil, nil, "", ""
	return err1 == nil && err2 == nil && slices.Equal(x.Encode(), y.Encode())
}
