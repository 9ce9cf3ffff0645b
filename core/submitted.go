package core

// The answer to a submit: what became of each task, and what differs from one that existed.

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Submitted is what became of a submitted task.
type Submitted struct {
	Agent, ID, Kind string
	Status          Status
	Due             time.Time
	Created         bool // false: the task already existed
	Replaced        bool // the task existed and now has the new definition; if not created either, it is unchanged
	// Differs says that it is unchanged, and is not what was submitted: another kind, payload, schedule or setting.
	// The payload of a task that has completed or was cancelled is not kept, nor is the delay or the time of any, nor
	// anything of one whose record was dropped.
	Differs bool
	// NotBooked says that the hosts of the store are called by alarms, and that none could be booked for the task: it waits for the next call, or for a
	// process that books what others owe.
	NotBooked bool
}

// Existing is what Submit would find of tasks whose ids are known already, in order; nothing is stored. A task that does not
// exist has no Status.
func (s *Scheduler) Existing(ctx context.Context, tasks ...NewTask) ([]Submitted, error) {
	tasks, err := s.filled(tasks)
	if err != nil {
		return nil, err
	}
	if err := s.authorizeSubmit(ctx, tasks); err != nil {
		return nil, err
	}
	subs, err := s.prepare(tasks, originOf(ctx))
	if err != nil {
		return nil, err
	}
	out := make([]Submitted, len(subs))
	for i := range subs {
		out[i] = Submitted{Agent: subs[i].Agent, ID: subs[i].ID, Kind: subs[i].Kind}
	}
	return out, s.describeExisting(ctx, out, subs)
}

// describeExisting fills in the status of tasks that were there before. A task whose record has just gone stays as it
// is.
func (s *Scheduler) describeExisting(ctx context.Context, out []Submitted, subs []store.Submission) error {
	ids := map[string][]string{}
	for i := range out {
		if !out[i].Created {
			ids[out[i].Agent] = append(ids[out[i].Agent], out[i].ID)
		}
	}
	for agent, want := range ids {
		page, err := s.store.Get(ctx, store.Get{Agent: agent, IDs: want})
		if err != nil {
			return err
		}
		found := map[string]*store.Stored{}
		for i := range page.Tasks {
			found[page.Tasks[i].ID] = &page.Tasks[i]
		}
		for i := range out {
			if t := found[out[i].ID]; out[i].Agent == agent && t != nil {
				out[i].describe(t, &subs[i], s.config.Policy != nil)
			}
		}
	}
	return nil
}

// describe fills in what a task that was there before is like.
func (s *Submitted) describe(t *store.Stored, sub *store.Submission, steered bool) {
	if s.Created || t.Status == "" {
		return
	}
	s.Status = t.Status
	if !s.Replaced {
		s.Due, s.Differs = t.Due.Time(), differs(sub, t, steered)
	}
}

// differs reports whether a task has another definition than what is submitted, as far as that is kept. What a policy may have
// steered is not compared: the same submit is the same, whatever the figures were.
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
func same(sub *store.Submission, t *store.Stored, b *body) bool {
	return t.Order == nil && t.Status != "" && !t.Status.Finished() && sub.Kind == t.Kind && sub.Key == t.Key && sub.Level == t.Level && sameBody(sub.Body, t.Body) &&
		(b.Cron != "" || b.Manual || b.Every != 0 && sub.Due == store.When{After: jitter(b.Jitter, sub.Agent, sub.ID, 0)})
}

// sameBody reports whether two bodies are the same, whichever runs have submitted them, in whichever trace.
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

// place stores submissions. Those that replace a task take over its history; if one of these changes meanwhile, all are
// tried again. was are the statuses that those had before, in order; nil if none was to replace another.
func (s *Scheduler) place(ctx context.Context, subs []store.Submission) (placed []store.Submitted, was []Status, err error) {
	var replacing []int
	planned := make([][]byte, len(subs))
	for i := range subs {
		if subs[i].Conflict == store.ConflictReplace {
			replacing = append(replacing, i)
			planned[i] = subs[i].State
		}
	}
	if replacing != nil {
		was = make([]Status, len(subs))
	}
	for try := 1; ; try++ {
		if err := s.takeOverAll(ctx, subs, replacing, planned, was); err != nil {
			return nil, nil, err
		}
		placed, err = s.store.Submit(ctx, subs)
		if !errors.Is(err, store.ErrChanged) || try == mostTries {
			return placed, was, err
		}
	}
}

