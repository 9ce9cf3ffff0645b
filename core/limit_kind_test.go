package core_test

// One kind of an agent beside its others.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A limit on a kind for each agent leaves slots to the agent's other kinds: a flood of the one keeps nobody else waiting.
func TestAFloodOfOneKindLeavesRoomForTheOthers(t *testing.T) {
	for name, bounded := range map[string]bool{"bounded": true, "unbounded": false} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{Concurrency: 10}, func(w *world) {
				var mu sync.Mutex
				var waited, took time.Duration
				core.Handle(w.s, "mem_read", func(ctx context.Context, _ *core.Task[note]) error { return sleep(ctx, 100*time.Millisecond) })
				core.Handle(w.s, "pref_add", func(_ context.Context, task *core.Task[note]) error {
					mu.Lock()
					defer mu.Unlock()
					waited = time.Since(task.Due)
					return nil
				})
				if bounded {
					flood := core.LimitTarget{Kind: "mem_read", Each: core.EachAgent}
					require.NoError(t, w.s.SetLimits(w.Context(), core.Limit{About: flood, Concurrency: 6}))
				}
				w.submit(numbered("a", "mem_read", 400)...)
				w.submit(core.NewTask{Agent: "a", ID: "late", Kind: "pref_add"})
				begun := time.Now()
				w.run()
				took = time.Since(begun)
				if bounded {
					assert.Less(t, waited, 200*time.Millisecond)
					assert.Less(t, took, 7*time.Second, "what is bounded still uses what it may")
				} else {
					assert.Greater(t, waited, 3*time.Second, "what the limit is for")
				}
			})
		})
	}
}
