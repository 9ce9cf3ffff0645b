package daemon_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
)

// agentStarts registers a handler that tells which agent's tasks started, and when since the begin; each takes a while.
func (f *fixture) agentStarts(takes time.Duration) func() map[string][]time.Duration {
	var mu sync.Mutex
	begun := time.Now()
	out := map[string][]time.Duration{}
	core.Handle(f.scheduler, "note", func(_ context.Context, t *core.Task[any]) error {
		mu.Lock()
		out[t.Agent] = append(out[t.Agent], time.Since(begun))
		mu.Unlock()
		if t.Agent == "slow" {
			time.Sleep(takes)
		}
		return nil
	})
	return func() map[string][]time.Duration {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := out
		out = map[string][]time.Duration{}
		return got
	}
}

func TestOnlyRegisteredAgentsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"a"}}, true)
		got := f.agentStarts(0)
		f.submit(t, core.NewTask{Agent: "a", Kind: "note"}, core.NewTask{Agent: "b", Kind: "note"})
		f.start(t)
		assert.Equal(t, map[string][]time.Duration{"a": {0}}, got())
		time.Sleep(time.Minute)
		assert.Empty(t, got(), "the other agent's task waits")
		require.NoError(t, f.daemon.RegisterAgent("b", "b", "a"))
		assert.Equal(t, map[string][]time.Duration{"b": {time.Minute}}, got(), "at once")
		require.NoError(t, f.daemon.UnregisterAgent("a", "nobody"))
		f.submit(t, core.NewTask{Agent: "a", Kind: "note"}, core.NewTask{Agent: "b", Kind: "note"})
		assert.Equal(t, map[string][]time.Duration{"b": {time.Minute}}, got())
		require.ErrorIs(t, setup(t, daemon.Config{}, false).daemon.RegisterAgent("a"), daemon.ErrAllAgents)
	})
}

// What a clean agent has in the future runs on time, whether the daemon was told of it or not.
func TestAFutureTaskOfACleanAgent(t *testing.T) {
	t.Parallel()
	for _, waking := range []bool{true, false} {
		t.Run(fmt.Sprint(waking), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, daemon.Config{Agents: []string{"a", "b", "c"}}, waking)
				got := f.agentStarts(0)
				f.submit(t, core.NewTask{Agent: "a", Kind: "note", Delay: 1234 * time.Millisecond})
				f.start(t)
				time.Sleep(10 * time.Second)
				assert.Equal(t, map[string][]time.Duration{"a": {1234 * time.Millisecond}}, got())
				f.submit(t, core.NewTask{Agent: "b", Kind: "note", Delay: time.Hour + time.Millisecond})
				time.Sleep(2 * time.Hour)
				assert.Equal(t, map[string][]time.Duration{"b": {time.Hour + 10*time.Second + time.Millisecond}}, got())
			})
		})
	}
}

func TestMarkDirty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"a", "b"}, Tick: time.Minute, Safety: time.Minute}, false)
		got := f.agentStarts(0)
		f.start(t)
		time.Sleep(time.Second)
		f.submit(t, core.NewTask{Agent: "a", Kind: "note"})
		assert.Empty(t, got())
		require.NoError(t, f.daemon.MarkDirty("a", "nobody"))
		assert.Equal(t, map[string][]time.Duration{"a": {time.Second}}, got(), "it does not wait for the tick")
	})
}

// A run that takes long holds up neither other agents nor other tasks of its own agent.
func TestASlowRunHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"slow", "quick"}}, true)
		got := f.agentStarts(10 * time.Second)
		f.submit(t, core.NewTask{Agent: "slow", Kind: "note"}, core.NewTask{Agent: "slow", Kind: "note", Delay: time.Second},
			core.NewTask{Agent: "quick", Kind: "note", Delay: 2 * time.Second}, core.NewTask{Agent: "quick", Kind: "note", Delay: 3 * time.Second})
		f.start(t)
		time.Sleep(30 * time.Second)
		assert.Equal(t, map[string][]time.Duration{
			"slow": {0, time.Second}, "quick": {2 * time.Second, 3 * time.Second},
		}, got())
	})
}

// What a run makes due again is found, though its pull is kept open by another agent and nothing wakes the daemon.
func TestWhatIsDueAgainIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"slow", "quick"}, Tick: time.Hour, Safety: time.Hour}, false)
		got := f.agentStarts(time.Minute)
		f.submit(t, core.NewTask{Agent: "slow", Kind: "note"}, core.NewTask{Agent: "quick", Kind: "note", Every: 20 * time.Second})
		f.start(t)
		time.Sleep(50 * time.Second)
		assert.Equal(t, map[string][]time.Duration{"slow": {0}, "quick": {0, 20 * time.Second, 40 * time.Second}}, got())
	})
}

