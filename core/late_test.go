package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// pulls has a process pull every half a minute until the returned function ends that, as a host with a timer does; a handler that does not end keeps no later pull.
func (w *world) pulls(s *core.Scheduler) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			all.Go(func() { _, _ = s.RunDue(ctx, core.Scope{}) })
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

// onOnePartition is virtual on a store that may have limits and budgets.
func onOnePartition(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newWorldOn(t, memstore.New(memstore.Config{Partitions: 1}), core.Config{})) })
}

// watchedTask is a task that runs every ten minutes, and is to succeed within a quarter of an hour.
func watchedTask() core.NewTask {
	return core.NewTask{Agent: "ada", ID: "t", Kind: "k", Every: 10 * time.Minute, From: core.FromStart, ExpectSuccess: 15 * time.Minute, OnLate: "signal:late"}
}

// Each way in which a task stops silently is told within the time that it was to succeed in, and a minute; and when it succeeds again, that is told.
func TestASilentFailureIsTold(t *testing.T) {
	t.Parallel()
	quiet := []core.QuietHours{{From: "00:00", To: "23:59"}}
	fine := func(context.Context, *core.Task[any]) error { return nil }
	for name, c := range map[string]struct {
		handler func(ctx context.Context, t *core.Task[any]) error // from when it fails on; nil for one that succeeds
		change  func(w *world)                                     // what makes it fail
		mend    func(w *world)
		because model.BecauseCode
	}{
		"its handler never ends": {
			handler: func(ctx context.Context, _ *core.Task[any]) error { <-ctx.Done(); return ctx.Err() }, because: model.BecauseRunning,
		},
		"its gate never opens": {
			change: func(w *world) {
				core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (bool, error) { return false, nil })
			}, because: model.BecauseGate,
		},
		"it is paused": {
			change: func(w *world) { require.NoError(w, w.s.Pause(w.Context(), store.Target{Agent: "ada"}, model.Pause{})) },
			mend:   func(w *world) { require.NoError(w, w.s.Resume(w.Context(), store.Target{Agent: "ada"})) }, because: model.BecausePaused,
		},
		"its agent is always quiet": {
			change: func(w *world) { w.profile(core.Profile{Agent: "ada", Quiet: quiet}) },
			mend:   func(w *world) { w.profile(core.Profile{Agent: "ada"}) }, because: model.BecauseQuiet,
		},
		"its budget is used up": {
			change: func(w *world) {
				require.NoError(w, w.s.SetBudgets(w.Context(), core.Budget{About: bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k"}, Unit: bound.UnitRuns, Per: bound.PerDay}, Amount: bound.AmountOne}))
			},
			because: model.BecauseBudget,
		},
		"its signal never comes": {
			handler: func(context.Context, *core.Task[any]) error { return core.Await(core.Signal{Key: "never"}, nil) }, because: model.BecauseSignal,
		},
		"it always wants to be called later": {
			handler: func(context.Context, *core.Task[any]) error {
				return core.RetryAfter(time.Now().Add(3*time.Minute), errors.New("busy"))
			},
			because: model.BecauseRetry,
		},
		"it always fails": {
			handler: func(context.Context, *core.Task[any]) error { return errors.New("no") }, because: model.BecauseFailing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onOnePartition(t, func(w *world) {
				var failing atomic.Bool
				core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[any]) error {
					if failing.Load() && c.handler != nil {
						return c.handler(ctx, task)
					}
					return fine(ctx, task)
				})
				end := w.pulls(w.s)
				defer end()
				w.submit(watchedTask())
				time.Sleep(62 * time.Minute)
				require.Empty(t, w.seen(model.EventLate), "it succeeds in time")
				failing.Store(true)
				if c.change != nil {
					c.change(w)
				}
				time.Sleep(11 * time.Minute) // a budget still lets one start
				last := w.task("ada", "t").LastSuccess
				time.Sleep(time.Until(last.Add(16 * time.Minute)))
				told := w.seen(model.EventLate)
				require.Len(w, told, 1)
				assert.Equal(t, "ada t", told[0].Agent+" "+told[0].ID)
				assert.Equal(t, c.because, told[0].Because, told[0].Reason)
				assert.Equal(t, last.Add(15*time.Minute), told[0].Due)
				time.Sleep(2 * time.Hour)
				assert.Len(t, w.seen(model.EventLate), 1, "it is told once")
				assert.Len(t, w.seen(model.EventSignal), 1, "and so is who is to be told")
				if c.mend != nil {
					c.mend(w)
					time.Sleep(20 * time.Minute)
					require.Len(t, w.seen(model.EventOnTime), 1)
				}
			})
		})
	}
}

