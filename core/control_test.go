package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func TestPauseAndResume(t *testing.T) {
	for name, target := range map[string]core.Target{
		"task": {Agent: "a", ID: "1"}, "agent": {Agent: "a"}, "kind": {Kind: "k"}, "key": {Key: "provider"}, "all": {},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				ran := 0
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, LimitKey: "provider"})
				for range 2 { // twice is fine
					require.NoError(t, w.s.Pause(w.Context(), target, core.Pause{Reason: "rate limit", By: "ann"}))
				}
				report := w.runUntil(5 * time.Hour)
				assert.Zero(t, report.Ran)
				info := w.task("a", "1")
				require.Len(t, info.Pauses, 1)
				assert.Equal(t, target, info.Pauses[0].Target)
				assert.Equal(t, core.Order{By: "ann", Reason: "rate limit"}, info.Pauses[0].Order)
				e, err := w.s.Explain(w.Context(), "a", "1")
				require.NoError(t, err)
				assert.Equal(t, model.BecausePaused, e.Reasons[0].Code)
				assert.Contains(t, e.Reasons[0].Text, "by ann")
				assert.Contains(t, e.Reasons[0].Text, "rate limit")
				for range 2 {
					require.NoError(t, w.s.Resume(w.Context(), target))
				}
				w.runUntil(2 * time.Minute)
				assert.Equal(t, 1, ran, "what fell due meanwhile")
				assert.Empty(t, w.task("a", "1").Pauses)
			})
		})
	}
}

func TestAPauseEndsByItself(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var at []time.Duration
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { at = append(at, time.Since(w.begun)); return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "b", ID: "1", Kind: "k"})
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{For: time.Hour}))
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "b"}, core.Pause{Until: time.Now().Add(2 * time.Hour)}))
		w.runUntil(3 * time.Hour)
		assert.Equal(t, []time.Duration{time.Hour, 2 * time.Hour}, at, "NextDueAt knows when")
	})
}

func TestPauseRefuses(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for want, c := range map[string]struct {
			target core.Target
			pause  core.Pause
		}{
			"target must be":               {core.Target{Agent: "a", Kind: "k"}, core.Pause{}},
			"agent_id is required with id": {core.Target{ID: "1"}, core.Pause{}},
			"kind":                         {core.Target{Kind: "no spaces"}, core.Pause{}},
			"agent_id has the control":     {core.Target{Agent: "\n"}, core.Pause{}},
			"reason has the control":       {core.Target{}, core.Pause{Reason: "\x00"}},
			"until excludes for":           {core.Target{}, core.Pause{Until: time.Now(), For: 1}},
			"for must be between":          {core.Target{}, core.Pause{For: -1}},
			"ahead is for an agent":        {core.Target{Agent: "a", ID: "1"}, core.Pause{Ahead: true}},
			"limit_key has the control":    {core.Target{Key: "\x7f"}, core.Pause{}},
			"limit_key is not valid UTF-8": {core.Target{Key: "\xff"}, core.Pause{}},
		} {
			err := w.s.Pause(w.Context(), c.target, c.pause)
			assert.ErrorContains(t, err, want)
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		}
		assert.Zero(t, w.store.total(), "no store call")
		assert.ErrorIs(t, w.s.Pause(w.Context(), core.Target{Agent: "a", ID: "1"}, core.Pause{}), core.ErrNotFound)
		assert.ErrorIs(t, w.s.Resume(w.Context(), core.Target{Agent: "a", ID: "1"}), core.ErrNotFound)
	})
}

func TestRunNow(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart}
		var at []time.Duration
		release := make(chan struct{})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { at = append(at, time.Since(w.begun)); return nil })
		core.Handle(w.s, "slow", func(context.Context, *core.Task[note]) error { <-release; return nil })
		w.submit(task)
		w.runUntil(90 * time.Minute)
		due, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, time.Now().UnixMilli(), due.UnixMilli())
		w.runUntil(time.Hour)
		assert.Equal(t, []time.Duration{0, time.Hour, 90 * time.Minute, 2 * time.Hour}, at, "what was planned stays planned")

		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a", ID: "1"}, core.Pause{}))
		_, err = w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.runUntil(3 * time.Hour)
		assert.Len(t, at, 5, "a paused task runs once, and is still paused")

		w.submit(core.NewTask{Agent: "b", ID: "1", Kind: "slow"})
		done := make(chan struct{})
		go func() { w.run(); close(done) }()
		time.Sleep(time.Second)
		_, err = w.s.RunNow(w.Context(), "b", "1")
		assert.Equal(t, core.CodeConflict, core.CodeOf(err))
		assert.ErrorContains(t, err, "is running")
		close(release)
		<-done
		_, err = w.s.RunNow(w.Context(), "b", "1")
		assert.ErrorContains(t, err, "is completed")
		_, err = w.s.RunNow(w.Context(), "b", "2")
		assert.ErrorIs(t, err, core.ErrNotFound)

		require.NoError(t, w.s.Pause(w.Context(), core.Target{}, core.Pause{}))
		_, err = w.s.RunNow(w.Context(), "a", "1")
		assert.Equal(t, core.CodeConflict, core.CodeOf(err))
		assert.ErrorContains(t, err, "as everything is paused: resume that first")
	})
}

