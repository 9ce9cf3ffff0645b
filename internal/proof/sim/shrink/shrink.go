// Package shrink makes a failing history smaller.
package shrink

// A failing history is made smaller for as long as it fails in the same way: what is left of it is what it takes.

import (
	"slices"
	"testing"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/stores"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
)

// History plays smaller and smaller parts of a history that fails, and returns the smallest that fails by the same invariant, with
// its story.
// It repeats its passes until none of them makes the plan smaller, as what one leaves out may allow
// another to leave out more.
func History(t *testing.T, plan *draw.Plan, open stores.Open) *world.Result {
	t.Helper()
	s := &shrinking{t: t, open: open, best: world.Play(t, plan, open, true)}
	if s.best.Breach == nil {
		return s.best
	}
	for before := -1; before != s.size(); {
		before = s.size()
		s.calls()
		s.faults()
		s.requests()
		s.tasks()
		s.processes()
		s.scripts()
	}
	return s.best
}

// shrinking is a search for a smaller history.
type shrinking struct {
	t     *testing.T
	open  stores.Open
	best  *world.Result
	tries int
}

// mostTries bounds a search.
// Each try plays a whole history.
const mostTries = 600

// size is what is to become less.
func (s *shrinking) size() int {
	p := s.best.Plan
	n := len(p.Requests) + len(p.Faults) + len(p.Processes) + min(p.MaxCallFaults, 1000)
	for i := range p.Requests {
		n += len(p.Requests[i].Tasks)
		for _, def := range p.Requests[i].Tasks {
			n += len(def.Scripts)
		}
	}
	return n
}

// try plays a smaller plan, and keeps it if it fails in the same way.
// Another invariant that fails may be another fault, so that such a plan is not kept.
func (s *shrinking) try(change func(p *draw.Plan)) bool {
	if s.tries++; s.tries > mostTries {
		return false
	}
	smaller := s.best.Plan.Clone()
	change(smaller)
	r := world.Play(s.t, smaller, s.open, true)
	if r.Breach == nil || r.Breach.Invariant != s.best.Breach.Invariant {
		return false
	}
	s.best = r
	return true
}

// calls leaves out what befalls calls: all of it, or its last parts.
func (s *shrinking) calls() {
	if s.try(func(p *draw.Plan) { p.CallFaults, p.MaxCallFaults = 0, 0 }) {
		return
	}
	for most := min(s.best.Plan.MaxCallFaults, 64); most > 0; most /= 2 {
		if !s.try(func(p *draw.Plan) { p.MaxCallFaults = most }) {
			return
		}
	}
}

// less leaves out parts of a list: first large ones, then single ones.
// A plan may end up with no item at all only if least is zero: a history needs a process.
func less[T any](s *shrinking, list func(p *draw.Plan) *[]T, least int) {
	for n := len(*list(s.best.Plan)) / 2; n > 0; n /= 2 {
		for at := 0; at+n <= len(*list(s.best.Plan)); {
			if len(*list(s.best.Plan))-n < least || !s.try(func(p *draw.Plan) { l := list(p); *l = slices.Delete(*l, at, at+n) }) {
				at += n
			}
		}
	}
	if len(*list(s.best.Plan)) == 1 && least == 0 {
		s.try(func(p *draw.Plan) { *list(p) = nil })
	}
}

func (s *shrinking) faults()   { less(s, func(p *draw.Plan) *[]draw.Fault { return &p.Faults }, 0) }
func (s *shrinking) requests() { less(s, func(p *draw.Plan) *[]draw.Request { return &p.Requests }, 0) }

func (s *shrinking) processes() {
	less(s, func(p *draw.Plan) *[]draw.Process { return &p.Processes }, 1)
}

// tasks leaves out tasks of submits.
func (s *shrinking) tasks() {
	for i := range s.best.Plan.Requests {
		less(s, func(p *draw.Plan) *[]*draw.Definition { return &p.Requests[i].Tasks }, min(1, len(s.best.Plan.Requests[i].Tasks)))
	}
}

// scripts lets handlers just succeed.
func (s *shrinking) scripts() {
	for i := range s.best.Plan.Requests {
		for k := range s.best.Plan.Requests[i].Tasks {
			less(s, func(p *draw.Plan) *[]draw.Script { return &p.Requests[i].Tasks[k].Scripts }, 0)
		}
	}
}
