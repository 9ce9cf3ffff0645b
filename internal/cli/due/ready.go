package due

// Readiness of duly serve.

import (
	"context"
	"time"
)

// How long an answer of a store is good for all who ask, and how long it may take.
// A load balancer asks every few seconds from several places; an answer
// of a second ago is as good to it.
const (
	readyFor    = time.Second
	readyWithin = 5 * time.Second
)

// readiness asks a store whether it answers. Any client of GET /readyz may ask, without a token: all of them together cost
// the store one call a second.
// Only duly serve uses it: a daemon knows from its pulls whether the store answers.
type readiness struct {
	check func(ctx context.Context) error
	// It is a semaphore of one, and not a mutex, so that waiting for it
	// can end with the request's context.
	turn chan struct{} // has room for the one who asks

	// at and err are the last answer. Only the holder of turn may read or write them.
	at  time.Time
	err error
}

// newReadiness makes one that has not asked yet: the first question reaches the store.
func newReadiness(check func(ctx context.Context) error) *readiness {
	return &readiness{check: check, turn: make(chan struct{}, 1)}
}

// ask is what the store said within the last second. A question is not cut off with the request that it was for: others
// wait for the answer.
func (r *readiness) ask(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	// Asked under turn: those who waited find a fresh answer and return it.
	if r.at.IsZero() || time.Since(r.at) >= readyFor {
		// The first request pays with its time; its client may go away without
		// spoiling the answer for the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
		defer cancel()
		r.err = r.check(ctx)
		r.at = time.Now()
	}
	return r.err
}
