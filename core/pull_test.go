package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func nothing(context.Context, *core.Task[note]) error { return nil }

func TestNoAgentsNoCalls(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for _, agents := range [][]string{nil, {}} {
			report, err := w.s.RunDueTasks(w.Context(), agents)
			require.NoError(t, err)
			assert.Equal(t, core.Report{}, report)
		}
		_, err := w.s.RunDue(w.Context(), core.Scope{Agents: []string{}})
		require.NoError(t, err)
		_, err = w.s.RunTick(w.Context(), "a", nil)
		require.NoError(t, err)
		assert.Zero(t, w.store.total())
	})
}

func TestBadScopes(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for _, c := range []struct {
			scope core.Scope
			field string
		}{
			{core.Scope{Agents: []string{"a", ""}}, "agent_ids[1]"},
			{core.Scope{Agents: []string{"a\nb"}}, "agent_ids[0]"},
			{core.Scope{Agents: []string{"\xff"}}, "agent_ids[0]"},
			{core.Scope{Agents: make([]string, core.MaxAgents+1)}, "agent_ids"},
			{core.Scope{Partitions: []int{8}}, "partitions"},
			{core.Scope{Partitions: []int{-1}}, "partitions"},
			{core.Scope{MaxTasks: -1}, "max"},
			{core.Scope{MaxDuration: -1}, "timeout_ms"},
			{core.Scope{PerAgent: -1}, "per_agent"},
		} {
			_, err := w.s.RunDue(w.Context(), c.scope)
			var inv *core.InvalidError
			require.ErrorAs(t, err, &inv)
			assert.Equal(t, c.field, inv.Field)
		}
		assert.Zero(t, w.store.total())
	})
}

func TestOnlyTheAgentsAskedFor(t *testing.T) {
	virtual(t, core.Config{Concurrency: 100}, func(w *world) {
		var mu sync.Mutex
		ran := map[string]int{}
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			mu.Lock()
			defer mu.Unlock()
			ran[task.Agent]++
			return nil
		})
		for i := range 20 {
			w.submit(numbered(fmt.Sprintf("agent%02d", i), "k", 3)...)
		}
		w.submit(core.NewTask{Agent: "agent01", ID: "later", Kind: "k", Delay: time.Minute},
			core.NewTask{Agent: "agent05", ID: "soon", Kind: "k", Delay: time.Second})
		report, err := w.s.RunDueTasks(w.Context(), []string{"agent01", "agent02", "agent01", "nobody"})
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"agent01": 3, "agent02": 3}, ran)
		assert.Equal(t, 2, report.Agents)
		assert.Equal(t, 6, report.Completed)
		assert.Equal(t, time.Now().Add(time.Minute).UnixMilli(), report.NextDueAt.UnixMilli(), "of these agents")
		assert.False(t, report.More)
	})
}

// A store that mixes agents up does not make one tenant's task run for another.
func TestForeignTasksAreGivenBack(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			assert.Equal(t, "a", task.Agent)
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		mixed := false
		w.store.alter = func(claims []store.Claim) {
			if len(claims[0].Tasks) > 0 && !mixed {
				claims[0].Tasks[0].Agent, mixed = "mallory", true
			}
		}
		report, err := w.s.RunDueTasks(w.Context(), []string{"a"})
		require.NoError(t, err)
		assert.Equal(t, 1, report.Completed)
		assert.Equal(t, 1, report.Released+report.Lost)
	})
}

