package core_test

// What a run costs the process that makes it: time, allocations and bytes, without those of a store.

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// echo is a store that has its answers ready: the same tasks are due again and again, so that core alone is measured.
type echo struct {
	store.Store

	mu     sync.Mutex
	claims [][]store.Claimed
	left   int // of claims, until nothing is due
	fence  store.Fence
}

func (*echo) Partitions() int { return 1 }

// look says that something is due while claims are left. The mutex is held.
func (e *echo) look() store.Look {
	l := store.Look{Now: moment.Of(time.Now())}
	if e.left > 0 {
		l.NextDue = 1
	}
	return l
}

func (e *echo) Look(context.Context, []store.LookRequest) ([]store.Look, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return []store.Look{e.look()}, nil
}

// Claim returns the next of the claims, whatever its limit: they are as large as one can be.
func (e *echo) Claim(context.Context, []store.ClaimRequest) ([]store.Claim, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.left == 0 {
		return []store.Claim{{Look: e.look()}}, nil
	}
	e.left--
	e.fence++
	tasks := e.claims[e.left]
	for i := range tasks {
		tasks[i].Fence = e.fence
	}
	return []store.Claim{{Look: e.look(), Fence: e.fence, Tasks: tasks}}, nil
}

func (*echo) Settle(_ context.Context, runs []store.Settlement) ([]store.Settled, error) {
	settled := make([]store.Settled, len(runs))
	for i := range runs {
		if runs[i].Verb == store.VerbAgain {
			settled[i].Due = moment.Of(time.Now()) + 60_000
		}
	}
	return settled, nil
}

func (*echo) Extend(_ context.Context, leases []store.Extension) ([]store.Extended, error) {
	extended := make([]store.Extended, len(leases))
	for i := range extended {
		extended[i].Held = true
	}
	return extended, nil
}

// late is a clock that is turned by hand.
type late struct {
	core.SystemClock

	by time.Duration
}

func (c *late) Now() time.Time { return time.Now().Add(c.by) }

// measured is a scheduler for tasks that do nothing, on a store that has a hundred times a task ready that has had some runs.
type measured struct {
	*core.Scheduler

	store *echo
}

// perPull is how many runs a pull of a measured scheduler makes.
const (
	claimsPerPull = 20
	perPull       = claimsPerPull * store.MaxClaim
)

func measure(tb testing.TB, task core.NewTask, earlier int) measured {
	tb.Helper()
	clock := &late{}
	st := memstore.New(memstore.Config{Partitions: 1, Clock: clock})
	s := emptyHanded(tb, st, core.Config{Clock: clock})
	task.Agent, task.ID, task.Kind = "agent-0", "digest", "k"
	_, err := s.Submit(tb.Context(), task)
	require.NoError(tb, err)
	for range earlier {
		r, err := s.RunDue(tb.Context(), core.Scope{})
		require.NoError(tb, err)
		require.Equal(tb, 1, r.Completed)
		clock.by += time.Minute + time.Second
	}
	claims, err := st.Claim(tb.Context(), []store.ClaimRequest{{Kinds: []string{"k"}, Limit: 1, Lease: time.Minute, Nonce: "0123456789abcdef"}})
	require.NoError(tb, err)
	require.Len(tb, claims[0].Tasks, 1)
	e := &echo{}
	for i := range claimsPerPull {
		tasks := slices.Repeat(claims[0].Tasks, store.MaxClaim)
		for k := range tasks {
			tasks[k].Agent, tasks[k].Index = fmt.Sprintf("agent-%d", i*len(tasks)+k), k
			tasks[k].Due = moment.Of(time.Now()) - 10
		}
		e.claims = append(e.claims, tasks)
	}
	return measured{emptyHanded(tb, e, core.Config{}), e}
}

// emptyHanded is a scheduler whose handler does nothing.
func emptyHanded(tb testing.TB, st store.Store, config core.Config) *core.Scheduler {
	tb.Helper()
	config.Name, config.Concurrency = "host:1", 400
	s, err := core.New(st, config)
	require.NoError(tb, err)
	core.Handle(s, "k", func(context.Context, *core.Task[struct{ N int }]) error { return nil })
	return s
}

// pull runs all tasks once.
func (m *measured) pull(tb testing.TB) {
	tb.Helper()
	m.store.mu.Lock()
	m.store.left = claimsPerPull
	m.store.mu.Unlock()
	r, err := m.RunDue(tb.Context(), core.Scope{})
	if err != nil || r.Completed != perPull {
		require.FailNow(tb, "runs are missing", "%d completed: %v", r.Completed, err)
	}
}

// The tasks that are measured: one that runs once, and recurring ones, new and with a full history. A run of each may make so many
// allocations: four more than it does.
var measuredTasks = []struct {
	name    string
	task    core.NewTask
	earlier int
	most    float64
}{
	{"once", core.NewTask{Payload: []byte(`{"N":1}`)}, 0, 17},
	{"recurring", core.NewTask{Payload: []byte(`{"N":1}`), Every: time.Minute}, 0, 14},
	{"recurring, 20 runs kept", core.NewTask{Payload: []byte(`{"N":1}`), Every: time.Minute}, 25, 14},
}

// mostBytes is how many bytes a run may allocate.
const mostBytes = 3 << 10

// What a run allocates is what it costs, and each little thing that is added seems to be nothing.
func TestRunsAllocateLittle(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts what others allocate too
	for _, c := range measuredTasks {
		m := measure(t, c.task, c.earlier)
		allocations, bytes := m.costs(t)
		for range 4 { // where others keep the processors busy, more goroutines wait side by side, and have stacks
			if again, of := m.costs(t); of < bytes {
				allocations, bytes = again, of
			}
		}
		t.Logf("%s: %.1f allocations, %d bytes a run", c.name, allocations, bytes)
		assert.LessOrEqual(t, allocations, c.most, c.name)
		assert.LessOrEqual(t, bytes, uint64(mostBytes), c.name)
	}
}

// costs are the allocations and the bytes of a run.
func (m *measured) costs(t *testing.T) (allocations float64, bytes uint64) {
	t.Helper()
	const pulls = 4 // and one before, to warm up
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	allocations = testing.AllocsPerRun(pulls, func() { m.pull(t) }) / perPull
	runtime.ReadMemStats(&after)
	return allocations, (after.TotalAlloc - before.TotalAlloc) / (pulls + 1) / perPull
}

// BenchmarkRuns says what one run costs.
func BenchmarkRuns(b *testing.B) {
	for _, c := range measuredTasks {
		b.Run(c.name, func(b *testing.B) {
			m := measure(b, c.task, c.earlier)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += perPull {
				m.pull(b)
			}
		})
	}
}
