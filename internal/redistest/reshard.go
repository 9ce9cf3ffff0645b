package redistest

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Slot is the hash slot of a key.
func (c *Cluster) Slot(tb testing.TB, key string) int {
	tb.Helper()
	slot, err := c.Masters[0].Client(tb).ClusterKeySlot(tb.Context(), key).Result()
	require.NoError(tb, err)
	return int(slot)
}

// MoveSlot moves a slot from one master to another as operators do, but key by key, with a pause of their choice after each. It
// returns how many keys were moved.
// It is slower than a real move, so that a test sees every moment of it.
// Both nodes keep the slot open meanwhile: a client is redirected key by key, with ASK, until the slot
// has its new owner.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, from, to *Server, pause func()) int {
	tb.Helper()
	ctx, source, target := context.Background(), from.Client(tb), to.Client(tb)
	id := func(client *redis.Client) string {
		id, err := client.ClusterMyID(ctx).Result()
		require.NoError(tb, err)
		return id
	}
	sourceID, targetID := id(source), id(target)
	host, port, err := net.SplitHostPort(to.Addr)
	require.NoError(tb, err)
	require.NoError(tb, target.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID).Err())
	require.NoError(tb, source.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID).Err())
	moved := 0
	for {
		keys, err := source.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		require.NoError(tb, err)
		if len(keys) == 0 {
			break
		}
		reply, err := source.Do(ctx, "MIGRATE", host, port, keys[0], 0, 10_000).Text()
		require.NoError(tb, err, "the key %q", keys[0])
		// A key may expire or be deleted between the two commands.
		require.Contains(tb, []string{"OK", "NOKEY"}, reply)
		moved++
		pause()
	}
	for _, s := range c.Masters { // the target first: then no two believe that it is theirs
		if s == to {
			require.NoError(tb, target.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", targetID).Err())
		}
	}
	for _, s := range c.Masters {
		if s != to {
			require.NoError(tb, s.Client(tb).Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", targetID).Err())
		}
	}
	return moved
}

// Shard is a range of slots, and the addresses of the nodes that have it: the master's first.
type Shard struct {
	From, To int
	Addrs    []string
}

// Shards are the ranges of slots as a node knows them.
// CLUSTER SLOTS is older than CLUSTER SHARDS, and known to all versions that duly supports.
func (s *Server) Shards(tb testing.TB) []Shard {
	tb.Helper()
	ranges, err := s.Client(tb).Do(context.Background(), "CLUSTER", "SLOTS").Slice() // also known to Redis before 7
	require.NoError(tb, err)
	var all []Shard
	for _, r := range ranges {
		fields, ok := r.([]any)
		require.True(tb, ok)
		shard := Shard{From: integer(tb, fields[0]), To: integer(tb, fields[1])}
		for _, node := range fields[2:] {
			at, ok := node.([]any)
			require.True(tb, ok)
			shard.Addrs = append(shard.Addrs, fmt.Sprintf("%s:%d", at[0], at[1]))
		}
		all = append(all, shard)
	}
	return all
}

// integer is a number of a reply.
func integer(tb testing.TB, v any) int {
	tb.Helper()
	n, ok := v.(int64)
	require.True(tb, ok)
	return int(n)
}

// Owner is the master that has a slot.
// It asks the first master, which has to be alive.
func (c *Cluster) Owner(tb testing.TB, slot int) *Server {
	tb.Helper()
	for _, shard := range c.Masters[0].Shards(tb) {
		for _, m := range c.Masters {
			if shard.From <= slot && slot <= shard.To && shard.Addrs[0] == m.Addr {
				return m
			}
		}
	}
	require.Fail(tb, fmt.Sprintf("nobody has slot %d", slot))
	return nil
}