func TestIdleFetch(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", nothing)
		w.submit(core.NewTask{Agent: "a", Kind: "k", Delay: time.Hour})
		w.store.failing(nil)
		report := w.run()
		assert.Zero(t, report.Ran)
		assert.Equal(t, time.Now().Add(time.Hour).UnixMilli(), report.NextDueAt.UnixMilli())
		assert.Equal(t, 1, w.store.total(), "one look")
		_, err := w.s.RunDueTasks(w.Context(), []string{"a"})
		require.NoError(t, err)
		assert.Equal(t, 2, w.store.total(), "one fetch")
		next, err := w.s.NextDue(w.Context())
		require.NoError(t, err)
		assert.Equal(t, report.NextDueAt, next)
		assert.Equal(t, time.Hour, w.s.Until(next))
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	virtual(t, core.Config{Concurrency: 7, Urgent: -1}, func(w *world) {
		var now, most atomic.Int64
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return nil
		})
		for i := range 10 {
			w.submit(numbered(fmt.Sprint("agent", i), "k", 10)...)
		}
		var wg sync.WaitGroup
		for range 3 { // pulls share the slots
			wg.Go(func() {
				_, err := w.s.RunDue(w.Context(), core.Scope{})
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		assert.Equal(t, int64(7), most.Load())
		st, err := w.s.Stats(w.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(100), st.Completed)
	})
}

func TestMaxTasks(t *testing.T) {
	virtual(t, core.Config{Concurrency: 50}, func(w *world) {
		core.Handle(w.s, "k", nothing)
		for i := range 10 {
			w.submit(numbered(fmt.Sprint("agent", i), "k", 3)...)
		}
		report, err := w.s.RunDue(w.Context(), core.Scope{MaxTasks: 12})
		require.NoError(t, err)
		assert.Equal(t, 12, report.Ran)
		assert.True(t, report.More)
		assert.LessOrEqual(t, w.s.Until(report.NextDueAt), time.Duration(0))
		report, err = w.s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 18, report.Ran)
		assert.False(t, report.More)
		assert.True(t, report.NextDueAt.IsZero())
	})
}

func TestPartitions(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", nothing)
		want := 0
		for i := range 40 {
			agent := fmt.Sprint("agent", i)
			w.submit(core.NewTask{Agent: agent, Kind: "k"})
			if p := store.PartitionOf(agent, 8); p == 2 || p == 5 {
				want++
			}
		}
		report, err := w.s.RunDue(w.Context(), core.Scope{Partitions: []int{2, 5}})
		require.NoError(t, err)
		assert.Equal(t, want, report.Ran)
	})
}

// A pull with a deadline ends before it, and what could not end is given back as it was.
func TestDeadline(t *testing.T) {
	virtual(t, core.Config{Concurrency: 2, Margin: time.Second}, func(w *world) {
		core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[note]) error {
			select {
			case <-ctx.Done():
				assert.ErrorIs(t, context.Cause(ctx), core.ErrStopping)
				return ctx.Err()
			case <-time.After(4 * time.Second):
				return nil
			}
		})
		w.submit(numbered("a", "slow", 10)...)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		report, err := w.s.RunDue(ctx, core.Scope{})
		require.NoError(t, err)
		assert.LessOrEqual(t, report.Duration, 9*time.Second)
		assert.Equal(t, 4, report.Completed, "two rounds; a third would take longer than what is left, and is not begun")
		assert.Equal(t, 4, report.Ran)
		assert.True(t, report.More)
		st, err := w.s.Stats(w.Context())
		require.NoError(t, err)
		assert.Zero(t, st.InProgress, "nothing is left under lease")
		assert.Equal(t, int64(6), st.Waiting)
	})
}

func TestMaxDurationReleasesUncharged(t *testing.T) {
	virtual(t, core.Config{Concurrency: 3}, func(w *world) {
		core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[note]) error {
			<-ctx.Done()
			return errors.New("interrupted")
		})
		w.submit(numbered("a", "slow", 5)...)
		report, err := w.s.RunDue(w.Context(), core.Scope{MaxDuration: 3 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, report.Duration)
		assert.Equal(t, 3, report.Released)
		assert.Zero(t, report.Retried)
		assert.True(t, report.More)
		for _, id := range []string{"000", "001", "002"} {
			info := w.task("a", id)
			assert.Equal(t, core.StatusWaiting, info.Status)
			assert.Equal(t, 1, info.Attempt, "an attempt that was cut off is not charged")
			assert.LessOrEqual(t, info.Due, time.Now().Add(-3*time.Second), "its place in the queue is kept")
		}
		require.Len(t, w.seen(model.EventRelease), 3)
	})
}

// A handler that ignores the end of the pull does not hold it up for long.
func TestStuckAtTheEnd(t *testing.T) {
	virtual(t, core.Config{Margin: time.Second}, func(w *world) {
		free := make(chan struct{})
		core.Handle(w.s, "stuck", func(context.Context, *core.Task[note]) error { <-free; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "stuck"})
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		report, err := w.s.RunDue(ctx, core.Scope{})
		cancel()
		require.NoError(t, err)
		assert.Equal(t, 9500*time.Millisecond, report.Duration, "half the margin is patience")
		assert.Equal(t, 1, report.Released)
		close(free)
		synctest.Wait()
	})
}

