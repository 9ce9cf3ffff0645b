package core_test

// What budgets keep for runs under way: with many processes and slots, no more is used than the budget.

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// tokensOfAll is a budget of all tokens together.
var tokensOfAll = core.BudgetTarget{Unit: "tokens", Per: core.PerDay}

// spendAll has four processes of 12 slots run 60 tasks of so many tokens each under a budget of 200, and returns what was used, and the longest wait for
// the first run to begin beside another.
func spendAll(t *testing.T, config core.Config, use func(n int64) float64) bound.Amount {
	t.Helper()
	st := memstore.New(memstore.Config{})
	config.Concurrency = 12
	var n atomic.Int64
	var all []*core.Scheduler
	for range 4 {
		s, err := core.New(st, config)
		require.NoError(t, err)
		core.Handle(s, "k", func(_ context.Context, task *core.Task[any]) error {
			time.Sleep(time.Second)
			return task.Use(core.Usage{"tokens": use(n.Add(1))})
		})
		all = append(all, s)
	}
	require.NoError(t, all[0].SetBudgets(t.Context(), core.Budget{About: tokensOfAll, Amount: core.AmountOf(200)}))
	for i := range 60 {
		_, err := all[0].Submit(t.Context(), core.NewTask{Agent: fmt.Sprint("a", i%20), Kind: "k"})
		require.NoError(t, err)
	}
	for range 12 {
		var wg sync.WaitGroup
		for _, s := range all {
			wg.Go(func() {
				_, err := s.RunDue(t.Context(), core.Scope{})
				assert.NoError(t, err)
			})
		}
		wg.Wait()
	}
	budget, err := all[0].BudgetOn(t.Context(), tokensOfAll)
	require.NoError(t, err)
	return budget.Used
}

// Runs of equal use exhaust a budget exactly, with 48 slots, whether or not anybody has said what they use.
func TestABudgetIsExactForEqualRuns(t *testing.T) {
	t.Parallel()
	for _, expect := range []core.Usage{nil, {"tokens": 10}} {
		synctest.Test(t, func(t *testing.T) {
			used := spendAll(t, core.Config{Kinds: map[string]core.KindConfig{"k": {Expect: expect}}}, func(int64) float64 { return 10 })
			assert.Equal(t, core.AmountOf(200), used)
		})
	}
}

// Runs of unequal use exceed it by what one of them used beyond what was kept for it.
func TestABudgetIsExceededByOneRunAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		used := spendAll(t, core.Config{}, func(n int64) float64 { return float64(5 + n*7%11) })
		assert.GreaterOrEqual(t, used, core.AmountOf(200))
		assert.LessOrEqual(t, used, core.AmountOf(200+15))
	})
}

// A task that waits for the runs under way says so.
func TestExplainSaysThatABudgetIsReserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{
			Kinds:   map[string]core.KindConfig{"k": {Expect: core.Usage{"tokens": 100}}},
			Budgets: []core.Budget{{About: tokensOfAll, Amount: core.AmountOf(150)}},
		})
		require.NoError(t, err)
		var reason model.Because
		core.Handle(s, "k", func(ctx context.Context, task *core.Task[any]) error {
			if task.Agent == "a" {
				time.Sleep(time.Minute)
				e, err := s.Explain(ctx, "b", "1")
				require.NoError(t, err)
				reason = e.Reasons[0]
			}
			return task.Use(core.Usage{"tokens": 100})
		})
		for _, agent := range []string{"a", "b"} {
			_, err := s.Submit(t.Context(), core.NewTask{Agent: agent, ID: "1", Kind: "k"})
			require.NoError(t, err)
		}
		_, err = s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, model.BecauseBudget, reason.Code)
		assert.Equal(t, "the budget of 150 tokens a day of everything has no room for it beside the runs under way (0 used, 100 kept for them): it starts when one of them has ended, if there is room then", reason.Text)
	})
}
