package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// All attempts at an occurrence carry its time, however they were put off; the next occurrence has another.
func TestAttemptsKnowTheirOccurrence(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var seen []time.Time
		core.Handle(w.s, "poll", func(_ context.Context, task *core.Task[any]) error {
			seen = append(seen, task.Occurrence)
			switch len(seen) {
			case 1:
				return errBoom
			case 2:
				return core.Snooze(time.Second)
			default:
				return nil
			}
		})
		first := moment.Of(time.Now())
		w.submit(core.NewTask{Agent: "a", Kind: "poll", Every: time.Minute, MaxAttempts: 2})
		for range 4 {
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
			time.Sleep(time.Minute)
		}
		require.Len(t, seen, 4)
		assert.Equal(t, []time.Time{first.Time(), first.Time(), first.Time()}, seen[:3])
		assert.Greater(t, seen[3], first.Time())
	})
}

// A handler knows the zone that its times are meant in, also where each occurrence is a task of its own.
func TestRunsKnowTheirZone(t *testing.T) {
	for name, c := range map[string]struct {
		task core.NewTask
		want string
	}{
		"once":            {core.NewTask{}, ""},
		"interval":        {core.NewTask{Every: time.Minute}, ""},
		"cron":            {core.NewTask{Cron: "@hourly"}, "UTC"},
		"cron in a zone":  {core.NewTask{Cron: "@hourly", Zone: "Asia/Tokyo"}, "Asia/Tokyo"},
		"of its own task": {core.NewTask{Cron: "@hourly", Zone: "Asia/Tokyo", Overlap: core.OverlapAllow}, "Asia/Tokyo"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				zone := "none was run"
				core.Handle(w.s, "k", func(_ context.Context, task *core.Task[any]) error { zone = task.Zone; return nil })
				c.task.Agent, c.task.Kind = "a", "k"
				w.submit(c.task)
				w.runUntil(hours(2))
				assert.Equal(t, c.want, zone)
			})
		})
	}
}
