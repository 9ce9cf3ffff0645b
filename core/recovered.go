package core

// What is told of runs that were taken back of processes that had died.

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// tellRecovered counts, logs and reports the runs that a claim has taken back, with the processes that they were of. Their names are known
// as long as what they have said of themselves is kept.
func (p *pull) tellRecovered(c *store.Claim) {
	s := p.s
	ctx, cancel := p.call(longestLook)
	known := s.base.Processes(ctx)
	cancel()
	for _, tag := range slices.Sorted(maps.Keys(c.From)) {
		name := tag
		if process, is := known[tag]; is {
			name = process.Name
		}
		n := c.From[tag]
		if s.config.Recent != nil {
			s.tallies.mu.Lock()
			if s.tallies.dead == nil {
				s.tallies.dead = map[string]int64{}
			}
			s.tallies.dead[name] += int64(n)
			s.tallies.mu.Unlock()
		}
		s.config.Logger.WarnContext(p.ctx, "runs of a process that died, or that left them behind, wait to be run again",
			slog.Int("runs", n), slog.String("process", name))
		s.base.Emit(Event{Type: model.EventRecover, From: StatusInProgress, Status: StatusWaiting, By: check.ByDuly, Count: n, Reason: "of process " + name})
	}
}