// A paused task that is long overdue runs at once by hand, whatever its misfire policy says of the time that it missed.
func TestRunNowOfAPausedTaskThatIsOverdue(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 * * * *", Misfire: core.MisfireSkip})
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		w.runUntil(5 * time.Hour)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.run()
		assert.Equal(t, 1, ran)
	})
}

// A run by hand before the first one moves no slot.
func TestRunNowBeforeTheFirstRunKeepsTheGrid(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var at []time.Duration
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { at = append(at, time.Since(w.begun)); return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart, Delay: 30 * time.Minute})
		w.runUntil(10 * time.Minute)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.runUntil(2 * time.Hour)
		assert.Equal(t, []time.Duration{10 * time.Minute, 30 * time.Minute, 90 * time.Minute}, at)
	})
}

// What was asked for by hand is done although its run is given back, or dies.
func TestRunNowOutlivesARunThatIsGivenBack(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Minute):
						return nil
					}
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
				_, err := w.s.RunNow(w.Context(), "a", "1")
				require.NoError(t, err)
				if dies {
					_, err = w.store.Store.Claim(w.Context(), []store.ClaimRequest{{
						Partition: store.PartitionOf("a", w.store.Partitions()), Nonce: "dead-0123456789a", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute,
					}})
				} else {
					_, err = w.s.RunDue(w.Context(), core.Scope{MaxDuration: time.Second})
				}
				require.NoError(t, err)
				w.runUntil(time.Hour)
				assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
			})
		})
	}
}

func TestRunOnceMoreOutlivesARunThatIsGivenBack(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			if ran++; ran == 1 {
				_, err := w.s.RunNow(ctx, "a", "1")
				assert.NoError(w, err)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@hourly", Overlap: core.OverlapQueueOne})
		time.Sleep(time.Hour)
		_, err := w.s.RunDue(w.Context(), core.Scope{MaxDuration: time.Second})
		require.NoError(t, err)
		w.runUntil(time.Minute)
		assert.Equal(t, 3, ran)
	})
}

// What was asked for by hand is not skipped when nobody was there to take it at once.
func TestRunNowIsNoMisfire(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@daily", Misfire: core.MisfireSkip})
		time.Sleep(time.Hour)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		w.run()
		assert.Equal(t, 1, ran)
	})
}

func TestRunNowKeepsTheTimesOfACron(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var at []time.Duration
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			at = append(at, time.Since(w.begun))
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 * * * *", Jitter: time.Minute})
		w.runUntil(30 * time.Minute)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.runUntil(2 * time.Hour)
		require.Len(t, at, 3)
		assert.Equal(t, 30*time.Minute, at[0], "by hand there is no jitter")
		assert.Equal(t, time.Hour, at[1].Truncate(time.Minute))
		assert.Equal(t, 2*time.Hour, at[2].Truncate(time.Minute))
		assert.Zero(t, w.task("a", "1").SkipCount)
	})
}

