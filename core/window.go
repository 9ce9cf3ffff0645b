package core

// Runs of the last hours: counted in this process, and added to those of the store every few seconds.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// tallyEvery is how often a process adds what it has counted. So much is lost when it is killed, and what came in meanwhile.
const tallyEvery = 5 * time.Second

// ShortestWindow and LongestWindow bound what Scheduler.Window looks back.
const (
	ShortestWindow = store.SlotTime
	LongestWindow  = time.Duration(store.KeptSlots) * store.SlotTime
)

// Window is what ran within a time, by the store's clock.
type Window struct {
	For   time.Duration
	Until time.Time
	Kinds []KindWindow // by name; kinds of which nothing ran are left out
}

// KindWindow is what ran of one kind. A run counts when its end is stored, or a few seconds later.
type KindWindow struct {
	Kind           string
	Runs, Failures int64
	// LagP50 and LagP95 are the times from due to claimed that a half, and nineteen of twenty, of the runs did not exceed: rounded up, by 41 % at
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

// tallies are what this process has counted and not added yet.
type tallies struct {
	adding sync.Mutex // held by the one that calls the store

	mu      sync.Mutex
	kinds   map[string]*store.KindWindow
	dead    map[string]int64 // runs that were taken back, by the names of the processes that had died
	added   time.Time
	unknown *store.Tally // was sent, and not acknowledged: it is sent again before anything else
	seq     int64
}

// countRun counts a run whose end is stored, if it counts and anybody wants to know.
func (s *Scheduler) countRun(r *store.RunStat) {
	if r == nil || s.config.Recent == nil {
		return
	}
	t := &s.tallies
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[r.Kind]
	if k == nil {
		if t.kinds == nil {
			t.kinds = map[string]*store.KindWindow{}
		}
		k = &store.KindWindow{Kind: r.Kind}
		t.kinds[r.Kind] = k
	}
	k.Runs++
	if r.Failed {
		k.Failures++
	}
	k.Lags[store.LagStep(r.Lag)]++
}

// next is what is to be added now; nil if there is nothing, or it is too early.
func (t *tallies) next(process string, now time.Time, every time.Duration) *store.Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.added) < every && !t.added.IsZero() || t.unknown == nil && len(t.kinds)+len(t.dead) == 0 {
		return nil
	}
	t.added = now
	if t.unknown == nil {
		t.seq++
		t.unknown = &store.Tally{Process: process, Seq: t.seq}
		for _, k := range t.kinds {
			t.unknown.Kinds = append(t.unknown.Kinds, *k)
		}
		t.unknown.Recovered = t.dead
		t.kinds, t.dead = nil, nil
	}
	return t.unknown
}

// addTallies adds what was counted, unless that was done a moment ago. Without Config.Recent it does nothing.
func (s *Scheduler) addTallies(ctx context.Context, every time.Duration) {
	if s.config.Recent == nil || !s.tallies.adding.TryLock() {
		return
	}
	defer s.tallies.adding.Unlock()
	tally := s.tallies.next(s.nonce, s.config.Clock.Now(), every)
	if tally == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestLook)
	defer cancel()
	if err := s.config.Recent.Tally(ctx, *tally); err != nil {
		s.config.Logger.DebugContext(ctx, "cannot add to the counters of the last hours", slog.Any("err", err))
		return
	}
	s.tallies.mu.Lock()
	s.tallies.unknown = nil
	s.tallies.mu.Unlock()
}

// Window returns what ran within the last time, from five minutes to a day, rounded up to five minutes: of all processes that have
// Config.Recent. Each adds what it has counted every five seconds while it works, so that a process that is killed loses the last seconds.
func (s *Scheduler) Window(ctx context.Context, d time.Duration) (Window, error) {
	switch {
	case s.config.Recent == nil:
		return Window{}, misconfigured("Recent", nil, "is not set: nothing counts the runs of the last hours")
	case d < ShortestWindow || d > LongestWindow:
		return Window{}, invalid("window", "must be from %s to %s, not %s", short(ShortestWindow), short(LongestWindow), d)
	}
	slots := int((d + store.SlotTime - 1) / store.SlotTime)
	kinds, now, err := s.config.Recent.Window(ctx, slots+1) // the slot of now has only begun
	if err != nil {
		return Window{}, err
	}
	out := Window{For: time.Duration(slots) * store.SlotTime, Until: now.Time(), Kinds: make([]KindWindow, len(kinds))}
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

// MarshalJSON writes what ran within a time.
func (w Window) MarshalJSON() ([]byte, error) {
	kinds := w.Kinds
	if kinds == nil {
		kinds = []KindWindow{}
	}
	return json.Marshal(struct {
		For   string       `json:"window"`
		Until stamp        `json:"now"`
		Kinds []KindWindow `json:"kinds"`
	}{short(w.For), stamp(w.Until), kinds})
}

// MarshalJSON writes what ran of a kind.
func (k KindWindow) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind     string  `json:"kind"`
		Runs     int64   `json:"runs"`
		Failures int64   `json:"failures"`
		Rate     float64 `json:"failure_rate"`
		LagP50   int64   `json:"lag_p50_ms"`
		LagP95   int64   `json:"lag_p95_ms"`
	}{k.Kind, k.Runs, k.Failures, float64(int(k.FailureRate()*10_000+0.5)) / 10_000, k.LagP50.Milliseconds(), k.LagP95.Milliseconds()})
}
