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
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func hours(n int) time.Duration { return time.Duration(n) * time.Hour }

// A run of 25 minutes meets occurrences every 10.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		overlap model.Overlap
		starts  []int // minutes after the begin
		skips   int64
	}{
		{core.OverlapSkip, []int{10, 40, 70}, 4},
		{core.OverlapQueueOne, []int{10, 35, 60, 85}, 3},
		{core.OverlapAllow, []int{10, 20, 30, 40, 50, 60, 70, 80, 90}, 0},
	} {
		t.Run(string(c.overlap), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "*/10 * * * *", Overlap: c.overlap}
				var want []time.Duration
				for _, m := range c.starts {
					want = append(want, time.Duration(m)*time.Minute)
				}
				got := w.overlapping(task, 91*time.Minute, 25*time.Minute)
				assert.Equal(t, want, got)
				time.Sleep(hours(1))
				info := w.task("a", "1")
				assert.GreaterOrEqual(t, info.SkipCount, c.skips)
				assert.Zero(t, info.ErrorCount)
			})
		})
	}
}

// overlapping drives a task with a pull of its own for each moment at which something is due, as several processes would.
func (w *world) overlapping(task core.NewTask, during, takes time.Duration) []time.Duration {
	w.Helper()
	begun := time.Now()
	var out []time.Duration
	core.Handle(w.s, task.Kind, func(ctx context.Context, _ *core.Task[note]) error {
		w.mu.Lock()
		out = append(out, time.Since(begun).Truncate(time.Minute)) // a pull is at most a second late
		w.mu.Unlock()
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	w.submit(task)
	done := make(chan struct{})
	pulls := 0
	for time.Since(begun) < during {
		pulls++
		go func() {
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
			done <- struct{}{}
		}()
		time.Sleep(time.Second)
	}
	for range pulls {
		<-done
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return out
}

func TestOverlapCancelRunning(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: 3 * time.Second}}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 10 * time.Minute, From: core.FromStart, Overlap: core.OverlapCancelRunning}
		got := w.overlapping(task, 31*time.Minute, 25*time.Minute)
		assert.Equal(t, []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute}, got)
		tasks, _, err := w.s.Tasks(w.Context(), core.List{Agent: "a", Status: []core.Status{core.StatusCancelled}})
		require.NoError(t, err)
		require.Len(t, tasks, 3, "each was cancelled by the next")
		for _, info := range tasks {
			assert.Regexp(t, `^1@\d{12,13}$`, info.ID)
			assert.LessOrEqual(t, info.LastDuration, 10*time.Minute+2*time.Second, "within a heartbeat")
			assert.Contains(t, info.Reason, "overlap")
		}
	})
}

func TestOverlappingChildrenCountForTheirTask(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			assert.Equal(w, "1", t.Parent)
			assert.Equal(w, note{Text: "hi"}, t.Payload)
			if ran++; ran > 2 {
				return errBoom
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: note{Text: "hi"}, Cron: "0 * * * *", Overlap: core.OverlapAllow, PauseAfter: 3})
		w.runUntil(hours(20))
		assert.Equal(t, 5, ran, "two good ones, three that fail, then it is paused")
		info := w.task("a", "1")
		require.Len(t, info.Pauses, 1)
		assert.Contains(t, info.Pauses[0].Reason, "3 occurrences in a row failed: boom")
		assert.Equal(t, int64(6), info.RunCount, "with the occurrence that found it hopeless, which is skipped")
		assert.Equal(t, int64(1), info.SkipCount)
		assert.Equal(t, int64(3), info.ErrorCount)
	})
}

func TestMisfire(t *testing.T) {
	for _, c := range []struct {
		misfire    model.Misfire
		runs       int
		skips      int64
		firstAfter time.Duration
	}{
		{core.MisfireOnce, 1 + 2, 23, 0},
		{core.MisfireSkip, 0 + 2, 24, 0},
		{core.MisfireAll, 10 + 2, 14, 0},
	} {
		t.Run(string(c.misfire), func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{CatchUp: 9}}, func(w *world) {
				var got []time.Time
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { got = append(got, time.Now()); return nil })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 * * * *", Misfire: c.misfire})
				time.Sleep(hours(24) + 30*time.Minute)
				back := time.Now()
				w.runUntil(hours(2))
				require.Len(t, got, c.runs)
				info := w.task("a", "1")
				assert.Equal(t, c.skips, info.SkipCount)
				assert.Equal(t, int64(c.runs)+c.skips, info.RunCount)
				if c.runs > 2 {
					assert.Less(t, got[0].Sub(back), model.DefaultSpread)
				}
				assert.Equal(t, 30*time.Minute, got[len(got)-2].Sub(back), "then at its times")
			})
		})
	}
}