// A zone that was set wrongly lets a day pass without a run.
func TestAWrongZoneIsTold(t *testing.T) {
	onOnePartition(t, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		end := w.pulls(w.s)
		defer end()
		w.submit(core.NewTask{Agent: "ada", ID: "t", Kind: "k", Cron: "0 9 * * *", Zone: "Europe/Berlin", ExpectSuccess: 26 * time.Hour})
		time.Sleep(72 * time.Hour)
		last := w.task("ada", "t").LastSuccess
		_, err := w.s.Edit(w.Context(), "ada", "t", json.RawMessage(`{"cron":"0 9 * * *","zone":"Pacific/Honolulu"}`))
		require.NoError(w, err)
		time.Sleep(time.Until(last.Add(26*time.Hour + time.Minute)))
		told := w.seen(model.EventLate)
		require.Len(w, told, 1)
		assert.Equal(t, model.BecauseNotDue, told[0].Because)
		time.Sleep(24 * time.Hour)
		assert.Len(t, w.seen(model.EventOnTime), 1, "it runs again, at another time")
	})
}

// A kind without a worker is told by any other process, and so is one whose process knew of the expectation alone.
func TestAMissingWorkerIsTold(t *testing.T) {
	for name, own := range map[string]bool{"of the task": true, "of the kind": false} {
		t.Run(name, func(t *testing.T) {
			onOnePartition(t, func(w *world) {
				config := core.Config{}
				task := watchedTask()
				if !own {
					task.ExpectSuccess, task.OnLate = 0, ""
					config.Kinds = map[string]core.KindConfig{"k": {ExpectSuccess: 15 * time.Minute}}
				}
				worker := newWorldOn(w.T, w.store, config)
				core.Handle(worker.s, "k", func(context.Context, *core.Task[any]) error { return nil })
				core.Handle(w.s, "other", func(context.Context, *core.Task[any]) error { return nil })
				stop, end := worker.pulls(worker.s), w.pulls(w.s)
				defer end()
				w.submit(task) // by a process that does not know the kind
				time.Sleep(32 * time.Minute)
				stop()
				require.Empty(t, append(w.seen(model.EventLate), worker.seen(model.EventLate)...))
				time.Sleep(30 * time.Minute)
				told := w.seen(model.EventLate)
				require.Len(w, told, 1)
				assert.Equal(t, model.BecauseNoHandler, told[0].Because, told[0].Reason)
			})
		})
	}
}

