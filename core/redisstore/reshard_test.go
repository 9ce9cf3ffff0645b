package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// reshard is a cluster whose slots are moved under work: tasks are submitted one by one and in batches, and run.
type reshard struct {
	cluster    *redistest.Cluster
	prefix     string
	schedulers []*core.Scheduler
	agents     int

	mu        sync.Mutex
	submitted map[string]bool
	ran       map[string]int
	worked    chan struct{} // somebody has submitted or pulled, with or without success
}

func newReshard(t *testing.T, agents int) *reshard {
	t.Helper()
	r := &reshard{
		cluster: redistest.StartMasters(t, 3), prefix: "moved:", agents: agents,
		submitted: map[string]bool{}, ran: map[string]int{}, worked: make(chan struct{}, 1),
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	for range 2 {
		st, err := redisstore.Open(t.Context(), redisstore.Config{
			Options: &redis.UniversalOptions{Addrs: r.cluster.Addrs(), IsClusterMode: true}, Prefix: r.prefix,
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = st.Close() })
		s, err := core.New(st, core.Config{Concurrency: 50, Logger: logger})
		require.NoError(t, err)
		core.Handle(s, "work", func(_ context.Context, task *core.Task[any]) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ran[task.Agent+" "+task.ID]++
			return nil
		})
		r.schedulers = append(r.schedulers, s)
	}
	return r
}

// submit stores n tasks, batch by batch; one whose answer is an error is sent again, as users are told to do.
func (r *reshard) submit(s *core.Scheduler, from, n, batch int) error {
	for i := from; i < from+n; i += batch {
		var tasks []core.NewTask
		for k := i; k < min(i+batch, from+n); k++ {
			tasks = append(tasks, core.NewTask{Agent: fmt.Sprintf("agent %d", k%r.agents), ID: fmt.Sprint(k), Kind: "work"})
		}
		for begun := time.Now(); ; {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			_, err := s.Submit(ctx, tasks...)
			cancel()
			r.work()
			if err == nil {
				break
			}
			if _, away := errors.AsType[*store.Error](err); !away || time.Since(begun) > time.Minute {
				return err
			}
		}
		r.mu.Lock()
		for _, task := range tasks {
			r.submitted[task.Agent+" "+task.ID] = true
		}
		r.mu.Unlock()
	}
	return nil
}

// pull runs what is due until ctx ends.
func (r *reshard) pull(ctx context.Context, s *core.Scheduler) {
	for ctx.Err() == nil {
		_, _ = s.RunDue(ctx, core.Scope{}) // partitions may be away
		r.work()
	}
}

func (r *reshard) work() {
	select {
	case r.worked <- struct{}{}:
	default:
	}
}

