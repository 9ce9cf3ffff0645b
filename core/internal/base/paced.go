package base

// Calls of the store that go through many tasks wait for the pace of their caller.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// pacedFrom is the least number of tasks for which a call waits: a smaller one costs the store too little to be worth waiting for permission.
const pacedFrom = 16

// Paced is the store of a scheduler, which callers with a pace use at that pace.
type Paced struct{ store.Store }

// Take calls Take of the caller's pace, if it has one.
func Take(ctx context.Context) (done func(), err error) {
	if who := model.PrincipalOf(ctx); who != nil && who.Pace != nil {
		return who.Pace.Take(ctx)
	}
	return func() {}, nil
}

// withPace makes a call at the pace of the caller.
func withPace[A any](ctx context.Context, call func() (A, error)) (A, error) {
	done, err := Take(ctx)
	if err != nil {
		var none A
		return none, err
	}
	defer done()
	return call()
}

// Submit waits with many tasks.
func (p *Paced) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	if len(tasks) < pacedFrom {
		return p.Store.Submit(ctx, tasks)
	}
	return withPace(ctx, func() ([]store.Submitted, error) { return p.Store.Submit(ctx, tasks) })
}

// Get waits with many tasks.
func (p *Paced) Get(ctx context.Context, query store.Get) (store.Found, error) {
	if len(query.IDs) < pacedFrom {
		return p.Store.Get(ctx, query)
	}
	return withPace(ctx, func() (store.Found, error) { return p.Store.Get(ctx, query) })
}

// List waits.
func (p *Paced) List(ctx context.Context, query store.List) (store.Page, error) {
	return withPace(ctx, func() (store.Page, error) { return p.Store.List(ctx, query) })
}

// Find waits.
func (p *Paced) Find(ctx context.Context, query store.Find) (store.Page, error) {
	return withPace(ctx, func() (store.Page, error) { return p.Store.Find(ctx, query) })
}

// Replan waits with many tasks.
func (p *Paced) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	if len(tasks) < pacedFrom {
		return p.Store.Replan(ctx, tasks)
	}
	return withPace(ctx, func() ([]store.Effect, error) { return p.Store.Replan(ctx, tasks) })
}

// Delete waits with many tasks.
func (p *Paced) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	if len(tasks) < pacedFrom {
		return p.Store.Delete(ctx, tasks)
	}
	return withPace(ctx, func() ([]store.Effect, error) { return p.Store.Delete(ctx, tasks) })
}
