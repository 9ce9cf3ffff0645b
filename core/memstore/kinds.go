package memstore

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// stats are the counters of a kind in this partition.
func (p *partition) stats(kind string) *core.KindStats {
	k := p.kinds[kind]
	if k == nil {
		k = &core.KindStats{Kind: kind}
		p.kinds[kind] = k
	}
	return k
}

// count adds a run to the statistics of its kind.
func (p *partition) count(r *core.RunStat, now core.Millis) {
	took, lag := r.Duration.Truncate(time.Millisecond), r.Lag.Truncate(time.Millisecond)
	one := core.KindStats{Runs: 1, Duration: took, Shortest: took, Longest: took, Lag: lag, LongestLag: lag}
	if r.Failed {
		one.Failures = 1
		one.Failed = []core.Failure{{At: now, Note: slices.Clone(r.Failure)}}
	}
	switch r.Schedule {
	case core.ScheduleEvery:
		one.Every = 1
	case core.ScheduleCron:
		one.Cron = 1
	case core.ScheduleActivity:
		one.Activity = 1
	default:
		one.At = 1
	}
	p.stats(r.Kind).Add(&one)
}

// kindsOf are the counters of all kinds, by name.
func (s *Store) kindsOf() []core.KindStats {
	var all core.KindTable
	for _, p := range s.parts {
		for _, k := range p.kinds {
			all.Add(k)
		}
	}
	return all.Sorted()
}
