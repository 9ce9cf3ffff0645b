package inspect

// Runs of the last hours in steps, for charts.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Trend is what ran within a time, in steps of equal length.
type Trend struct {
	Until time.Time // by the store's clock
	Step  time.Duration
	Steps []TrendStep // oldest first; the last one has only begun
}

// TrendStep is what ran within one step, of all kinds together.
type TrendStep struct {
	Since          time.Time
	Runs, Failures int64
	// LagP95 is the 95th percentile of the time from due to claimed, as in a KindWindow.
	LagP95 time.Duration
}

// Trend returns what ran within the last time, from five minutes to a day, in so many steps at most, each of a multiple of five minutes: of one
// kind, or of all if it is empty. It counts what [View.Window] counts, and needs Config.Recent as that does.
func (s *View) Trend(ctx context.Context, kind string, d time.Duration, most int) (Trend, error) {
	switch {
	case s.base.Config.Recent == nil:
		return Trend{}, check.Misconfigured("Recent", nil, "is not set: nothing counts the runs of the last hours")
	case d < ShortestWindow || d > LongestWindow:
		return Trend{}, check.Invalid("window", "must be from %s to %s, not %s", short(ShortestWindow), short(LongestWindow), d)
	case most < 1:
		return Trend{}, check.Invalid("steps", "must be at least 1, not %d", most)
	}
	slots, now, err := s.base.Config.Recent.Slots(ctx, int((d+store.SlotTime-1)/store.SlotTime))
	if err != nil {
		return Trend{}, err
	}
	each := (len(slots) + most - 1) / most
	out := Trend{Until: now.Time(), Step: time.Duration(each) * store.SlotTime}
	// The newest steps are whole: the oldest one is shorter if the slots do not divide evenly.
	for end := len(slots); end > 0; end -= each {
		out.Steps = append(out.Steps, trendStep(slots[max(end-each, 0):end], kind))
	}
	slices.Reverse(out.Steps)
	return out, nil
}

// trendStep adds up slots.
func trendStep(slots []store.Slot, kind string) TrendStep {
	step := TrendStep{Since: slots[0].Since.Time()}
	var all store.KindWindow
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
	}
	step.LagP95 = all.Lag(0.95)
	return step
}
