package redisstore

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core"
)

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
