package redisstore

// Extend: heartbeats of many claims in one script call for each partition.

import (
	"context"
	"sort"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Extend moves the ends of leases; see [store.Store].
// It returns an error only if every call failed. Otherwise the leases of a partition that does not
// answer have an Err of their own, as the others' runs continue.
func (s *Store) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	calls, order := s.extendCalls(leases)
	replies, errs := s.db.RunAll(ctx, call.VerbExtend, calls)
	out := make([]store.Extended, len(leases))
	failed := 0
	for c, reply := range replies {
		why := errs[c]
		parse := parseExtended
		if calls[c].Script == &s.db.Scripts.Back {
			parse = parseBack
		}
		if reply != nil && !parse(out, reply, order[c], calls[c].Partition) {
			reply, why = nil, call.Wrap(call.VerbExtend, layout.ErrMalformed)
		}
		if reply != nil {
			continue
		}
		failed++
		// Every lease of the call shares its error: a script changes all of them or none.
		for _, i := range order[c] {
			out[i] = store.Extended{Err: why}
		}
	}
	if failed > 0 && failed == len(calls) {
		return nil, out[order[0][0]].Err
	}
	charge(ctx, s, leases, out)
	return out, nil
}

// charged is a run that is charged: its lease's place among those of a call, and its index.
type charged struct{ lease, index int }

// charge charges what runs have used so far whose leases were extended. A lease whose runs could not be charged has that as its Err: sent again,
// nothing is charged twice.
func charge(ctx context.Context, s *Store, leases []store.Extension, out []store.Extended) {
	var calls []call.Call
	var runs [][]charged
	for i := range leases {
		var args []any
		var of []charged
		for _, pr := range leases[i].Progress {
			if len(pr.Used) > 0 && out[i].Held {
				used, _ := spentArgs(&store.Spent{Used: pr.Used})
				args = append(args, formatFence(leases[i].Fence), pr.Index, layout.AgentRef(&pr.Run)+":"+pr.ID, used)
				of = append(of, charged{i, pr.Index})
			}
		}
		if len(args) > 0 {
			calls, runs = append(calls, call.Call{Script: &s.db.Scripts.Charge, Partition: leases[i].Partition, Args: args}), append(runs, of)
		}
	}
	if len(calls) == 0 {
		return
	}
	replies, errs := s.db.RunAll(ctx, call.VerbExtend, calls)
	for c, reply := range replies {
		e := &out[runs[c][0].lease]
		if len(reply) == 3 {
			parseCharged(e, reply, runs[c])
			continue
		}
		why := errs[c]
		if why == nil {
			why = call.Wrap(call.VerbExtend, layout.ErrMalformed)
		}
		*e = store.Extended{Err: why}
	}
}

// parseCharged adds what an answer says to that for the lease: the budgets that are used up, and the runs of which one is.
func parseCharged(e *store.Extended, reply []any, runs []charged) {
	crossed, _ := reply[1].([]any)
	for k := 0; k+2 < len(crossed); k += 3 {
		if one, err := bounds.ParseCrossing(crossed[k+1], crossed[k+2]); err == nil {
			e.Crossed = e.Crossed.Add(one)
		}
	}
	over, _ := reply[2].([]any)
	for _, at := range over {
		if n := int(layout.Number(at)) - 1; n >= 0 && n < len(runs) {
			e.Ended = append(e.Ended, store.Ended{Index: runs[n].index, Spent: true})
		}
	}
}

