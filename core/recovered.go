package core

// Runs that were taken back of processes that had died: who they were of, and what is told of that.

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// recoveredWithin is how far back recoveries are told.
const recoveredWithin = time.Hour

// tellRecovered counts, logs and reports the runs that a claim has taken back, with the processes that they were of. Their names are known
// as long as what they have said of themselves is kept.
func (p *pull) tellRecovered(c *store.Claim) {
	s := p.s
	ctx, cancel := p.call(longestLook)
	known := s.processes(ctx)
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
		s.emit(Event{Type: EventRecover, From: StatusInProgress, Status: StatusWaiting, By: byDuly, Count: n, Reason: "of process " + name})
	}
}

// Recovered is a finding about runs that were taken back within the last hour of processes that had died. Without Config.Recent nothing is
// known of that.
func (s *Scheduler) Recovered(ctx context.Context) (Finding, error) {
	if s.config.Recent == nil {
		return well("recovered", "nothing counts the runs of processes that died"), nil
	}
	slots, _, err := s.config.Recent.Slots(ctx, int(recoveredWithin/store.SlotTime)+1)
	if err != nil {
		return Finding{}, err
	}
	of := map[string]int64{}
	var all int64
	for _, slot := range slots {
		for process, n := range slot.Recovered {
			of[process] += n
			all += n
		}
	}
	if all == 0 {
		return well("recovered", "no process has died within the last hour with runs under way"), nil
	}
	var each []string
	for _, process := range slices.Sorted(maps.Keys(of)) {
		each = append(each, fmt.Sprintf("%d of %s", of[process], process))
	}
	more := ""
	if len(each) > mostNamed {
		each, more = each[:mostNamed], ", and of others"
	}
	return Finding{
		"recovered", SeverityWarning, fmt.Sprintf("runs taken over within the last hour from processes that died or were cut off: %d (%s%s)", all, strings.Join(each, ", "), more),
		"see why these processes ended: out of memory, a deploy whose grace is too short, a kill; duly explain tells what became of a task",
	}, nil
}