func TestAShortIntervalIsNotPutOffForLong(t *testing.T) {
	for _, from := range []model.From{core.FromCompletion, core.FromStart} {
		t.Run(string(from), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				var back time.Time
				var first time.Duration
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
					if first == 0 {
						first = time.Since(back)
					}
					return nil
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 2 * time.Second, From: from, Delay: time.Second})
				time.Sleep(time.Hour)
				back = time.Now()
				w.runUntil(10 * time.Second)
				assert.Positive(t, first)
				assert.Less(t, first, 2*time.Second)
			})
		})
	}
}

// All that was missed does not come at one moment, and a stable time says when.
func TestMissedTasksAreSpread(t *testing.T) {
	virtual(t, core.Config{Concurrency: 1000}, func(w *world) {
		at := map[time.Duration]int{}
		var back time.Time
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			at[time.Since(back).Truncate(10*time.Second)]++
			return nil
		})
		for i := range 600 {
			w.submit(core.NewTask{Agent: fmt.Sprint(i), ID: "1", Kind: "k", Cron: "0 6 * * *"})
		}
		time.Sleep(14*24*time.Hour + time.Hour)
		back = time.Now()
		w.runUntil(2 * time.Minute)
		require.Len(t, at, 6, "within a minute")
		for slice, n := range at {
			assert.InDelta(t, 100, n, 45, "at %s", slice)
		}
	})
}

func TestMisfireOfAnInterval(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "skip", Kind: "k", Every: time.Hour, From: core.FromStart, Misfire: core.MisfireSkip, Delay: time.Hour})
		time.Sleep(hours(5) + 30*time.Minute)
		w.runUntil(10 * time.Minute)
		assert.Zero(t, ran)
		info := w.task("a", "skip")
		assert.Equal(t, int64(5), info.SkipCount)
		assert.Equal(t, model.OutcomeSkipped, info.LastOutcome)
		assert.Equal(t, "misfire", info.Runs[0].Error, "and why")
		assert.Equal(t, "misfire (4 occurrences)", info.Runs[1].Error)
		w.runUntil(20 * time.Minute)
		assert.Equal(t, 1, ran)
	})
}

// An occurrence whose run has died was not missed, however late it is taken over.
func TestACrashIsNoMisfire(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, Misfire: core.MisfireSkip})
		_, err := w.store.Store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", w.store.Partitions()), Nonce: "dead-0123456789a", Kinds: []string{"k"}, Limit: 1, Lease: 10 * time.Minute,
		}})
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		w.run()
		assert.Equal(t, 1, ran)
		assert.Zero(t, w.task("a", "1").SkipCount)
	})
}

func TestJitterOnlyDelays(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		put := map[string][]time.Duration{}
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			put[t.Agent] = append(put[t.Agent], time.Since(t.Occurrence))
			assert.Equal(w, t.Occurrence.Truncate(time.Hour), t.Occurrence, "the nominal time is without it")
			return nil
		})
		for _, agent := range []string{"a", "b", "c"} {
			w.submit(core.NewTask{Agent: agent, ID: "1", Kind: "k", Cron: "0 * * * *", Jitter: 10 * time.Minute})
		}
		w.runUntil(hours(100) + 30*time.Minute)
		seen := map[time.Duration]bool{}
		for _, agent := range []string{"a", "b", "c"} {
			require.Len(t, put[agent], 100, "each hour once")
			for _, d := range put[agent] {
				assert.GreaterOrEqual(t, d, time.Duration(0))
				assert.Less(t, d, 10*time.Minute)
				seen[d.Truncate(time.Minute)] = true
			}
		}
		assert.Len(t, seen, 10, "all over the time that it may take")
	})
}

