package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// All attempts at an occurrence carry its time, however they were put off; the next occurrence has another.
func TestAttemptsKnowTheirOccurrence(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var seen []core.Millis
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
		first := core.MillisOf(time.Now())
		w.submit(core.NewTask{Agent: "a", Kind: "poll", Every: time.Minute, MaxAttempts: 2})
		for range 4 {
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
			time.Sleep(time.Minute)
		}
		require.Len(t, seen, 4)
		assert.Equal(t, []core.Millis{first, first, first}, seen[:3])
		assert.Greater(t, seen[3], first)
	})
}