// A task that only an order makes due wakes nobody, neither when it is submitted nor after its run, and hides nothing else of its agent.
func TestAManualTaskWakesNobody(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]daemon.Config{
		"all agents": {Tick: time.Hour, Safety: time.Hour}, "registered": {Agents: []string{"a"}, Tick: time.Hour, Safety: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, config, true)
				got := f.agentStarts(0)
				f.submit(t, core.NewTask{Agent: "a", Kind: "note", Delay: 10 * time.Minute})
				f.start(t)
				f.submit(t, core.NewTask{Agent: "a", ID: "1", Kind: "note", Manual: true})
				time.Sleep(5 * time.Minute)
				_, err := f.scheduler.RunNow(t.Context(), "a", "1")
				require.NoError(t, err)
				assert.Equal(t, map[string][]time.Duration{"a": {5 * time.Minute}}, got())
				time.Sleep(10 * time.Minute)
				assert.Equal(t, map[string][]time.Duration{"a": {10 * time.Minute}}, got())
				before := f.store.Calls("Claim")
				time.Sleep(30 * time.Minute)
				assert.Equal(t, before, f.store.Calls("Claim"))
			})
		})
	}
}

func TestManyRegisteredAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var agents []string
		var tasks []core.NewTask
		for i := range 2500 {
			agents = append(agents, fmt.Sprint(i))
		}
		f := setup(t, daemon.Config{Agents: agents}, true)
		got := f.agentStarts(0)
		for i := range 2500 {
			tasks = append(tasks, core.NewTask{Agent: agents[i], Kind: "note", Every: time.Minute})
			if len(tasks) == 500 {
				f.submit(t, tasks...)
				tasks = nil
			}
		}
		f.start(t)
		time.Sleep(time.Minute + 30*time.Second)
		runs := got()
		assert.Len(t, runs, 2500)
		for agent, at := range runs {
			assert.Len(t, at, 2, agent)
		}
	})
}

// Nothing that is due is missed although every wake-up is lost, and looking for it costs next to nothing.
func TestRegisteredAgentsCostNextToNothingWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"a", "b"}}, true)
		got := f.agentStarts(0)
		f.start(t)
		time.Sleep(time.Minute)
		before := f.store.claims()
		time.Sleep(time.Hour)
		assert.LessOrEqual(t, f.store.claims()-before, 3600/5+1)
		f.store.down.Store(true)
		f.store.cutOff()
		f.submit(t, core.NewTask{Agent: "b", Kind: "note"})
		time.Sleep(time.Minute)
		f.store.down.Store(false)
		time.Sleep(10 * time.Second)
		assert.Len(t, got()["b"], 1, "the store was away, and its wake-up was lost")
	})
}

func TestTwoDaemonsShareTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agents := []string{"a", "b", "c", "d"}
		f := setup(t, daemon.Config{Agents: agents}, true)
		ran := map[string]int{}
		var mu sync.Mutex
		handle := func(s *core.Scheduler) {
			core.Handle(s, "note", func(_ context.Context, t *core.Task[any]) error {
				mu.Lock()
				defer mu.Unlock()
				ran[fmt.Sprintf("%s %d", t.Agent, t.Due.UnixMilli())]++
				return nil
			})
		}
		handle(f.scheduler)
		other, err := core.New(f.store, core.Config{})
		require.NoError(t, err)
		handle(other)
		second, err := daemon.New(other, daemon.Config{Agents: agents, Waker: f.store})
		require.NoError(t, err)
		f.start(t)
		require.NoError(t, second.Start())
		for _, agent := range agents {
			f.submit(t, core.NewTask{Agent: agent, Kind: "note", Every: time.Second, From: core.FromStart})
		}
		time.Sleep(100 * time.Second)
		require.NoError(t, second.Stop(t.Context()))
		time.Sleep(100*time.Second + time.Millisecond)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		assert.Len(t, ran, 4*201, "every second of every agent, also after one has stopped")
		for name, n := range ran {
			assert.Equal(t, 1, n, name)
		}
	})
}

// An agent that is taken out is served no more, also by a pull that is under way and busy; put back, it is again.
func TestAnAgentThatIsTakenOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"gone", "flood"}}, true)
		ran := map[string]int{}
		var mu sync.Mutex
		core.Handle(f.scheduler, "note", func(_ context.Context, t *core.Task[any]) error {
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			ran[t.Agent]++
			return nil
		})
		for range 600 {
			f.submit(t, core.NewTask{Agent: "flood", Kind: "note"})
		}
		count := func() int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return ran["gone"]
		}
		f.start(t)
		time.Sleep(time.Second)
		f.submit(t, core.NewTask{Agent: "gone", Kind: "note"})
		time.Sleep(time.Second)
		require.Equal(t, 1, count())
		require.NoError(t, f.daemon.UnregisterAgent("gone"))
		time.Sleep(time.Second)
		f.submit(t, core.NewTask{Agent: "gone", Kind: "note"})
		time.Sleep(5 * time.Second)
		assert.Equal(t, 1, count(), "it is gone")
		require.NoError(t, f.daemon.RegisterAgent("gone"))
		time.Sleep(time.Second)
		assert.Equal(t, 2, count())
	})
}
