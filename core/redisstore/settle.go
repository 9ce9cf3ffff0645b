package redisstore

// Settle: its arguments, and what its reply says of each run.

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// largestSettle is the most runs that one script call settles.
const largestSettle = 100

// mostPayload is about how many bytes of tasks and records one script call stores or reads: it has one task at least. A call
// copies each of them several times, which takes a few milliseconds for so many.
const mostPayload = 256 << 10

// Settle ends runs; see [store.Store].
func (s *Store) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	var calls []call
	var members [][]int
	open := make(map[int]int, len(s.parts)) // partition -> its call that has room
	sizes := make([]int, 0, len(s.parts))   // of the calls, in bytes
	for i := range runs {
		r := &runs[i]
		c, ok := open[r.Partition]
		size := settleSize(r)
		if !ok || len(members[c]) == largestSettle || sizes[c]+size > mostPayload {
			c = len(calls)
			open[r.Partition] = c
			args := make([]any, 0, 2+12*min(len(runs), largestSettle))
			calls = append(calls, call{
				script: &s.scripts.settle, partition: r.Partition,
				args: append(args, s.config.Retention.Milliseconds(), s.config.kept()),
			})
			members, sizes = append(members, nil), append(sizes, 0)
		}
		sizes[c] += size
		agent := agentRef(&r.Run)
		calls[c].args = append(calls[c].args, formatFence(r.Fence), r.Index, agent, r.ID, string(r.Verb),
			dueArg(r.Due), countedState(r.State, r.Crashes), r.Record, groupOf(agent, r.Group), r.Kind, statArg(r.Tally), extraArg(r))
		members[c] = append(members[c], i)
	}
	replies, errs := s.evalAll(ctx, verbSettle, calls)
	out := make([]store.Settled, len(runs))
	failed := 0
	for c, reply := range replies {
		if !parseSettled(out, reply, members[c], errs[c]) {
			failed++
		}
	}
	if err := cmp.Or(errs...); err != nil && failed == len(calls) {
		return nil, err
	}
	return out, nil
}

// settleSize is how many bytes settling a run stores, and reads of its task.
func settleSize(r *store.Settlement) int {
	n := r.BodyLen + len(r.Record) + len(r.State) + len(r.Hold)
	if r.Tally != nil {
		n += len(r.Tally.Failure)
	}
	return n
}

// parseSettled puts the outcomes of one call into out, at the places of its runs. Without a reply, which it reports, they
// have failed with err.
func parseSettled(out []store.Settled, reply []any, members []int, err error) bool {
	if len(reply) != len(members)+1 {
		if err == nil {
			err = wrap(verbSettle, errMalformed)
		}
		for _, i := range members {
			out[i].Err = err
		}
		return false
	}
	for k, i := range members {
		out[i] = settled(reply[k+1])
	}
	return true
}

func settled(v any) store.Settled {
	if order, ok := strings.CutPrefix(text(v), "x"); ok {
		return store.Settled{Err: &store.EndingError{Order: data(order)}}
	}
	switch due := number(v); due {
	case -1:
		return store.Settled{Err: store.ErrReplaced}
	case 0:
		return store.Settled{Err: store.ErrLeaseLost}
	case 1:
		return store.Settled{}
	default:
		return store.Settled{Due: store.Millis(due)}
	}
}

// statArg is what a run adds to the statistics of its kind: the first letter of its schedule, t for a touch, then whether
// it failed, its duration and its lag.
func statArg(r *store.RunStat) []byte {
	if r == nil {
		return nil
	}
	letter := map[store.ScheduleType]byte{store.ScheduleEvery: 'e', store.ScheduleCron: 'c', store.ScheduleActivity: 't'}[r.Schedule]
	failed := byte('0')
	if letter == 0 {
		letter = 'a'
	}
	if r.Failed {
		failed = '1'
	}
	b := append(make([]byte, 0, 14), letter, failed)
	b = append(b, sixBytes(r.Duration)...)
	return append(b, sixBytes(r.Lag)...)
}

// sixBytes are the milliseconds of a duration.
func sixBytes(d time.Duration) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(d.Milliseconds(), 0)))[2:]
}

// extraArg is what few settlements have.
func extraArg(r *store.Settlement) []byte {
	failed := r.Tally != nil && r.Tally.Failed
	if !r.Renewed && r.Hold == nil && r.Floor == nil && !failed {
		return nil
	}
	var renewed, hold, floor, failure string
	if r.Renewed {
		renewed = "1"
	}
	if r.Hold != nil {
		hold = "1" + string(r.Hold)
	}
	if f := r.Floor; f != nil {
		longest := ""
		if f.Debounce {
			longest = strconv.FormatInt(f.MaxWait.Milliseconds(), 10)
		}
		floor = fmt.Sprintf("%d|%s|%d|%s", f.At, f.Reason, f.Delay.Milliseconds(), longest)
	}
	if failed {
		failure = string(r.Tally.Failure)
	}
	return lengthened(nil, renewed, hold, floor, failure)
}
