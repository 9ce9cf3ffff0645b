package memstore

// Holds: which tasks they keep from being claimed, and how these come back.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// scope names the tasks that a hold is about: '*' all, 'k' those of a kind, 'a' those of an agent, 's' those that share a
// key, 't' one task.
// It is comparable, so that it can be the key of a map.
type scope struct {
	kind     byte
	name, id string
}

// String orders and names scopes as their fields in Redis are.
func (s scope) String() string {
	switch s.kind {
	case '*':
		return "*"
	case 't':
		return "t:" + s.name + ":" + s.id
	default:
		return string(s.kind) + ":" + s.name
	}
}

// parking is the name of where its tasks are parked. Those of single tasks share one.
// A place for each hold of a single task would be one for each task.
func (s scope) parking() string {
	if s.kind == 't' {
		return "@t"
	}
	return "@" + s.String()
}

// scopeOf is the scope of a target; the narrowest field that is set decides.
func scopeOf(s store.Target) scope {
	switch {
	case s.ID != "":
		return scope{kind: 't', name: s.Agent, id: s.ID}
	case s.Agent != "":
		return scope{kind: 'a', name: s.Agent}
	case s.Kind != "":
		return scope{kind: 'k', name: s.Kind}
	case s.Key != "":
		return scope{kind: 's', name: s.Key}
	default:
		return scope{kind: '*'}
	}
}

// hold keeps the tasks of a scope from being claimed.
// note is its operator's text, for readers.
type hold struct {
	since moment.Millis
	note  []byte
	term  *term // its end; nil for never
}

// opened is a scope whose hold has ended.
// Its tasks are put back in the order in which holds ended.
type opened struct {
	at    moment.Millis
	scope scope
}

// held reports whether a scope is held now; a hold whose time has come does not count, even if no claim has seen it yet.
func (p *partition) held(s scope, now moment.Millis) bool {
	h, ok := p.holds[s]
	return ok && (h.term == nil || h.term.end > now)
}

// scopes are those that a task is in, the widest first.
// In this order, as the widest hold is where a task is parked: the one that is most likely to last.
func scopes(t *task) []scope {
	all := []scope{{kind: '*'}, {kind: 'k', name: t.Kind}, {kind: 'a', name: t.Agent}, {kind: 't', name: t.Agent, id: t.ID}}
	if t.Key != "" {
		all = append(all, scope{kind: 's', name: t.Key})
	}
	return all
}

// holdOf is the widest scope that holds a task now, by a hold that began after a time.
// An order to run overrules the holds of its time, but not those that came later.
func (p *partition) holdOf(t *task, after, now moment.Millis) (scope, bool) {
	for _, s := range scopes(t) {
		if p.held(s, now) && p.holds[s].since > after {
			return s, true
		}
	}
	return scope{}, false
}

// overruling is when an order to run is given: no sooner than the holds that it overrules, also within the millisecond of one of them, or
// by a clock that was put back.
func (p *partition) overruling(t *task, now moment.Millis) moment.Millis {
	at := max(now, p.overruled)
	for _, s := range scopes(t) {
		at = max(at, p.holds[s].since)
	}
	return at
}

// begun is when a hold begins: later than every order to run that was given before it.
func (p *partition) begun(now moment.Millis) moment.Millis { return max(now, p.overruled+1) }

// hold begins a hold, or gives one another end and note. It begins again, and so holds also tasks that were ordered to run meanwhile, unless it
// is only prolonged: see begun.
func (p *partition) hold(s scope, h hold, now moment.Millis, prolonged bool) {
	if prolonged && p.held(s, now) {
		h.since = p.holds[s].since
	}
	p.forget(s)
	p.open = slices.DeleteFunc(p.open, func(o opened) bool { return o.scope == s }) // tasks that were not put back yet stay parked
	if h.term != nil {
		p.leases.add(h.term)
	}
	p.holds[s] = h
	if t := p.task(s.name, s.id); s.kind == 't' && t != nil {
		t.changed = now
	}
}

