package core

// Calls of the store that go through many tasks wait for the pace of whoever wants them.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Pace bounds how much of the store's time a caller takes with calls that go through many tasks: lists, exports, changes of a profile, what is done to
// many tasks at once, and submits of many. A [Principal] may have one.
type Pace interface {
	// Take waits until such a call may begin, or refuses it with an error that the caller gets as it is. done says that the call is over. It
	// is used by several goroutines at once.
	Take(ctx context.Context) (done func(), err error)
}

// pacedFrom is how many tasks a call has at least that waits: below that it costs the store less than asking for permission is worth.
const pacedFrom = 16

// paced is the store of a scheduler, of which callers with a pace take their share.
type paced struct{ Store }

// take is Take of whoever asks, if they have a pace.
func take(ctx context.Context) (done func(), err error) {
	if who := principalOf(ctx); who != nil && who.Pace != nil {
		return who.Pace.Take(ctx)
	}
	return func() {}, nil
}

// withPace makes a call at the pace of whoever asks.
func withPace[A any](ctx context.Context, call func() (A, error)) (A, error) {
	done, err := take(ctx)
	if err != nil {
		var none A
		return none, err
	}
	defer done()
	return call()
}

// Submit waits with many tasks.
func (p *paced) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	if len(tasks) < pacedFrom {
		return p.Store.Submit(ctx, tasks)
	}
	return withPace(ctx, func() ([]store.Submitted, error) { return p.Store.Submit(ctx, tasks) })
}

// Get waits with many tasks.
func (p *paced) Get(ctx context.Context, query store.Get) (store.Found, error) {
	if len(query.IDs) < pacedFrom {
		return p.Store.Get(ctx, query)
	}
	return withPace(ctx, func() (store.Found, error) { return p.Store.Get(ctx, query) })
}

// List waits.
func (p *paced) List(ctx context.Context, query store.List) (store.Page, error) {
	return withPace(ctx, func() (store.Page, error) { return p.Store.List(ctx, query) })
}

// Find waits.
func (p *paced) Find(ctx context.Context, query store.Find) (store.Page, error) {
	return withPace(ctx, func() (store.Page, error) { return p.Store.Find(ctx, query) })
}

// Replan waits with many tasks.
func (p *paced) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	if len(tasks) < pacedFrom {
		return p.Store.Replan(ctx, tasks)
	}
	return withPace(ctx, func() ([]store.Effect, error) { return p.Store.Replan(ctx, tasks) })
}

// Delete waits with many tasks.
func (p *paced) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	if len(tasks) < pacedFrom {
		return p.Store.Delete(ctx, tasks)
	}
	return withPace(ctx, func() ([]store.Effect, error) { return p.Store.Delete(ctx, tasks) })
}