func TestCancelWaiting(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, Group: "g"})
		w.runUntil(90 * time.Minute)
		for range 2 {
			status, err := w.s.Cancel(w.Context(), "a", "1", core.Order{By: "ann", Reason: "wrong"})
			require.NoError(t, err)
			assert.Equal(t, core.StatusCancelled, status)
		}
		assert.Zero(t, w.runUntil(5*time.Hour).Ran)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCancelled, info.Status)
		assert.Equal(t, "cancelled by ann: wrong", info.Reason)
		assert.Equal(t, int64(2), info.RunCount, "its history is kept")
		g, err := w.s.Group(w.Context(), "a", "g")
		require.NoError(t, err)
		assert.Equal(t, model.GroupCounts{Cancelled: 1}, g)
		_, err = w.s.Cancel(w.Context(), "a", "2", core.Order{})
		assert.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestCancelRunning(t *testing.T) {
	const lease = 3 * time.Second
	outcomes := map[string]func(ctx context.Context) error{
		"gives its context's error": func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"finishes all the same":     func(ctx context.Context) error { <-ctx.Done(); return nil },
		"snoozes":                   func(ctx context.Context) error { <-ctx.Done(); return core.Snooze(time.Hour) },
		"panics":                    func(ctx context.Context) error { <-ctx.Done(); panic("oh") },
		"ignores it":                func(context.Context) error { time.Sleep(time.Hour); return nil },
	}
	for name, handler := range outcomes {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{Lease: lease}}, func(w *world) {
				told := make(chan context.Context, 1)
				core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
					told <- ctx
					return handler(ctx)
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute})
				done := make(chan core.Report)
				go func() { r, _ := w.s.RunDue(w.Context(), core.Scope{}); done <- r }()
				time.Sleep(10*time.Second + 300*time.Millisecond) // between two heartbeats
				begun := time.Now()
				for range 2 {
					status, err := w.s.Cancel(w.Context(), "a", "1", core.Order{Reason: "stop"})
					require.NoError(t, err)
					assert.Equal(t, core.StatusInProgress, status)
				}
				assert.True(t, w.task("a", "1").Ending)
				report := <-done
				if name == "ignores it" {
					assert.LessOrEqual(t, time.Since(begun), lease+5*time.Second)
				} else {
					assert.LessOrEqual(t, time.Since(begun), lease/3, "within a heartbeat")
				}
				assert.ErrorIs(t, context.Cause(<-told), core.ErrCancelled)
				assert.Equal(t, 1, report.Cancelled)
				info := w.task("a", "1")
				assert.Equal(t, core.StatusCancelled, info.Status, "a recurring task ends for good")
				assert.Equal(t, "cancelled: stop", info.Reason)
				time.Sleep(time.Hour)
			})
		})
	}
}

// A run that ends between two heartbeats has not been told: the store says it when the outcome is stored.
func TestCancelJustBeforeARunEnds(t *testing.T) {
	for name, outcome := range map[string]error{"done": nil, "failed": errBoom, "snoozed": core.Snooze(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Handle(w.s, "k", func(ctx context.Context, t *core.Task[note]) error {
					_, err := w.s.Cancel(ctx, t.Agent, t.ID, core.Order{})
					require.NoError(w, err)
					return outcome
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour})
				report, err := w.s.RunDue(w.Context(), core.Scope{})
				require.NoError(t, err)
				assert.Equal(t, 1, report.Cancelled)
				info := w.task("a", "1")
				assert.Equal(t, core.StatusCancelled, info.Status)
				assert.Equal(t, int64(1), info.RunCount, "the run is recorded once")
				require.Len(t, info.Runs, 1)
			})
		})
	}
}

// In a batch only the cancelled task is cancelled: the others go on.
func TestCancelOneOfABatch(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 3 * time.Second}}, func(w *world) {
		core.HandleBatch(w.s, "k", func(ctx context.Context, ts []*core.Task[note]) []error {
			assert.Len(w, ts, 2)
			select {
			case <-ctx.Done():
				return []error{context.Cause(ctx), context.Cause(ctx)}
			case <-time.After(20 * time.Second):
				return nil
			}
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "a", ID: "2", Kind: "k", Every: time.Hour})
		done := make(chan struct{})
		go func() { w.run(); close(done) }()
		time.Sleep(time.Second)
		_, err := w.s.Cancel(w.Context(), "a", "2", core.Order{})
		require.NoError(t, err)
		<-done
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
		assert.Equal(t, core.StatusCancelled, w.task("a", "2").Status)
	})
}

