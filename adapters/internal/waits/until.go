package waits

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Pauses between two looks at what is waited for: each twice as long as the one before, as a look reads all that it shows.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

// Until looks again and again, until a look reports that there is no more to wait for, the longest wait is over, the process stops or the caller has gone
// away. The first look comes after a pause: the caller has looked before.
func Until(ctx context.Context, clock core.Clock, stopping <-chan struct{}, longest time.Duration, look func() bool) {
	end := clock.Now().Add(longest)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		left := end.Sub(clock.Now())
		if left <= 0 || !sleep(ctx, clock, stopping, min(pause, left)) || look() {
			return
		}
	}
}

// sleep waits, and reports whether there is reason to go on.
func sleep(ctx context.Context, clock core.Clock, stopping <-chan struct{}, d time.Duration) bool {
	done := make(chan struct{})
	stop := clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
		return true
	case <-stopping:
		return false
	case <-ctx.Done():
		return false
	}
}
