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
	if err != nil {
		return nil, err
	}
	out := make([]core.Settled, len(runs))
	for c, reply := range replies {
		if len(reply) != len(members[c])+1 {
			return nil, wrap("settle", errMalformed)
		}
		for k, i := range members[c] {
			switch due := number(reply[k+1]); due {
			case 0:
				out[i].Err = core.ErrLeaseLost
			case 1:
			default:
				out[i].Due = core.Millis(due)
			}
		}
	}
	return out, nil
}

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

// Control carries out an operator's commands; see [core.Store].
func (s *Store) Control(ctx context.Context, commands []core.Command) ([]core.Placed, error) {
	calls, members := s.byPartition(&s.scripts.replay, len(commands), func(i int) string { return commands[i].Agent }, nil,
		func(args []any, i int) []any {
			c := &commands[i]
			return append(args, encode(c.Agent), c.ID, record(c.Level, c.ID, c.Kind, c.Body), groupKey(c.Agent, c.Group))
		})
	replies, err := s.eval(ctx, "control", calls)
	if err != nil {
		return nil, err
	}
	out := make([]core.Placed, len(commands))
	for c, reply := range replies {
		if len(reply) != len(members[c])+1 {
			return nil, wrap("control", errMalformed)
		}
		for k, i := range members[c] {
			due := number(reply[k+1])
			out[i] = core.Placed{Created: due != 0, Due: core.Millis(due)}
		}
	}
	return out, nil
}
