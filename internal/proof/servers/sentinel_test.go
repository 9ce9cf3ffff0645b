package servers_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A sentinel promotes a replica while tasks are submitted and run: whoever runs continues by itself, what is missing was acknowledged in the
// last moments before the master died, and no process gets a fence twice.
func TestASentinelPromotes(t *testing.T) {
	t.Parallel()
	f := newFailover(t)
	begun := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { f.submit(ctx) })
	all.Go(func() { f.run(ctx) })
	f.acknowledged(t, proof.Size(500, 5000))
	died := time.Now()
	f.master.Kill()
	require.Eventually(t, func() bool { return f.ackedSince(died) > 100 }, 30*time.Second, 10*time.Millisecond, "the replica serves it")
	pause := f.pause(died)
	stop()
	all.Wait()
	settle(t, f.s)

	lost, latest := 0, time.Duration(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, at := range f.acks {
		if _, err := f.s.Task(t.Context(), agentOf(i), strconv.Itoa(i)); err != nil {
			require.ErrorIs(t, err, core.ErrNotFound)
			lost++
			latest = max(latest, died.Sub(at))
		}
	}
	assert.Less(t, latest, time.Second, "only what was not replicated yet is missing")
	assert.Empty(t, f.reused)
	proof.Figure(t, "a sentinel promoted a replica after %d acknowledged tasks in %s: submits paused for %s, %d tasks that were not replicated are missing, no fence was used twice",
		len(f.acks), died.Sub(begun).Round(time.Second), pause.Round(10*time.Millisecond), lost)
}

// failover is a master, its replica, a sentinel, and what a process has seen of them.
type failover struct {
	master *redistest.Server
	s      *core.Scheduler

	mu     sync.Mutex
	acks   []time.Time // when each task was acknowledged
	seen   map[string]bool
	newest map[int]store.Fence
	reused []string
}

func newFailover(t *testing.T) *failover {
	t.Helper()
	f := &failover{master: redistest.StartTCP(t, "--repl-diskless-sync-delay", "0"), seen: map[string]bool{}, newest: map[int]store.Fence{}}
	host, port, err := net.SplitHostPort(f.master.Addr)
	require.NoError(t, err)
	replica := redistest.StartTCP(t, "--replicaof", host+" "+port)
	c := replica.Client(t)
	require.Eventually(t, func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	}, 20*time.Second, 10*time.Millisecond)
	sentinel := redistest.StartSentinel(t, f.master, "sentinel parallel-syncs mymaster 1")
	known := sentinel.Client(t)
	require.Eventually(t, func() bool {
		info, err := known.Do(t.Context(), "SENTINEL", "REPLICAS", "mymaster").Slice()
		return err == nil && len(info) == 1
	}, 20*time.Second, 10*time.Millisecond, "the sentinel knows the replica")

	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: "redis+sentinel://" + sentinel.Addr + "/mymaster"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, st.Close()) })
	f.s, err = core.New(st, core.Config{Concurrency: 20, Default: core.KindConfig{Lease: time.Second, Backoff: -1}})
	require.NoError(t, err)
	core.Handle(f.s, "ok", func(_ context.Context, task *core.Task[any]) error {
		f.started(store.PartitionOf(task.Agent, st.Partitions()), task.Fence, task.Agent+"/"+task.ID)
		return nil
	})
	return f
}

func agentOf(i int) string { return fmt.Sprint("a", i%50) }

// started notes the fence of a run: it is no other run's of the same task.
func (f *failover) started(partition int, fence store.Fence, task string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := fmt.Sprint(partition, " ", fence, " ", task)
	if f.seen[name] {
		f.reused = append(f.reused, name)
	}
	f.seen[name] = true
	f.newest[partition] = max(f.newest[partition], fence)
}

// submit submits one task after the other, each until it is acknowledged.
func (f *failover) submit(ctx context.Context) {
	for i := 0; ctx.Err() == nil; {
		_, err := f.s.Submit(ctx, core.NewTask{Agent: agentOf(i), ID: strconv.Itoa(i), Kind: "ok"})
		if err != nil {
			continue
		}
		f.mu.Lock()
		f.acks = append(f.acks, time.Now())
		f.mu.Unlock()
		i++
	}
}

// run runs what is due, whatever becomes of Redis.
func (f *failover) run(ctx context.Context) {
	for ctx.Err() == nil {
		_, _ = f.s.RunDue(ctx, core.Scope{MaxDuration: time.Second})
	}
}

func (f *failover) acknowledged(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.acks) >= n
	}, time.Minute, 10*time.Millisecond)
}

func (f *failover) ackedSince(at time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, a := range f.acks {
		if a.After(at) {
			n++
		}
	}
	return n
}

// pause is how long no task was acknowledged around the death of the master.
func (f *failover) pause(died time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	longest, last := time.Duration(0), died
	for _, a := range f.acks {
		if a.After(died) {
			longest = max(longest, a.Sub(last))
			last = a
		}
	}
	return longest
}
