package redisstore

// Settle: its arguments, and how its reply for each run is read.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// largestSettle is the most runs that one script call settles.
const largestSettle = 100

// mostPayload is about how many bytes of tasks and records one script call stores or reads: it has one task at least. A call
// copies each of them several times, which takes a few milliseconds for so many.
const mostPayload = 256 << 10

// Settle ends runs; see [store.Store]. It is a turn in which nothing is claimed.
func (s *Store) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	settled, _, err := s.Turn(ctx, runs, nil)
	return settled, err
}

// settleCalls are the calls that settle some runs, and which of the runs each has. What follows them are claims.
func (s *Store) settleCalls(runs []store.Settlement, next []store.ClaimRequest) ([]call.Call, [][]int) {
	batches := s.settleBatches(runs)
	calls, members := make([]call.Call, len(batches)), make([][]int, len(batches))
	for i, b := range batches {
		followed := slices.ContainsFunc(next, func(r store.ClaimRequest) bool { return r.New == nil && r.Partition == b.partition })
		calls[i], members[i] = s.settleCall(runs, b, followed), b.members
	}
	return calls, members
}

// settleBatch are runs that one script call settles, by their places.
type settleBatch struct {
	partition int
	plain     bool
	members   []int
	size      int // bytes
}

// settleBatches puts runs into batches of one partition each.
func (s *Store) settleBatches(runs []store.Settlement) []settleBatch {
	var batches []settleBatch
	odd := make([]bool, len(s.db.Parts)) // whether some of the runs of a partition are not plain: then all go the other way, in their order
	for i := range runs {
		odd[runs[i].Partition] = odd[runs[i].Partition] || !plainSettlement(&runs[i])
	}
	for i := range runs {
		r := &runs[i]
		size, at := settleSize(r), len(batches)-1
		for at >= 0 && batches[at].partition != r.Partition {
			at--
		}
		if at < 0 || len(batches[at].members) == largestSettle || batches[at].size+size > mostPayload {
			at = len(batches)
			batches = append(batches, settleBatch{partition: r.Partition, plain: !odd[r.Partition], members: make([]int, 0, min(len(runs)-i, largestSettle))})
		}
		batches[at].size += size
		batches[at].members = append(batches[at].members, i)
	}
	return batches
}

// settleCall is the call that settles a batch, which a claim of its partition follows or not.
func (s *Store) settleCall(runs []store.Settlement, b settleBatch, followed bool) call.Call {
	full := func() call.Call {
		args := make([]any, 0, 3+12*len(b.members))
		args = append(args, s.config.Retention.Milliseconds(), s.config.kept(), quietArg(runs, b.members))
		for _, i := range b.members {
			r := &runs[i]
			agent := layout.AgentRef(&r.Run)
			args = append(args, formatFence(r.Fence), r.Index, agent, r.ID, string(r.Verb),
				layout.DueArg(r.DueAgain()), layout.StateArg(r), r.Record, layout.GroupOf(agent, r.Group), r.Kind, statArg(r.Tally), extraArg(r))
		}
		return call.Call{Script: &s.db.Scripts.Settle, Partition: b.partition, Args: args}
	}
	memory := &s.plain[b.partition].Settle
	if !b.plain || !memory.WorthTrying() {
		return full()
	}
	c := s.plainSettleCall(runs, slices.Clone(b.members), followed) // settle.lua takes them as they came: a run may come twice
	c.Partition, c.Full, c.Plain = b.partition, full, memory
	return c
}

