package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// The steps of a trend add up to the window of the same time, the newest last; what cannot be drawn is refused.
func TestTrend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{})
		s, err := core.New(st, core.Config{Recent: st})
		require.NoError(t, err)
		core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
		core.Handle(s, "bad", func(context.Context, *core.Task[any]) error { return core.SkipRetry(assert.AnError) })
		for range 6 {
			for _, kind := range []string{"ok", "ok", "bad"} {
				_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: kind})
				require.NoError(t, err)
			}
			_, _ = s.RunDue(t.Context(), core.Scope{}) // it names the runs that failed
			time.Sleep(5 * time.Minute)
		}
		trend, err := s.Trend(t.Context(), time.Hour, 12)
		require.NoError(t, err)
		require.Len(t, trend.Steps, 12)
		assert.Equal(t, 5*time.Minute, trend.Step)
		for i, step := range trend.Steps {
			want := int64(3)
			if i < 5 || i == 11 { // before, and the step that has only begun
				want = 0
			}
			assert.Equal(t, want, step.Runs, "step %d", i)
			assert.Equal(t, want/3, step.Failures, "step %d", i)
			assert.Equal(t, trend.Steps[0].Since.Add(time.Duration(i)*trend.Step), step.Since)
		}
		trend, err = s.Trend(t.Context(), time.Hour, 5)
		require.NoError(t, err)
		require.Len(t, trend.Steps, 4)
		assert.Equal(t, []string{"bad", "ok"}, trend.Kinds)
		assert.Equal(t, 15*time.Minute, trend.Step)
		bad := trend.Of("bad")
		assert.Equal(t, []int64{0, 1, 3, 2}, []int64{bad[0].Runs, bad[1].Runs, bad[2].Runs, bad[3].Runs})

		_, err = s.Trend(t.Context(), time.Minute, 1)
		assert.ErrorContains(t, err, "window must be from 5m to 192h")
		_, err = s.Trend(t.Context(), time.Hour, 0)
		assert.ErrorContains(t, err, "steps")
		without, err := core.New(st, core.Config{})
		require.NoError(t, err)
		_, err = without.Trend(t.Context(), time.Hour, 1)
		assert.ErrorContains(t, err, "Recent")
	})
}

// Beyond some hours the steps are whole hours, and known for a week. What waits and what of budgets is used is measured once in five minutes, by one
// of all processes that announce themselves.
func TestTrendOfDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		st := memstore.New(memstore.Config{})
		recent := &lossy{Recent: st}
		process := func() *core.Scheduler {
			s, err := core.New(st, core.Config{Recent: recent})
			require.NoError(t, err)
			core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
			return s
		}
		one, two := process(), process()
		require.NoError(t, one.SetBudgets(t.Context(), core.Budget{About: core.BudgetTarget{Unit: "runs", Per: "month"}, Amount: core.AmountOf(200)}))
		for range 10 {
			for range 5 {
				_, err := one.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "ok"}, core.NewTask{Agent: "a", Kind: "later", Delay: 1000 * time.Hour})
				require.NoError(t, err)
			}
			_, err := one.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
			one.Announce(t.Context())
			two.Announce(t.Context())
			time.Sleep(12 * time.Hour)
		}
		calls := recent.calls
		one.Announce(t.Context())
		one.Announce(t.Context())
		two.Announce(t.Context())
		assert.Equal(t, calls+1, recent.calls, "one process measures for all, and once")
		trend, err := one.Trend(t.Context(), 7*24*time.Hour, 14)
		require.NoError(t, err)
		require.Len(t, trend.Steps, 14)
		assert.Equal(t, 12*time.Hour, trend.Step)
		assert.Equal(t, []string{"later", "ok"}, trend.Kinds)
		last := trend.Of("later")[13]
		assert.True(t, last.Measured)
		assert.Equal(t, int64(50), last.Depth)
		assert.Equal(t, map[string]float64{"runs a month of everything": 0.25}, last.Used)
		var runs, measured int
		for i, step := range trend.Of("ok") {
			runs += int(step.Runs)
			if step.Measured {
				measured++
				assert.Zero(t, step.Depth, "step %d", i)
			}
		}
		assert.Equal(t, 50, runs)
		assert.Equal(t, 11, measured)
	})
}

// Times ahead are those of the schedule, in the zone that it has for the agent.
func TestUpcoming(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		out, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return out
	}
	f, err := (&inspect.Preview{Cron: "30 2 * * *", Zone: "Europe/Berlin", After: at("2026-03-27T12:00:00Z"), Count: 3}).Forecast()
	require.NoError(t, err)
	var text []string
	for _, one := range f.Times {
		text = append(text, one.Format(time.RFC3339))
	}
	assert.Equal(t, []string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}, text)
	assert.Equal(t, []inspect.ClockChange{{Before: f.Times[1], Shift: time.Hour}}, f.Changes)
	_, err = (&inspect.Preview{Cron: "61 * * * *", After: at("2026-03-27T12:00:00Z"), Count: 3}).Forecast()
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	_, err = (&inspect.Preview{Cron: "1 * * * *", Zone: "Nowhere", After: at("2026-03-27T12:00:00Z"), Count: 3}).Forecast()
	assert.ErrorContains(t, err, "zone ")

	until := at("2026-01-03T00:00:00Z")
	cron := &core.TaskInfo{Status: core.StatusWaiting, NextRun: at("2026-01-01T08:00:00Z")}
	cron.Cron, cron.Zone = "0 9 * * *", core.ZoneOfAgent
	assert.Equal(t, []string{"01-01T08", "01-02T08"}, dayHours(inspect.Upcoming(cron, "Europe/Berlin", until, 9)))
	assert.Equal(t, []string{"01-01T08"}, dayHours(inspect.Upcoming(cron, "Europe/Berlin", until, 1)))
	every := &core.TaskInfo{Status: core.StatusWaiting, NextRun: at("2026-01-01T08:00:00Z")}
	every.Every = 20 * time.Hour
	assert.Equal(t, []string{"01-01T08", "01-02T04", "01-03T00"}, dayHours(inspect.Upcoming(every, "", until, 9)))
	once := &core.TaskInfo{Status: core.StatusWaiting, NextRun: at("2026-01-01T08:00:00Z")}
	assert.Equal(t, []string{"01-01T08"}, dayHours(inspect.Upcoming(once, "", until, 9)))
	assert.Empty(t, inspect.Upcoming(once, "", at("2026-01-01T07:00:00Z"), 9))
	assert.Empty(t, inspect.Upcoming(&core.TaskInfo{Status: core.StatusCompleted}, "", until, 9))
}

func dayHours(times []time.Time) []string {
	var out []string
	for _, one := range times {
		out = append(out, one.UTC().Format("01-02T15"))
	}
	return out
}