// A task that is replaced and then cancelled while it runs counts in the group that it has been moved to.
func TestCancelOfAReplacedTaskCountsInItsNewGroup(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			_, err := w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k", Group: "new", OnConflict: core.OnConflictReplace})
			assert.NoError(w, err)
			_, err = w.s.Cancel(ctx, "a", "1", core.Order{})
			assert.NoError(w, err)
			return errBoom
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Group: "old"})
		w.run()
		g, err := w.s.Group(w.Context(), "a", "new")
		require.NoError(t, err)
		assert.Equal(t, model.GroupCounts{Cancelled: 1}, g)
		_, err = w.s.Group(w.Context(), "a", "old")
		assert.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestCancelOfACrashedRun(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		p := store.PartitionOf("a", w.store.Partitions())
		_, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: p, Nonce: "dead-0123456789a", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute,
		}})
		require.NoError(t, err)
		_, err = w.s.Cancel(w.Context(), "a", "1", core.Order{By: "ann"})
		require.NoError(t, err)
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		time.Sleep(time.Minute)
		claims, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{ // takes it back, and nothing else
			Partition: p, Nonce: "look-0123456789a", Kinds: []string{"x"}, Leave: []string{"k"}, Limit: 1, Lease: time.Minute,
		}})
		require.NoError(t, err)
		require.Equal(t, 1, claims[0].Recovered)
		e, err := w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		require.Len(t, e.Reasons, 1)
		assert.Equal(t, model.BecauseEnding, e.Reasons[0].Code)
		assert.Contains(t, e.Reasons[0].Text, "it was cancelled by ann while it ran, and its run has died")
		w.run()
		assert.Zero(t, ran)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCancelled, info.Status, "paused or not")
		assert.Equal(t, "cancelled by ann", info.Reason)
	})
}

func TestDelete(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 3 * time.Second}}, func(w *world) {
		var cause error
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "b", ID: "1", Kind: "k", Delay: time.Hour})
		done := make(chan core.Report)
		go func() { r, _ := w.s.RunDue(w.Context(), core.Scope{}); done <- r }()
		time.Sleep(10 * time.Second)
		for _, agent := range []string{"a", "b"} {
			require.NoError(t, w.s.Delete(w.Context(), agent, "1"))
			_, err := w.s.Task(w.Context(), agent, "1")
			assert.ErrorIs(t, err, core.ErrNotFound)
			assert.ErrorIs(t, w.s.Delete(w.Context(), agent, "1"), core.ErrNotFound)
		}
		report := <-done
		assert.Equal(t, 1, report.Lost, "what its run returns is refused")
		assert.True(t, errors.Is(cause, core.ErrLeaseLost))
		out, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		require.NoError(t, err)
		assert.True(t, out[0].Created, "the id is free")
	})
}

func TestReplayKeepsHistory(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		fail := true
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			if fail {
				return core.SkipRetry(errBoom)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", LimitKey: "s"})
		w.runFailing()
		fail = false
		_, err := w.s.Replay(w.Context(), "a", "1")
		require.NoError(t, err)
		w.run()
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCompleted, info.Status)
		assert.Equal(t, int64(2), info.RunCount)
		assert.Equal(t, int64(1), info.ErrorCount)
	})
}

func TestKindStatistics(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		n := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			n++
			time.Sleep(time.Duration(n) * time.Second)
			if n == 2 {
				return core.SkipRetry(errBoom)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k"}, core.NewTask{Agent: "a", ID: "later", Kind: "k", Delay: time.Hour})
		time.Sleep(10 * time.Second)
		w.runFailing()
		w.submit(core.NewTask{Agent: "a", ID: "3", Kind: "k", Every: time.Hour})
		w.run()
		st, err := w.s.Stats(w.Context())
		require.NoError(t, err)
		require.Len(t, st.Kinds, 1)
		k := st.Kinds[0]
		assert.Equal(t, int64(2), k.Live)
		assert.Zero(t, k.Running)
		assert.Equal(t, int64(3), k.Runs)
		assert.Equal(t, int64(1), k.Failures)
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, []time.Duration{k.Shortest, k.Average(), k.Longest})
		assert.Equal(t, 10*time.Second, k.LongestLag)
		assert.Equal(t, []int64{2, 1, 0, 0}, []int64{k.At, k.Every, k.Cron, k.Activity})
		require.Len(t, k.Failed, 1)
	})
}

func TestARetryOfARunByHandKeepsTheFixedTimes(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Backoff: time.Second}}, func(w *world) {
		var at []time.Duration
		begun := time.Now()
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			at = append(at, time.Since(begun).Truncate(time.Minute))
			if len(at) == 2 {
				return errBoom
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart, MaxAttempts: 3})
		w.runUntil(17 * time.Minute)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.runUntil(2 * time.Hour)
		assert.Equal(t, []time.Duration{0, 17 * time.Minute, 17 * time.Minute, time.Hour, 2 * time.Hour}, at)
	})
}

func TestASnoozeOfARunByHandKeepsTheFixedTimes(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var at []time.Duration
		begun := time.Now()
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			at = append(at, time.Since(begun).Truncate(time.Minute))
			if len(at) == 2 {
				return core.Snooze(time.Minute)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart})
		w.runUntil(17 * time.Minute)
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.runUntil(2 * time.Hour)
		assert.Equal(t, []time.Duration{0, 17 * time.Minute, 18 * time.Minute, time.Hour, 2 * time.Hour}, at)
	})
}