// quietArg is 1 if no process has to be notified of what some runs make due: a run that needs it is announced with all.
func quietArg(runs []store.Settlement, members []int) string {
	for _, i := range members {
		if !runs[i].Quiet {
			return ""
		}
	}
	return "1"
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
func parseSettled(out []store.Settled, c *call.Call, runs []store.Settlement, reply []any, members []int, err error) bool {
	if c.Full != nil && len(reply) == 2 {
		now := moment.Millis(layout.Number(reply[0]))
		for _, i := range members {
			out[i] = settledPlainly(&runs[i], now)
		}
		return true
	}
	var crossed []any                                              // three for each budget that is used up
	if n := len(members); len(reply) == n+2 || len(reply) == n+3 { // the last are reports to homes: see permits.go
		crossed, _ = reply[n+1].([]any)
		reply = reply[:n+1]
	}
	if len(reply) != len(members)+1 || len(crossed)%3 != 0 {
		if err == nil {
			err = call.Wrap(call.VerbSettle, layout.ErrMalformed)
		}
		for _, i := range members {
			out[i].Err = err
		}
		return false
	}
	for k, i := range members {
		out[i] = settled(reply[k+1])
	}
	parseCrossed(out, crossed, members)
	return true
}

// parseCrossed adds the budgets that are used up to the runs that did it: the place of the run in its call, the bucket, when its period ends.
func parseCrossed(out []store.Settled, crossed []any, members []int) {
	for k := 0; k < len(crossed); k += 3 {
		run := int(layout.Number(crossed[k])) - 1
		if c, err := bounds.ParseCrossing(crossed[k+1], crossed[k+2]); err == nil && run >= 0 && run < len(members) {
			out[members[run]].Crossed = out[members[run]].Crossed.Add(c)
		}
	}
}

func settled(v any) store.Settled {
	if order, ok := strings.CutPrefix(layout.Text(v), "x"); ok {
		return store.Settled{Err: &store.EndingError{Order: layout.Data(order)}}
	}
	said, freed := strings.CutPrefix(layout.Text(v), "+")
	if freed {
		n, _ := strconv.ParseInt(said, 10, 64)
		v = n
	}
	switch due := layout.Number(v); due {
	case -1:
		return store.Settled{Err: store.ErrReplaced}
	case 0:
		return store.Settled{Err: store.ErrLeaseLost}
	case 1:
		return store.Settled{Freed: freed}
	default:
		return store.Settled{Due: moment.Millis(due), Freed: freed}
	}
}

// statArg is the statistics of a run for its kind: the first letter of its schedule, t for a touch, then whether
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
	return appendSix(nil, wholeMillis(d))
}

// appendSix appends a number in six bytes, the largest there is if it has more.
func appendSix(b []byte, n uint64) []byte {
	n = min(n, 1<<48-1)
	return append(b, byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n)) //nolint:gosec // six bytes
}

// spentArgs are the use of a run, unit=amount in lines, and how it was answered: see after_run.
func spentArgs(s *store.Spent) (used, answer string) {
	for _, u := range s.Used {
		used += fmt.Sprintf("%s=%d\n", u.Unit, u.Amount)
	}
	switch {
	case s.Busy > 0:
		answer = "w" + strconv.FormatInt(max(s.Busy.Milliseconds(), 1), 10)
	case s.Idle:
		answer = "-"
	}
	return used, answer
}

// notBegun is in place of how a run was answered that is given back and has not begun.
const notBegun = "n"

// extraArg has the rare fields of settlements.
func extraArg(r *store.Settlement) []byte {
	failed := r.Tally != nil && r.Tally.Failed
	back := r.Verb == store.VerbRelease && r.Unrun
	if !r.Renewed && r.Hold == nil && r.Floor == nil && !failed && r.Spent == nil && r.Await == nil && !back {
		return nil
	}
	var renewed, hold, floor, failure, used, answer, heard, key, wait string
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
	if r.Spent != nil {
		used, answer = spentArgs(r.Spent)
	}
	if back {
		answer = notBegun
	}
	if a := r.Await; a != nil {
		key, wait = layout.Encode(a.Key), waitMark(a.Approval)+strconv.FormatInt(int64(a.Wait), 10)
		if a.Heard {
			heard = "1"
		}
	}
	return layout.Lengthened(nil, renewed, hold, floor, failure, used, answer, heard, key, wait)
}
