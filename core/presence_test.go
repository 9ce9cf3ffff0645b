package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// twoProcesses are one that works and one that only asks, on one store.
func twoProcesses(t *testing.T, config core.Config) (worker, operator *core.Scheduler) {
	t.Helper()
	st := memstore.New(memstore.Config{Partitions: 8})
	config.Presence, config.Name = st, "worker-1"
	worker, err := core.New(st, config)
	require.NoError(t, err)
	operator, err = core.New(st, core.Config{Presence: st})
	require.NoError(t, err)
	return worker, operator
}

func why(t *testing.T, s *core.Scheduler, agent, id string) model.Because {
	t.Helper()
	e, err := s.Explain(t.Context(), agent, id)
	require.NoError(t, err)
	return e.Reasons[0]
}

// Somebody else is told that all slots were busy, which process a run is in, and how long that is known.
func TestExplainSaysThatSlotsAreBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker, operator := twoProcesses(t, core.Config{Concurrency: 5, Kinds: map[string]core.KindConfig{"bounded": {Slots: 1}}})
		free := make(chan struct{})
		core.Handle(worker, "k", func(context.Context, *core.Task[note]) error { <-free; return nil })
		core.Handle(worker, "bounded", func(context.Context, *core.Task[note]) error { <-free; return nil })
		submit := func(tasks ...core.NewTask) {
			_, err := worker.Submit(t.Context(), tasks...)
			require.NoError(t, err)
		}
		submit(core.NewTask{Agent: "b", ID: "0", Kind: "bounded"}, core.NewTask{Agent: "b", ID: "1", Kind: "bounded"})
		var done sync.WaitGroup
		done.Go(func() { _, _ = worker.RunDue(t.Context(), core.Scope{}) })
		time.Sleep(30 * time.Second)
		assert.Contains(t, why(t, operator, "b", "0").Text, "it is running in process worker-1; its lease")
		busy := why(t, operator, "b", "1")
		assert.Equal(t, model.BecauseBusy, busy.Code)
		assert.Contains(t, busy.Text, "all slots that it may have are busy: worker-1 had 1 of 5 in use at 2000-01-01T00:00:")
		assert.Contains(t, busy.Text, `Z and runs no more of the kind "bounded" at once; 0 others are ahead`)
		submit(core.NewTask{Agent: "a", ID: "later", Kind: "k", Delay: 5 * time.Minute})
		submit(numbered("a", "k", 10)...)
		time.Sleep(30 * time.Second)
		busy = why(t, operator, "a", "009")
		assert.Equal(t, model.BecauseBusy, busy.Code)
		assert.Contains(t, busy.Text, "worker-1 had 4 of 5 in use at 2000-01-01T00:00:")
		assert.Contains(t, busy.Text, "Z and keeps the rest for tasks of level 1; ")
		assert.Equal(t, model.BecauseNotDue, why(t, operator, "a", "later").Code)
		close(free)
		done.Wait()
	})
}

// silent is a store's list of processes that cannot be written any more, as if the process that does so had died.
type silent struct {
	store.Presence

	dead atomic.Bool
}

func (s *silent) Announce(ctx context.Context, tag string, info []byte, ttl time.Duration) (int, error) {
	if s.dead.Load() {
		return 0, context.Canceled
	}
	return s.Presence.Announce(ctx, tag, info, ttl)
}

