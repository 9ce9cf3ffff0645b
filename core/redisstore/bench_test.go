package redisstore_test

// What a submit costs the process that makes it, on a real Redis.

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// BenchmarkSubmitOfOne has 64 goroutines submit one task a call, as the requests of a server do.
func BenchmarkSubmitOfOne(b *testing.B) {
	srv := redistest.Start(b)
	st, err := redisstore.Open(b.Context(), redisstore.Config{URL: srv.URL})
	require.NoError(b, err)
	s, err := core.New(st, core.Config{})
	require.NoError(b, err)
	b.ReportAllocs()
	client := srv.Client(b)
	inRedis, inClient := cpuOf(b, client), cpu(b)
	b.ResetTimer()
	var n atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				_, err := s.Submit(b.Context(), core.NewTask{Agent: fmt.Sprint("agent", i), ID: "task", Kind: "kind", Payload: []byte(`{"N":1}`)})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuOf(b, client)-inRedis)/float64(b.N)/1e3, "redis-us/op")
	b.ReportMetric(float64(cpu(b)-inClient)/float64(b.N)/1e3, "client-us/op")
	require.NoError(b, st.Close())
}

// cpu is what this process has taken of its processors.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cpuOf is what a server has taken.
func cpuOf(tb testing.TB, c *redis.Client) time.Duration {
	tb.Helper()
	info, err := c.InfoMap(tb.Context(), "cpu").Result()
	require.NoError(tb, err)
	var used time.Duration
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		d, err := time.ParseDuration(info["CPU"][name] + "s")
		require.NoError(tb, err)
		used += d
	}
	return used
}

// cycle has recurring tasks of as many agents, which are due again as soon as they have run.
type cycle struct {
	st *redisstore.Store
	n  int
}

const cycleTasks = store.MaxClaim

func newCycle(tb testing.TB) (*cycle, *redistest.Server) {
	tb.Helper()
	srv := redistest.Start(tb)
	st, err := redisstore.Open(tb.Context(), redisstore.Config{URL: srv.URL})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = st.Close() })
	var subs []store.Submission
	for i := range cycleTasks {
		subs = append(subs, store.Submission{Agent: fmt.Sprint("agent", i), ID: "task", Kind: "kind", Level: store.LevelLow, Body: make([]byte, 150)})
	}
	_, err = st.Submit(tb.Context(), subs)
	require.NoError(tb, err)
	return &cycle{st: st}, srv
}

// turn claims all, and settles them as due again.
func (c *cycle) turn(tb testing.TB) {
	tb.Helper()
	c.n++
	claims, err := c.st.Claim(tb.Context(), []store.ClaimRequest{{
		Nonce: fmt.Sprintf("%016d", c.n), Kinds: []string{"kind"}, Limit: cycleTasks, Lease: time.Minute,
	}})
	require.NoError(tb, err)
	require.Len(tb, claims[0].Tasks, cycleTasks)
	out := make([]store.Settlement, cycleTasks)
	for i := range claims[0].Tasks {
		t := &claims[0].Tasks[i]
		out[i] = store.Settlement{Run: t.Run, Verb: store.VerbAgain, Kind: t.Kind, Due: moment.When{After: 0}, State: make([]byte, 60), Tally: &store.RunStat{Kind: t.Kind}}
	}
	_, err = c.st.Settle(tb.Context(), out)
	require.NoError(tb, err)
}

// BenchmarkCycle says what a claim and a settlement cost for each run.
func BenchmarkCycle(b *testing.B) {
	c, srv := newCycle(b)
	client := srv.Client(b)
	c.turn(b)
	b.ReportAllocs()
	inRedis, inClient := cpuOf(b, client), cpu(b)
	b.ResetTimer()
	for n := 0; n < b.N; n += cycleTasks {
		c.turn(b)
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuOf(b, client)-inRedis)/float64(b.N)/1e3, "redis-us/op")
	b.ReportMetric(float64(cpu(b)-inClient)/float64(b.N)/1e3, "client-us/op")
}

// A claim and a settlement allocate little for each run: about half of it are the texts of the reply, as go-redis returns them.
func TestCallsAllocateLittle(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts what others allocate too
	const most, mostBytes = 18, 2300
	c, _ := newCycle(t)
	var before, after runtime.MemStats
	const turns = 10 // and one before, to warm up
	runtime.ReadMemStats(&before)
	allocations := testing.AllocsPerRun(turns, func() { c.turn(t) }) / cycleTasks
	runtime.ReadMemStats(&after)
	bytes := (after.TotalAlloc - before.TotalAlloc) / (turns + 1) / cycleTasks
	t.Logf("figure: %.1f allocations, %d bytes a run", allocations, bytes)
	assert.LessOrEqual(t, allocations, float64(most))
	assert.LessOrEqual(t, bytes, uint64(mostBytes))
}