// A pause that is over before it begins would say that it pauses, and pause nothing.
func TestAPauseThatIsOverIsRefused(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		for _, until := range []time.Time{time.Unix(0, 0), time.Now(), time.Now().Add(-time.Millisecond)} {
			err := w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{Until: until})
			require.ErrorContains(t, err, "until has passed: it is 2000-01-01T00:00:00Z now")
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		}
		assert.Empty(t, w.task("a", "1").Pauses)
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{Until: time.Now().Add(time.Millisecond)}))
	})
}

// A name that was misspelt must not seem to be paused. What exists is known by its tasks, its handler, its settings or a pause.
func TestWhatIsPausedExists(t *testing.T) {
	virtual(t, core.Config{Kinds: map[string]core.KindConfig{"set": {}}}, func(w *world) {
		core.Handle(w.s, "handled", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "live", ID: "1", Kind: "waiting"}, core.NewTask{Agent: "done", ID: "1", Kind: "handled"})
		w.run()
		for _, target := range []core.Target{{Agent: "nobody"}, {Kind: "nothing"}} {
			for range 2 { // asking does not make it exist
				var unknown *operate.UnknownTargetError
				require.ErrorAs(t, w.s.Pause(w.Context(), target, core.Pause{}), &unknown)
				assert.Equal(t, target, unknown.Target)
				err := w.s.Resume(w.Context(), target)
				require.ErrorAs(t, err, &unknown)
				assert.Equal(t, core.CodeNotFound, core.CodeOf(err))
			}
			require.NoError(t, w.s.Pause(w.Context(), target, core.Pause{Ahead: true}))
			require.NoError(t, w.s.Pause(w.Context(), target, core.Pause{Reason: "again"}), "it exists as it is paused")
			require.NoError(t, w.s.Resume(w.Context(), target))
			require.ErrorIs(t, w.s.Resume(w.Context(), target), core.ErrNotFound)
		}
		for _, target := range []core.Target{
			{Agent: "live"}, {Agent: "done"}, {Kind: "set"}, {Kind: "handled"}, {Kind: "waiting"}, {Key: "any"}, {},
		} {
			require.NoError(t, w.s.Resume(w.Context(), target), "%v", target)
			require.NoError(t, w.s.Pause(w.Context(), target, core.Pause{}), "%v", target)
		}
	})
}

func TestExplainAfterAResume(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Kind: "k"}, core.Pause{}))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		require.NoError(t, w.s.Resume(w.Context(), core.Target{Kind: "k"}))
		e, err := w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseWaiting, e.Reasons[0].Code, e.Reasons[0].Text)
	})
}

func TestRunNowOfATaskThatIsReplacedWhileItRuns(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		n := 0
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			if n++; n == 1 {
				_, err := w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@daily", Overlap: core.OverlapQueueOne, OnConflict: core.OnConflictReplace})
				assert.NoError(w, err)
				_, err = w.s.RunNow(ctx, "a", "1")
				assert.NoError(w, err)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@hourly", Overlap: core.OverlapQueueOne})
		w.runUntil(time.Hour + time.Minute)
		assert.Equal(t, 2, n, "RunNow said it would")
	})
}

func TestAPauseBySomebodyIsNotTakenOverByThatOfATaskThatFails(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			assert.NoError(w, w.s.Pause(ctx, core.Target{Agent: "a", ID: "1"}, core.Pause{By: "ops", Reason: "maintenance"}))
			return errBoom
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, PauseAfter: 1})
		w.runFailing()
		p := w.task("a", "1").Pauses
		require.Len(t, p, 1)
		assert.Equal(t, "ops", p[0].By, "%+v", p)
	})
}

// A time that is as good as never is never, and a task's must be one that can be kept.
func TestTimesInTheFarFuture(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
		far := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{Until: far, Reason: "moving"}))
		pauses := w.task("a", "1").Pauses
		require.Len(t, pauses, 1)
		assert.Zero(t, pauses[0].Until)
		assert.Equal(t, "moving", pauses[0].Reason)
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "k", At: far})
		assert.ErrorContains(t, err, "at is too far away: the year 9999")
		last := time.Date(2285, 12, 31, 23, 59, 59, 0, time.UTC)
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k", At: last})
		assert.Equal(t, last, w.task("a", "2").Due)
	})
}
