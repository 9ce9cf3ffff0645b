package core

// Policies: level, due time and limit key by figures, at a submit and at the end of a run.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/load"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Policy decides by figures how soon tasks run: agents that are busy rise, others sink. It is used by many goroutines at once, and
// must not block. If it panics, nothing is changed. Embed [NoPolicy] for the methods that yours does not need.
type Policy interface {
	// Place is called for each task that is submitted, once its preset is filled in and before it is checked. The returned placement counts for
	// a task that is created or replaced; one that exists, and stays unchanged, keeps what it has.
	Place(f Figures, t NewTask) Placement
	// Again is called when an occurrence of a task with every or cron has ended, for good or as failed, and says how the next one runs: when it is due
	// (At, or so much later), at which level, and under which limit key. That of a task with fixed times, cron or every from the start, is
	// never due earlier than planned. Another level or key counts from the end of the pull on, if the task waits then; it costs two calls to
	// the store.
	Again(f Figures, e Ended) Placement
}

// Placement is what a policy returns for a task that is submitted. Zero fields change nothing.
type Placement struct {
	Level    Level
	LimitKey string
	// At is when the task is due, in place of its At and Delay; at a submit it is ignored for one that recurs.
	At time.Time
	// Delay is how much later it is due: the first time of a task with every; at a submit it is ignored for one with cron.
	Delay time.Duration
}

// Ended is an occurrence that has ended.
type Ended struct {
	Agent, ID, Kind string
	Level           Level
	LimitKey        string
	Failed          bool
	Took            time.Duration // of its last run
	Due             time.Time     // when the next is due
}

// NoPolicy changes nothing.
type NoPolicy struct{}

// Place changes nothing.
func (NoPolicy) Place(Figures, NewTask) Placement { return Placement{} }

// Again changes nothing.
func (NoPolicy) Again(Figures, Ended) Placement { return Placement{} }

// Figures are what is known when a policy is called: the store and the kind as of the last second or the last answer, the agent as this
// process has seen it.
type Figures struct {
	Store count.Counters
	Kind  count.KindCounters // of the task's kind, over all processes; its Depth says how many tasks of it wait
	Agent AgentFigures
}

// AgentFigures are what this process has lately submitted for an agent and run of it. Counts fade by half each minute, so that they
// say how busy the agent is now.
type AgentFigures struct {
	Submitted, Runs, Failures float64
	Took, Lag                 time.Duration // of its runs, on average over the last ones: how long they ran, and how late they were claimed
}

// steering asks the policy, and keeps the figures for it.
type steering struct {
	policy  Policy // nil for none
	figures load.Figures
}

// of are the figures of an agent and a kind now.
func (s *steering) of(agent, kind string) Figures {
	st, of, own := s.figures.Of(s.figures.Base.Config.Clock.Now(), agent, kind)
	return Figures{Store: st, Kind: of, Agent: AgentFigures(own)}
}

// place are tasks as the policy places them. The caller's own are not changed, nor is a task that a user edits.
func (s *steering) place(ctx context.Context, tasks []NewTask) []NewTask {
	if ctx.Value(operate.SeenKey{}) != nil {
		return tasks
	}
	tasks = slices.Clone(tasks)
	s.figures.Refresh(ctx)
	for i := range tasks {
		t := &tasks[i]
		if t.Restored() != nil { // it was placed when it was new
			continue
		}
		s.figures.Submitted(s.figures.Base.Config.Clock.Now(), t.Agent)
		f := s.of(t.Agent, t.Kind)
		var p Placement
		s.guarded(ctx, func() { p = s.policy.Place(f, *t) })
		p.apply(t)
	}
	return tasks
}

// apply changes a task by the policy's placement.
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
func (s *steering) guarded(ctx context.Context, call func()) {
	defer func() {
		if v := recover(); v != nil {
			s.figures.Base.Config.Logger.ErrorContext(ctx, "the policy panicked; it changed nothing", slog.String("panic", check.Clip(fmt.Sprint(v))))
		}
	}()
	call()
}

// steer counts a run that has ended, and asks the policy how its task runs again. It comes after the decision, which knows
// nothing of figures. A verdict that the store has refused, as the task was replaced meanwhile, is decided again without it.
func (r *run) steer(d *decide.Decision) {
	s, v := &r.pull.s.steering, &r.verdict
	if d.Ran && !v.Released {
		s.figures.Ran(s.figures.Base.Config.Clock.Now(), r.info.Agent, v, d.ClaimedAt.Sub(d.Claimed.Due))
	}
	ended := v.Outcome == model.OutcomeSuccess || v.Outcome == model.OutcomeFailed
	if v.Settlement.Verb != store.VerbAgain || !ended || v.Retried || !d.Body.Recurs() || d.Body.Manual {
		return
	}
	planned := v.Settlement.Due.At
	if planned == 0 {
		planned = d.Now.Add(v.Settlement.Due.After)
	}
	s.figures.Refresh(r.pull.ctx)
	f := s.of(r.info.Agent, r.info.Kind)
	e := Ended{
		Agent: r.info.Agent, ID: r.info.ID, Kind: r.info.Kind, Level: r.info.Level, LimitKey: d.Body.LimitKey, Failed: v.Outcome == model.OutcomeFailed, Took: v.Took, Due: planned.Time(),
	}
	var next Placement
	s.guarded(r.pull.ctx, func() { next = s.policy.Again(f, e) })
	r.pull.moved.add(&e, &next)
	due := next.At
	if due.IsZero() {
		due = planned.Time().Add(max(next.Delay, 0))
	}
	if moment.Of(due) == planned {
		return
	}
	at := min(moment.Of(due), d.Now.Add(check.MaxDelay))
	if d.Body.Fixed() { // earlier than its time would be a run that was not planned
		at = max(at, planned)
	}
	v.Settlement.Due = d.Delay(v, moment.When{At: max(at, d.Now)})
}

// move is another level or limit key that a policy gives a task, once the end of its run is stored.
type move struct {
	agent, id string
	fields    map[string]any
}

// moves are those of a pull that are not carried out yet.
type moves struct {
	mu  sync.Mutex
	all []move
}

// add notes the policy's changes to a task besides its time.
func (a *moves) add(e *Ended, next *Placement) {
	m := move{agent: e.Agent, id: e.ID, fields: map[string]any{}}
	if next.Level != 0 && next.Level != e.Level {
		m.fields["level"] = next.Level
	}
	if next.LimitKey != "" && next.LimitKey != e.LimitKey {
		m.fields["limit_key"] = next.LimitKey
	}
	if len(m.fields) > 0 {
		a.mu.Lock()
		a.all = append(a.all, m)
		a.mu.Unlock()
	}
}

// carryOut carries out the placements that the policy returned for the tasks whose runs have ended. One that runs again, or is gone, is not moved: the
// policy is called after its next run too.
func (a *moves) carryOut(ctx context.Context, s *Scheduler) {
	a.mu.Lock()
	all := a.all
	a.all = nil
	a.mu.Unlock()
	for i := range all {
		m := &all[i]
		change, err := json.Marshal(m.fields)
		if err == nil && ctx.Err() == nil {
			_, err = s.Edit(ctx, m.agent, m.id, change)
		}
		if code := CodeOf(err); err != nil && code != CodeConflict && code != CodeNotFound {
			s.config.Logger.WarnContext(ctx, "a task could not be moved as the policy wants", slog.String("agent", m.agent), slog.String("task", m.id), slog.Any("err", err))
		}
	}
}