// takeOverAll gives the submissions that replace a task what that has been through, and notes the statuses.
func (s *Scheduler) takeOverAll(ctx context.Context, subs []store.Submission, replacing []int, planned [][]byte, was []Status) (err error) {
	old := 0
	for _, i := range replacing {
		if was[i], err = s.takeOver(ctx, &subs[i], planned[i]); err != nil {
			return err
		}
		old += subs[i].OldLen
	}
	if old > MaxSubmitBytes && len(replacing) > 1 { // the store compares each with what was read here
		return invalid("tasks", "replace tasks of %d bytes in all: the limit is %d a call; submit them in several calls", old, MaxSubmitBytes)
	}
	return nil
}

// tellPlaced reports what a submit has stored. was are the statuses of tasks that were to be replaced.
func (s *Scheduler) tellPlaced(ctx context.Context, tasks []NewTask, out []Submitted, was []Status) {
	by := orderOf(ctx, Order{})
	for i := range out {
		e := Event{
			Type: EventEnqueue, Agent: out[i].Agent, ID: out[i].ID, Kind: out[i].Kind, Group: tasks[i].Group, TraceID: tasks[i].TraceID,
			SessionID: tasks[i].SessionID, MemCubeID: tasks[i].Labels[labelMemCube],
			Due: out[i].Due, Status: StatusWaiting, By: by.By, Key: tasks[i].LimitKey,
		}
		if parent := ParentOf(ctx); parent != "" {
			e.Reason = clip("submitted by the run of " + parent)
		}
		switch {
		case out[i].Created:
		case out[i].Replaced:
			e.Type, e.From = EventReplace, was[i]
			if e.From == StatusInProgress { // the new definition holds when its run has ended
				e.Status = e.From
			}
		default:
			continue
		}
		s.emit(e)
		if hold := tasks[i].hold(ctx); hold != nil && out[i].Created {
			order := decodeHold(hold.Note)
			s.emit(Event{
				Type: EventPause, Agent: e.Agent, ID: e.ID, Kind: e.Kind, Key: e.Key, From: StatusWaiting, Status: StatusWaiting,
				By: order.By, Reason: order.Reason, Note: order.Note, Next: hold.Until.At.Time(),
			})
		}
	}
}

// takeOver gives a submission what the task that it replaces has been through, and returns the status of that.
func (s *Scheduler) takeOver(ctx context.Context, sub *store.Submission, planned []byte) (Status, error) {
	page, err := s.store.Get(ctx, store.Get{Agent: sub.Agent, IDs: []string{sub.ID}})
	if err != nil {
		return "", err
	}
	t := &page.Tasks[0]
	if unseen(ctx, t) {
		return "", store.ErrChanged
	}
	stored := t.State
	if t.Status.Finished() {
		rec, err := record.DecodeFinished(t.Record)
		if err != nil {
			return "", err
		}
		stored = rec.State
		if err := s.sureOf(ctx, t); err != nil {
			return "", err
		}
	}
	b, err1 := decodeBody(t.Body)
	old, err2 := record.DecodeState(stored)
	plan, err3 := record.DecodeState(planned)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	kept := old.Carry()
	kept.Nominal = plan.Nominal
	sub.Conflict = store.ConflictReplace
	if same(sub, t, &b) {
		sub.Conflict, sub.State, sub.OldLen = store.ConflictKeep, nil, 0
		return t.Status, nil
	}
	sub.Version, sub.OldGroup, sub.OldLen, sub.State = t.Version, b.Group, len(t.Body), kept.First()
	return t.Status, nil
}
