package cli

// The check of doctor that is about limits.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// secondLook is how long after the first look doctor looks again at a limit that no run counts in: between the end of a run and the
// next claim that is normal for a moment.
const secondLook = time.Second

// limitsNow are the limits, and those of runs that hold tasks back while nothing counts in them, at two looks.
func limitsNow(ctx context.Context, s *core.Scheduler) (all, stuck []store.LimitUse, err error) {
	if all, err = s.Limits(ctx); err != nil || len(inspect.Idle(all)) == 0 {
		return all, nil, err
	}
	select {
	case <-time.After(secondLook):
	case <-ctx.Done():
		return all, nil, ctx.Err()
	}
	again, err := s.Limits(ctx)
	for _, l := range inspect.Idle(again) {
		for _, before := range inspect.Idle(all) {
			if before.About == l.About {
				stuck = append(stuck, l)
			}
		}
	}
	return again, stuck, err
}

// checkLimits reports limits that let no task start.
func checkLimits(all, stuck []store.LimitUse) finding {
	switch {
	case len(stuck) > 0:
		l := &stuck[0]
		return found(
			"limits", checkFailed, fmt.Sprintf("%s in line for the limit on %s, and none of its %d at once in use: nothing lets them in",
				table.Count(l.Waiting, "task"), l.About, l.Concurrency),
			"start a process that has the handler, or duly resume what duly pauses lists; else duly limit unset "+limitArgs(l.About)+", and report it",
		)
	case len(all) == 0:
		return found("limits", checkOK, "no limits", "")
	}
	waiting := int64(0)
	for i := range all {
		waiting += all[i].Waiting
	}
	return found("limits", checkOK, fmt.Sprintf("%s, %s in line for them", table.Count(len(all), "limit"), table.Count(waiting, "task")), "")
}
