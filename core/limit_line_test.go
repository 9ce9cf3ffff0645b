package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// inOnePartition is virtual on a store that can count limits.
func inOnePartition(t *testing.T, config core.Config, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newWorldOn(t, memstore.New(memstore.Config{}), config)) })
}

// One pull goes on while a limit lets tasks go one by one, and explains meanwhile why the others wait.
func TestAPullServesTheLineOfALimit(t *testing.T) {
	limit := core.Limit{About: core.LimitTarget{Kind: "call"}, Concurrency: 1}
	inOnePartition(t, core.Config{Limits: []core.Limit{limit}}, func(w *world) {
		var reasons []string
		core.Handle(w.s, "call", func(ctx context.Context, task *core.Task[any]) error {
			if task.ID == "3" {
				e, err := w.s.Explain(ctx, "a", "5")
				assert.NoError(w, err)
				reasons = append(reasons, string(e.Reasons[0].Code), e.Reasons[0].Text)
			}
			time.Sleep(time.Second)
			return nil
		})
		for i := range 8 {
			w.submit(core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "call"})
		}
		r, err := w.s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 8, r.Completed)
		assert.False(t, r.More)
		assert.Equal(t, []string{"limited", `the limit on kind "call" holds it back: 1 run at once; 1 running, 4 tasks in line; the next starts when a run ends`}, reasons)
	})
}
