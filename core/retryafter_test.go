package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// busy is a provider that tells whoever calls it to come back later, some times in a row.
type busy struct {
	calls []time.Time
	asked time.Duration // zero tells to come back at once
	times int           // that it is busy; negative for ever
}

func (b *busy) run(_ context.Context, _ *core.Task[any]) error {
	b.calls = append(b.calls, time.Now())
	if b.times >= 0 && len(b.calls) > b.times {
		return nil
	}
	return core.RetryAfter(time.Now().Add(b.asked), errBoom)
}

// Whatever its schedule is, a task is not run again before the time that its handler asked for, and no attempt is charged.
func TestRetryAfterHoldsForEverySchedule(t *testing.T) {
	activity := core.Config{Kinds: map[string]core.KindConfig{"k": {Activity: &core.Activity{}}}}
	for name, c := range map[string]struct {
		config core.Config
		task   core.NewTask
	}{
		"at":               {core.Config{}, core.NewTask{}},
		"every":            {core.Config{}, core.NewTask{Every: time.Minute}},
		"every, from grid": {core.Config{}, core.NewTask{Every: time.Minute, From: core.FromStart}},
		"cron":             {core.Config{}, core.NewTask{Cron: "* * * * *"}},
		"activity":         {activity, core.NewTask{}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, c.config, func(w *world) {
				b := &busy{asked: time.Hour, times: 3}
				core.Handle(w.s, "k", b.run)
				notice := func() {}
				if c.config.Kinds == nil {
					c.task.Agent, c.task.ID, c.task.Kind = "a", "1", "k"
					w.submit(c.task)
				} else {
					notice = func() {
						_, err := w.s.Notice(w.Context(), "k", core.Subject{User: "u", Agent: "a"})
						require.NoError(t, err)
					}
				}
				for len(b.calls) < 4 {
					notice() // more activity brings no run forward
					report, err := w.s.RunDue(w.Context(), core.Scope{})
					require.NoError(t, err, "it is no failure")
					if len(b.calls) > 0 && len(b.calls) < 4 && report.Ran > 0 {
						assert.Equal(t, 1, report.Snoozed)
					}
					time.Sleep(10 * time.Second)
				}
				for i := 1; i < 4; i++ {
					pause := b.calls[i].Sub(b.calls[i-1])
					assert.GreaterOrEqual(t, pause, time.Hour)
					assert.LessOrEqual(t, pause, time.Hour+time.Minute)
				}
				tasks, _, err := w.s.Tasks(w.Context(), core.List{Agent: "a"})
				require.NoError(t, err)
				require.Len(t, tasks, 1)
				assert.Equal(t, 1, tasks[0].Attempt)
				assert.Zero(t, tasks[0].ErrorCount)
				assert.Zero(t, tasks[0].ConsecutiveFailures)
				assert.Zero(t, tasks[0].RetryAfters, "success ends the row")
				require.GreaterOrEqual(t, len(tasks[0].Runs), 4)
				for _, run := range tasks[0].Runs {
					if run.Outcome == model.OutcomeSnoozed {
						assert.Equal(t, "boom", run.Error)
					}
				}
			})
		})
	}
}

// A provider that is busy for a day, and one that says "at once" each time, cost a task no attempt; nor is the latter
// asked in a loop.
func TestRetryAfterIsNoHotLoop(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Backoff: time.Second, MaxBackoff: time.Minute}}, func(w *world) {
		b := &busy{times: 50}
		core.Handle(w.s, "k", b.run)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
		w.runUntil(hours(24))
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCompleted, info.Status)
		assert.Len(t, b.calls, 51)
		for i := 1; i < len(b.calls); i++ {
			assert.GreaterOrEqual(t, b.calls[i].Sub(b.calls[i-1]), time.Second)
			assert.LessOrEqual(t, b.calls[i].Sub(b.calls[i-1]), time.Second+time.Minute)
		}
		assert.Greater(t, b.calls[50].Sub(b.calls[0]), 5*time.Minute, "the pauses grow")
	})
}

// Beyond the bound it is a failed attempt, which is not repeated before the time that was asked for either.
func TestRetryAfterIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		most  int
		task  core.NewTask
		calls int
		want  core.Status
	}{
		"at":      {3, core.NewTask{MaxAttempts: 2}, 5, core.StatusFailed},
		"every":   {3, core.NewTask{Every: time.Minute, PauseAfter: 2}, 5, core.StatusWaiting},
		"cron":    {3, core.NewTask{Cron: "* * * * *", PauseAfter: 2}, 5, core.StatusWaiting},
		"none":    {-1, core.NewTask{MaxAttempts: 2}, 2, core.StatusFailed},
		"default": {0, core.NewTask{MaxAttempts: 2}, model.DefaultMaxRetryAfters + 2, core.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{MaxRetryAfters: c.most}}, func(w *world) {
				b := &busy{asked: time.Hour, times: -1}
				core.Handle(w.s, "k", b.run)
				c.task.Agent, c.task.ID, c.task.Kind = "a", "1", "k"
				w.submit(c.task)
				w.runUntil(hours(150)) // records are kept for a week
				assert.Len(t, b.calls, c.calls)
				for i := 1; i < len(b.calls); i++ {
					assert.GreaterOrEqual(t, b.calls[i].Sub(b.calls[i-1]), time.Hour)
				}
				info := w.task("a", "1")
				assert.Equal(t, c.want, info.Status)
				assert.Equal(t, c.calls, info.RetryAfters)
				assert.Equal(t, "boom", info.LastError)
				if c.want == core.StatusFailed {
					assert.Equal(t, "attempts", info.Reason)
				} else {
					assert.Len(t, info.Pauses, 1, "it pauses itself")
				}
			})
		})
	}
}

