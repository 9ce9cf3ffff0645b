package daemon

import "context"

// The patrol, the audit that runs concurrently with the loop.

// idlePatrol is how many times as long an idle daemon waits before it audits another page: it is to cost next to nothing.
// An audit of many tasks takes long at this pace: it looks for faults that should not exist.
const idlePatrol = 12

// patrol audits a page of the store every now and then until ctx is done. Pulls report that the store is unavailable.
// Its errors are passed over, since a pull has the same ones.
func (l *loop) patrol(ctx context.Context) {
	for waited := 0; ; {
		if l.sleep(ctx, l.config.Patrol); ctx.Err() != nil {
			return
		}
		// It sleeps on while nothing has run, up to twelve times.
		if waited++; !l.works.Swap(false) && waited < idlePatrol {
			continue
		}
		waited = 0
		// A page may take as long as the pause between pages, and no longer.
		page, cancel := context.WithTimeout(ctx, l.config.Patrol)
		_ = l.scheduler.Patrol(page, l.config.Partitions)
		cancel()
	}
}
