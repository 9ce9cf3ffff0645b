package redisstore

// Extend: heartbeats of many claims in one script call for each partition.

import (
	"context"
	"sort"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Extend moves the ends of leases; see [store.Store].
// It returns an error only if every call failed. Otherwise the leases of a partition that does not
// answer have an Err of their own, as the others' runs continue.
func (s *Store) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	// members are the places of the leases of each partition, so that answers find their way back.
	members := make([][]int, len(s.parts))
	for i := range leases {
		p := leases[i].Partition
		members[p] = append(members[p], i)
	}
	var calls []call
	var order [][]int
	for p, is := range members {
		if len(is) > 0 {
			// In the order of partitions, which makes calls the same for the same leases.
			calls = append(calls, call{script: &s.scripts.extend, partition: p, args: extendArgs(leases, is)})
			order = append(order, is)
		}
	}
	replies, errs := s.evalAll(ctx, verbExtend, calls)
	out := make([]store.Extended, len(leases))
	failed := 0
	for c, reply := range replies {
		why := errs[c]
		if reply != nil && !parseExtended(out, reply, order[c]) {
			reply, why = nil, wrap(verbExtend, errMalformed)
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
	return out, nil
}

// parseExtended puts the answers of one call into out, at the places of its leases. It reports whether they make sense.
func parseExtended(out []store.Extended, reply []any, members []int) bool {
	n := len(members)
	if len(reply) != n+2 {
		return false
	}
	for k, i := range members {
		out[i].Held = number(reply[k+1]) == 1
	}
	// The last field has runs whose tasks an operator has cancelled or
	// deleted since the last heartbeat.
	ended, _ := reply[n+1].([]any) // triples: place of the claim, index, and how it ends
	for k := 0; k+2 < len(ended); k += 3 {
		at := int(number(ended[k]))
		if at < 0 || at >= n {
			return false
		}
		// "x" is a cancel, with what its operator said; anything else says
		// that the task no longer exists.
		said, cancelled := strings.CutPrefix(text(ended[k+2]), "x")
		e := &out[members[at]].Ended
		*e = append(*e, store.Ended{Index: int(number(ended[k+1])), Deleted: !cancelled, Order: data(said)})
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
		args = append(args, formatFence(leases[i].Fence), leases[i].Lease.Milliseconds())
	}
	for _, i := range members {
		for _, pr := range leases[i].Progress {
			args = append(args, formatFence(leases[i].Fence), pr.Index, agentRef(&pr.Run)+":"+pr.ID, countedState(pr.State, pr.Crashes))
		}
	}
	return args
}
