package core_test

// Manual tasks: they run when they are told to, and at no other time.

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// manual is a manual task of agent a.
func manual(id string) core.NewTask {
	return core.NewTask{Agent: "a", ID: id, Kind: "k", Manual: true}
}

// A manual task is live and never due: nobody wakes for it, and years do not run it. Each order runs it once, however late and in quiet
// hours too, and then it waits again.
func TestManual(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		_, err := w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "00:00", To: "23:00"}}})
		require.NoError(w, err)
		placed, err := w.s.Submit(w.Context(), manual("1"))
		require.NoError(w, err)
		assert.Zero(w, placed[0].Due)
		for n := range 3 {
			r := w.run()
			assert.Zero(w, r.NextDueAt, "an idle process has nothing to wake for")
			assert.False(w, r.More)
			next, err := w.s.NextDue(w.Context())
			require.NoError(w, err)
			assert.Zero(w, next)
			time.Sleep(5 * 365 * 24 * time.Hour)
			w.run()
			require.Equal(w, n, ran)
			info := w.task("a", "1")
			assert.Equal(w, core.StatusWaiting, info.Status)
			assert.True(w, info.Manual && info.Recurring() && info.Every == 0)
			assert.Zero(w, info.NextRun)
			assert.Zero(w, info.Due)
			e, err := w.s.Explain(w.Context(), "a", "1")
			require.NoError(w, err)
			assert.Equal(w, []model.Because{{Code: model.BecauseManual, Text: `it runs only when it is told to: duly run "a" "1"`}}, e.Reasons)

			due, err := w.s.RunNow(w.Context(), "a", "1")
			require.NoError(w, err)
			assert.Equal(w, time.Now().UnixMilli(), due.UnixMilli())
			time.Sleep(24 * time.Hour) // nobody was there to run it at its time
			report, err := w.s.RunDue(w.Context(), core.Scope{OnDue: func(string, time.Time) { w.Error("it is not due again") }})
			require.NoError(w, err)
			assert.Equal(w, 1, report.Completed)
			assert.Equal(w, n+1, ran)
			assert.EqualValues(w, n+1, w.task("a", "1").RunCount)
		}
	})
}

// A failed run of a manual task has the attempts of its kind, as no next occurrence repeats it; then it waits again, unpaused. What its
// handler says of the next occurrence counts for nothing.
func TestManualFails(t *testing.T) {
	config := core.Config{Default: core.KindConfig{MaxAttempts: 3, Backoff: time.Second, PauseAfter: 1}}
	virtual(t, config, func(w *world) {
		var answer error
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return answer })
		w.submit(manual("1"))
		for _, answer = range []error{errors.New("boom"), core.NextIn(time.Minute)} {
			_, err := w.s.RunNow(w.Context(), "a", "1")
			require.NoError(w, err)
			w.runUntil(time.Hour)
			assert.Zero(w, w.task("a", "1").NextRun)
		}
		assert.Equal(w, 4, ran)
		assert.Empty(w, w.task("a", "1").Pauses)
	})
}

// A new profile, a replacement and a policy leave it without a time.
func TestManualStaysManual(t *testing.T) {
	virtual(t, core.Config{Policy: sooner{}}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour}, manual("2"))
		again := manual("1")
		again.OnConflict = core.OnConflictReplace
		w.submit(again)
		_, err := w.s.SetProfile(w.Context(), core.Profile{Agent: "a", Quiet: []core.QuietHours{{From: "00:00", To: "23:00"}}})
		require.NoError(w, err)
		w.submit(manual("3"))
		for _, id := range []string{"1", "2", "3"} {
			assert.Zero(w, w.task("a", id).NextRun, id)
		}
		_, err = w.s.RunNow(w.Context(), "a", "1")
		require.NoError(w, err)
		assert.Equal(w, 1, w.run().Ran, "in quiet hours")
		assert.Zero(w, w.task("a", "1").NextRun)
		due := w.task("a", "1").RunCount
		w.submit(again)
		assert.Equal(w, due, w.task("a", "1").RunCount, "the same definition replaces nothing")
	})
}

// sooner is a policy that wants everything to be due in a minute.
type sooner struct{}

func (sooner) Place(core.Figures, core.NewTask) core.Placement {
	return core.Placement{Delay: time.Minute}
}

func (sooner) Again(_ core.Figures, e core.Ended) core.Placement {
	return core.Placement{At: e.Due.Add(-time.Minute)}
}

// It excludes all that says when a task is due, by name, and is read strictly.
func TestManualRefuses(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		const times = "manual excludes at, delay, every and cron"
		for _, c := range []struct {
			want   string
			change func(n *core.NewTask)
		}{
			{times, func(n *core.NewTask) { n.At = time.Now() }},
			{times, func(n *core.NewTask) { n.Delay = time.Second }},
			{times, func(n *core.NewTask) { n.Every = time.Hour }},
			{times, func(n *core.NewTask) { n.Cron = "@daily" }},
			{"jitter needs every or cron", func(n *core.NewTask) { n.Jitter = time.Second }},
			{"misfire needs every or cron", func(n *core.NewTask) { n.Misfire = core.MisfireAll }},
			{"pause_after_failures needs every or cron", func(n *core.NewTask) { n.PauseAfter = 3 }},
			{"from needs every", func(n *core.NewTask) { n.From = core.FromStart }},
			{"overlap needs cron, or every with from \"start\": ", func(n *core.NewTask) { n.Overlap = core.OverlapSkip }},
		} {
			n := manual("1")
			c.change(&n)
			_, err := w.s.Submit(w.Context(), n)
			require.ErrorContains(w, err, c.want)
		}
		n := manual("1")
		n.Preset = "memory.rollup_day"
		w.submit(n)
		assert.Zero(w, w.task("a", "1").NextRun, "it has the rest of its preset")
		_, err := model.ParseTasks([]byte(`{"agent_id": "a", "kind": "k", "manual": 1}`))
		require.EqualError(w, err, "manual must be true or false")
		data, err := json.Marshal(manual("1"))
		require.NoError(w, err)
		out, err := model.ParseTasks(data)
		require.NoError(w, err)
		assert.Equal(w, []core.NewTask{manual("1")}, out)
	})
}