func TestPausedAfterFailures(t *testing.T) {
	for after, want := range map[int]int{0: model.DefaultPauseAfter, 2: 2, -1: 48} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				ran := 0
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return errBoom })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, PauseAfter: after})
				w.runUntil(hours(48) - time.Minute)
				assert.Equal(t, want, ran)
				info := w.task("a", "1")
				if after < 0 {
					assert.Empty(t, info.Pauses)
					return
				}
				require.Len(t, info.Pauses, 1)
				assert.Equal(t, fmt.Sprintf("%d occurrences in a row failed: boom", want), info.Pauses[0].Reason)
				assert.Equal(t, "duly", info.Pauses[0].By)
				require.Len(t, w.seen(model.EventPause), 1, "somebody is told")
				require.NoError(t, w.s.Resume(w.Context(), core.Target{Agent: "a", ID: "1"}))
				w.runUntil(hours(48))
				assert.Equal(t, 2*want, ran, "it gets as many again")
			})
		})
	}
}

func TestFromStartKeepsItsGrid(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 70 * time.Second, From: core.FromStart, PauseAfter: -1}
		got := starts(w, task, 30*time.Minute, time.Second, func(n int) error {
			if n > 2 && n < 6 {
				return errBoom
			}
			return nil
		})
		for _, at := range got {
			assert.Zero(t, at%(70*time.Second), "%s is on the grid, whatever failed", at)
		}
	})
}

func TestMinInterval(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute, MinInterval: 5 * time.Minute}
		got := starts(w, task, 16*time.Minute, 2*time.Minute, fine)
		assert.Equal(t, []time.Duration{0, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}, got, "from start to start")
	})
}

func TestMinIntervalOfFixedTimes(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "* * * * *", MinInterval: 5 * time.Minute}
		got := starts(w, task, 12*time.Minute, 0, fine)
		require.GreaterOrEqual(t, len(got), 3)
		assert.Equal(t, 5*time.Minute, got[1]-got[0])
	})
}

// Work that has left a checkpoint was not missed, even if it was put off by nothing.
func TestACheckpointIsNoMisfire(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			if ran++; ran == 1 {
				return core.Yield(1, 0)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, Misfire: core.MisfireSkip})
		_, err := w.s.RunDue(w.Context(), core.Scope{MaxTasks: 1})
		require.NoError(t, err)
		time.Sleep(30 * time.Minute)
		w.run()
		assert.Equal(t, 2, ran)
	})
}

// The timeout of a task is its handler's: making the task of an occurrence may take longer.
func TestMakingAnOccurrenceHasNoTimeout(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{
			Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart, Overlap: core.OverlapAllow, Timeout: 5 * time.Millisecond,
		})
		w.store.failing(func(verb string, _ int) error {
			if verb == "submit" {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		_, err := w.s.RunDue(w.Context(), core.Scope{MaxDuration: time.Second})
		require.NoError(t, err)
		assert.Equal(t, 1, ran)
	})
}

func TestGate(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		begun := time.Now()
		var asked []time.Duration
		ran := 0
		core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (bool, error) {
			assert.Equal(w, "a", t.Agent)
			asked = append(asked, time.Since(begun))
			if len(asked) == 8 {
				return false, errors.New("gate broke")
			}
			return len(asked) > 4, nil
		})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 30 * time.Second})
		report := w.runUntil(13 * time.Minute)
		want := []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute, 12 * time.Minute, 12*time.Minute + 30*time.Second, 13 * time.Minute}
		require.GreaterOrEqual(t, len(asked), 6)
		assert.Equal(t, want[:len(asked)], asked, "less and less often while there is nothing to do")
		assert.Equal(t, len(asked)-4, ran)
		assert.Equal(t, ran, report.Ran)
		info := w.task("a", "1")
		assert.Equal(t, int64(4), info.SkipCount)
		assert.Equal(t, "gate", info.Runs[0].Error)
		w.runUntil(time.Minute)
		assert.Equal(t, model.OutcomeFailed, w.task("a", "1").Runs[7].Outcome, "a gate that fails is a failed attempt")
	})
}

func TestGateOfAOneShotAsksAgain(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		asked := 0
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (bool, error) { asked++; return asked > 3, nil })
		core.HandleBatch(w.s, "k", func(_ context.Context, ts []*core.Task[note]) []error { return make([]error, len(ts)) })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.runUntil(time.Minute)
		assert.Equal(t, 4, asked)
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
	})
}

