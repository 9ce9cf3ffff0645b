package inspect

// Runs that were taken over from processes that had died.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// recoveredWithin is how far back recoveries are reported.
const recoveredWithin = time.Hour

// Recovered is a finding about runs that were taken over within the last hour from processes that had died. Without Config.Recent nothing is
// known of that.
func (s *View) Recovered(ctx context.Context) (Finding, error) {
	if s.base.Config.Recent == nil {
		return well("recovered", "nothing counts the runs of processes that died"), nil
	}
	slots, _, err := s.base.Config.Recent.Slots(ctx, window.SlotTime, int(recoveredWithin/window.SlotTime)+1)
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
