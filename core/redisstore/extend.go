package redisstore

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core"
)

// Extend moves the ends of leases; see [core.Store].
func (s *Store) Extend(ctx context.Context, leases []core.Extension) ([]bool, error) {
	members := make([][]int, len(s.parts))
	for i := range leases {
		p := leases[i].Partition
		members[p] = append(members[p], i)
	}
	var calls []call
	var order [][]int
	for p, is := range members {
		if len(is) > 0 {
			calls = append(calls, call{script: &s.scripts.extend, partition: p, args: extendArgs(leases, is)})
			order = append(order, is)
		}
	}
	replies, err := s.eval(ctx, "extend", calls)
	if err != nil {
		return nil, err
	}
	held := make([]bool, len(leases))
	for c, reply := range replies {
		if len(reply) != len(order[c])+1 {
			return nil, wrap("extend", errMalformed)
		}
		for k, i := range order[c] {
			held[i] = number(reply[k+1]) == 1
		}
	}
	return held, nil
}

// extendArgs are the arguments for those of the leases that lie in one partition.
func extendArgs(leases []core.Extension, members []int) []any {
	args := []any{len(members)}
	for _, i := range members {
		args = append(args, formatFence(leases[i].Fence), leases[i].Lease.Milliseconds())
	}
	for _, i := range members {
		for _, pr := range leases[i].Progress {
			args = append(args, formatFence(leases[i].Fence), pr.Index, encode(pr.Agent)+":"+pr.ID, storedState(pr.State))
		}
	}
	return args
}
