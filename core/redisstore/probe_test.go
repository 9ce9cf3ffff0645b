package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// mortal is a connection to a Redis of a process that is killed after some writes: nothing is sent after that.
type mortal struct {
	net.Conn

	left *atomic.Int64
}

var errKilled = errors.New("the process is dead")

func (m *mortal) Write(b []byte) (int, error) {
	if m.left.Add(-1) < 0 {
		return 0, errKilled
	}
	return m.Conn.Write(b)
}

// killedAfter are the options of a process that is killed after some writes.
func killedAfter(srv *redistest.Server, writes int64) *redis.UniversalOptions {
	left := new(atomic.Int64)
	left.Store(writes)
	return &redis.UniversalOptions{
		Addrs: []string{srv.Addr}, PoolSize: 1, DialerRetries: 1,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if left.Load() < 0 {
				return nil, errKilled
			}
			conn, err := new(net.Dialer).DialContext(ctx, "unix", srv.Addr)
			return &mortal{conn, left}, err
		},
	}
}

// lasting are the keys under a prefix that have no time to live.
func lasting(t *testing.T, c *redis.Client, prefix string) []string {
	t.Helper()
	var found []string
	for _, key := range c.Keys(t.Context(), prefix+"*").Val() {
		ttl, err := c.TTL(t.Context(), key).Result()
		require.NoError(t, err)
		if ttl == -1 {
			found = append(found, strings.TrimPrefix(key, prefix))
		}
	}
	return found
}

// A process that is killed while it tries the scripts leaves keys behind; the next one removes them.
func TestAKilledProbeIsRemoved(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	left := 0
	for writes := int64(1); ; writes++ {
		prefix := fmt.Sprintf("p%d:", writes)
		st, err := redisstore.Open(t.Context(), redisstore.Config{Options: killedAfter(srv, writes), Prefix: prefix})
		if err == nil {
			require.NoError(t, st.Close())
			if len(lasting(t, c, prefix)) == 1 {
				break // it was not killed, and nothing is left of its probe
			}
		}
		if len(lasting(t, c, prefix)) > 2 { // layout and the list of probes
			left++
		}
		open(t, redisstore.Config{URL: srv.URL, Prefix: prefix})
		for _, z := range c.ZRangeWithScores(t.Context(), prefix+"probes", 0, -1).Val() { // it was long ago
			require.NoError(t, c.ZAdd(t.Context(), prefix+"probes", redis.Z{Score: z.Score - 61_000, Member: z.Member}).Err())
		}
		open(t, redisstore.Config{URL: srv.URL, Prefix: prefix, Remember: true})
		require.Equal(t, []string{"layout"}, lasting(t, c, prefix), "killed after %d writes", writes)
	}
	assert.Greater(t, left, 10, "most kills leave something")
}

// A probe that is under way is left alone.
func TestAProbeThatIsUnderWayIsNotRemoved(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	now := c.Time(t.Context()).Val()
	require.NoError(t, c.ZAdd(t.Context(), "duly:probes", redis.Z{Score: float64(now.UnixMilli()), Member: "other"}).Err())
	require.NoError(t, c.Set(t.Context(), "duly:{probe.other}:agenda", 1, 0).Err())
	open(t, redisstore.Config{URL: srv.URL})
	assert.EqualValues(t, 2, c.Exists(t.Context(), "duly:probes", "duly:{probe.other}:agenda").Val())
}

// A probe that has passed is remembered for those who say so: for a day, and for the same scripts, user and server only.
func TestAProbeIsRemembered(t *testing.T) {
	t.Parallel()
	srv := redistest.StartTCP(t)
	c := srv.Client(t)
	for _, user := range []string{"ann", "bob"} {
		require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all").Err())
	}
	cost := func(user string, remember bool) int {
		before := redistest.Commands(t, c)
		open(t, redisstore.Config{URL: strings.Replace(srv.URL, "//", "//"+user+":secret@", 1), Remember: remember})
		return redistest.Commands(t, c) - before
	}
	const few, many = 15, 100
	assert.Greater(t, cost("ann", true), many, "nothing is known yet")
	assert.Less(t, cost("ann", true), few)
	assert.Greater(t, cost("ann", false), many, "it does not rely on what is known")
	assert.Greater(t, cost("bob", true), many, "another user may lack a command")
	assert.Less(t, cost("bob", true), few)
	marks := c.Keys(t.Context(), "duly:probed:*").Val()
	require.Len(t, marks, 2)
	for _, mark := range marks {
		ttl := c.TTL(t.Context(), mark).Val()
		assert.Greater(t, ttl, 23*time.Hour)
		assert.LessOrEqual(t, ttl, 24*time.Hour)
	}
}

// A probe that fails is not remembered.
func TestAFailedProbeIsNotRemembered(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "default", "-hscan").Err())
	for range 2 {
		_, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Remember: true})
		require.ErrorContains(t, err, "the Redis user lacks a permission that duly needs")
	}
	require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "default", "+hscan").Err())
	open(t, redisstore.Config{URL: srv.URL, Remember: true})
}
