package memstore

// Touch: when activity makes a task due, and what is noted while it runs.

import (
	"context"
	"errors"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// pulse is the state of an activity task between its runs.
// It exists only for tasks that Touch or a replay has made.
type pulse struct {
	floor moment.Millis // its next run is not due before this
	// reason is why, in the words of the answer to a touch.
	reason store.Reason  // why
	first  moment.Millis // the first touch that the booked run is for; zero while it rests
	// The first and the last touch while a run is under way; zero if there was none.
	from, to moment.Millis
	last     moment.Millis // the last touch
}

// dozing reports whether a task waits for activity.
func (t *task) dozing() bool { return t.pulse != nil && t.pulse.first == 0 }

// rouse notes which touch the next run of a task is for; zero if there was none, so that it rests.
// The counter of resting tasks follows.
func (p *partition) rouse(t *task, first moment.Millis) {
	before := t.dozing()
	t.pulse.first = first
	switch {
	case before && !t.dozing():
		p.stats(t.Kind).Resting--
	case !before && t.dozing():
		p.stats(t.Kind).Resting++
	}
}

// Touch notes that something happened for the subjects of activity tasks; see [store.Queue].
// Every touch is noted, even if others fail.
func (s *Store) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "submit", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]store.Touched, len(touches))
	var refused error
	for i := range touches {
		p := touching{s.partitionOf(touches[i].Agent), now}
		var err error
		if out[i], err = p.touch(&touches[i], p.ticks(1, now)); err != nil {
			refused = errors.Join(refused, err)
		}
		if out[i].Due != 0 {
			s.announce(p.partition, out[i].Due)
		}
	}
	if refused != nil {
		return nil, refused
	}
	return out, nil
}

// touching is a partition whose activity tasks are touched at some time.
type touching struct {
	*partition

	now moment.Millis
}

// touch books a run of an activity task.
// Which case it is depends on where the task is: unknown, another sort of task,
// running, resting, or booked already.
func (p touching) touch(sub *store.Touch, seq int64) (store.Touched, error) {
	t := p.task(sub.Agent, sub.ID)
	made := store.Submission{Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, Level: sub.Level, Body: sub.Body}
	w := wanted{id: sub.ID, bound: sub.Bound, mark: sub.Mark, fresh: true}
	switch {
	case t == nil && p.liveOf(sub.Agent) >= p.store.config.MaxTasks:
		return store.Touched{}, &store.LimitError{Agent: sub.Agent, Limit: p.store.config.MaxTasks}
	case t == nil && p.tooHeavy(sub.Agent, p.heavier(&made), 0) != nil:
		return store.Touched{}, p.tooHeavy(sub.Agent, p.heavier(&made), 0)
	// guard: quota-touch
	case t == nil && p.quotas.refusesNew(p.partition, &made, w, p.now) != nil:
		return store.Touched{}, p.quotas.refusesNew(p.partition, &made, w, p.now)
	case t == nil:
		p.quotas.pass(sub.Agent, sub.Bound, p.now)
		due := p.now.Add(sub.Pulse.Delay)
		t = p.create(made, seq, due)
		t.pulse = &pulse{first: p.now, last: p.now}
		p.join(made, p.now)
		p.counts.Submitted++
		return store.Touched{Booked: true, Due: due, Reason: store.ReasonActivity}, nil
	case t.pulse == nil: // submitted as an ordinary task: it stays one
		out := store.Touched{Reason: store.ReasonWaiting}
		if t.claim == nil {
			out.Due = t.due
		}
		return out, nil
	case t.claim != nil:
		// The first touch while it runs books the run that follows; further ones only move it.
		booked := t.pulse.from == 0
		if booked {
			t.pulse.from = p.now
		}
		t.pulse.to, t.pulse.last = p.now, p.now
		return store.Touched{Booked: booked, Reason: store.ReasonRunning}, nil
	case t.pulse.first == 0:
		return p.awake(t, sub), nil
	default:
		return p.extendQuiet(t, &sub.Pulse), nil
	}
}

// awake books a run of a task that rests.
// The floor is the earliest time that its last run allows: a minimum interval, or a time to cool down.
func (p touching) awake(t *task, sub *store.Touch) store.Touched {
	due := max(p.now.Add(sub.Pulse.Delay), t.pulse.floor)
	reason := store.ReasonActivity
	if t.pulse.floor > p.now.Add(sub.Pulse.Delay) {
		reason = t.pulse.reason
	}
	if due == t.due { // the time at which it would have rested for long enough
		due++
	}
	p.rouse(t, p.now)
	t.pulse.last = p.now
	t.Body = sub.Body
	p.spreadFor(t.agent, t.ID, t.Level, len(sub.Body))
	p.move(t, due)
	return store.Touched{Booked: true, Due: due, Reason: p.unlessHeld(t, reason)}
}

// extendQuiet puts a booked run off, as long as the rule allows.
// Throttled tasks stay where they are: the first touch has decided.
func (p touching) extendQuiet(t *task, rule *store.Pulse) store.Touched {
	t.pulse.last = p.now
	// guard: throttle
	if rule.Debounce {
		// Never beyond MaxWait after the first touch, or constant activity
		// would keep it from ever running.
		if due := min(p.now.Add(rule.Delay), t.pulse.first.Add(rule.MaxWait)); due > t.due {
			p.move(t, due)
		}
	}
	reason := store.ReasonWaiting
	if t.pulse.floor > p.now && t.due <= t.pulse.floor {
		reason = t.pulse.reason
	}
	return store.Touched{Due: t.due, Reason: p.unlessHeld(t, reason)}
}

// unlessHeld replaces the reason by the pause that keeps the run from starting.
func (p touching) unlessHeld(t *task, reason store.Reason) store.Reason {
	if _, held := p.holdOf(t, 0, p.now); held {
		return store.ReasonPaused
	}
	return reason
}

// pulsed is when an activity task is due after a run.
func (p *partition) pulsed(t *task, r *store.Settlement, due, now moment.Millis) moment.Millis {
	u := t.pulse
	from, to := u.from, u.to
	u.floor, u.reason, u.from, u.to = r.Floor.At, r.Floor.Reason, 0, 0
	// Not a rest: it is due again by itself, as after a failure that is retried.
	if r.Verb != store.VerbRest {
		if from == 0 {
			from = now
		}
		p.rouse(t, from)
		return due
	}
	// A touch while it ran books the next run; without one the task rests.
	p.rouse(t, from)
	if from == 0 {
		return due
	}
	next := from.Add(r.Floor.Delay)
	if r.Floor.Debounce {
		next = min(to.Add(r.Floor.Delay), from.Add(r.Floor.MaxWait))
	}
	// Not before the floor, and not in the past.
	return max(next, u.floor, now)
}
