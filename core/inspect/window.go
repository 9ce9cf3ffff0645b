package inspect

// What ran in the last day.

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// TallyEvery is how often a process stores what it has counted. What it has counted since is lost when it is killed.
const TallyEvery = 5 * time.Second

// ShortestWindow and LongestWindow bound how far Scheduler.Window looks back.
const (
	ShortestWindow = window.SlotTime
	LongestWindow  = time.Duration(window.KeptSlots) * window.SlotTime
)

// Window is what ran within a time, by the store's clock.
type Window struct {
	For   time.Duration
	Until time.Time
	Kinds []KindWindow // by name; kinds of which nothing ran are left out
}

// KindWindow counts the runs of one kind. A run counts when its end is stored, or a few seconds later.
type KindWindow struct {
	Kind           string
	Runs, Failures int64
	// LagP50 and LagP95 are the median and the 95th percentile of the time from due to claimed: rounded up, by 41 % at
	// most.
	LagP50, LagP95 time.Duration
}

// FailureRate is the share of the runs that failed; zero if there were none.
func (k *KindWindow) FailureRate() float64 {
	if k.Runs == 0 {
		return 0
	}
	return float64(k.Failures) / float64(k.Runs)
}

// Window returns what ran within the last time, from five minutes to a day, rounded up to five minutes: of all processes that have
// Config.Recent. Each stores what it has counted every five seconds while it works, so that a process that is killed loses the last seconds.
func (s *View) Window(ctx context.Context, d time.Duration) (Window, error) {
	switch {
	case s.base.Config.Recent == nil:
		return Window{}, check.Misconfigured("Recent", nil, "is not set: nothing counts the runs of the last hours")
	case d < ShortestWindow || d > LongestWindow:
		return Window{}, check.Invalid("window", "must be from %s to %s, not %s", short(ShortestWindow), short(LongestWindow), d)
	}
	slots := int((d + window.SlotTime - 1) / window.SlotTime)
	kinds, now, err := s.base.Config.Recent.Window(ctx, slots+1) // the slot of now has only begun
	if err != nil {
		return Window{}, err
	}
	out := Window{For: time.Duration(slots) * window.SlotTime, Until: now.Time(), Kinds: make([]KindWindow, len(kinds))}
	for i := range kinds {
		k := &kinds[i]
		out.Kinds[i] = KindWindow{Kind: k.Kind, Runs: k.Runs, Failures: k.Failures, LagP50: k.Lag(0.5), LagP95: k.Lag(0.95)}
	}
	return out, nil
}

// short is a duration without the parts that are zero.
func short(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// windowJSON is what ran within a time.
type windowJSON struct {
	For   string       `json:"window"`
	Until wire.Stamp   `json:"now"`
	Kinds []KindWindow `json:"kinds"`
}

// MarshalJSON writes what ran within a time.
func (w Window) MarshalJSON() ([]byte, error) {
	kinds := w.Kinds
	if kinds == nil {
		kinds = []KindWindow{}
	}
	return json.Marshal(windowJSON{short(w.For), wire.Stamp(w.Until), kinds})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (w *Window) UnmarshalJSON(data []byte) error {
	in := windowJSON{}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	d, err := time.ParseDuration(in.For)
	*w = Window{For: d, Until: time.Time(in.Until), Kinds: in.Kinds}
	return err
}

// kindWindowJSON is the runs of a kind.
type kindWindowJSON struct {
	Kind     string            `json:"kind"`
	Runs     int64             `json:"runs"`
	Failures int64             `json:"failures"`
	Rate     float64           `json:"failure_rate"`
	LagP50   wire.Milliseconds `json:"lag_p50_ms"`
	LagP95   wire.Milliseconds `json:"lag_p95_ms"`
}

// MarshalJSON writes the runs of a kind.
func (k KindWindow) MarshalJSON() ([]byte, error) {
	w := kindWindowJSON{Rate: float64(int(k.FailureRate()*10_000+0.5)) / 10_000}
	wire.Copy(&w, &k)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *KindWindow) UnmarshalJSON(data []byte) error {
	w := kindWindowJSON{}
	err := json.Unmarshal(data, &w)
	wire.Copy(k, &w)
	return err
}
