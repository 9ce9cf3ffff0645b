package memstore

import "github.com/seed-6f6f2c11/duly/core"

// pulse is what is known of an activity task between its runs.
type pulse struct {
	floor  core.Millis // its next run is not due before this
	reason core.Reason // why
	first  core.Millis // the first touch that the booked run is for; zero while it rests
	// The first and the last touch while a run is under way; zero if there was none.
	from, to core.Millis
}

// dozing reports whether a task waits for activity.
func (t *task) dozing() bool { return t.pulse != nil && t.pulse.first == 0 }

// rouse notes which touch the next run of a task is for; zero if there was none, so that it rests.
func (p *partition) rouse(t *task, first core.Millis) {
	before := t.dozing()
	t.pulse.first = first
	switch {
	case before && !t.dozing():
		p.stats(t.Kind).Resting--
	case !before && t.dozing():
		p.stats(t.Kind).Resting++
	}
}

// touch books a run of an activity task.
func (p *partition) touch(sub core.Submission, seq int64, now core.Millis) (core.Placed, error) {
	t := p.task(sub.Agent, sub.ID)
	switch {
	case t == nil && len(p.agent(sub.Agent).tasks) >= p.store.config.MaxTasks:
		return core.Placed{}, &core.LimitError{Agent: sub.Agent, Limit: p.store.config.MaxTasks}
	case t == nil && p.tooHeavy(sub.Agent, p.heavier(&sub), 0) != nil:
		return core.Placed{}, p.tooHeavy(sub.Agent, p.heavier(&sub), 0)
	case t == nil:
		due := now.Add(sub.Pulse.Delay)
		sub.State = nil
		t = p.create(sub, seq, due)
		t.pulse = &pulse{first: now}
		p.join(sub, now)
		p.counts.Submitted++
		return core.Placed{Created: true, Due: due, Reason: core.ReasonActivity}, nil
	case t.pulse == nil: // it was submitted as something else: it is left as it is
		out := core.Placed{Reason: core.ReasonWaiting}
		if t.claim == nil {
			out.Due = t.due
		}
		return out, nil
	case t.claim != nil:
		booked := t.pulse.from == 0
		if booked {
			t.pulse.from = now
		}
		t.pulse.to = now
		return core.Placed{Created: booked, Reason: core.ReasonRunning}, nil
	case t.pulse.first == 0:
		return p.awake(t, sub, now), nil
	default:
		return p.extendQuiet(t, sub.Pulse, now), nil
	}
}

// awake books a run of a task that rests.
func (p *partition) awake(t *task, sub core.Submission, now core.Millis) core.Placed {
	due := max(now.Add(sub.Pulse.Delay), t.pulse.floor)
	reason := core.ReasonActivity
	if t.pulse.floor > now.Add(sub.Pulse.Delay) {
		reason = t.pulse.reason
	}
	if due == t.due { // the time at which it would have rested for long enough
		due++
	}
	p.rouse(t, now)
	t.Body = sub.Body
	t.agent.many = t.agent.many || weight(len(sub.Body)) > 0
	p.move(t, due)
	return core.Placed{Created: true, Due: due, Reason: p.unlessHeld(t, reason, now)}
}

// extendQuiet puts a booked run off, as long as the rule allows.
func (p *partition) extendQuiet(t *task, rule *core.Pulse, now core.Millis) core.Placed {
	if rule.Debounce {
		if due := min(now.Add(rule.Delay), t.pulse.first.Add(rule.MaxWait)); due > t.due {
			p.move(t, due)
		}
	}
	reason := core.ReasonWaiting
	if t.pulse.floor > now && t.due <= t.pulse.floor {
		reason = t.pulse.reason
	}
	return core.Placed{Due: t.due, Reason: p.unlessHeld(t, reason, now)}
}

func (p *partition) unlessHeld(t *task, reason core.Reason, now core.Millis) core.Reason {
	if _, held := p.holdOf(t, 0, now); held {
		return core.ReasonPaused
	}
	return reason
}

// pulsed is when an activity task is due after a run.
func (p *partition) pulsed(t *task, r *core.Settlement, due, now core.Millis) core.Millis {
	u := t.pulse
	from, to := u.from, u.to
	u.floor, u.reason, u.from, u.to = r.Floor.At, r.Floor.Reason, 0, 0
	if r.Verb != core.VerbRest {
		if from == 0 {
			from = now
		}
		p.rouse(t, from)
		return due
	}
	p.rouse(t, from)
	if from == 0 {
		return due
	}
	next := from.Add(r.Floor.Delay)
	if r.Floor.Debounce {
		next = min(to.Add(r.Floor.Delay), from.Add(r.Floor.MaxWait))
	}
	return max(next, u.floor, now)
}