// Any other outcome begins the row anew.
func TestRetryAfterIsCountedInARow(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{MaxRetryAfters: 2}}, func(w *world) {
		calls := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error {
			if calls++; calls%3 == 0 {
				return core.Snooze(time.Minute)
			}
			return core.RetryAfter(time.Now().Add(time.Minute), nil)
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
		w.runUntil(hours(1))
		assert.Greater(t, calls, 20)
		assert.Equal(t, core.StatusWaiting, w.task("a", "1").Status)
	})
}

// What one task of a limit key is told holds for all of them, whoever they belong to; for nobody else, and no sooner than an
// operator's own pause of the key ends.
func TestRetryAfterHoldsItsLimitKey(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		begun := time.Now()
		var calls, others []time.Duration
		core.Handle(w.s, "k", func(_ context.Context, _ *core.Task[any]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if calls = append(calls, time.Since(begun)); len(calls) == 1 {
				return core.RetryAfter(time.Now().Add(time.Hour), errBoom)
			}
			return nil
		})
		core.Handle(w.s, "other", func(context.Context, *core.Task[any]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			others = append(others, time.Since(begun))
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", LimitKey: "provider"})
		w.run() // what runs already is not called back, so one by itself
		for _, agent := range []string{"b", "c", "d"} {
			w.submit(core.NewTask{Agent: agent, ID: "1", Kind: "k", LimitKey: "provider"}, core.NewTask{Agent: agent, ID: "2", Kind: "other", LimitKey: "else"})
		}
		w.runUntil(time.Minute)
		assert.Len(t, calls, 1, "one has met the limit, the rest need not")
		assert.Len(t, others, 3)
		explained, err := w.s.Explain(w.Context(), "d", "1")
		require.NoError(t, err)
		assert.Equal(t, model.BecausePaused, explained.Reasons[0].Code)
		assert.Contains(t, explained.Reasons[0].Text, `its limit key "provider" has been paused`)
		assert.Contains(t, explained.Reasons[0].Text, "by duly")
		assert.Contains(t, explained.Reasons[0].Text, "boom")
		w.runUntil(hours(2))
		assert.Len(t, calls, 5)
		for _, at := range calls[1:] {
			assert.GreaterOrEqual(t, at, time.Hour)
			assert.Less(t, at, time.Hour+time.Minute)
		}
	})
}

func TestRetryAfterLeavesLongerPausesAlone(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error {
			require.NoError(t, w.s.Pause(w.Context(), core.Target{Key: "provider"}, core.Pause{By: "ann", Reason: "quota"}))
			return core.RetryAfter(time.Now().Add(time.Hour), errBoom)
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", LimitKey: "provider"})
		w.run()
		pauses, _, err := w.s.Pauses(w.Context(), 0, "")
		require.NoError(t, err)
		require.Len(t, pauses, 1)
		assert.Equal(t, "ann", pauses[0].By)
		assert.Zero(t, pauses[0].Until)
	})
}

// Runs that end together hold their key with one call, until the latest time; and a key that cannot be held costs no outcome.
func TestRetryAfterOfManyHoldsOnce(t *testing.T) {
	for name, broken := range map[string]bool{"held": false, "store away": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Concurrency: 10}, func(w *world) {
				core.HandleBatch(w.s, "k", func(_ context.Context, tasks []*core.Task[any]) []error {
					out := make([]error, len(tasks))
					for i := range tasks {
						out[i] = core.RetryAfter(time.Now().Add(hours(i+1)), errBoom)
					}
					return out
				})
				tasks := numbered("a", "k", 5)
				for i := range tasks {
					tasks[i].LimitKey = "provider"
				}
				w.submit(tasks...)
				w.store.failing(func(verb string, _ int) error {
					if broken && verb == "control" {
						return &store.Error{Verb: verb, Err: errBoom}
					}
					return nil
				})
				assert.Equal(t, 5, w.run().Snoozed)
				assert.LessOrEqual(t, w.store.count("control"), w.store.count("settle"))
				pauses, _, err := w.s.Pauses(w.Context(), 0, "")
				require.NoError(t, err)
				if broken {
					assert.Empty(t, pauses)
				} else {
					require.Len(t, pauses, 1)
					assert.Equal(t, time.Now().Add(hours(5)).UnixMilli(), pauses[0].Until.UnixMilli())
				}
			})
		})
	}
}
