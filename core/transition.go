package core

// Transitions: changes that are asked for, which a rule may refuse before anything is written, and how they are reported
// once they are stored.

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Transition is a change that somebody asks for: of a task, or of all tasks of an agent, a kind or a limit key, or of all.
type Transition struct {
	// Type is EventEnqueue, EventReplace, EventActivity, EventPause, EventResume, EventRunNow, EventCancel, EventDelete or
	// EventReplay.
	Type EventType
	// Agent and ID name a task; without ID, Agent, Kind or Key name those that a pause or its end is about, and none of them all.
	// Of a task that is submitted without an id ID is the one that was made for it.
	Agent, ID, Kind, Key string
	// From and To are the status of the task before and after. From is empty for one that does not exist, To for one that is to
	// be deleted; both are for what is about more than one task. A pause changes no status, and a task that runs and is
	// cancelled stays in progress until its run has ended.
	From, To Status
	// Order is who asks, and why, as far as they say so.
	Order
	// Task is the task that is submitted; nil otherwise. It must not be changed.
	Task *NewTask
}

// VetoError says that a rule of this process has refused a change: see [Config].Allow. Nothing was written.
type VetoError struct {
	Transition Transition
	Err        error // of the rule
}

// Error names the change, and has the reason of the rule.
func (e *VetoError) Error() string {
	t := &e.Transition
	what := store.Target{Agent: t.Agent, ID: t.ID, Key: t.Key}
	if t.Agent == "" {
		what.Kind = t.Kind
	}
	from := ""
	if t.From != "" {
		from = fmt.Sprintf(" (%s)", t.From)
	}
	return fmt.Sprintf("%s of %s%s is not allowed: %v", t.Type, what, from, e.Err)
}

// Unwrap is the error of the rule.
func (e *VetoError) Unwrap() error { return e.Err }

// allow asks the rule about a change, if there is one.
func (s *Scheduler) allow(ctx context.Context, t *Transition) error {
	if s.config.Allow == nil {
		return nil
	}
	if err := s.config.Allow(ctx, *t); err != nil {
		return &VetoError{Transition: *t, Err: err}
	}
	return nil
}

// transition is that of a task as it was read. A task that runs keeps its status.
func transition(typ EventType, t *store.Stored, to Status, by Order) *Transition {
	if t.Status == StatusInProgress && typ != EventDelete {
		to = t.Status
	}
	kind := t.Kind // of one that is finished its record has it
	if rec, err := record.DecodeFinished(t.Record); err == nil && t.Status.Finished() {
		kind = rec.Kind
	}
	return &Transition{Type: typ, Agent: t.Agent, ID: t.ID, Kind: kind, Key: t.Key, From: t.Status, To: to, Order: by}
}

// event is the change as it is reported once it is stored.
func (t *Transition) event() Event {
	return Event{Type: t.Type, Agent: t.Agent, ID: t.ID, Kind: t.Kind, Key: t.Key, From: t.From, Status: t.To, By: t.By, Reason: t.Reason, Note: t.Note}
}

// allowTarget asks the rule about a pause or its end, and returns the change. A single task is read for its status, if there is a
// rule; one that does not exist is for the store to find.
func (s *Scheduler) allowTarget(ctx context.Context, typ EventType, about Target, by Order) (*Transition, error) {
	t := &Transition{Type: typ, Agent: about.Agent, ID: about.ID, Kind: about.Kind, Key: about.Key, Order: by}
	if s.config.Allow == nil {
		return t, nil
	}
	if about.ID != "" {
		stored, err := s.stored(ctx, about.Agent, about.ID)
		if err != nil {
			return t, err
		}
		t = transition(typ, &stored, stored.Status, by)
	}
	return t, s.allow(ctx, t)
}