// extendCalls are one call for the leases of each partition, and one for each lease whose runs are taken back; and the places of the leases
// of each call, so that answers find their way back.
func (s *Store) extendCalls(leases []store.Extension) (calls []call.Call, order [][]int) {
	members := make([][]int, len(s.db.Parts))
	for i := range leases {
		p := leases[i].Partition
		if len(leases[i].Back) == 0 {
			members[p] = append(members[p], i)
			continue
		}
		calls = append(calls, call.Call{Script: &s.db.Scripts.Back, Partition: p, Args: backArgs(&leases[i])})
		order = append(order, []int{i})
	}
	for p, is := range members {
		if len(is) > 0 {
			// In the order of partitions, which makes calls the same for the same leases.
			calls = append(calls, call.Call{Script: &s.db.Scripts.Extend, Partition: p, Args: extendArgs(leases, is)})
			order = append(order, is)
		}
	}
	return calls, order
}

// parseExtended puts the answers of one call into out, at the places of its leases. It reports whether they make sense.
func parseExtended(out []store.Extended, reply []any, members []int, _ int) bool {
	n := len(members)
	if len(reply) != n+2 {
		return false
	}
	for k, i := range members {
		out[i].Held = layout.Number(reply[k+1]) == 1
	}
	// The last field has runs whose tasks an operator has cancelled or
	// deleted since the last heartbeat.
	ended, _ := reply[n+1].([]any) // triples: place of the claim, index, and how it ends
	for k := 0; k+2 < len(ended); k += 3 {
		at := int(layout.Number(ended[k]))
		if at < 0 || at >= n {
			return false
		}
		// "x" is a cancel, with its operator's note, "+" what runs of the claim; anything else means
		// that the task no longer exists.
		if holder, runs := strings.CutPrefix(layout.Text(ended[k+2]), "+"); runs {
			out[members[at]].Running, out[members[at]].Holder = int(layout.Number(ended[k+1])), holder
			continue
		}
		said, cancelled := strings.CutPrefix(layout.Text(ended[k+2]), "x")
		e := &out[members[at]].Ended
		*e = append(*e, store.Ended{Index: int(layout.Number(ended[k+1])), Deleted: !cancelled, Order: layout.Data(said)})
	}
	// Scripts list them as they find them. The order by index is what memstore
	// answers with, and tests compare both.
	for _, i := range members {
		ended := out[i].Ended
		sort.Slice(ended, func(a, b int) bool { return ended[a].Index < ended[b].Index })
	}
	return true
}

// extendArgs are the arguments for those of the leases that are in one partition: their number, fence
// and length of each, then five fields for each task that reports progress.
func extendArgs(leases []store.Extension, members []int) []any {
	args := []any{len(members)}
	for _, i := range members {
		lease := strconv.FormatInt(leases[i].Lease.Milliseconds(), 10)
		if leases[i].Leave {
			lease = "l" + lease
		}
		args = append(args, formatFence(leases[i].Fence), lease)
	}
	for _, i := range members {
		for _, pr := range leases[i].Progress {
			args = append(args, formatFence(leases[i].Fence), pr.Index, layout.AgentRef(&pr.Run)+":"+pr.ID, pr.State, pr.Number)
		}
	}
	return args
}

// backArgs are the arguments for the runs that a process takes back of a lost lease.
func backArgs(e *store.Extension) []any {
	args := []any{e.Nonce, e.Lease.Milliseconds(), formatFence(e.Fence)}
	for i := range e.Back {
		args = append(args, layout.AgentRef(&e.Back[i]), e.Back[i].ID)
	}
	return args
}

// parseBack puts the runs that are leased again into the answer for their lost lease.
func parseBack(out []store.Extended, reply []any, members []int, partition int) bool {
	if len(reply)%3 != 2 {
		return false
	}
	fence, _ := strconv.ParseInt(layout.Text(reply[1]), 10, 64)
	e := &out[members[0]]
	for i := 2; i < len(reply); i += 3 {
		agent, err := layout.Decode(layout.Text(reply[i+1]))
		if err != nil || fence == 0 {
			return false
		}
		e.Back = append(e.Back, store.Run{Partition: partition, Fence: store.Fence(fence), Index: int(layout.Number(reply[i])), Agent: agent, ID: layout.Text(reply[i+2])})
	}
	return true
}
