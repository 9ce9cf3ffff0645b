package slots

// How long runs of a kind usually take, so that no run is started that will not fit.

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// sampledRuns is from how many of the last completed runs of a kind the usual time is computed: enough for a high percentile, few
// enough to forget a bad day.
const sampledRuns = 32

// kindRunTimes is how long runs of a kind take.
type kindRunTimes struct {
	mu    sync.Mutex
	last  [sampledRuns]time.Duration
	n     int           // runs so far
	known time.Duration // the usual time when n was at
	at    int
}

// add records a run that its handler completed. One that was cut off, timed out or failed does not show how long the
// work takes.
func (u *kindRunTimes) add(took time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[u.n%sampledRuns] = took
	u.n++
}

// percentile90 is the 90th percentile of the last runs; zero if none is known.
func (u *kindRunTimes) percentile90() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n != u.at {
		last := slices.Clone(u.last[:min(u.n, sampledRuns)])
		sort.Slice(last, func(i, k int) bool { return last[i] < last[k] }) //nolint:modernize // a sort of durations would be code of its own
		u.known, u.at = last[(len(last)*9-1)/10], u.n
	}
	return u.known
}

// RunTimes are how long runs take, by kind.
type RunTimes struct {
	mu sync.RWMutex
	of map[string]*kindRunTimes
}

// Record records how long a completed run of a kind took.
func (all *RunTimes) Record(kind string, took time.Duration) {
	all.mu.RLock()
	u := all.of[kind]
	all.mu.RUnlock()
	if u == nil {
		all.mu.Lock()
		if all.of == nil {
			all.of = map[string]*kindRunTimes{}
		}
		if u = all.of[kind]; u == nil {
			u = &kindRunTimes{}
			all.of[kind] = u
		}
		all.mu.Unlock()
	}
	u.add(took)
}

// Percentile90 is how long runs of a kind usually take; zero if that is not known.
func (all *RunTimes) Percentile90(kind string) time.Duration {
	all.mu.RLock()
	u := all.of[kind]
	all.mu.RUnlock()
	if u == nil {
		return 0
	}
	return u.percentile90()
}
