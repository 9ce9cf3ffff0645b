package redisstore_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A partition that is damaged fails the submits of its own agents; those that were joined with them are stored.
func TestADamagedPartitionFailsItsOwnSubmits(t *testing.T) {
	t.Parallel()
	const submits, damaged = 64, 2
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Partitions: redisstore.DefaultPartitions})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	tag := redisstore.Tags(redisstore.DefaultPartitions)[damaged]
	require.NoError(t, srv.Client(t).Set(t.Context(), "duly:{"+tag+"}:agents", "not a hash", 0).Err())
	var all sync.WaitGroup
	for i := range submits {
		p := i % redisstore.DefaultPartitions
		all.Go(func() {
			for k := range 20 {
				task := store.Submission{Agent: agentOf(p), ID: fmt.Sprint(i, " ", k), Kind: "k", Level: store.LevelLow}
				_, err := st.Submit(t.Context(), []store.Submission{task})
				if p == damaged {
					assert.ErrorContains(t, err, "WRONGTYPE")
				} else {
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
}

// submits sends one-task submits of one agent of each partition, each by a goroutine of its own, and keeps when the last one
// succeeded, and the longest time between two that did.
type submits struct {
	mu   sync.Mutex
	last map[int]time.Time
	gap  map[int]time.Duration
}

func (s *submits) send(ctx context.Context, st *redisstore.Store, partition int) {
	for i := 0; ctx.Err() == nil; i++ {
		task := store.Submission{Agent: agentOf(partition), ID: fmt.Sprint(i), Kind: "k", Level: store.LevelLow}
		for ctx.Err() == nil {
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err := st.Submit(within, []store.Submission{task})
			cancel()
			if err == nil {
				break
			}
		}
		if ctx.Err() == nil {
			s.note(partition)
		}
	}
}

func (s *submits) note(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if last, ok := s.last[partition]; ok {
		s.gap[partition] = max(s.gap[partition], now.Sub(last))
	}
	s.last[partition] = now
}

// since reports whether each partition has had a submit that succeeded since a time.
func (s *submits) since(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range redisstore.DefaultPartitions {
		if !s.last[p].After(t) {
			return false
		}
	}
	return true
}

// A master of a cluster that dies stops the one-task submits of its own partitions only, until its replica has taken over.
func TestSubmitsWhileAMasterIsLost(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartThreeMasters(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{
		Options: &redis.UniversalOptions{Addrs: cluster.Addrs(), IsClusterMode: true}, MaxTasks: 10_000_000,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	s := &submits{last: map[int]time.Time{}, gap: map[int]time.Duration{}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for p := range redisstore.DefaultPartitions {
		all.Go(func() { s.send(ctx, st, p) })
	}
	defer func() { cancel(); all.Wait() }()
	begun := time.Now()
	require.Eventually(t, func() bool { return s.since(begun) }, 20*time.Second, 5*time.Millisecond)

	cluster.Masters[1].Kill()
	replica := cluster.Replicas[1].Client(t)
	require.Eventually(t, func() bool {
		info, err := replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:master")
	}, 20*time.Second, 5*time.Millisecond, "the replica takes over")
	promoted := time.Now()
	require.Eventually(t, func() bool { return s.since(promoted) }, 20*time.Second, 5*time.Millisecond, "all partitions take submits again")
	back := time.Since(promoted)
	assert.Less(t, back, 10*time.Second)

	s.mu.Lock()
	defer s.mu.Unlock()
	var worst time.Duration
	for p, tag := range redisstore.Tags(redisstore.DefaultPartitions) {
		if cluster.Shard(t, "duly:{"+tag+"}:agenda") != 1 {
			worst = max(worst, s.gap[p])
		}
	}
	assert.Less(t, worst, time.Second, "the others went on")
	t.Logf("figure: a master was killed: the others' one-task submits paused for %s at most, its own were back %s after the promotion", worst, back)
}

// cutter is a connection of which the next answer is cut after some bytes.
type cutter struct {
	net.Conn
	after *atomic.Int64 // of all connections; 0: nothing is cut
	cut   bool
}

func (c *cutter) Read(b []byte) (int, error) {
	if c.cut {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b)
	if most := c.after.Load(); err == nil && most > 0 && c.after.CompareAndSwap(most, 0) {
		c.cut = true
		return min(n, int(most)), nil
	}
	return n, err
}

// An answer that is cut in half may be that of a call which was carried out: it is asked for again, as is one that is lost.
func TestAnAnswerThatIsCutInHalf(t *testing.T) {
	t.Parallel()
	srv := redistest.StartTCP(t)
	var after atomic.Int64
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &cutter{Conn: conn, after: &after}, err
	}
	st := open(t, redisstore.Config{Options: &redis.UniversalOptions{Addrs: []string{srv.Addr}, Dialer: dial}})
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1")})
	require.NoError(t, err)
	for most := int64(1); most <= 40; most++ {
		after.Store(most)
		page, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
		require.NoError(t, err, "cut after %d bytes", most)
		require.Equal(t, store.StatusWaiting, page.Tasks[0].Status)
		require.Zero(t, after.Load(), "it was cut")
	}
}
