package core_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// While a suspect is alone others wait for it, and for as long as it took they have their turn before the next one.
func TestSuspectsAndOthersTakeTurns(t *testing.T) {
	virtual(t, core.Config{Concurrency: 4}, func(w *world) {
		var mu sync.Mutex
		var order []string
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			mu.Lock()
			order = append(order, task.Agent)
			mu.Unlock()
			return sleep(ctx, time.Second)
		})
		w.submit(core.NewTask{Agent: "suspect", ID: "1", Kind: "k"}, core.NewTask{Agent: "suspect", ID: "2", Kind: "k"},
			core.NewTask{Agent: "suspect", ID: "3", Kind: "k"})
		w.store.alter = func(claims []store.Claim) {
			for _, c := range claims {
				for i := range c.Tasks {
					if c.Tasks[i].Agent == "suspect" {
						c.Tasks[i].Crashes = 1
					}
				}
			}
		}
		w.submit(numbered("other", "k", 12)...)
		report := w.run()
		assert.Equal(t, 15, report.Completed)
		turns := ""
		for _, agent := range order {
			turns += agent[:1]
		}
		assert.Regexp(t, "^o*so+so+so*$", turns)
	})
}

// What runs alone, or waits for that, says so.
func TestExplainSaysThatATaskRunsAlone(t *testing.T) {
	virtual(t, core.Config{Concurrency: 4}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error { return sleep(ctx, 10*time.Second) })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.dies("a", "k")
		w.submit(core.NewTask{Agent: "b", ID: "1", Kind: "k"})
		var pull sync.WaitGroup
		pull.Go(func() { w.run() })
		synctest.Wait()
		why, err := w.s.Explain(t.Context(), "a", "1")
		require.NoError(t, err)
		require.Len(t, why.Reasons, 2)
		assert.Equal(t, [2]core.BecauseCode{core.BecauseRunning, core.BecauseSuspect}, [2]core.BecauseCode{why.Reasons[0].Code, why.Reasons[1].Code})
		pull.Wait()
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
	})
}

// A process that was stopped while it claimed does not start what others may run by now.
func TestAThawedProcessStartsNothing(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Second}}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			t.Error("it was started")
			return nil
		})
		w.submit(numbered("a", "k", 3)...)
		w.store.alter = func(claims []store.Claim) {
			if len(claims[0].Tasks) > 0 {
				time.Sleep(2 * time.Second)
			}
		}
		report, _ := w.s.RunDue(w.Context(), core.Scope{MaxTasks: 3})
		assert.Equal(t, [2]int{3, 0}, [2]int{report.Lost, report.Ran})
	})
}
