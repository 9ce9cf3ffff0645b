package base

// Calls of the store that go through many tasks wait for the pace of whoever wants them.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// pacedFrom is how many tasks a call has at least that waits: below that it costs the store less than asking for permission is worth.
const pacedFrom = 16

// Paced is the store of a scheduler, of which callers with a pace take their share.
type Paced struct{ store.Store }

// Take is Take of whoever asks, if they have a pace.
func Take(ctx context.Context) (done func(), err error) {
	if who := model.PrincipalOf(ctx); who != nil && who.Pace != nil {
		return who.Pace.Take(ctx)
	}
	return func() {}, nil
}

// withPace makes a call at the pace of whoever asks.
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
