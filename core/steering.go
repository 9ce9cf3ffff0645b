package core

// Policies: level, due time and limit key by figures, at a submit and at the end of a run.

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Policy decides by figures how soon tasks run: agents that are busy rise, others sink. It is used by many goroutines at once, and
// must not block. What it cannot decide, as it panics, stays as it was. Embed [NoPolicy] for what yours leaves alone.
type Policy interface {
	// Place is called for each task that is submitted, once its preset is filled in and before it is checked. What it says counts for
	// a task that is created or replaced; one that exists, and stays unchanged, keeps what it has.
	Place(f Figures, t NewTask) Placement
	// Again is called when an occurrence of a task with every or cron has ended, for good or as failed, and returns when the next is due; the zero
	// time for when it would be. That of a task with fixed times, cron or every from the start, is never earlier than that. The level of a
	// task cannot change between its runs.
	Again(f Figures, e Ended) time.Time
}

// Placement is what a policy says about a task that is submitted. What is zero stays as it is.
type Placement struct {
	Level    Level
	LimitKey string
	// At is when the task is due, in place of its At and Delay; it is ignored for one that recurs.
	At time.Time
	// Delay is how much later it is due: the first time of a task with every; it is ignored for one with cron.
	Delay time.Duration
}

// Ended is an occurrence that has ended.
type Ended struct {
	Agent, ID, Kind string
	Level           Level
	Failed          bool
	Took            time.Duration // of its last run
	Due             time.Time     // when the next is due
}

// NoPolicy leaves everything as it is.
type NoPolicy struct{}

// Place changes nothing.
func (NoPolicy) Place(Figures, NewTask) Placement { return Placement{} }

// Again changes nothing.
func (NoPolicy) Again(Figures, Ended) time.Time { return time.Time{} }

// steered are tasks as the policy places them. The caller's are left as they are.
func (s *Scheduler) steered(ctx context.Context, tasks []NewTask) []NewTask {
	tasks = slices.Clone(tasks)
	s.figures.refresh(ctx, s)
	for i := range tasks {
		t := &tasks[i]
		if t.restored != nil { // it was placed when it was new
			continue
		}
		s.figures.submitted(s.config.Clock.Now(), t.Agent)
		f := s.figures.of(s.config.Clock.Now(), t.Agent, t.Kind)
		var p Placement
		s.guarded(ctx, func() { p = s.config.Policy.Place(f, *t) })
		p.apply(t)
	}
	return tasks
}

// apply changes a task by what the policy says.
func (p *Placement) apply(t *NewTask) {
	if p.Level != 0 {
		t.Level = p.Level
	}
	if p.LimitKey != "" {
		t.LimitKey = p.LimitKey
	}
	if t.Manual { // nothing but an order makes it due
		return
	}
	if !p.At.IsZero() && t.Every == 0 && t.Cron == "" {
		t.At, t.Delay = p.At, 0
	}
	switch {
	case p.Delay <= 0 || t.Cron != "":
	case t.At.IsZero():
		t.Delay += p.Delay
	default:
		t.At = t.At.Add(p.Delay)
	}
}

// guarded calls the policy: one that panics decides nothing, and breaks nothing.
func (s *Scheduler) guarded(ctx context.Context, call func()) {
	defer func() {
		if v := recover(); v != nil {
			s.config.Logger.ErrorContext(ctx, "the policy panicked; it changed nothing", slog.String("panic", clip(fmt.Sprint(v))))
		}
	}()
	call()
}

// steer counts a run that has ended, and asks the policy when its task is due again. It comes after the decision, which knows
// nothing of figures. A verdict that the store has refused, as the task was replaced meanwhile, is decided again without it.
func (r *run) steer(d *decision) {
	s, v := r.pull.s, &r.verdict
	if d.ran && !v.released {
		s.figures.ran(s.config.Clock.Now(), r.info.Agent, v, d.claimedAt.Sub(d.claimed.Due))
	}
	ended := v.outcome == OutcomeSuccess || v.outcome == OutcomeFailed
	if v.settlement.Verb != store.VerbAgain || !ended || v.retried || !d.body.recurs() || d.body.Manual {
		return
	}
	planned := v.settlement.Due.At
	if planned == 0 {
		planned = d.now.Add(v.settlement.Due.After)
	}
	s.figures.refresh(r.pull.ctx, s)
	f := s.figures.of(s.config.Clock.Now(), r.info.Agent, r.info.Kind)
	e := Ended{
		Agent: r.info.Agent, ID: r.info.ID, Kind: r.info.Kind, Level: r.info.Level, Failed: v.outcome == OutcomeFailed, Took: v.took, Due: planned.Time(),
	}
	var due time.Time
	s.guarded(r.pull.ctx, func() { due = s.config.Policy.Again(f, e) })
	if due.IsZero() || store.MillisOf(due) == planned {
		return
	}
	at := min(store.MillisOf(due), d.now.Add(maxDelay))
	if d.body.fixed() { // earlier than its time would be a run that nobody planned
		at = max(at, planned)
	}
	v.settlement.Due = d.delay(v, store.When{At: max(at, d.now)})
}

// alike reports whether two bodies are the same but for the limit key, which a policy may have set in one, and for the runs and
// traces that have submitted them.
func alike(a, b []byte) bool {
	x, err1 := record.DecodeBody(a)
	y, err2 := record.DecodeBody(b)
	x.LimitKey, y.LimitKey, x.Origin, y.Origin, x.Traceparent, y.Traceparent = "", "", nil, nil, "", ""
	return err1 == nil && err2 == nil && slices.Equal(x.Encode(), y.Encode())
}
