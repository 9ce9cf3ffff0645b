package inspect

// Runs of the last hours and days in steps, for charts.

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// finestTrend is how far View.Trend looks back in steps of five minutes: beyond they are whole hours.
const finestTrend = 6 * time.Hour

// longestTrend bounds how far View.Trend looks back.
var longestTrend = time.Duration(window.Kept(window.LongSlot)) * window.LongSlot

// Trend is what ran within a time, in steps of equal length.
type Trend struct {
	Until time.Time // by the store's clock
	Step  time.Duration
	Steps []TrendStep // oldest first, of all kinds together; the last one has only begun
	Kinds []string    // those of which something ran or waited, by name

	slots [][]window.Slot // of each step
}

// TrendStep is what ran within one step.
type TrendStep struct {
	Since          time.Time
	Runs, Failures int64
	// LagP50 and LagP95 are the median and the 95th percentile of the time from due to claimed, as in a KindWindow.
	LagP50, LagP95 time.Duration
	// Measured reports whether a process has measured Depth and Used within the step; both are those of the last time.
	Measured bool
	Depth    int64 // how many tasks waited
	// Used is how much of a budget was used, as in 0.5, by what it is about: of one that counts each by itself, by the one that had used most.
	Used map[string]float64
}

// Trend returns what ran within the last time, from five minutes to eight days, in so many steps at most. They are of a multiple of five minutes,
// and beyond six hours of whole hours. It counts what [View.Window] counts, and needs Config.Recent as that does. What waited and what of budgets
// was used is measured every five minutes by hosts that call Announce, such as a daemon.
func (s *View) Trend(ctx context.Context, d time.Duration, most int) (Trend, error) {
	switch {
	case s.base.Config.Recent == nil:
		return Trend{}, check.Misconfigured("Recent", nil, "is not set: nothing counts the runs of the last hours")
	case d < ShortestWindow || d > longestTrend:
		return Trend{}, check.Invalid("window", "must be from %s to %s, not %s", short(ShortestWindow), short(longestTrend), d)
	case most < 1:
		return Trend{}, check.Invalid("steps", "must be at least 1, not %d", most)
	}
	length := window.SlotTime
	if d > finestTrend {
		length = window.LongSlot
	}
	slots, now, err := s.base.Config.Recent.Slots(ctx, length, int((d+length-1)/length))
	if err != nil {
		return Trend{}, err
	}
	each := (len(slots) + most - 1) / most
	out := Trend{Until: now.Time(), Step: time.Duration(each) * length}
	kinds := map[string]bool{}
	for i := range slots {
		for k := range slots[i].Kinds {
			kinds[slots[i].Kinds[k].Kind] = true
		}
		for kind, n := range slots[i].Depth {
			if n > 0 {
				kinds[kind] = true
			}
		}
	}
	out.Kinds = slices.Sorted(maps.Keys(kinds))
	// The newest steps are whole: the oldest one is shorter if the slots do not divide evenly.
	for end := len(slots); end > 0; end -= each {
		out.slots = append(out.slots, slots[max(end-each, 0):end])
	}
	slices.Reverse(out.slots)
	out.Steps = out.Of("")
	return out, nil
}

// Of returns the steps of one kind; of all if it is empty.
func (t *Trend) Of(kind string) []TrendStep {
	out := make([]TrendStep, len(t.slots))
	for i, slots := range t.slots {
		out[i] = trendStep(slots, kind)
	}
	return out
}

// trendStep adds up slots.
func trendStep(slots []window.Slot, kind string) TrendStep {
	step := TrendStep{Since: slots[0].Since.Time()}
	var all window.Kind
	for _, slot := range slots {
		for i := range slot.Kinds {
			k := &slot.Kinds[i]
			if kind != "" && k.Kind != kind {
				continue
			}
			step.Runs += k.Runs
			step.Failures += k.Failures
			for n := range k.Lags {
				all.Lags[n] += k.Lags[n]
			}
		}
		step.measured(&slot.Levels, kind)
	}
	step.LagP50, step.LagP95 = all.Lag(0.5), all.Lag(0.95)
	return step
}

// measured sets what was measured, if something was.
func (t *TrendStep) measured(l *window.Levels, kind string) {
	if l.Depth == nil && l.Used == nil {
		return
	}
	t.Measured, t.Depth, t.Used = true, 0, map[string]float64{}
	for one, n := range l.Depth {
		if kind == "" || one == kind {
			t.Depth += n
		}
	}
	for budget, n := range l.Used {
		t.Used[budget] = float64(n) / 1000
	}
}
