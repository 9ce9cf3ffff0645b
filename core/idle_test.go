package core_test

// The idle back-off: how often gates that say no are asked.

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

// watchGate registers a gate that opens at some of its questions, by their number from 1, and returns when it was asked.
func (w *world) watchGate(kind string, open func(n int) bool) *[]time.Duration {
	asked := &[]time.Duration{}
	core.Gate(w.s, kind, func(context.Context, *core.RunInfo) (bool, error) {
		*asked = append(*asked, time.Since(w.begun))
		return open(len(*asked)), nil
	})
	return asked
}

func closed(int) bool { return false }

// inMinutes are some times in whole minutes.
func inMinutes(times []time.Duration) []int {
	var out []int
	for _, t := range times {
		out = append(out, int(t/time.Minute))
	}
	return out
}

// A day of half hours in which nothing is to be done starts no handler, and each is on record.
func TestEmptyTicksStartNoHandler(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		asked := w.watchGate("k", closed)
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			assert.Fail(w, "a handler was started")
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0,30 * * * *"})
		report := w.runUntil(24 * time.Hour)
		assert.Zero(t, report.Ran)
		assert.Len(t, *asked, 48)
		info := w.task("a", "1")
		assert.EqualValues(t, 48, info.SkipCount)
		assert.Equal(t, 48, info.GateClosed)
		for _, run := range info.Runs {
			assert.Equal(t, model.OutcomeSkipped, run.Outcome)
			assert.Equal(t, "gate", run.Error)
		}
		assert.Empty(t, w.seen(model.EventStart))
	})
}

func TestIdleBackoff(t *testing.T) {
	backoff := core.IdleBackoff{Factor: 3, Max: time.Hour}
	for name, c := range map[string]struct {
		backoff core.IdleBackoff
		task    core.NewTask
		want    []int // minutes; the seventh question is answered with yes
	}{
		"interval":                 {backoff, core.NewTask{Every: time.Minute}, []int{0, 3, 12, 39, 99, 159, 219, 220, 223}},
		"interval from start":      {backoff, core.NewTask{Every: time.Minute, From: core.FromStart}, []int{0, 3, 12, 39, 99, 159, 219, 220, 223}},
		"cron":                     {backoff, core.NewTask{Cron: "* * * * *"}, []int{1, 4, 13, 40, 100, 160, 220, 221, 224}},
		"cron without a back-off":  {core.IdleBackoff{}, core.NewTask{Cron: "* * * * *"}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"factor alone":             {core.IdleBackoff{Factor: 2}, core.NewTask{Cron: "* * * * *"}, []int{1, 3, 7, 12, 17, 22, 27, 28, 30}},
		"cap alone":                {core.IdleBackoff{Max: 4 * time.Minute}, core.NewTask{Every: time.Minute}, []int{0, 2, 6, 10, 14, 18, 22, 23, 25}},
		"none":                     {core.IdleBackoff{Factor: 1}, core.NewTask{Every: time.Minute}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		"none from start":          {core.IdleBackoff{Factor: 1}, core.NewTask{Every: time.Minute, From: core.FromStart}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		"interval above the cap":   {backoff, core.NewTask{Every: 2 * time.Hour}, []int{0, 120, 240, 360, 480, 600, 720, 840, 960}},
		"cron, by its busy hours":  {core.IdleBackoff{Max: time.Hour}, core.NewTask{Cron: "*/10 8-9 * * *"}, []int{480, 500, 540, 1920, 1980, 3360, 3420, 3430, 3450}},
		"cron that queues overlap": {backoff, core.NewTask{Cron: "* * * * *", Overlap: core.OverlapQueueOne}, []int{1, 4, 13, 40, 100, 160, 220, 221, 224}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{IdleBackoff: c.backoff}}, func(w *world) {
				asked := w.watchGate("k", func(n int) bool { return n == 7 })
				ran := 0
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
				c.task.Agent, c.task.ID, c.task.Kind = "a", "1", "k"
				w.submit(c.task)
				w.runUntil(time.Duration(c.want[len(c.want)-1])*time.Minute + time.Second)
				require.GreaterOrEqual(t, len(*asked), len(c.want))
				assert.Equal(t, c.want, inMinutes(*asked)[:len(c.want)])
				assert.Equal(t, 1, ran)
				for _, at := range *asked {
					assert.Zero(t, at%time.Minute, "on its own times")
				}
			})
		})
	}
}