// A disabled kind stops nothing silently: new tasks are refused, and those that there are run on.
func TestADisabledKindIsNotSilent(t *testing.T) {
	onOnePartition(t, func(w *world) {
		w.submit(watchedTask())
		other := newWorldOn(w.T, w.store, core.Config{Kinds: map[string]core.KindConfig{"k": {Disabled: true}}})
		core.Handle(other.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		defer other.pulls(other.s)()
		time.Sleep(2 * time.Hour)
		assert.Empty(t, other.seen(model.EventLate))
		_, err := other.s.Submit(w.Context(), core.NewTask{Agent: "ada", Kind: "k"})
		assert.Equal(t, core.CodeDisabled, core.CodeOf(err))
	})
}

// In a year of summer and winter times, retries, quiet hours, closed gates, occurrences that are tasks of their own and edits no task is told late that is not, and
// one that misses its time is told each time.
func TestNothingIsToldFalselyInAYear(t *testing.T) {
	onOnePartition(t, func(w *world) {
		var mu sync.Mutex
		runs := map[string]int{}
		count := func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			runs[name]++
			return runs[name]
		}
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[any]) error {
			n := count(task.ID)
			switch {
			case task.ID == "often" && n%3 == 0:
				return errors.New("now and then")
			case task.ID == "weekly" && n%10 == 0:
				return errors.New("every ten weeks")
			}
			return nil
		})
		core.Gate(w.s, "k", func(_ context.Context, run *core.RunInfo) (bool, error) {
			return count("gate "+run.ID)%2 == 0 || run.ID != "gated", nil
		})
		w.profile(core.Profile{Agent: "eve", Zone: "America/New_York", Quiet: []core.QuietHours{{From: "22:00", To: "07:00"}}})
		w.submit(
			core.NewTask{Agent: "ada", ID: "daily", Kind: "k", Cron: "30 2 * * *", Zone: "Europe/Berlin", Jitter: 30 * time.Minute, ExpectSuccess: 26 * time.Hour},
			core.NewTask{Agent: "ada", ID: "often", Kind: "k", Every: 4 * time.Hour, ExpectSuccess: 20 * time.Hour},
			core.NewTask{Agent: "ada", ID: "weekdays", Kind: "k", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin", ExpectSuccess: 75 * time.Hour},
			core.NewTask{Agent: "ada", ID: "apart", Kind: "k", Cron: "0 4 * * *", Zone: "Europe/Berlin", Overlap: core.OverlapAllow, ExpectSuccess: 26 * time.Hour},
			core.NewTask{Agent: "ada", ID: "gated", Kind: "k", Every: 6 * time.Hour, From: core.FromStart, ExpectSuccess: 26 * time.Hour},
			core.NewTask{Agent: "eve", ID: "quiet", Kind: "k", Every: 8 * time.Hour, ExpectSuccess: 26 * time.Hour},
			core.NewTask{Agent: "ada", ID: "weekly", Kind: "k", Every: 7 * 24 * time.Hour, From: core.FromStart, ExpectSuccess: 8 * 24 * time.Hour},
			core.NewTask{Agent: "ada", ID: "once", Kind: "k", At: time.Now().AddDate(0, 2, 0), ExpectSuccess: time.Hour},
		)
		months := 12
		if race.Enabled {
			months = 3
		}
		for range months {
			w.runUntil(30 * 24 * time.Hour)
			_, err := w.s.Edit(w.Context(), "ada", "daily", json.RawMessage(`{"info":{"month":"another"}}`))
			require.NoError(w, err)
		}
		late := w.seen(model.EventLate)
		for _, e := range late {
			assert.Equal(w, "weekly", e.ID, "%s: %s", e.Due, e.Reason)
		}
		assert.Len(w, late, runs["weekly"]/10)
		assert.Len(w, w.seen(model.EventOnTime), len(late))
		assert.Greater(w, runs["often"], 170*months)
		assert.Equal(w, 1, runs["once"])
	})
}

// A task that was never run is told late, counted from when it was first due, and so is one that a fleet never pulls for but by names.
func TestATaskThatNeverRanIsTold(t *testing.T) {
	onOnePartition(t, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		task := watchedTask()
		task.Paused, task.Delay = true, time.Hour
		w.submit(task, core.NewTask{Agent: "ada", ID: "once", Kind: "k", At: time.Now().Add(72 * time.Hour), ExpectSuccess: time.Hour})
		for range 76 {
			_, err := w.s.RunDueTasks(w.Context(), []string{"ada"})
			require.NoError(w, err)
			time.Sleep(time.Minute)
		}
		told := w.seen(model.EventLate)
		require.Len(w, told, 1)
		assert.Equal(w, "t: "+string(model.BecausePaused), told[0].ID+": "+string(told[0].Because))
		assert.WithinDuration(w, w.begun.Add(75*time.Minute), told[0].Time, time.Minute)
	})
}

