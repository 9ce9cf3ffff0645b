package redisstore

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core"
)

// largestSettle is the most runs that one script call settles.
const largestSettle = 100

// Settle ends runs; see [core.Store].
func (s *Store) Settle(ctx context.Context, runs []core.Settlement) ([]core.Settled, error) {
	var calls []call
	var members [][]int
	open := make(map[int]int, len(s.parts)) // partition -> its call that has room
	for i := range runs {
		r := &runs[i]
		c, ok := open[r.Partition]
		if !ok || len(members[c]) == largestSettle {
			c = len(calls)
			open[r.Partition] = c
			args := make([]any, 0, 2+9*min(len(runs), largestSettle))
			calls = append(calls, call{
				script: &s.scripts.settle, partition: r.Partition,
				args: append(args, s.config.Retention.Milliseconds(), s.config.Kept),
			})
			members = append(members, nil)
		}
		calls[c].args = append(calls[c].args, formatFence(r.Fence), r.Index, encode(r.Agent), r.ID, string(r.Verb),
			dueArg(r.Due), storedState(r.State), r.Record, groupKey(r.Agent, r.Group))
		members[c] = append(members[c], i)
	}
	replies, err := s.eval(ctx, "settle", calls)
	out := make([]core.Settled, len(runs))
	failed := 0
	for c, reply := range replies {
		if !parseSettled(out, reply, members[c], err) {
			failed++
		}
	}
	if err != nil && failed == len(calls) {
		return nil, err
	}
	return out, nil
}

// parseSettled puts the outcomes of one call into out, at the places of its runs. Without a reply, which it reports, they
// have failed with err.
func parseSettled(out []core.Settled, reply []any, members []int, err error) bool {
	if len(reply) != len(members)+1 {
		if err == nil {
			err = wrap("settle", errMalformed)
		}
		for _, i := range members {
			out[i].Err = err
		}
		return false
	}
	for k, i := range members {
		switch due := number(reply[k+1]); due {
		case 0:
			out[i].Err = core.ErrLeaseLost
		case 1:
		default:
			out[i].Due = core.Millis(due)
		}
	}
	return true
}
