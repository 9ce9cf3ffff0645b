package daemon

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Wake-ups: the subscription that announces work which fell due early. It may fail at any time: the ticker is the net
// under it, so a wake-up that is lost costs latency and never work.

// listen hands wake-ups to the loop until ctx is done. It subscribes again, at growing pauses, whenever it has to.
// The subscription that fails is a warning once, and not at each attempt: deaf
// makes the loop look every tick meanwhile.
func (l *loop) listen(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		woken, err := l.config.Waker.Wakeups(ctx)
		if err == nil {
			l.hears(true) //nolint:contextcheck // what it gives back is stored in the context of its pull
			// One wake-up at least came through, besides the made-up one: the
			// subscription works, and its pauses start over.
			if l.forward(ctx, woken) > 1 {
				failures = 0
			}
			l.hears(false) //nolint:contextcheck // what it gives back is stored in the context of its pull
		} else if failures == 0 && ctx.Err() == nil {
			l.config.Logger.LogAttrs(ctx, slog.LevelWarn, "cannot listen for wake-ups; looking for due work every tick instead", slog.Any("err", err))
		}
		failures++
		l.sleep(ctx, pause(failures))
	}
}

// hears notes whether wake-ups are to be expected.
func (l *loop) hears(hears bool) {
	l.deaf.Store(!hears)
	l.series.Hears(hears)
}

// forward hands wake-ups on until there are no more, and counts them. The first is made up: tasks that fell due before the
// subscription were not announced to it.
// With a due time of 1 it is long past, so that the loop looks at everything once.
func (l *loop) forward(ctx context.Context, woken <-chan store.Wakeup) int {
	w := store.Wakeup{Due: 1}
	for n := 1; ; n++ {
		select {
		case l.wakeups <- w:
		case <-ctx.Done():
			return n
		}
		next, open := <-woken
		if !open {
			return n
		}
		w = next
	}
}

// sleep waits for a while, or until ctx is done.
func (l *loop) sleep(ctx context.Context, d time.Duration) {
	done := make(chan struct{})
	stop := l.config.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Pauses between attempts that fail.
const (
	// The first pause is short, as most failures are over at once; the last one is
	// the most that a restart of Redis costs.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// pause is how long to wait after a number of failures in a row: longer each time, up to lastPause, and never in step
// with other daemons.
// Half of it is drawn, so that daemons that lost the same Redis do not all come back at once.
func pause(failures int) time.Duration {
	most := min(firstPause<<min(max(failures, 1)-1, 10), lastPause)
	return most/2 + rand.N(most/2) //nolint:gosec // jitter, not a secret
}