// What is expected may be changed while a task fails, and counts at once; the end of a task ends its watch, and a replay begins another.
func TestAnExpectationIsEdited(t *testing.T) {
	onOnePartition(t, func(w *world) {
		var fails atomic.Bool
		fails.Store(true)
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error {
			if fails.Load() {
				return core.SkipRetry(errors.New("no"))
			}
			return nil
		})
		defer w.pulls(w.s)()
		w.submit(core.NewTask{Agent: "ada", ID: "t", Kind: "k", Every: time.Hour, ExpectSuccess: 48 * time.Hour}, core.NewTask{Agent: "ada", ID: "dies", Kind: "k", ExpectSuccess: time.Hour})
		time.Sleep(3*time.Hour + 10*time.Second) // between two pulls: at the full hour it may still run
		require.Empty(w, w.seen(model.EventLate), "what has failed for good is known by that")
		_, err := w.s.Edit(w.Context(), "ada", "t", json.RawMessage(`{"expect_success":"2h"}`))
		require.NoError(w, err)
		time.Sleep(time.Minute)
		require.Len(w, w.seen(model.EventLate), 1, "it has failed for longer")
		_, err = w.s.Edit(w.Context(), "ada", "t", json.RawMessage(`{"expect_success":null}`))
		require.NoError(w, err)
		fails.Store(false)
		_, err = w.s.Replay(w.Context(), "ada", "dies")
		require.NoError(w, err)
		time.Sleep(3 * time.Hour)
		assert.Len(w, w.seen(model.EventLate), 1)
		assert.Zero(w, w.watches())
		_, err = w.s.Edit(w.Context(), "ada", "t", json.RawMessage(`{"expect_success":"2h"}`))
		require.NoError(w, err)
		assert.Equal(w, 1, w.watches())
		err = w.s.Delete(w.Context(), "ada", "t")
		require.NoError(w, err)
		time.Sleep(3 * time.Hour)
		assert.Zero(w, w.watches(), "a task that is gone is not watched")
	})
}

// watches is the agent of the watches.
const watches = "duly.late"

// watches is how many watches there are.
func (w *world) watches() int {
	w.Helper()
	all, _, err := w.s.Tasks(w.Context(), core.List{Agent: watches, Status: []store.Status{store.StatusWaiting, store.StatusInProgress}})
	require.NoError(w, err)
	return len(all)
}