// allowSubmit asks the rule about tasks that are submitted, if there is one: it reads those that may exist. A task that exists and
// is kept does not change.
func (s *Scheduler) allowSubmit(ctx context.Context, tasks []NewTask, subs []store.Submission) error {
	if s.config.Allow == nil {
		return nil
	}
	found, err := s.existing(ctx, tasks, subs)
	if err != nil {
		return err
	}
	for i := range subs {
		sub := &subs[i]
		t := &Transition{Type: EventEnqueue, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, Key: sub.Key, To: StatusWaiting, Task: &tasks[i]}
		if old := found[[2]string{sub.Agent, sub.ID}]; old != "" {
			if sub.Conflict != store.ConflictReplace {
				continue
			}
			t.Type, t.From = EventReplace, old
			if old == StatusInProgress { // the new definition holds when its run has ended
				t.To = old
			}
		}
		t.Order = orderOf(ctx, t.Order)
		if err := s.allow(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// allowActivity asks the rule about an activity, if there is one: it reads the task of its subject.
func (s *Scheduler) allowActivity(ctx context.Context, t *Transition) error {
	if s.config.Allow == nil {
		return nil
	}
	page, err := s.store.Get(ctx, store.Get{Agent: t.Agent, IDs: []string{t.ID}})
	if err != nil {
		return err
	}
	if t.From = page.Tasks[0].Status; t.From == StatusInProgress {
		t.To = t.From
	}
	return s.allow(ctx, t)
}

// existing are the statuses of those tasks that exist already, by agent and id. Ids that were just made are of none.
func (s *Scheduler) existing(ctx context.Context, tasks []NewTask, subs []store.Submission) (map[[2]string]Status, error) {
	ids := map[string][]string{}
	for i := range subs {
		if cmp.Or(tasks[i].ID, tasks[i].UniqueKey) != "" {
			ids[subs[i].Agent] = append(ids[subs[i].Agent], subs[i].ID)
		}
	}
	found := map[[2]string]Status{}
	for agent, of := range ids {
		page, err := s.store.Get(ctx, store.Get{Agent: agent, IDs: of})
		if err != nil {
			return nil, err
		}
		for i := range page.Tasks {
			found[[2]string{agent, page.Tasks[i].ID}] = page.Tasks[i].Status
		}
	}
	return found, nil
}

// unasked lets through what duly does by itself, which no rule is asked about.
func unasked(context.Context, *Transition) error { return nil }

// changed reports a change of a task that is stored, with the body that it has, and when it is due; zero for never.
func (s *Scheduler) changed(t *Transition, b *body, due store.Millis) {
	if !s.tells() {
		return
	}
	e := t.event()
	e.Group, e.TraceID, e.SessionID, e.MemCubeID, e.Next = b.Group, b.TraceID, b.SessionID, b.MemCubeID, due.Time()
	s.emit(e)
}

// changedAll reports a pause, or its end.
func (s *Scheduler) changedAll(t *Transition, until time.Time) {
	if !s.tells() {
		return
	}
	e := t.event()
	e.Next = until
	s.emit(e)
}

// unnamed is who orders something with a credential that has no name.
const unnamed = "a credential without a name"

// orderOf is who asks for something, and why. A credential is who it is: whom its caller names is a note.
func orderOf(ctx context.Context, given Order) Order {
	who := principalOf(ctx)
	if who == nil {
		return given
	}
	name := cmp.Or(who.Name, unnamed)
	if given.By != name && given.By != "" {
		given.Note = strings.Trim(given.By+"; "+given.Note, "; ")
		given.Note = strings.ToValidUTF8(given.Note[:min(len(given.Note), MaxTextLen)], "")
	}
	given.By = name
	return given
}

// aside is why a task is parked, in words.
func aside(why store.Why) string {
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

// tellMoved reports what a claim did with other tasks than those that it took: which it has parked, up to a bound and then how many more.
func (p *pull) tellMoved(c *store.Claim) {
	for _, a := range c.Aside {
		p.s.emit(Event{Type: EventPark, Agent: a.Agent, ID: a.ID, From: StatusWaiting, Status: StatusWaiting, By: byDuly, Reason: aside(a.Why), Count: 1})
	}
	if more := c.Parked - len(c.Aside); more > 0 {
		p.s.emit(Event{Type: EventPark, From: StatusWaiting, Status: StatusWaiting, By: byDuly, Count: more})
	}
}