// forget ends a hold without putting anything back.
// The tasks parked under it stay there, for unhold or the hold that follows.
func (p *partition) forget(s scope) bool {
	h, ok := p.holds[s]
	if ok && h.term != nil {
		p.leases.remove(h.term)
	}
	delete(p.holds, s)
	return ok
}

// resume puts a task back whose own hold has ended, if it was parked under that.
func (p *partition) resume(t *task, now moment.Millis) {
	t.changed = now
	if t.parked == "@t" {
		p.lift(t)
		p.place(t, t.due)
	}
}

// unhold ends a hold; claims put back the tasks parked under it.
func (p *partition) unhold(s scope, now moment.Millis) bool {
	if s.kind == 'l' { // there is room for another start
		b := p.buckets[s.name]
		p.endTerm(b)
		if b.line.tasks > 0 {
			p.reopen(s, now, false)
		}
		return true
	}
	if !p.forget(s) {
		return false
	}
	// One task is put back at once: it costs less than remembering that it has to be.
	if s.kind == 't' {
		if t := p.task(s.name, s.id); t != nil {
			p.resume(t, now)
		}
		return true
	}
	if k := p.parked[s.parking()]; k == nil || k.tasks.Len() == 0 {
		return true
	}
	// It is open already, and in its place.
	for i := range p.open {
		if p.open[i].scope == s {
			return true
		}
	}
	// guard: resume
	p.open = append(p.open, opened{at: now, scope: s})
	rouse(p, now) // there may be a task of level 1 among those that wait
	// Scopes that were opened in the same millisecond are ordered by name, as
	// members of a sorted set in Redis are.
	for i := len(p.open) - 1; i > 0 && p.open[i].at == p.open[i-1].at && p.open[i].scope.String() < p.open[i-1].scope.String(); i-- {
		p.open[i], p.open[i-1] = p.open[i-1], p.open[i]
	}
	return true
}

// putBack puts tasks of the scope that was opened first back into their queues, a limited number at a time.
// One scope at a time, so that the number of tasks that a claim moves is bounded.
func (c *claiming) putBack() {
	p := c.p
	for _, o := range p.open[:min(len(p.open), openedLooks)] {
		if o.scope.kind == 'l' {
			continue
		}
		k := p.parked[o.scope.parking()]
		if k != nil {
			c.putBackOf(k, c.r.Limit)
		}
		if k == nil || k.tasks.Len() == 0 {
			p.shut(o.scope)
		}
		return
	}
}

// keptBy is the widest scope because of which a task is not to be claimed now. One that is to run by an order, or to end by
// one, is.
func (p *partition) keptBy(t *task, now moment.Millis) (scope, bool) {
	switch {
	// Its run only has to be recorded as cancelled, which no pause should delay.
	case t.ending():
		return scope{}, false
	case t.order != nil && t.order.op == orderRun:
		return p.holdOf(t, t.order.at, now)
	default:
		return p.holdOf(t, 0, now)
	}
}

// holdsOf are the holds that a task is under.
func (p reading) holdsOf(t *task) []store.Held {
	var out []store.Held
	for _, s := range scopes(t) {
		if !p.held(s, p.now) {
			continue
		}
		h := p.holds[s]
		out = append(out, store.Held{Target: s.target(), Since: h.since, Until: h.until(), Note: h.note})
	}
	return out
}

// outlasts reports whether a hold ends no sooner than another.
// A hold without an end outlasts all others.
func (h *hold) outlasts(other *hold) bool {
	return h.term == nil || other.term != nil && h.term.end >= other.term.end
}

// until is when a hold ends by itself; zero for never.
func (h *hold) until() moment.Millis {
	if h.term == nil {
		return 0
	}
	return h.term.end
}

// target is the inverse of scopeOf.
func (s scope) target() store.Target {
	switch s.kind {
	case 't':
		return store.Target{Agent: s.name, ID: s.id}
	case 'a':
		return store.Target{Agent: s.name}
	case 'k':
		return store.Target{Kind: s.name}
	case 's':
		return store.Target{Key: s.name}
	default:
		return store.Target{}
	}
}