// The expectation of a kind counts for tasks whose schedules can meet it, and one that a task has itself must be possible.
func TestAnExpectationIsPossible(t *testing.T) {
	onOnePartition(t, func(w *world) {
		kinds := newWorldOn(w.T, w.store, core.Config{Kinds: map[string]core.KindConfig{"k": {ExpectSuccess: 26 * time.Hour, OnLate: "task:repair"}}})
		core.Handle(kinds.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		core.Handle(kinds.s, "repair", func(context.Context, *core.Task[any]) error { return nil })
		defer kinds.pulls(kinds.s)()
		kinds.submit(
			core.NewTask{Agent: "ada", ID: "weekly", Kind: "k", Cron: "0 9 * * 1"},
			core.NewTask{Agent: "ada", ID: "by hand", Kind: "k", Manual: true},
			core.NewTask{Agent: "ada", ID: "once", Kind: "k", Delay: 200 * time.Hour},
			core.NewTask{Agent: "ada", ID: "daily", Kind: "k", Cron: "0 9 * * *", Paused: true},
		)
		time.Sleep(9 * 24 * time.Hour)
		told := kinds.seen(model.EventLate)
		require.Len(w, told, 1)
		assert.Equal(w, "daily", told[0].ID)
		repairs := 0
		for _, e := range kinds.seen(model.EventFinish) {
			if e.Kind == "repair" {
				assert.Regexp(w, "^late:daily:", e.ID)
				repairs++
			}
		}
		assert.Equal(w, 1, repairs, "the task that is told of it")
		for field, task := range map[string]core.NewTask{
			"expect_success must be longer than the 24h":              {Cron: "0 9 * * *", ExpectSuccess: 24 * time.Hour},
			"expect_success must be longer than the 72h":              {Cron: "0 9 * * 1-5", ExpectSuccess: 26 * time.Hour},
			"expect_success must be longer than the 1h5m":             {Every: time.Hour, Jitter: 5 * time.Minute, ExpectSuccess: time.Hour},
			"expect_success excludes manual":                          {Manual: true, ExpectSuccess: time.Hour},
			"expect_success must be between":                          {ExpectSuccess: -time.Hour},
			"on_late needs expect_success":                            {OnLate: "signal:k"},
			"on_late signal: needs the key":                           {OnLate: "signal:", ExpectSuccess: time.Hour},
			"on_late must be a URL, signal:KEY or":                    {OnLate: "signal-group:k", ExpectSuccess: time.Hour},
			"on_late is not enabled":                                  {OnLate: "https://x.example", ExpectSuccess: time.Hour},
			`on_late names the kind "duly.tell", which is duly's own`: {OnLate: "task:duly.tell", ExpectSuccess: time.Hour},
		} {
			task.Agent, task.Kind = "ada", "k"
			_, err := kinds.s.Submit(w.Context(), task)
			assert.ErrorContains(w, err, field)
		}
	})
}

// neverRings is a clock outside that takes every alarm.
type neverRings struct{}

func (neverRings) Set(context.Context, time.Time) error { return nil }

// What keeps the watches themselves from looking is found by what looks at the store: no process runs, the clock outside that is to call one has stopped, a part
// of the store is away, or everything is paused.
func TestAStopOfEverythingIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world, st *partly, end func()) // from when everything stops
		checks []string                               // that find it
	}{
		"no process runs": {func(_ *world, _ *partly, end func()) { end() }, []string{"work", "late"}},
		"the clock outside never rings": {func(w *world, st *partly, end func()) {
			end()
			s, err := core.New(st, core.Config{Alarm: neverRings{}})
			require.NoError(w, err)
			core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
			_, err = s.RunDue(w.Context(), core.Scope{}) // the last call, which books the next
			require.NoError(w, err)
		}, []string{"work", "late"}},
		"half of the store is away": {func(_ *world, st *partly, _ func()) { st.set(0, 1, 2, 3) }, []string{"process"}},
		"everything is paused": {func(w *world, _ *partly, _ func()) {
			require.NoError(w, w.s.Pause(w.Context(), store.Target{}, model.Pause{}))
		}, []string{"late"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st := &partly{Store: memstore.New(memstore.Config{Partitions: 8})}
				w := newWorldOn(t, st, core.Config{})
				core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
				end := w.pulls(w.s)
				defer end()
				w.submit(watchedTask())
				time.Sleep(62 * time.Minute)
				for _, f := range w.s.Diagnose(w.Context()) {
					assert.Equal(t, inspect.SeverityOK, f.Severity, f.Message)
				}
				c.change(w, st, end)
				time.Sleep(16*time.Minute + 30*time.Second) // the time of the task, a minute, and the half between two pulls
				found := map[string]inspect.Severity{}
				for _, f := range w.s.Diagnose(w.Context()) {
					found[f.Check] = f.Severity
				}
				for _, check := range c.checks {
					assert.Equal(t, inspect.SeverityFailed, found[check], "%s: %v", check, found)
				}
			})
		})
	}
}

// A URL is notified as often as it takes, with the same id, and the agent of the task being paused changes nothing.
func TestAURLIsNotifiedOfATaskThatIsLate(t *testing.T) {
	r := &receiver{fails: 3}
	virtual(t, core.Config{Callbacks: r}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		defer w.pulls(w.s)()
		task := watchedTask()
		task.OnLate = hook
		w.submit(task)
		require.NoError(w, w.s.Pause(w.Context(), store.Target{Agent: "ada"}, model.Pause{}))
		time.Sleep(20 * time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Len(w, r.got, 1)
		assert.Equal(w, hook, r.got[0].URL)
		assert.Equal(w, map[string]any{
			"type": "late", "agent_id": "ada", "id": "t", "kind": "k", "status": "waiting", "expect_success": "15m0s", "late_since": "2000-01-01T00:15:00.000Z", "because": "paused",
			"text": r.got[0].Task["text"],
		}, r.got[0].Task)
	})
}