// Whatever slots of duly are moved, key by key, nothing that was accepted is lost, stands still or runs twice: a script
// runs whole, on the node that has the whole slot, or not at all.
func TestSlotsAreMovedUnderWork(t *testing.T) {
	t.Parallel()
	tasks, rounds := 50_000, 3
	if race.Enabled {
		tasks, rounds = 20_000, 2
	}
	r := newReshard(t, 500)
	for i := range r.agents { // so that there are keys to move whatever has run
		for _, id := range []string{"later", "much later"} {
			_, err := r.schedulers[0].Submit(t.Context(), core.NewTask{Agent: fmt.Sprintf("agent %d", i), ID: id, Kind: "work", Delay: time.Hour})
			require.NoError(t, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var submits, pulls sync.WaitGroup
	for i, s := range r.schedulers {
		pulls.Go(func() { r.pull(ctx, s) })
		submits.Go(func() { assert.NoError(t, r.submit(s, i*tasks/2, tasks/2-5000, 50)) })
		for k := range 5 {
			submits.Go(func() { assert.NoError(t, r.submit(s, i*tasks/2+tasks/2-5000+1000*k, 1000, 1)) })
		}
	}
	defer func() { cancel(); pulls.Wait() }()

	moved := 0
	for range rounds {
		for _, tag := range redisstore.Tags(redisstore.DefaultPartitions) {
			slot := r.cluster.Slot(t, r.prefix+"{"+tag+"}:agenda")
			from := r.cluster.Owner(t, slot)
			to := r.cluster.Masters[(indexOf(r.cluster.Masters, from)+1)%len(r.cluster.Masters)]
			moved += r.cluster.MoveSlot(t, slot, from, to, func() { <-r.worked })
		}
	}
	submits.Wait()
	require.Eventually(t, func() bool {
		stats, err := r.schedulers[0].Stats(t.Context())
		return err == nil && stats.Waiting == int64(2*r.agents) && stats.InProgress == 0
	}, time.Minute, 50*time.Millisecond, "tasks are stuck")
	cancel()
	pulls.Wait()
	r.check(t, tasks)
	t.Logf("figure: %d keys in %d slots were moved one by one under %d tasks: 0 lost, 0 stuck", moved, rounds*redisstore.DefaultPartitions, tasks)
}

// While a slot is moved its agents are told so, before anything is written, and all others are served.
func TestASlotThatIsBeingMoved(t *testing.T) {
	t.Parallel()
	r := newReshard(t, 1)
	tasks := make([]core.NewTask, 2*redisstore.DefaultPartitions)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: agentOf(i % redisstore.DefaultPartitions), ID: fmt.Sprint(i), Kind: "work", Delay: time.Hour}
	}
	_, err := r.schedulers[0].Submit(t.Context(), tasks...)
	require.NoError(t, err)
	slot := r.cluster.Slot(t, r.prefix+"{"+redisstore.Tags(redisstore.DefaultPartitions)[3]+"}:agenda")
	from := r.cluster.Owner(t, slot)
	to := r.cluster.Masters[(indexOf(r.cluster.Masters, from)+1)%3]
	submit := func(partition int, id string) error {
		_, err := r.schedulers[0].Submit(t.Context(), core.NewTask{Agent: agentOf(partition), ID: id, Kind: "work"})
		return err
	}
	step := 0
	moved := r.cluster.MoveSlot(t, slot, from, to, func() {
		step++
		failed, ok := errors.AsType[*store.Error](submit(3, fmt.Sprint("moved ", step)))
		require.True(t, ok)
		assert.ErrorContains(t, failed, "the cluster is moving the slot of these agents")
		assert.NoError(t, submit(4, fmt.Sprint("other ", step)))
	})
	assert.Positive(t, moved)
	require.NoError(t, submit(3, "then"))
	stored, _, err := r.schedulers[0].Tasks(t.Context(), core.List{Agent: agentOf(3)})
	require.NoError(t, err)
	assert.Len(t, stored, 3, "what was refused was not written")
	report, err := r.schedulers[0].Audit(t.Context(), inspect.AuditOptions{})
	require.NoError(t, err)
	assert.Empty(t, report.Faults)
}

func indexOf(servers []*redistest.Server, s *redistest.Server) int {
	for i := range servers {
		if servers[i] == s {
			return i
		}
	}
	return -1
}

// check looks whether each task that was accepted ran, once, and that the store is whole.
func (r *reshard) check(t *testing.T, tasks int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Len(t, r.submitted, tasks)
	missing, twice := 0, 0
	for name := range r.submitted {
		switch r.ran[name] {
		case 0:
			missing++
		case 1:
		default:
			if twice++; twice <= 3 {
				agent, id, _ := strings.Cut(strings.TrimPrefix(name, "agent "), " ")
				info, err := r.schedulers[0].Task(t.Context(), "agent "+agent, id)
				require.NoError(t, err)
				t.Logf("%s ran more than once: %+v", name, info)
			}
		}
	}
	assert.Zero(t, missing, "tasks did not run")
	assert.Zero(t, twice, "tasks ran more than once")
	report, err := r.schedulers[0].Audit(t.Context(), inspect.AuditOptions{})
	require.NoError(t, err)
	assert.Empty(t, report.Faults)
}

// agentOf is an agent whose tasks lie in a partition, of as many as there are by default.
func agentOf(partition int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("p%d-%d", partition, i); store.PartitionOf(name, redisstore.DefaultPartitions) == partition {
			return name
		}
	}
}