func TestCancel(t *testing.T) {
	for _, grace := range []time.Duration{0, 10 * time.Second} {
		t.Run(grace.String(), func(t *testing.T) {
			virtual(t, core.Config{Concurrency: 4}, func(w *world) {
				core.Handle(w.s, "quick", func(ctx context.Context, _ *core.Task[note]) error {
					select {
					case <-time.After(5 * time.Second):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				core.Handle(w.s, "slow", func(ctx context.Context, _ *core.Task[note]) error { <-ctx.Done(); return ctx.Err() })
				w.submit(numbered("a", "quick", 2)...)
				w.submit(numbered("b", "slow", 2)...)
				w.submit(core.NewTask{Agent: "c", ID: "next", Kind: "quick", Delay: 500 * time.Millisecond})
				ctx, cancel := context.WithCancel(w.Context())
				time.AfterFunc(time.Second, cancel)
				report, err := w.s.RunDue(ctx, core.Scope{Grace: grace})
				require.NoError(t, err, "an end that was asked for is no error")
				assert.Equal(t, time.Second+grace, report.Duration)
				if grace == 0 {
					assert.Zero(t, report.Completed)
					assert.Equal(t, 4, report.Released)
				} else {
					assert.Equal(t, 2, report.Completed, "running handlers may end within the grace")
					assert.Equal(t, 2, report.Released)
				}
				assert.Equal(t, 4, report.Ran, "nothing new is claimed")
				st, err := w.s.Stats(w.Context())
				require.NoError(t, err)
				assert.Zero(t, st.InProgress)
			})
		})
	}
}

// What was claimed when the end came is given back without being started.
func TestCancelDuringAClaim(t *testing.T) {
	virtual(t, core.Config{Concurrency: 10}, func(w *world) {
		core.Handle(w.s, "k", nothing)
		w.submit(numbered("a", "k", 5)...)
		ctx, cancel := context.WithCancel(w.Context())
		w.store.after = func(string) { cancel() }
		report, err := w.s.RunDueTasks(ctx, []string{"a"})
		require.NoError(t, err)
		assert.Zero(t, report.Ran)
		assert.Equal(t, 5, report.Released)
		st, err := w.s.Stats(w.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(5), st.Waiting)
		assert.Zero(t, st.InProgress)
	})
}

// A task that came again within the pull, and has run, is not due any more.
func TestMoreIsNotStale(t *testing.T) {
	virtual(t, core.Config{Concurrency: 1}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			if again, _ := task.Checkpoint(new(bool)); task.ID == "1" && !again {
				return core.Yield(true, 0)
			}
			time.Sleep(time.Second)
			return nil
		})
		for _, id := range []string{"1", "2", "3"} { // 3 waits for the slot of 2, so that the pull still claims when 1 comes again
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "k"})
		}
		report, err := w.s.RunDueTasks(w.Context(), []string{"a"})
		require.NoError(t, err)
		assert.Equal(t, 3, report.Completed)
		assert.False(t, report.More)
		assert.Zero(t, report.NextDueAt)
	})
}

// What a settle learns while a claim is under way is not forgotten.
func TestNextDueIsKept(t *testing.T) {
	virtual(t, core.Config{Concurrency: 1}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return core.Snooze(time.Minute) })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		w.store.after = func(string) { time.Sleep(100 * time.Millisecond) }
		report, err := w.s.RunDueTasks(w.Context(), []string{"a"})
		require.NoError(t, err)
		assert.Equal(t, 2, report.Snoozed)
		assert.WithinDuration(t, time.Now().Add(time.Minute), report.NextDueAt, time.Second)
	})
}

