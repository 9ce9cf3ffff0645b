package inspect

// Limits that hold tasks back while nothing counts in them.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// secondLook is how long after the first look a limit that no run counts in is looked at again: between the end of a run and the next claim that is normal
// for a moment.
const secondLook = time.Second

// stuckLimits checks for limits that let no task start, at two looks.
func stuckLimits(ctx context.Context, s *View, limits []bound.LimitUse) Finding {
	if idle := Idle(limits); len(idle) > 0 && s.rest(ctx, secondLook) {
		if again, err := s.base.Store.Limits(ctx); err == nil {
			limits = again
		}
		for _, l := range Idle(limits) {
			if slices.ContainsFunc(idle, func(was bound.LimitUse) bool { return was.About == l.About }) {
				return Finding{
					"limits", SeverityFailed,
					fmt.Sprintf("%s in line for the limit on %s, and none of its %d at once in use: nothing lets them in", some(l.Waiting, "task"), l.About, l.Concurrency),
					"start a process that has the handler, or duly resume what duly pauses lists; else unset the limit as duly limit list says, and report it",
				}
			}
		}
	}
	if len(limits) == 0 {
		return well("limits", "no limits")
	}
	waiting := int64(0)
	for i := range limits {
		waiting += limits[i].Waiting
	}
	return well("limits", "%s, %s in line for them", some(len(limits), "limit"), some(waiting, "task"))
}