// Who has a server that is called by nothing, such as duly serve without a schedule, learns it from the task that waits.
func TestExplainSaysThatNothingCallsItsProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{})
		s, err := core.New(st, core.Config{Name: "server"})
		require.NoError(t, err)
		core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour})
		require.NoError(t, err)
		says := func() string { return why(t, s, "a", "1").Text }
		time.Sleep(time.Hour)
		assert.Contains(t, says(), "Its kind is run by server, once it is called (RunDue, POST /v1/run-due or GET /v1/cron), which it was not yet")
		_, err = s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		assert.Contains(t, says(), "Its kind is run by server, once it is called (RunDue, POST /v1/run-due or GET /v1/cron), which it was last 1h ago")

		other, err := core.New(st, core.Config{Name: "daemon", Presence: st})
		require.NoError(t, err)
		core.Handle(other, "k", func(context.Context, *core.Task[any]) error { return nil })
		other.Announce(t.Context())
		s, err = core.New(st, core.Config{Name: "server", Presence: st})
		require.NoError(t, err)
		core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
		assert.Regexp(t, "Its kind is run by daemon, server$", says(), "another process asks")
	})
}

// A run whose process does not report any more is said to be in it, and how long that has not been heard of: who waits for it would have to read the
// time of its last report in another list.
func TestExplainSaysThatAProcessIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{})
		presence := &silent{Presence: st}
		worker, err := core.New(st, core.Config{Presence: presence, Name: "worker-1"})
		require.NoError(t, err)
		operator, err := core.New(st, core.Config{Presence: st})
		require.NoError(t, err)
		free := make(chan struct{})
		core.Handle(worker, "k", func(context.Context, *core.Task[note]) error { <-free; return nil })
		_, err = worker.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "k"})
		require.NoError(t, err)
		var done sync.WaitGroup
		done.Go(func() { _, _ = worker.RunDue(t.Context(), core.Scope{}) })
		time.Sleep(30 * time.Second)
		assert.Contains(t, why(t, operator, "a", "i").Text, "it is running in process worker-1; its lease")
		presence.dead.Store(true)
		time.Sleep(40 * time.Second)
		assert.Regexp(t, `^it is running in process worker-1, which last reported [45]\ds ago; its lease`, why(t, operator, "a", "i").Text)
		close(free)
		done.Wait()
	})
}

// Somebody else is told that a pull left a task for lack of time.
func TestExplainSaysThatThereWasNoTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker, operator := twoProcesses(t, core.Config{Concurrency: 1})
		core.Handle(worker, "slow", func(context.Context, *core.Task[note]) error { time.Sleep(20 * time.Second); return nil })
		_, err := worker.Submit(t.Context(), numbered("a", "slow", 4)...)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		_, err = worker.RunDue(ctx, core.Scope{})
		require.NoError(t, err)
		because := why(t, operator, "a", "003")
		assert.Equal(t, model.BecauseNoTime, because.Code)
		assert.Contains(t, because.Text, `process worker-1 left it`)
		assert.Contains(t, because.Text, `runs of the kind "slow" usually take 20s and its pull had 49.5s`)
	})
}

// With one run of an agent at a time its tasks run one after the other, in order, over all processes and in every way to
// run them; others are not held up.
func TestSerialAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{Partitions: 8})
		var mu sync.Mutex
		running, most := map[string]int{}, map[string]int{}
		var order []string
		schedulers := make([]*core.Scheduler, 3)
		for i := range schedulers {
			s, err := core.New(st, core.Config{Serial: core.SerialAgent, Presence: st, Name: fmt.Sprint("p", i)})
			require.NoError(t, err)
			core.Handle(s, "k", func(_ context.Context, task *core.Task[note]) error {
				mu.Lock()
				running[task.Agent]++
				most[task.Agent] = max(most[task.Agent], running[task.Agent])
				if task.Agent == "a" {
					order = append(order, task.ID)
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				running[task.Agent]--
				return nil
			})
			schedulers[i] = s
		}
		for _, agent := range []string{"a", "b", "c", "d"} {
			_, err := schedulers[0].Submit(t.Context(), numbered(agent, "k", 10)...)
			require.NoError(t, err)
		}
		begun := time.Now()
		var all sync.WaitGroup
		completed := make([]int, len(schedulers))
		for i, s := range schedulers {
			all.Go(func() {
				for time.Since(begun) < 15*time.Second {
					r, err := s.RunDue(t.Context(), core.Scope{})
					assert.NoError(t, err)
					completed[i] += r.Completed
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(2500 * time.Millisecond)
		because := why(t, schedulers[0], "a", "009")
		assert.Equal(t, model.BecauseSerial, because.Code)
		assert.Contains(t, because.Text, "waits for another run of its agent")
		all.Wait()
		assert.Equal(t, 40, completed[0]+completed[1]+completed[2])
		assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, most)
		assert.IsIncreasing(t, order)

		_, err := schedulers[0].Submit(t.Context(), numbered("e", "k", 3)...)
		require.NoError(t, err)
		claims, err := st.Claim(t.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("e", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 3, Lease: time.Minute, Agents: []string{"e"},
		}})
		require.NoError(t, err)
		report, err := schedulers[0].RunTick(t.Context(), "e", claims[0].Tasks)
		require.NoError(t, err)
		assert.Equal(t, 3, report.Completed)
		assert.Equal(t, 1, most["e"])
	})
}

