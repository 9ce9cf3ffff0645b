package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// clustered is a daemon on a cluster, with a prefix of its own, and what it did: each agent has a task a second, and one
// that is to run once.
type clustered struct {
	scheduler *core.Scheduler
	daemon    *daemon.Daemon
	agents    []string

	mu   sync.Mutex
	last map[string]time.Time     // of an agent: when its recurring task started last
	gap  map[string]time.Duration // of an agent: the longest time between two starts
	once map[string]int           // how often the tasks ran that were to run once
	logs bytes.Buffer
}

func startClustered(t *testing.T, cluster *redistest.Cluster, prefix string, agents []string, later time.Duration) *clustered {
	t.Helper()
	c := &clustered{agents: strangersOf(redisstore.DefaultPartitions), last: map[string]time.Time{}, gap: map[string]time.Duration{}, once: map[string]int{}}
	logger := slog.New(slog.NewTextHandler(c, nil))
	st, err := redisstore.Open(t.Context(), redisstore.Config{
		Options: &redis.UniversalOptions{Addrs: cluster.Addrs(), IsClusterMode: true}, Prefix: prefix,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	c.scheduler, err = core.New(st, core.Config{Logger: logger, Concurrency: 100})
	require.NoError(t, err)
	core.Handle(c.scheduler, "work", c.run)
	var tasks []core.NewTask
	for _, agent := range c.agents {
		tasks = append(tasks,
			core.NewTask{Agent: agent, ID: "every", Kind: "work", Every: time.Second},
			core.NewTask{Agent: agent, ID: "once", Kind: "work", Delay: later})
	}
	_, err = c.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	c.daemon, err = daemon.New(c.scheduler, daemon.Config{Agents: agents, Waker: st, Logger: logger})
	require.NoError(t, err)
	require.NoError(t, c.daemon.Start())
	t.Cleanup(func() { assert.NoError(t, c.daemon.Stop(context.Background())) })
	return c
}

// run takes a while, so that some runs are under way whenever a master is lost.
func (c *clustered) run(ctx context.Context, task *core.Task[any]) error {
	c.note(task)
	select {
	case <-time.After(200 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *clustered) note(task *core.Task[any]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if task.ID == "once" {
		c.once[task.Agent]++
		return
	}
	now := time.Now()
	if last, ok := c.last[task.Agent]; ok {
		c.gap[task.Agent] = max(c.gap[task.Agent], now.Sub(last))
	}
	c.last[task.Agent] = now
}

// Write takes a line of the log.
func (c *clustered) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.Write(line)
}

// ran waits until each agent of the partitions, nil for all, has run since a time.
func (c *clustered) ran(t *testing.T, since time.Time, partitions []int) {
	t.Helper()
	eventually(t, "partitions %v run", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !slices.ContainsFunc(c.agents, func(agent string) bool {
			p := store.PartitionOf(agent, redisstore.DefaultPartitions)
			return (partitions == nil || slices.Contains(partitions, p)) && c.last[agent].Before(since)
		})
	}, partitions)
}

// worst is the longest time between two runs of an agent outside some partitions.
func (c *clustered) worst(outside []int) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var worst time.Duration
	for agent, gap := range c.gap {
		if !slices.Contains(outside, store.PartitionOf(agent, redisstore.DefaultPartitions)) {
			worst = max(worst, gap)
		}
	}
	return worst
}

// saidOnce checks that the log has told of partitions that were away and came back, once of each.
func (c *clustered) saidOnce(t *testing.T, partitions []int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	logs := c.logs.String()
	assert.Equal(t, len(partitions), strings.Count(logs, "a partition of the store does not answer"), logs)
	assert.Equal(t, len(partitions), strings.Count(logs, "a partition of the store answers again"), logs)
	assert.NotContains(t, logs, "the store is away")
}

func eventually(t *testing.T, message string, is func() bool, args ...any) {
	t.Helper()
	require.Eventually(t, is, 20*time.Second, 5*time.Millisecond, append([]any{message}, args...)...)
}

// partitionsOn are the partitions that a master has.
func partitionsOn(t *testing.T, master *redistest.Server) []int {
	t.Helper()
	keys, err := master.Client(t).Keys(t.Context(), "a:{*}:due").Result()
	require.NoError(t, err)
	var partitions []int
	for _, key := range keys {
		name, _, _ := strings.Cut(strings.TrimPrefix(key, "a:{"), "}")
		number, _, _ := strings.Cut(name, ".") // the tag of a partition is its number, and what it takes to be in its slot
		p, err := strconv.Atoi(number)
		require.NoError(t, err)
		partitions = append(partitions, p)
	}
	require.NotEmpty(t, partitions)
	slices.Sort(partitions)
	return partitions
}

// A master of a cluster that dies, or answers no more, stops its own partitions only, until its replica has taken over.
// Running processes find the new master by themselves.
func TestAMasterOfAClusterIsLost(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]lost{
		"killed": {lose: func(_ *testing.T, master *redistest.Server) { master.Kill() }, pause: time.Second},
		"frozen": {lose: freeze, pause: 3 * time.Second}, // a call that is under way waits for it, once
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartThreeMasters(t)
			daemons := []*clustered{
				startClustered(t, cluster, "a:", nil, 4*time.Second),
				startClustered(t, cluster, "b:", strangersOf(redisstore.DefaultPartitions), 4*time.Second),
			}
			way.test(t, cluster, daemons)
		})
	}
}

// lost is a way to lose a master, and how long others may have to wait for their turn because of it.
type lost struct {
	lose  func(t *testing.T, master *redistest.Server)
	pause time.Duration
}

func freeze(t *testing.T, server *redistest.Server) {
	t.Helper()
	process, err := os.FindProcess(server.Pid())
	require.NoError(t, err)
	require.NoError(t, process.Signal(syscall.SIGSTOP)) // the end of the test kills it
}

func (l lost) test(t *testing.T, cluster *redistest.Cluster, daemons []*clustered) {
	t.Helper()
	for _, c := range daemons {
		c.ran(t, time.Now(), nil)
		c.ran(t, time.Now(), nil)
	}
	for _, master := range cluster.Masters { // what was acknowledged so far is on the replicas too
		replicas, err := master.Client(t).Wait(t.Context(), 1, 10*time.Second).Result()
		require.NoError(t, err)
		require.EqualValues(t, 1, replicas)
	}
	lost := partitionsOn(t, cluster.Masters[1])
	l.lose(t, cluster.Masters[1])
	began := time.Now()
	for _, c := range daemons {
		eventually(t, "%v are named", func() bool {
			away, ok := errors.AsType[*core.AwayError](c.scheduler.Ready())
			return ok && slices.Equal(away.Partitions, lost)
		}, lost)
	}
	replica := cluster.Replicas[1].Client(t)
	eventually(t, "the replica takes over", func() bool {
		info, err := replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "role:master")
	})
	promoted := time.Now()
	for _, c := range daemons {
		c.ran(t, promoted, lost)
	}
	back := time.Since(promoted)
	assert.Less(t, back, 10*time.Second)
	for _, c := range daemons {
		eventually(t, "all partitions are back", func() bool { return c.scheduler.Ready() == nil })
		c.ran(t, time.Now(), nil)
		eventually(t, "nothing is lost", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.once) == len(c.agents)
		})
		assert.LessOrEqual(t, c.worst(lost), time.Second+l.pause, "no other partition stops for more than %s", l.pause)
		c.saidOnce(t, lost)
		t.Logf("took over after %s, back after another %s; elsewhere an agent waited for %s at most", promoted.Sub(began), back, c.worst(lost))
	}
}
