package network_test

// A small platform: clients that use every verb, and workers, each with connections of its own.

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// TestMain sees that no goroutine is left of whatever was cut off.
func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

const lease = 500 * time.Millisecond

// platform is a client and its workers on one Redis, or on a proxy of it.
type platform struct {
	t *testing.T
	s *core.Scheduler

	mu     sync.Mutex
	starts map[string]int // by id
}

// platformOn starts workers. Hooks see the commands of all.
func platformOn(t *testing.T, socket, prefix string, workers int, hooks ...redis.Hook) *platform {
	t.Helper()
	p := &platform{t: t, starts: map[string]int{}}
	st := p.open(socket, prefix, hooks)
	p.s = p.scheduler(st)
	for range workers {
		st := p.open(socket, prefix, hooks)
		s := p.scheduler(st)
		core.Handle(s, "ok", func(_ context.Context, task *core.Task[any]) error {
			p.started(task.ID)
			return task.SetResult(task.Fence)
		})
		core.Handle(s, "fails-once", func(_ context.Context, task *core.Task[any]) error {
			p.started(task.ID)
			if task.Attempt == 1 {
				return errors.New("not at once")
			}
			return nil
		})
		core.Handle(s, "dies", func(_ context.Context, task *core.Task[any]) error {
			p.started(task.ID)
			return core.SkipRetry(errors.New("never"))
		})
		d, err := daemon.New(s, daemon.Config{Tick: 50 * time.Millisecond, Patrol: 200 * time.Millisecond, Waker: st})
		require.NoError(t, err)
		require.NoError(t, d.Start())
		t.Cleanup(func() {
			ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
			defer stop()
			assert.NoError(t, d.Stop(ctx))
		})
	}
	return p
}

func (p *platform) open(socket, prefix string, hooks []redis.Hook) *redisstore.Store {
	p.t.Helper()
	client := redis.NewClient(&redis.Options{
		Network: "unix", Addr: socket, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true,
		ReadTimeout: 300 * time.Millisecond, WriteTimeout: 300 * time.Millisecond, DialTimeout: time.Second,
	})
	p.t.Cleanup(func() { _ = client.Close() })
	st, err := redisstore.New(p.t.Context(), client, redisstore.Config{Prefix: prefix})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { assert.NoError(p.t, st.Close()) })
	for _, h := range hooks {
		client.AddHook(h)
	}
	return st
}

func (p *platform) scheduler(st *redisstore.Store) *core.Scheduler {
	s, err := core.New(st, core.Config{
		Concurrency: 10, MaxCrashes: 1000, Presence: st,
		Default: core.KindConfig{Lease: lease, Backoff: 10 * time.Millisecond, MaxBackoff: 20 * time.Millisecond},
		Kinds:   map[string]core.KindConfig{"seen": {Activity: &core.Activity{Delay: time.Hour}}},
	})
	require.NoError(p.t, err)
	return s
}

func (p *platform) started(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts[id]++
}

// insist calls until it works: an error of the store means that the outcome is unknown, and the same call again is safe.
func (p *platform) insist(what string, call func() error) {
	p.t.Helper()
	var err error
	require.Eventually(p.t, func() bool {
		err = call()
		return core.CodeOf(err) != core.CodeUnavailable
	}, 30*time.Second, time.Millisecond, what)
	require.NoError(p.t, err, what)
}

// use gives every command once, about tasks of one agent, and returns how each of these has to end.
func (p *platform) use(agent string) map[string]core.Status {
	ctx, t := p.t.Context(), p.t
	ends := map[string]core.Status{}
	submit := func(id, kind string, delay time.Duration, conflict model.OnConflict) {
		p.insist("submit "+id, func() error {
			_, err := p.s.Submit(ctx, core.NewTask{Agent: agent, ID: id, Kind: kind, Delay: delay, Group: "g", Level: core.LevelMedium, OnConflict: conflict})
			return err
		})
	}
	for i := range 4 {
		id := agent + "-" + strconv.Itoa(i)
		submit(id, "ok", 0, "")
		ends[id] = core.StatusCompleted
	}
	once, dead, later, gone, never := agent+"-once", agent+"-dead", agent+"-later", agent+"-gone", agent+"-never"
	submit(once, "fails-once", 0, "")
	submit(dead, "dies", 0, "")
	submit(later, "ok", time.Hour, "")
	submit(gone, "ok", time.Hour, "")
	submit(never, "ok", time.Hour, "")
	ends[once], ends[dead], ends[later], ends[never] = core.StatusCompleted, core.StatusFailed, core.StatusCompleted, core.StatusCancelled
	one := core.Target{Agent: agent, ID: later}
	p.insist("pause", func() error { return p.s.Pause(ctx, one, core.Pause{Reason: "why"}) })
	p.insist("resume", func() error { return p.s.Resume(ctx, one) })
	submit(later, "fails-once", time.Hour, core.OnConflictReplace)
	p.insist("run now", func() error {
		_, err := p.s.RunNow(ctx, agent, later)
		if core.CodeOf(err) == core.CodeConflict { // it runs already: the first answer was lost
			err = nil
		}
		return err
	})
	p.insist("cancel", func() error { _, err := p.s.Cancel(ctx, agent, never, core.Order{}); return err })
	p.insist("delete", func() error {
		err := p.s.Delete(ctx, agent, gone)
		if errors.Is(err, core.ErrNotFound) { // it is: the first answer was lost
			err = nil
		}
		return err
	})
	p.insist("activity", func() error { _, err := p.s.Notice(ctx, "seen", core.Subject{User: agent}); return err })
	p.insist("list", func() error { _, _, err := p.s.Tasks(ctx, core.List{Agent: agent}); return err })
	p.insist("group", func() error { _, err := p.s.Group(ctx, agent, "g"); return err })
	p.insist("agents", func() error { _, _, err := p.s.Agents(ctx, 10, ""); return err })
	p.insist("pauses", func() error { _, _, err := p.s.Pauses(ctx, 10, ""); return err })
	p.insist("stats", func() error { _, err := p.s.Stats(ctx); return err })
	p.insist("explain", func() error { _, err := p.s.Explain(ctx, agent, later); return err })
	_, err := p.s.Task(ctx, agent, "none")
	assert.NotEqual(t, core.CodeInternal, core.CodeOf(err))
	return ends
}

// ended waits until tasks have ended as they have to. It counts the starts beyond those that each needs, of which the tracker has
// to know the reason.
func (p *platform) ended(agent string, ends map[string]core.Status) (again int) {
	p.t.Helper()
	for id, status := range ends {
		var task core.TaskInfo
		require.Eventually(p.t, func() bool {
			var err error
			task, err = p.s.Task(p.t.Context(), agent, id)
			return err == nil && task.Status.Finished()
		}, 30*time.Second, time.Millisecond, "%s is stuck: %+v", id, &task)
		require.Equal(p.t, status, task.Status, "%s: %s", id, task.LastError)
		p.mu.Lock()
		starts := p.starts[id]
		p.mu.Unlock()
		require.LessOrEqual(p.t, starts, len(task.Runs), "%s: %+v", id, task.Runs)
		again += max(starts-1, 0)
	}
	return again
}

// clean looks whether anything is left over.
func (p *platform) clean() {
	p.t.Helper()
	var report inspect.AuditReport
	p.insist("audit", func() (err error) { report, err = p.s.Audit(p.t.Context(), inspect.AuditOptions{}); return err })
	assert.Empty(p.t, report.Faults)
}