func TestRunTick(t *testing.T) {
	virtual(t, core.Config{Concurrency: 2}, func(w *world) {
		var mu sync.Mutex
		var ran []string
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, task.ID)
			return nil
		})
		w.submit(numbered("a", "k", 5)...)
		claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 3, Lease: time.Minute,
		}})
		require.NoError(t, err)
		w.store.failing(nil)
		_, err = w.s.RunTick(w.Context(), "b", claims[0].Tasks)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		assert.Zero(t, w.store.total())
		report, err := w.s.RunTick(w.Context(), "a", claims[0].Tasks)
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"000", "001", "002"}, ran)
		assert.Equal(t, 3, report.Completed)
		assert.Zero(t, w.store.count("claim"), "it never fetches")

		claims, err = w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdeg", Kinds: []string{"k"}, Limit: 3, Lease: time.Minute,
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		report, err = w.s.RunTick(ctx, "a", claims[0].Tasks)
		require.NoError(t, err)
		assert.Equal(t, 2, report.Released)
		st, err := w.s.Stats(w.Context())
		require.NoError(t, err)
		assert.Zero(t, st.InProgress)
	})
}

func TestUnknownKindsWait(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", nothing)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "later"}, core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		report := w.run()
		assert.Equal(t, 1, report.Completed)
		assert.Equal(t, 1, report.Parked)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, info.Status)
		assert.True(t, info.Parked)
		other, err := core.New(w.store, core.Config{})
		require.NoError(t, err)
		core.Handle(other, "later", nothing)
		report, err = other.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 1, report.Completed, "it runs as soon as somebody has the handler")
	})
}

func TestStoreFailures(t *testing.T) {
	down := &store.Error{Verb: "claim", Err: errors.New("connection refused")}
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.store.failing(func(verb string, _ int) error { return down })
		_, err := w.s.RunDue(w.Context(), core.Scope{})
		assert.ErrorIs(t, err, down)
		assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
		_, err = w.s.RunDueTasks(w.Context(), []string{"a"})
		assert.ErrorIs(t, err, down)
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "k"})
		assert.ErrorIs(t, err, down)
		_, err = w.s.NextDue(w.Context())
		assert.ErrorIs(t, err, down)

		// A result that cannot be stored at first is stored later: the handler does not run again.
		w.store.failing(func(verb string, n int) error {
			if verb == "settle" && n < 5 {
				return down
			}
			return nil
		})
		report := w.run()
		assert.Equal(t, 1, report.Completed)
		assert.Equal(t, 1, ran)

		// One that cannot be stored before its lease has ended is lost, and the pull ends all the same.
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		w.store.failing(func(verb string, _ int) error {
			if verb == "settle" {
				return down
			}
			return nil
		})
		report = w.run()
		assert.Equal(t, 1, report.Lost)
		assert.GreaterOrEqual(t, report.Duration, 30*time.Second)
		w.store.failing(nil)
		time.Sleep(time.Minute)
		assert.Equal(t, 1, w.run().Completed)
		assert.Equal(t, 1, w.task("a", "2").Crashes+int(w.task("a", "2").ErrorCount), "the second start is explained")
	})
}

func TestSubmitReportsWhatIsThere(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", nothing)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		out, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "a", ID: "2", Kind: "k", Delay: time.Hour})
		require.NoError(t, err)
		assert.Equal(t, core.Submitted{Agent: "a", ID: "1", Kind: "k", Status: core.StatusCompleted}, out[0])
		assert.True(t, out[1].Created)
		out, err = w.s.Submit(w.Context())
		require.NoError(t, err)
		assert.Empty(t, out)
	})
}

// The clock of a worker may be wrong by a day, either way: the store's decides.
func TestWrongClocks(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			virtual(t, core.Config{Clock: skewed(skew), Concurrency: 2}, func(w *world) {
				starts := map[string]time.Duration{}
				begun := time.Now()
				var mu sync.Mutex
				core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
					mu.Lock()
					starts[task.ID] = time.Since(begun)
					mu.Unlock()
					if task.ID == "long" {
						time.Sleep(2 * time.Minute) // several leases
					}
					return ctx.Err()
				})
				w.submit(
					core.NewTask{Agent: "a", ID: "now", Kind: "k"},
					core.NewTask{Agent: "a", ID: "delay", Kind: "k", Delay: 10 * time.Second},
					core.NewTask{Agent: "a", ID: "at", Kind: "k", At: begun.Add(20 * time.Second)},
					core.NewTask{Agent: "b", ID: "every", Kind: "k", Every: time.Minute, From: core.FromStart},
					core.NewTask{Agent: "b", ID: "long", Kind: "k", Delay: 30 * time.Second},
				)
				for time.Since(begun) < 4*time.Minute {
					report, err := w.s.RunDue(w.Context(), core.Scope{})
					require.NoError(t, err)
					time.Sleep(min(max(w.s.Until(report.NextDueAt), time.Millisecond), time.Minute))
				}
				assert.Equal(t, time.Duration(0), starts["now"])
				assert.Equal(t, 10*time.Second, starts["delay"])
				assert.Equal(t, 20*time.Second, starts["at"])
				assert.Equal(t, 30*time.Second, starts["long"])
				assert.Zero(t, starts["every"]%time.Minute, "on its slots")
				assert.Equal(t, int64(1), w.task("b", "long").RunCount)
			})
		})
	}
}

