package memstore

// The counters of kinds, and their last failures.

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// stats are the counters of a kind in this partition.
// They exist from the first task of a kind on, and are never removed.
func (p *partition) stats(kind string) *count.KindStats {
	k := p.kinds[kind]
	if k == nil {
		k = &count.KindStats{KindCounters: count.KindCounters{Kind: kind}}
		p.kinds[kind] = k
	}
	return k
}

// count adds a run to the statistics of its kind.
func (p *partition) count(r *store.RunStat, now moment.Millis) {
	// Whole milliseconds, as Redis stores them: equal answers need equal rounding.
	took, lag := r.Duration.Truncate(time.Millisecond), r.Lag.Truncate(time.Millisecond)
	one := count.KindStats{KindCounters: count.KindCounters{Runs: 1, Duration: took, Shortest: took, Longest: took, Lag: lag, LongestLag: lag}}
	if r.Failed {
		one.Failures = 1
		one.Failed = []count.Failure{{At: now, Note: slices.Clone(r.Failure)}}
	}
	switch r.Schedule {
	case store.ScheduleEvery:
		one.Every = 1
	case store.ScheduleCron:
		one.Cron = 1
	case store.ScheduleActivity:
		one.Activity = 1
	default:
		// A task without details runs once, at its time.
		one.At = 1
	}
	p.stats(r.Kind).Add(&one)
}

// kindsOf are the counters of all kinds, by name.
// Failures of several partitions are merged by time.
func (s *Store) kindsOf() []count.KindStats {
	var all count.Table
	for _, p := range s.parts {
		for _, k := range p.kinds {
			all.Add(k)
		}
	}
	return all.Sorted()
}
