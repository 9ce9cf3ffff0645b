package redisstore

// Sweeps: finished records that are too old go a few at a time, beside claims.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// sweepEvery is how often a process sweeps a partition at most. A sweep looks at about a hundred agents, or drops about a quarter
// of a mebibyte; the next one comes soon if there was more to drop.
const (
	sweepEvery = 10 * time.Second
	sweepSoon  = 100 * time.Millisecond
)

// firstCursors are those of a sweep that begins: of finished records, and of answers.
const firstCursors = "0|0"

// sweep is how far this process has come in a partition. Two processes that sweep the same partition do no harm.
type sweep struct {
	cursor string
	next   time.Time
}

// sweep adds to claims that are sent anyway a step through the finished records of the first partition whose turn it
// is, so that what is too old goes without a goroutine or a call of its own.
func (s *Store) sweep(calls []call, requests []store.ClaimRequest) []call {
	now := time.Now() //nolint:forbidigo // only paces this process; what is too old is decided by the script
	for i := range requests {
		p := requests[i].Partition
		last := s.swept[p].Load()
		if last != nil && now.Before(last.next) {
			continue
		}
		next := sweep{cursor: firstCursors, next: now.Add(sweepEvery)}
		if last != nil {
			next.cursor = last.cursor
		}
		if s.swept[p].CompareAndSwap(last, &next) {
			return append(calls, call{
				script: &s.scripts.sweep, partition: p,
				args: []any{next.cursor, s.config.Retention.Milliseconds(), s.config.kept()},
			})
		}
	}
	return calls
}

// sweptTo keeps the cursors that the sweeps returned. A sweep that failed begins anew: it must not stand in the way of
// the claim that it came with.
func (s *Store) sweptTo(calls []call, replies [][]any) {
	for i, c := range calls {
		last := s.swept[c.partition].Load()
		if last == nil {
			continue
		}
		next := sweep{cursor: firstCursors, next: last.next}
		if len(replies[i]) == 2 {
			next.cursor = text(replies[i][0])
			if number(replies[i][1]) == 1 {
				next.next = next.next.Add(sweepSoon - sweepEvery)
			}
		}
		s.swept[c.partition].CompareAndSwap(last, &next)
	}
}