// skewed is a clock that is wrong by a fixed time.
type skewed time.Duration

func (s skewed) Now() time.Time { return time.Now().Add(time.Duration(s)) }

func (skewed) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// A pull that ended before the store said what is due does not say that nothing is.
func TestWhatWasNotAskedMayBeDue(t *testing.T) {
	for name, agents := range map[string][]string{"all": nil, "some": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "b", ID: "1", Kind: "k"})
				gone, cancel := context.WithCancel(w.Context())
				cancel()
				report, err := w.s.RunDue(gone, core.Scope{Agents: agents})
				require.NoError(t, err, "the end was asked for")
				assert.True(t, report.More)
				assert.Zero(t, report.Ran)
				report, err = w.s.RunDue(w.Context(), core.Scope{Agents: agents, MaxTasks: 1})
				require.NoError(t, err)
				assert.True(t, report.More)
				report, err = w.s.RunDue(w.Context(), core.Scope{Agents: agents})
				require.NoError(t, err)
				assert.False(t, report.More)
			})
		})
	}
}

// A store that has not answered once until the pull had to end is a failure, not an end.
func TestAStoreThatHangsIsAFailure(t *testing.T) {
	for name, agents := range map[string][]string{"all": nil, "some": {"a"}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				st, _ := hanging(w.store, 0)
				s, err := core.New(st, core.Config{})
				require.NoError(t, err)
				core.Handle(s, "k", func(context.Context, *core.Task[note]) error { return nil })
				begun := time.Now()
				_, err = s.RunDue(w.Context(), core.Scope{Agents: agents, MaxDuration: time.Second})
				assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
				assert.LessOrEqual(t, time.Since(begun), 1250*time.Millisecond)

				ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
				defer cancel()
				_, err = s.RunDue(ctx, core.Scope{Agents: agents})
				assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
				require.NoError(t, ctx.Err(), "in time")
			})
		})
	}
}

// The look for what is left does not outlast the time of a pull that had to end: more may be due then.
func TestTheLastLookIsBounded(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		st, left := hanging(w.store, 2)
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		core.Handle(s, "k", func(ctx context.Context, _ *core.Task[note]) error { <-ctx.Done(); return context.Cause(ctx) })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		report, err := s.RunDue(ctx, core.Scope{})
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "before the deadline")
		assert.Equal(t, 1, report.Released)
		assert.True(t, report.More)
		assert.Negative(t, left.Load(), "the last look was made")
	})
}

// hanging is a store whose looks and claims answer so often and then no more. It also returns how many more it answers, which is
// below zero once one was not.
func hanging(st core.Store, answers int64) (*storetest.Spy, *atomic.Int64) {
	var left atomic.Int64
	left.Store(answers)
	return &storetest.Spy{Store: st, Before: func(ctx context.Context, verb string) error {
		if verb != "Look" && verb != "Claim" || left.Add(-1) >= 0 {
			return nil
		}
		<-ctx.Done()
		return &store.Error{Verb: "claim", Err: ctx.Err()}
	}}, &left
}

// A pull that its caller has cut off did not look what is left: it may be due.
func TestAPullThatWasCutOffSaysMore(t *testing.T) {
	for name, agents := range map[string][]string{"all": nil, "some": {"a"}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				ctx, cutOff := context.WithCancel(w.Context())
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { cutOff(); return nil })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				report, err := w.s.RunDue(ctx, core.Scope{Agents: agents, Grace: time.Second})
				require.NoError(t, err)
				assert.Equal(t, 1, report.Completed)
				assert.True(t, report.More)
			})
		})
	}
}