// A process that others can ask about tells of its oldest runs, and of itself while it is idle, at most every 20 seconds.
func TestAProcessTellsWhatItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker, operator := twoProcesses(t, core.Config{Concurrency: 20, Urgent: -1})
		core.Handle(worker, "k", func(context.Context, *core.Task[any]) error { time.Sleep(40 * time.Second); return nil })
		worker.Announce(t.Context())
		begun := time.Now()
		seen := func() model.Process {
			all, err := operator.Processes(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			return all[0]
		}
		assert.Empty(t, seen().Running)
		time.Sleep(15 * time.Second)
		worker.Announce(t.Context())
		assert.Equal(t, begun.UnixMilli(), seen().At.UnixMilli(), "too soon")
		time.Sleep(5 * time.Second)
		worker.Announce(t.Context())
		assert.Equal(t, time.Now().UnixMilli(), seen().At.UnixMilli())

		_, err := worker.Submit(t.Context(), append(numbered("a", "k", 12), numbered("b", "k", 3)...)...)
		require.NoError(t, err)
		began := time.Now()
		done := make(chan struct{})
		go func() { defer close(done); _, _ = worker.RunDue(t.Context(), core.Scope{}) }()
		time.Sleep(25 * time.Second)
		running := seen().Running
		require.Len(t, running, 10)
		assert.Equal(t, []int{15, 12}, []int{worker.Slots().InUse, worker.Slots().OfOneAgent})
		assert.Equal(t, "000", running[0].ID)
		assert.Equal(t, []string{"a", "k"}, []string{running[9].Agent, running[9].Kind})
		assert.Equal(t, began.UnixMilli(), running[0].Since.UnixMilli())
		<-done
		time.Sleep(2 * time.Minute)
		all, err := operator.Processes(t.Context())
		require.NoError(t, err)
		assert.Empty(t, all, "it has not said anything for more than a minute")
	})
}

// A process that has just said that it is idle says at once that all its slots are busy, and soon that they are not.
func TestAProcessThatFillsUpSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker, operator := twoProcesses(t, core.Config{Concurrency: 2, Urgent: -1})
		free := make(chan struct{})
		core.Handle(worker, "k", func(context.Context, *core.Task[note]) error { <-free; return nil })
		worker.Announce(t.Context())
		time.Sleep(time.Second)
		_, err := worker.Submit(t.Context(), numbered("a", "k", 4)...)
		require.NoError(t, err)
		var done sync.WaitGroup
		done.Go(func() { _, _ = worker.RunDue(t.Context(), core.Scope{}) })
		time.Sleep(time.Second)
		because := why(t, operator, "a", "003")
		assert.Equal(t, model.BecauseBusy, because.Code, because.Text)
		close(free)
		done.Wait()
		time.Sleep(5 * time.Second)
		worker.Announce(t.Context())
		list, err := operator.Processes(t.Context())
		require.NoError(t, err)
		assert.Zero(t, list[0].InUse)
	})
}
