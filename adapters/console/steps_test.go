package console_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/steps"
)

// The page of a task that runs in steps shows them, and not their log as JSON.
func TestTheStepsOfATaskAreShown(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	core.Handle(f.scheduler, "story", func(ctx context.Context, task *core.Task[any]) error {
		run := steps.Begin(f.scheduler, task.RunInfo)
		_, err := steps.Do(ctx, run, "plan", func(context.Context) (string, error) { return "secret plan", task.Use(core.Usage{"tokens": 1200}) })
		if err != nil {
			return err
		}
		_, err = steps.Wait[string](run, "approval", time.Hour)
		return err
	})
	f.submit(core.NewTask{Agent: "ann", ID: "s", Kind: "story"})
	f.run()
	page := f.get("/ui/task", "agent", "ann", "id", "s")
	for _, want := range []string{">Steps<", ">plan</th><td>done</td>", ">approval</th><td>waits for a signal until ", "1200 tokens"} {
		assert.Contains(t, page.body, want)
	}
	assert.NotContains(t, page.body, "<h2>Checkpoint</h2>")
}
