package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// starts runs a recurring task for a while and returns when it started, from the begin. Each run takes some time and
// fails as fail says.
func starts(w *world, task core.NewTask, during, takes time.Duration, fail func(n int) error) []time.Duration {
	w.Helper()
	begun := time.Now()
	var out []time.Duration
	core.Handle(w.s, task.Kind, func(context.Context, *core.Task[note]) error {
		out = append(out, time.Since(begun))
		time.Sleep(takes)
		return fail(len(out))
	})
	w.submit(task)
	w.runUntil(during)
	return out
}

func fine(int) error { return nil }

func TestEveryFromCompletion(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 10 * time.Second}
		got := starts(w, task, 38*time.Second, 2*time.Second, fine)
		assert.Equal(t, []time.Duration{0, 12 * time.Second, 24 * time.Second, 36 * time.Second}, got, "at once, then after each end")
		info := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, info.Status)
		assert.Equal(t, int64(4), info.RunCount)
		assert.Len(t, info.Runs, 4)
	})
}

func TestEveryFromStart(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 10 * time.Second, From: core.FromStart, Delay: 5 * time.Second}
		got := starts(w, task, 46*time.Second, 2*time.Second, fine)
		assert.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second, 25 * time.Second, 35 * time.Second, 45 * time.Second}, got, "fixed slots")
	})
}

func TestEveryFromStartPassesOverMissedSlots(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 10 * time.Second, From: core.FromStart}
		got := starts(w, task, 79*time.Second, 25*time.Second, fine)
		assert.Equal(t, []time.Duration{0, 30 * time.Second, 60 * time.Second}, got)
	})
}

func TestFailuresStretchTheInterval(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute}
		got := starts(w, task, 35*time.Minute, 0, func(n int) error {
			if n <= 4 || n == 6 {
				return errBoom
			}
			return nil
		})
		var gaps []time.Duration
		for i := 1; i < len(got); i++ {
			gaps = append(gaps, got[i]-got[i-1])
		}
		minute := time.Minute
		assert.Equal(t, []time.Duration{2 * minute, 4 * minute, 5 * minute, 5 * minute, minute, 2 * minute, minute}, gaps[:7],
			"doubled at each failure, at most 5 minutes, and back after a success")
		assert.Zero(t, w.task("a", "1").ConsecutiveFailures)
		assert.Equal(t, int64(5), w.task("a", "1").ErrorCount)
	})
}

func TestASlowTaskIsNotRunSoonerWhenItFails(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 24 * time.Hour, From: core.FromStart}
		got := starts(w, task, 50*time.Hour, 0, func(int) error { return errBoom })
		assert.Equal(t, []time.Duration{0, 24 * time.Hour, 48 * time.Hour}, got)
	})
}

func TestAttemptsWithinAnOccurrence(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour, From: core.FromStart, MaxAttempts: 3, Backoff: time.Second}
		got := starts(w, task, 90*time.Minute, 0, func(n int) error {
			if n <= 2 {
				return errBoom
			}
			return nil
		})
		assert.Len(t, got, 4)
		assert.Less(t, got[2], 4*time.Second, "retried with backoff")
		assert.Equal(t, time.Hour, got[3], "its slots do not move by a retry")
		assert.Zero(t, w.task("a", "1").ConsecutiveFailures, "the occurrence succeeded in the end")
	})
}

func TestLastRunsAreKept(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		starts(w, core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Second}, 30*time.Second, 0, fine)
		info := w.task("a", "1")
		assert.Len(t, info.Runs, 20)
		assert.Greater(t, info.Runs[19].Started, info.Runs[0].Started)
		assert.Equal(t, int64(31), info.RunCount)
	})
}

// The bubble's clock begins at midnight UTC of 1 January 2000; the clocks of New York changed on 2 April and 29 October.
func TestCronThroughChangesOfTheClocks(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ny, err := time.LoadLocation("America/New_York")
		require.NoError(t, err)
		var got []string
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			assert.Equal(t, time.Now().UnixMilli(), task.Due.UnixMilli(), "never early, never late")
			if at := time.Now().In(ny); at.Format("15:04") != "01:30" || at.Day() == 1 && at.Month() == time.January {
				got = append(got, at.Format("2006-01-02T15:04:05-07:00"))
			}
			time.Sleep(time.Second)
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "early", Kind: "k", Cron: "30 1 * * *", Zone: "America/New_York"},
			core.NewTask{Agent: "a", ID: "gap", Kind: "k", Cron: "15 2 2 4 *", Zone: "America/New_York"},
			core.NewTask{Agent: "a", ID: "skipped", Kind: "k", Cron: "20 2 2 4 *", Zone: "America/New_York", Gap: schedule.GapSkip})
		w.runUntil(310 * 24 * time.Hour)
		assert.Equal(t, []string{"2000-01-01T01:30:00-05:00", "2000-04-02T03:00:00-04:00"}, got)
		assert.Equal(t, int64(310), w.task("a", "early").RunCount, "once a day")
		assert.Equal(t, int64(0), w.task("a", "skipped").RunCount)
	})
}

func TestCronAfterTwoWeeksOff(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var got []time.Time
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { got = append(got, time.Now()); return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 6 * * *"})
		begun := time.Now()
		time.Sleep(14*24*time.Hour + time.Hour)
		w.runUntil(24 * time.Hour)
		require.Len(t, got, 2)
		late := got[0].Sub(begun) - (14*24*time.Hour + time.Hour)
		assert.GreaterOrEqual(t, late, time.Duration(0), "what was missed runs once")
		assert.Less(t, late, model.DefaultSpread, "soon, but not all tasks at one moment")
		info := w.task("a", "1")
		assert.Equal(t, int64(13), info.SkipCount)
		assert.Equal(t, int64(15), info.RunCount, "skips count as runs")
		assert.Zero(t, info.ErrorCount)
		assert.Equal(t, 14*24*time.Hour+6*time.Hour, got[1].Sub(begun), "and then at its time")
	})
}

func TestCronKeepsItsTimesWhenItFails(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 * * * *", MaxAttempts: 2, Backoff: time.Second}
		got := starts(w, task, 3*time.Hour+30*time.Minute, 0, func(int) error { return errBoom })
		require.Len(t, got, 6, "two attempts at each of three hours")
		for i, at := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour} {
			assert.Equal(t, at, got[2*i])
			assert.LessOrEqual(t, got[2*i+1], at+2*time.Second)
		}
		assert.Equal(t, 3, w.task("a", "1").ConsecutiveFailures)
	})
}

// The first time is worked out by the store's clock, also in a process that has not heard from the store yet.
func TestCronByTheClockOfTheStore(t *testing.T) {
	for _, skew := range []time.Duration{-36 * time.Hour, 36 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			virtual(t, core.Config{Clock: skewed(skew)}, func(w *world) {
				time.Sleep(time.Hour)
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "@daily"})
				want := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
				assert.Equal(t, want.UnixMilli(), w.task("a", "1").Due.UnixMilli())
			})
		})
	}
}
