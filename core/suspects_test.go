package core_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A suspect that never ends keeps no slot from anybody, nor does one keep another waiting for longer than its sort has to.
func TestNobodyWaitsForSuspects(t *testing.T) {
	for crashes := 1; crashes <= 3; crashes++ {
		t.Run(fmt.Sprint(crashes), func(t *testing.T) {
			virtual(t, core.Config{Concurrency: 4, Default: core.KindConfig{Lease: time.Second, Timeout: -1}}, func(w *world) {
				core.Handle(w.s, "endless", func(ctx context.Context, _ *core.Task[note]) error {
					<-ctx.Done()
					return ctx.Err()
				})
				var mu sync.Mutex
				started := map[string]time.Duration{}
				core.Handle(w.s, "quick", func(_ context.Context, task *core.Task[note]) error {
					mu.Lock()
					defer mu.Unlock()
					started[task.Agent] = time.Since(task.Due)
					return nil
				})
				w.submit(core.NewTask{Agent: "suspect", ID: "1", Kind: "endless"})
				for range crashes {
					w.dies("suspect", "endless")
				}
				w.submit(core.NewTask{Agent: "other", ID: "1", Kind: "quick"}, core.NewTask{Agent: "later", ID: "1", Kind: "quick", Delay: 10 * time.Second})
				w.submit(core.NewTask{Agent: "lost", ID: "1", Kind: "quick"})
				w.dies("lost", "quick")
				ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
				defer cancel()
				var pulls sync.WaitGroup
				for ctx.Err() == nil {
					pulls.Go(func() { _, _ = w.s.RunDue(ctx, core.Scope{}) })
					time.Sleep(100 * time.Millisecond)
				}
				pulls.Wait()
				require.Len(t, started, 3)
				for agent, late := range started {
					assert.LessOrEqual(t, late, 3*time.Second, agent) // the lease of who died, and a second
				}
			})
		})
	}
}

// Many suspects at the head of the queue do not hide what is behind them.
func TestManySuspectsHideNobody(t *testing.T) {
	virtual(t, core.Config{Concurrency: 4, Default: core.KindConfig{Lease: time.Second}}, func(w *world) {
		var mu sync.Mutex
		var order []string
		core.Handle(w.s, "k", func(ctx context.Context, task *core.Task[note]) error {
			mu.Lock()
			order = append(order, task.Agent)
			mu.Unlock()
			return sleep(ctx, time.Second)
		})
		for i := range 2400 { // in each partition more than one claim looks at
			w.submit(core.NewTask{Agent: fmt.Sprint("lost", i), ID: "1", Kind: "k"})
		}
		for p := range w.store.Partitions() {
			for claimed := -1; claimed != 0; {
				claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
					Partition: p, Nonce: rand.Text()[:store.NonceLen], Kinds: []string{"k"}, Limit: 50, Lease: time.Hour,
				}})
				require.NoError(t, err)
				claimed = len(claims[0].Tasks)
			}
		}
		time.Sleep(time.Hour)
		w.submit(core.NewTask{Agent: "other", ID: "1", Kind: "k"})
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
		defer cancel()
		_, _ = w.s.RunDue(ctx, core.Scope{})
		at := slices.Index(order, "other")
		assert.True(t, at >= 0 && at < 8, "it came as %d of %d", at, len(order))
	})
}

// What may not run yet, as its last run died with its process, says so.
func TestExplainNamesSuspicion(t *testing.T) {
	virtual(t, core.Config{Concurrency: 4}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error { return sleep(ctx, 10*time.Second) })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "a", ID: "2", Kind: "k"}, core.NewTask{Agent: "a", ID: "3", Kind: "k"})
		for range 3 {
			w.dies("a", "k")
		}
		var pull sync.WaitGroup
		pull.Go(func() { w.run() })
		synctest.Wait()
		codes := map[model.BecauseCode]int{}
		for _, id := range []string{"1", "2", "3"} {
			why, err := w.s.Explain(w.Context(), "a", id)
			require.NoError(t, err)
			for _, r := range why.Reasons {
				codes[r.Code]++
			}
		}
		assert.Positive(t, codes[model.BecauseSuspect])
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
		assert.Equal(t, [2]int{3, 0}, [2]int{report.Released, report.Ran})
	})
}
