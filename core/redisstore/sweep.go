package redisstore

// Sweeps: finished records that are too old go a few at a time, along with claims.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// How often a process sweeps a partition at most. A sweep looks at about eighty agents, or drops
// about a quarter of a mebibyte; the next one comes soon if there was more to drop.
const (
	sweepEvery = 10 * time.Second
	sweepSoon  = 100 * time.Millisecond
)

// firstCursors are those of a sweep that begins: of finished records, and of answers.
const firstCursors = "0|0"

// sweep is how far this process has come in a partition. Two processes that sweep the same partition do no harm.
// Each process keeps its own place, as sharing it would cost a write for each sweep.
// Two that sweep at once find less to do.
type sweep struct {
	cursor string
	next   time.Time
}

// sweep adds to claims that are sent anyway a step through the finished records of the first partition whose turn it
// is, so that old records go without a goroutine or a call of its own.
// A prefix with no process at all keeps its finished records until one starts.
func (s *Store) sweep(calls []call.Call, requests []store.ClaimRequest) []call.Call {
	now := time.Now() //nolint:forbidigo // only paces this process; what is too old is decided by the script
	// One partition a call, and the first that is due: the next claims take the others.
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
		// The swap decides between claims that run at the same time;
		// the loser has nothing to sweep.
		if s.swept[p].CompareAndSwap(last, &next) {
			return append(calls, call.Call{
				Script: &s.db.Scripts.Sweep, Partition: p,
				Args: []any{next.cursor, s.config.Retention.Milliseconds(), s.config.kept()},
			})
		}
	}
	return calls
}

// sweptTo keeps the cursors that the sweeps returned. A sweep that failed starts again from the
// beginning: it must not get in the way of the claim that it came with.
func (s *Store) sweptTo(calls []call.Call, replies [][]any) {
	for i, c := range calls {
		last := s.swept[c.Partition].Load()
		if last == nil {
			continue
		}
		next := sweep{cursor: firstCursors, next: last.next}
		if len(replies[i]) == 2 {
			next.cursor = layout.Text(replies[i][0])
			// The script stopped at its budget, so there is more: the next sweep is
			// due in a moment, not in ten seconds.
			if layout.Number(replies[i][1]) == 1 {
				next.next = next.next.Add(sweepSoon - sweepEvery)
			}
		}
		// Another goroutine may have begun a sweep since: its cursor is as good as this one.
		s.swept[c.Partition].CompareAndSwap(last, &next)
	}
}
