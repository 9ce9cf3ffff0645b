package daemon

import "context"

// patrol audits a page of the store every now and then until ctx is done. That the store is away is told by pulls.
func (l *loop) patrol(ctx context.Context) {
	for {
		if l.sleep(ctx, l.config.Patrol); ctx.Err() != nil {
			return
		}
		page, cancel := context.WithTimeout(ctx, l.config.Patrol)
		_ = l.scheduler.Patrol(page, l.config.Partitions)
		cancel()
	}
}