// An activity task is asked about again, after its own time at first, until its subject is active: then at its own time.
func TestIdleBackoffOfActivity(t *testing.T) {
	for name, a := range map[string]core.Activity{"quiet": {Quiet: 10 * time.Minute}, "delay": {Delay: 10 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			config := activity(a)
			kind := config.Kinds["digest"]
			kind.IdleBackoff = core.IdleBackoff{Factor: 2, Max: time.Hour}
			config.Kinds["digest"] = kind
			virtual(t, config, func(w *world) {
				asked := w.watchGate("digest", closed)
				w.digests(fine)
				w.notice(ann)
				w.runUntil(3 * time.Hour)
				assert.Equal(t, []int{10, 30, 70, 130}, inMinutes(*asked))
				n := w.notice(ann)
				assert.True(t, n.Scheduled)
				assert.Equal(t, store.ReasonActivity, n.Reason)
				w.runUntil(time.Hour)
				assert.Equal(t, []int{10, 30, 70, 130, 190, 210}, inMinutes(*asked), "at its own time again, and backing off from there")

				info := w.task("helper", n.ID)
				assert.True(t, info.Resting)
				e, err := w.s.Explain(w.Context(), "helper", n.ID)
				require.NoError(t, err)
				assert.Equal(t, model.BecauseGate, e.Reasons[0].Code)
				assert.Contains(t, e.Reasons[0].Text, "its gate said 2 times in a row that there is nothing to do")
				assert.Contains(t, e.Reasons[0].Text, "or earlier if its subject is active")

				time.Sleep(2 * time.Hour) // nobody is there
				e, err = w.s.Explain(w.Context(), "helper", n.ID)
				require.NoError(t, err)
				assert.Equal(t, model.BecauseWaiting, e.Reasons[0].Code, "it is to be asked about, and does not wait for activity alone")

				w.runUntil(8 * 24 * time.Hour)
				last := (*asked)[len(*asked)-1]
				assert.Equal(t, core.StatusCompleted, w.task("helper", n.ID).Status, "nothing has happened for a week")
				assert.Less(t, last, 190*time.Minute+7*24*time.Hour)
				assert.Greater(t, last, 190*time.Minute+7*24*time.Hour-2*time.Hour)
			})
		})
	}
}

// The first run that is let through brings the own time back, and then the task rests as ever.
func TestAnOpenGateEndsTheBackOffOfActivity(t *testing.T) {
	config := activity(core.Activity{Quiet: 10 * time.Minute})
	kind := config.Kinds["digest"]
	kind.IdleBackoff = core.IdleBackoff{Factor: 2, Max: time.Hour}
	config.Kinds["digest"] = kind
	virtual(t, config, func(w *world) {
		asked := w.watchGate("digest", func(n int) bool { return n == 3 })
		got := w.digests(fine)
		w.notice(ann)
		w.runUntil(10 * time.Hour)
		assert.Equal(t, []int{10, 30, 70}, inMinutes(*asked))
		assert.Equal(t, []int{70}, inMinutes(*got))
		info := w.task("helper", w.notice(ann).ID)
		assert.Zero(t, info.GateClosed)
		w.runUntil(time.Hour)
		assert.Equal(t, []int{10, 30, 70, 610, 630}, inMinutes(*asked)[:5])
	})
}

// Without a back-off a closed gate lets an activity task rest until something happens.
func TestAClosedGateOfActivityRests(t *testing.T) {
	virtual(t, activity(core.Activity{Quiet: 10 * time.Minute}), func(w *world) {
		asked := w.watchGate("digest", closed)
		w.digests(fine)
		n := w.notice(ann)
		w.runUntil(24 * time.Hour)
		assert.Len(t, *asked, 1)
		e, err := w.s.Explain(w.Context(), "helper", n.ID)
		require.NoError(t, err)
		assert.Equal(t, model.BecauseResting, e.Reasons[0].Code)
	})
}

func TestIdleBackoffIsChecked(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]core.IdleBackoff{
		`Default.IdleBackoff.Factor must be between 1 and 100, not 0.5`: {Factor: 0.5},
		`Default.IdleBackoff.Factor must be between 1 and 100, not 101`: {Factor: 101},
		`Default.IdleBackoff.Max must be between 0 and`:                 {Max: -1},
	} {
		_, err := core.New(watch(nil), core.Config{Default: core.KindConfig{IdleBackoff: b}})
		assert.ErrorContains(t, err, want)
	}
}