func TestPresets(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		seen := map[string]bool{}
		for _, p := range model.Presets() {
			require.False(t, seen[p.Name], p.Name)
			seen[p.Name] = true
			_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: p.Name, Preset: p.Name})
			require.NoError(t, err)
			info := w.task("a", p.Name)
			assert.Equal(t, p.Kind, info.Kind)
			assert.Equal(t, p.Cron, info.Cron)
			assert.Equal(t, p.Jitter, info.Jitter)
		}
		assert.Len(t, seen, 15)
		assert.Equal(t, core.LevelHigh, w.task("a", "query").Level)
		assert.JSONEq(t, `{"min_age":"1h0m0s"}`, string(w.task("a", "memory.rollup_day").Payload))
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", Preset: "memory.rollup_day", Kind: "mine", Cron: "@daily", Payload: note{Text: "x"}})
		require.NoError(t, err, "what is given stands")
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", Preset: "nosuch"})
		assert.ErrorContains(t, err, `preset "nosuch" is unknown`)
	})
}

func TestAGateThatOpensEndsTheIdleBackOff(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var asked []time.Duration
		begun := time.Now()
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (bool, error) {
			asked = append(asked, time.Since(begun))
			return len(asked) == 6, nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Second})
		w.runUntil(hours(1))
		require.Greater(t, len(asked), 8)
		t.Log(asked)
		assert.Equal(t, asked[1]-asked[0], asked[7]-asked[6], "after it was open the count in a row begins anew")
	})
}

// Each occurrence runs or is skipped, once, although every run takes longer than three of them.
func TestAQueuedOccurrenceLeavesNoneToBeCountedTwice(t *testing.T) {
	for _, m := range []model.Misfire{core.MisfireOnce, core.MisfireAll} {
		t.Run(string(m), func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				n := 0
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
					n++
					time.Sleep(35 * time.Minute)
					return nil
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 10 * time.Minute, From: core.FromStart, Overlap: core.OverlapQueueOne, Misfire: m})
				begun := time.Now()
				w.runUntil(hours(10))
				slots := int64(time.Since(begun)/(10*time.Minute)) + 1
				info := w.task("a", "1")
				t.Log(info.RunCount, info.SkipCount, n, slots)
				assert.LessOrEqual(t, info.RunCount, slots)
			})
		})
	}
}

func TestAClosedGateLetsNoOverlappingTasksPileUp(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		open := false
		ran := 0
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error { ran++; return nil })
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (bool, error) { return open, nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@hourly", Overlap: core.OverlapAllow})
		w.runUntil(24 * time.Hour)
		open = true
		w.runUntil(30 * time.Minute)
		assert.LessOrEqual(t, ran, 1)
	})
}

func TestASnoozedOccurrenceThatComesLateIsNotMissed(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		n := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			if n++; n == 1 {
				return core.Snooze(10 * time.Minute)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@daily", Misfire: core.MisfireSkip})
		w.runUntil(24*time.Hour + time.Minute)
		require.Equal(t, 1, n)
		time.Sleep(3 * time.Hour) // nobody is there
		w.runUntil(time.Minute)
		assert.Equal(t, 2, n, "somebody was there and had put it off")
	})
}

// An occurrence that becomes a task of its own is run by the pull that made it, or by the one that follows.
func TestWhoRunsOccurrencesOfTheirOwn(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		var until chan struct{} // tasks come to the store only when something else has happened
		st := &storetest.Spy{Store: w.store, Before: func(_ context.Context, verb string) error {
			if verb == "Submit" {
				<-until
			}
			return nil
		}}
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		core.Handle(s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart, Overlap: core.OverlapAllow})
		for i, follows := range []bool{false, true} {
			idle := 0
			until = make(chan struct{})
			_, err := s.RunDue(w.Context(), core.Scope{Idle: func(time.Time) bool {
				idle++
				close(until) // an occurrence that is made before is claimed with the rest
				return follows
			}})
			require.NoError(t, err)
			assert.Equal(t, 1, idle, "it is told once")
			assert.Equal(t, 1, ran)
			if i == 0 {
				time.Sleep(time.Hour)
			}
		}
		_, err = s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 2, ran)
	})
}