// The clock of a process that submits does not count, also if the store has not answered it anything yet.
func TestAWatchGoesByTheClockOfTheStore(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ahead, err := core.New(w.store, core.Config{Clock: &late{by: time.Hour}})
		require.NoError(w, err)
		_, err = ahead.Submit(w.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k", ExpectSuccess: 10 * time.Minute})
		require.NoError(w, err)
		watch, _, err := w.s.Tasks(w.Context(), core.List{Agent: watches})
		require.NoError(w, err)
		require.Len(w, watch, 1)
		assert.WithinDuration(w, w.begun.Add(10*time.Minute), watch[0].NextRun, time.Second)
	})
}

// An agent has no watches beyond its tasks, however it submits and ends them: else it could fill the store past its quota.
func TestWatchesEndWithTheirTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, memstore.New(memstore.Config{MaxTasks: 3}), core.Config{})
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[any]) error {
			if task.ID == "dies" {
				return core.SkipRetry(errors.New("no"))
			}
			return nil
		})
		const far = 9 * 365 * 24 * time.Hour
		task := func(id string) core.NewTask {
			return core.NewTask{Agent: "ada", ID: id, Kind: "k", At: time.Now().Add(far), ExpectSuccess: time.Hour}
		}
		w.submit(task("1"), task("2"), task("3"))
		assert.Equal(t, 3, w.watches())
		for _, id := range []string{"4", "5"} {
			_, err := w.s.Submit(w.Context(), task(id))
			require.Equal(t, core.CodeLimit, core.CodeOf(err))
		}
		taken := task("1")
		taken.OnConflict = core.OnConflictFail
		_, err := w.s.Submit(w.Context(), taken)
		require.Equal(t, core.CodeConflict, core.CodeOf(err))
		assert.Equal(t, 3, w.watches(), "what is refused leaves none")

		_, err = w.s.Cancel(w.Context(), "ada", "1", core.Order{})
		require.NoError(t, err)
		require.NoError(t, w.s.Delete(w.Context(), "ada", "2"))
		assert.Equal(t, 1, w.watches())
		for _, id := range []string{"now", "dies"} {
			w.submit(core.NewTask{Agent: "ada", ID: id, Kind: "k", ExpectSuccess: time.Hour})
		}
		w.runUntil(time.Minute)
		assert.Equal(t, 1, w.watches(), "of the task that is left")
		_, err = w.s.Forget(w.Context(), "ada", nil)
		require.NoError(t, err)
		assert.Zero(t, w.watches())
	})
}

// A notice that is refused does not keep its task from being late.
func TestARefusedNoticeHidesNothing(t *testing.T) {
	virtual(t, core.Config{Kinds: map[string]core.KindConfig{"repair": {Disabled: true}}}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return errors.New("no") })
		defer w.pulls(w.s)()
		task := watchedTask()
		task.OnLate = "task:repair"
		w.submit(task)
		time.Sleep(20 * time.Minute)
		assert.Len(w, w.seen(model.EventLate), 1)
	})
}

// Many short expectations that fail cost little: their watches look less and less often.
func TestAWatchTires(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "other", func(context.Context, *core.Task[any]) error { return nil })
		w.submit(core.NewTask{Agent: "ada", ID: "t", Kind: "k", ExpectSuccess: time.Second})
		w.runUntil(time.Hour)
		watch, _, err := w.s.Tasks(w.Context(), core.List{Agent: watches})
		require.NoError(w, err)
		require.Len(w, watch, 1)
		assert.Less(w, watch[0].RunCount, int64(50))
	})
}

// A watch is never given up, however many processes die with it: it runs no code that could end them.
func TestAWatchOutlivesItsProcesses(t *testing.T) {
	virtual(t, core.Config{MaxCrashes: 2}, func(w *world) {
		core.Handle(w.s, "other", func(context.Context, *core.Task[any]) error { return nil })
		w.submit(core.NewTask{Agent: "ada", ID: "t", Kind: "k", ExpectSuccess: time.Second})
		time.Sleep(2 * time.Second)
		for range 6 {
			w.dies(watches, "duly.watch")
		}
		w.runUntil(time.Minute)
		assert.Len(w, w.seen(model.EventLate), 1)
		assert.Equal(w, 1, w.watches())
	})
}
