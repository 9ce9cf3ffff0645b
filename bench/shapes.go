package main

// The lives whose instructions are counted: by how many tasks an agent has, how long they are, and under limits and budgets.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// shape is a course of calls to count.
type shape struct {
	name     string
	each     int // tasks of an agent
	tasks    int
	batch    int // tasks of a call
	inFlight int // tasks that are claimed before they are settled
	again    int // rounds in which each task runs and is due again; 0: it is submitted and completed
	idle     bool
	body     int                                                   // bytes of a payload; 0: usualBody
	bound    func(ctx context.Context, st *redisstore.Store) error // sets a limit or a budget that nothing reaches
	used     []bound.Used                                          // what each run says that it has used
}

// usualBody is how many bytes a payload has where a shape says nothing else.
const usualBody = 140

// shapes are what is counted, with a part of the tasks if quick is set.
func shapes(quick bool) []shape {
	tasks, single, rounds := 1000, 200, 3
	if quick {
		tasks, single = 100, 20
	}
	var all []shape
	for _, again := range []int{0, rounds} {
		name := "life"
		if again > 0 {
			name = "run"
		}
		for _, each := range []int{1, 5, 20, 100} {
			n := tasks
			if each == 100 { // else a claim meets ten agents alone
				n *= 2
			}
			all = append(all, shape{name: fmt.Sprintf("%s-%d", name, each), each: each, tasks: n, batch: 50, inFlight: 400, again: again})
		}
		all = append(all, shape{name: name + "-1-single", each: 1, tasks: single, batch: 1, inFlight: 50, again: again})
	}
	for _, again := range []int{0, rounds} { // what a task for a model has
		for _, each := range []int{1, 20} {
			all = append(all, shape{
				name: fmt.Sprintf("%s-%d-3000", map[bool]string{true: "life", false: "run"}[again == 0], each), each: each, tasks: tasks, batch: 50,
				inFlight: 400, again: again, body: 3000,
			})
		}
	}
	for _, s := range bounded() {
		s.each, s.tasks, s.batch, s.inFlight = 1, tasks, 50, 400
		all = append(all, s)
	}
	return append(all, shape{name: "tick-idle", each: 1, tasks: tasks / 2, batch: 1, idle: true})
}

// bounded are lives under limits and budgets that nothing reaches.
func bounded() []shape {
	limit := func(l bound.Limit) func(context.Context, *redisstore.Store) error {
		return func(ctx context.Context, st *redisstore.Store) error {
			_, err := st.Limit(ctx, []bound.LimitChange{{Limit: l}})
			return err
		}
	}
	budget := func(about bound.BudgetTarget) func(context.Context, *redisstore.Store) error {
		return func(ctx context.Context, st *redisstore.Store) error {
			_, err := st.Budget(ctx, []bound.BudgetChange{{Budget: bound.Budget{About: about, Amount: much * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}}}}})
			return err
		}
	}
	each := bound.LimitTarget{Each: bound.EachAgent}
	return []shape{
		{name: "limit-runs", bound: limit(bound.Limit{About: each, Concurrency: much})},
		{name: "limit-rate", bound: limit(bound.Limit{Rate: much, Per: time.Second, Burst: much})},
		{name: "budget-runs", bound: budget(bound.BudgetTarget{Unit: bound.UnitRuns, Per: bound.PerDay})},
		{
			name: "budget-tokens", bound: budget(bound.BudgetTarget{LimitTarget: each, Unit: "tokens", Per: bound.PerDay}),
			used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOne}},
		},
	}
}

// settled is how many claims a new limit or budget needs at most, until they are plain again.
const settled = 4

// bind sets the limit or budget of a shape, and has claims look for what that lets go, which takes the full script.
func (p *player) bind(ctx context.Context) error {
	if p.bound == nil {
		return nil
	}
	if err := p.freshen(ctx); err != nil {
		return err
	}
	if err := p.bound(ctx, p.store); err != nil {
		return err
	}
	for range settled {
		if _, err := p.claimOne(ctx); err != nil {
			return err
		}
	}
	return nil
}
