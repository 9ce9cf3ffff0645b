package core_test

// How soon the store knows how far runs have come, and what that costs.

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

func TestProgressIsSeenSoon(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Minute}}, func(w *world) {
		var seen []string
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			for i := range 3 {
				_ = task.SetProgress(i)
				_ = sleep(ctx, core.ProgressWithin+time.Millisecond)
				seen = append(seen, string(w.task("a", "1").Progress))
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		assert.Equal(t, []string{"0", "1", "2"}, seen)
	})
}

// A run that comes further all the time costs no more than a call a second.
func TestProgressIsBounded(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Minute}}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			for i := range 1000 {
				_ = task.SetProgress(i)
				_ = sleep(ctx, 10*time.Millisecond)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		assert.InDelta(t, 10, w.store.count("extend"), 1)
	})
}
