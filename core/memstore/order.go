package memstore

// Orders: commands for a task that runs, or for one that is held.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// order is what happens to a task when its run ends, or, for orderRun, that it is to be claimed though it is held: it
// has orderHand while it runs, so that it has orderRun again if the run is released or dies.
// At most one order is kept; a later one replaces it where that makes sense.
type order struct {
	op   byte
	note []byte        // orderCancel: the note of the command; orderReplace: the new state
	due  moment.Millis // orderReplace: when the new task is due
	at   moment.Millis // orderRun, orderHand: when it was given; later holds hold the task
}

// The letters are those in Redis: see the layout of `orders` in layout.lua.
const (
	orderCancel  = 'x'
	orderReplace = 'r'
	orderRun     = 'n'
	orderHand    = 'h'
	orderQueue   = 'q'
)

// ending reports whether a task was cancelled while it ran, and its run has not ended yet.
func (t *task) ending() bool { return t.order != nil && t.order.op == orderCancel }

// refuses returns why a settlement is refused although its lease is held: there is an order that it does
// not take into account. The process then looks at the task again and settles again.
func (t *task) refuses(r *store.Settlement) error {
	if t.order == nil {
		return nil
	}
	switch {
	// A cancel is final: no outcome of the handler outweighs it.
	// guard: cancel-is-final
	case t.order.op == orderCancel && r.Verb != store.VerbCancel:
		return &store.EndingError{Order: slices.Clone(t.order.note)}
	// The outcome was decided by the old definition. Renewed means that the new one has been looked at.
	case t.order.op == orderReplace && !r.Renewed:
		return store.ErrReplaced
	default:
		return nil
	}
}

// ordered carries out the order for a run that has ended, and returns when the task is due
// again. A run that was released has not ended: its order stays for the next run.
func (p *partition) ordered(t *task, verb store.Verb, due, now moment.Millis) moment.Millis {
	o := t.order
	if o == nil {
		return due
	}
	released := verb == store.VerbRelease
	switch {
	case o.op == orderReplace:
		due = o.due
	case o.op == orderQueue && released:
		return due
	case o.op == orderQueue:
		// Now, unless the task is due even sooner by itself.
		due = min(due, now)
		if t.dozing() {
			p.rouse(t, now)
		}
	case o.op == orderHand && released:
		o.op = orderRun
		return due
	}
	t.order = nil
	return due
}

// operating is a partition whose tasks operators order about at some time.
type operating struct {
	*partition

	now moment.Millis
}

// run makes a waiting task due now.
// It overrules the holds of now and leaves those alone that come later.
func (p operating) run(c *store.RunNow) store.Effect {
	t := p.task(c.Agent, c.ID)
	switch {
	case t == nil:
		return store.Effect{}
	case t.ending():
		return store.Effect{Code: store.EffectEnding}
	// The caller has to request a run after this one: by default an
	// operator learns that it runs already.
	case t.claim != nil && !c.Queue:
		return store.Effect{Code: store.EffectRunning}
	case t.claim != nil:
		t.changed = p.now
		t.queue(p.now)
		return store.Effect{Code: store.EffectOrdered}
	// Claims look at nothing while everything is held: the order would wait for the end of that.
	// guard: run-now-while-stopped
	case p.held(scope{kind: '*'}, p.now):
		return store.Effect{Code: store.EffectStopped}
	}
	// Only a task that is held needs an order; any other is simply due.
	if _, ok := p.holdOf(t, 0, p.now); ok {
		p.overruled = p.overruling(t, p.now)
		t.order = &order{op: orderRun, at: p.overruled}
	}
	if t.parked != "" || t.due > p.now {
		p.lift(t)
		p.place(t, p.now)
		p.store.announce(p.partition, p.now)
	}
	// A resting task is booked for now, as if there had been activity.
	if t.dozing() {
		p.rouse(t, p.now)
	}
	t.changed = p.now
	return store.Effect{Code: store.EffectDone, Due: t.due}
}

// queue notes that a task that runs is due again when its run ends.
// A cancel that was ordered before stays: the task will not be due again.
func (t *task) queue(now moment.Millis) {
	if t.order == nil || t.order.op == orderHand {
		t.order = &order{op: orderQueue}
	}
	if t.order.op == orderReplace {
		t.order.due = min(t.order.due, now)
	}
}

// cancel ends a waiting task, or orders the end of one that runs.
func (p operating) cancel(c *store.Cancellation) store.Effect {
	t := p.task(c.Agent, c.ID)
	switch {
	case t == nil:
		return store.Effect{}
	case t.claim != nil:
		// The first cancel stays, with its operator's note.
		if !t.ending() {
			t.order, t.changed = &order{op: orderCancel, note: slices.Clone(c.Order)}, p.now
			withdraw(p.partition, p.now)
		}
		return store.Effect{Code: store.EffectOrdered}
	// The record that comes along was made of another definition: the caller reads the task again.
	case t.version() != c.Version:
		return store.Effect{Code: store.EffectChanged}
	}
	p.lift(t)
	p.finish(t, &store.Settlement{Verb: store.VerbCancel, Record: c.Record}, p.now)
	p.records(p.now).trim(c.Agent)
	return store.Effect{Code: store.EffectDone}
}

// erase forgets a task, live or finished. A run of it loses its lease.
// The settlement of its run gets store.ErrLeaseLost, as the claim no longer has it.
func (p operating) erase(c *store.Deletion) store.Effect {
	done := p.records(p.now).erased(c.Agent, c.ID)
	p.store.forgetOutput(c.Agent, c.ID)
	if t := p.task(c.Agent, c.ID); t != nil {
		// Both may exist: a record of an earlier task of this id, and a live one.
		held := t.claim
		p.stop(t)
		p.drop(t)
		if held != nil {
			p.free(c.Agent, held, p.now)
		}
		p.leave(c.Agent, t.Group, p.now)
		p.counts.Deleted++
		done = true
	}
	if !done {
		return store.Effect{}
	}
	return store.Effect{Code: store.EffectDone}
}

// stop takes a live task out of its queue, or from the claim that holds it.
func (p operating) stop(t *task) {
	c := t.claim
	if c == nil {
		p.lift(t)
		return
		// Its place stays in the claim, marked as lost, as later places must keep their index.
	}
	for i := range c.runs {
		if c.runs[i].task == t {
			// guard: deleted-run
			c.runs[i] = held{lost: true}
		}
	}
	t.claim = nil
	p.running--
	p.stats(t.Kind).Running--
	p.unuse(t, p.store.now(), false)
	if c.open--; c.open == 0 {
		p.close(c)
	}
}

// task is a live task; nil if it does not exist.
func (p *partition) task(agent, id string) *task {
	if a := p.agents[agent]; a != nil {
		return a.tasks[id]
	}
	return nil
}
