package cli

// Readiness of duly serve.

import (
	"context"
	"time"
)

// How long an answer of a store is good for all who ask, and how long it may take.
const (
	readyFor    = time.Second
	readyWithin = 5 * time.Second
)

// readiness asks a store whether it answers. Whoever reaches GET /readyz may ask, without a token: all of them together cost
// the store one question a second.
type readiness struct {
	check func(ctx context.Context) error
	turn  chan struct{} // has room for the one who asks

	at  time.Time
	err error
}

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
	if r.at.IsZero() || time.Since(r.at) >= readyFor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
		defer cancel()
		r.err = r.check(ctx)
		r.at = time.Now()
	}
	return r.err
}
