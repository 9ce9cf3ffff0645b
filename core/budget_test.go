package core_test

// Budgets: what runs use, what is held, paused and told when one is used up, and when it begins anew.

import (
	"context"
	"sync"
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

// spender is a scheduler whose runs use tokens, and what it has told.
type spender struct {
	*core.Scheduler

	mu     sync.Mutex
	runs   map[string]int
	events []core.Event
}

func newSpender(t *testing.T, st core.Store, tokens float64) *spender {
	t.Helper()
	w := &spender{runs: map[string]int{}}
	var err error
	w.Scheduler, err = core.New(st, core.Config{OnEvent: func(e core.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if e.Type == model.EventBudget || e.Type == model.EventFinish {
			w.events = append(w.events, e)
		}
	}})
	require.NoError(t, err)
	core.Handle(w.Scheduler, "k", func(_ context.Context, task *core.Task[any]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.runs[task.Agent]++
		return task.Use(core.Usage{"tokens": tokens})
	})
	return w
}

func (w *spender) pull(t *testing.T) {
	t.Helper()
	_, err := w.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
}

func (w *spender) of(typ model.EventType) (out []core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

var tokensOfAgents = core.BudgetTarget{LimitTarget: core.LimitTarget{Each: core.EachAgent}, Unit: "tokens", Per: core.PerDay}

// What an agent has used up holds its tasks until its day is over, over a change of clocks too, and others run on.
func TestADaysBudgetEndsAtLocalMidnight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		berlin, err := time.LoadLocation("Europe/Berlin")
		require.NoError(t, err)
		time.Sleep(time.Until(time.Date(2027, 3, 28, 0, 30, 0, 0, berlin))) // a day of 23 hours
		w := newSpender(t, memstore.New(memstore.Config{Partitions: 1}), 600)
		require.NoError(t, w.SetBudgets(t.Context(), core.Budget{About: tokensOfAgents, Amount: core.AmountOf(1000), Zone: "Europe/Berlin"}))
		_, err = w.Submit(t.Context(), core.NewTask{Agent: "a", ID: "t", Kind: "k", Every: time.Hour}, core.NewTask{Agent: "b", ID: "t", Kind: "k"})
		require.NoError(t, err)
		w.pull(t)
		time.Sleep(time.Hour)
		w.pull(t) // it has used 1,200
		assert.Equal(t, map[string]int{"a": 2, "b": 1}, w.runs)
		time.Sleep(time.Hour)
		w.pull(t)
		assert.Equal(t, 2, w.runs["a"])
		e, err := w.Explain(t.Context(), "a", "t")
		require.NoError(t, err)
		midnight := time.Date(2027, 3, 29, 0, 0, 0, 0, berlin)
		assert.Equal(t, 23*time.Hour, midnight.Sub(time.Date(2027, 3, 28, 0, 0, 0, 0, berlin)))
		assert.Equal(t, model.BecauseBudget, e.Reasons[0].Code)
		assert.Equal(t, `the budget of 1000 tokens a day of agent "a" is used up (1200 used); runs again at 2027-03-28T22:00:00.000Z, when its day in `+
			`Europe/Berlin is over, or once the budget is raised`, e.Reasons[0].Text)
		assert.True(t, midnight.Equal(e.Reasons[0].Until))

		crossed := w.of(model.EventBudget)
		require.Len(t, crossed, 1, "it is told once")
		assert.Equal(t, "a", crossed[0].Agent)
		assert.True(t, midnight.Equal(crossed[0].Next))
		assert.Equal(t, core.Usage{"tokens": 600}, w.of(model.EventFinish)[0].Used)

		time.Sleep(time.Until(midnight) - time.Millisecond)
		w.pull(t)
		assert.Equal(t, 2, w.runs["a"])
		time.Sleep(time.Millisecond)
		w.pull(t)
		assert.Equal(t, 3, w.runs["a"])
		use, err := w.BudgetOn(t.Context(), tokensOfAgents)
		require.NoError(t, err)
		assert.Equal(t, core.AmountOf(600), use.Used)
		assert.Equal(t, []bound.BudgetShare{{Of: "a", Used: core.AmountOf(600)}}, use.Shares)
		task, err := w.Task(t.Context(), "a", "t")
		require.NoError(t, err)
		assert.Equal(t, core.Usage{"tokens": 600}, task.Runs[len(task.Runs)-1].Used)
	})
}

// With eight racing processes no more starts than the budget, to the run; of tokens no more than what was in flight beside it.
func TestRacingProcessesKeepABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{Partitions: 1})
		var all []*spender
		for range 8 {
			all = append(all, newSpender(t, st, 10))
		}
		runs := core.BudgetTarget{Unit: bound.UnitRuns, Per: core.PerHour}
		require.NoError(t, all[0].SetBudgets(t.Context(), core.Budget{About: runs, Amount: core.AmountOf(77)}))
		for i := range 200 {
			_, err := all[0].Submit(t.Context(), core.NewTask{Agent: string(rune('a' + i%26)), Kind: "k"})
			require.NoError(t, err)
		}
		var wg sync.WaitGroup
		for _, w := range all {
			wg.Go(func() { w.pull(t) })
		}
		wg.Wait()
		sum := 0
		for _, w := range all {
			for _, n := range w.runs {
				sum += n
			}
		}
		assert.Equal(t, 77, sum)
		use, err := all[0].BudgetOn(t.Context(), runs)
		require.NoError(t, err)
		assert.Equal(t, core.AmountOf(77), use.Used)
		assert.Equal(t, 1, use.UsedUp)
		assert.Equal(t, int64(123), use.Waiting)
		// Raised, it lets go what it holds.
		require.NoError(t, all[0].SetBudgets(t.Context(), core.Budget{About: runs, Amount: core.AmountOf(100)}))
		all[0].pull(t)
		use, err = all[0].BudgetOn(t.Context(), runs)
		require.NoError(t, err)
		assert.Equal(t, core.AmountOf(100), use.Used)
		require.NoError(t, all[0].LiftBudget(t.Context(), runs))
		all[0].pull(t)
		_, err = all[0].BudgetOn(t.Context(), runs)
		require.ErrorIs(t, err, core.ErrNotFound)
		stats, err := all[0].Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, stats.Waiting+stats.InProgress)
	})
}

// A budget that pauses does so for good, and one that tells lets everything run on.
func TestABudgetPausesOrTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSpender(t, memstore.New(memstore.Config{Partitions: 1}), 600)
		about := tokensOfAgents
		about.Per = core.PerHour
		all := core.BudgetTarget{Unit: "tokens", Per: core.PerMonth}
		require.NoError(t, w.SetBudgets(t.Context(),
			core.Budget{About: about, Amount: core.AmountOf(1000), Then: core.ThenPause}, core.Budget{About: all, Amount: core.AmountOf(500), Then: core.ThenNotify}))
		_, err := w.Submit(t.Context(), core.NewTask{Agent: "a", ID: "t", Kind: "k", Every: time.Minute})
		require.NoError(t, err)
		for range 200 { // three hours
			w.pull(t)
			time.Sleep(time.Minute)
		}
		assert.Equal(t, 2, w.runs["a"])
		e, err := w.Explain(t.Context(), "a", "t")
		require.NoError(t, err)
		assert.Equal(t, model.BecausePaused, e.Reasons[0].Code)
		assert.Contains(t, e.Reasons[0].Text, "the budget of 1000 tokens an hour of each agent is used up")
		assert.Len(t, w.of(model.EventBudget), 2, "each is told once")
		err = w.Resume(t.Context(), core.Target{Agent: "a"})
		require.NoError(t, err)
		w.pull(t)
		time.Sleep(time.Minute)
		w.pull(t)
		assert.Equal(t, 3, w.runs["a"], "its hour is over")
	})
}

// What makes no sense is refused by name, and nothing of it is counted.
func TestBudgetsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{})
	require.NoError(t, err)
	good := core.Budget{About: tokensOfAgents, Amount: core.AmountOf(1)}
	for field, change := range map[string]func(b *core.Budget){
		"unit":      func(b *core.Budget) { b.About.Unit = "to kens" },
		"per":       func(b *core.Budget) { b.About.Per = "week" },
		"each":      func(b *core.Budget) { b.About.Each = "kind" },
		"amount":    func(b *core.Budget) { b.Amount = 0 },
		"zone":      func(b *core.Budget) { b.Zone = "Mars/Olympus" },
		"then":      func(b *core.Budget) { b.Then = "stop" },
		"kind":      func(b *core.Budget) { b.About.Kind = "no such" },
		"limit_key": func(b *core.Budget) { b.About.Key = "a*b" },
	} {
		b := good
		change(&b)
		err := s.SetBudgets(t.Context(), b)
		var invalid *core.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		assert.Equal(t, field, invalid.Field)
	}
	b := good
	b.About.Kind, b.Then = "k", core.ThenPause
	require.ErrorContains(t, s.SetBudgets(t.Context(), b), "nothing less can be paused")
	_, err = core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{Budgets: []core.Budget{good, good}})
	require.ErrorContains(t, err, "join them into one")
	_, err = core.New(memstore.New(memstore.Config{Partitions: 4}), core.Config{Budgets: []core.Budget{good}})
	require.NoError(t, err)

	run := core.NewTestRun(nil)
	for _, used := range []core.Usage{{"runs": 1}, {"": 1}, {"tokens": -1}, {"to kens": 1}, {"tokens": 1e300}} {
		require.Error(t, run.Use(used))
	}
	assert.Empty(t, run.Used())
	require.NoError(t, run.Use(core.Usage{"tokens": 1.5, "usd": 0.25}))
	require.NoError(t, run.Use(core.Usage{"tokens": 2}))
	assert.Equal(t, core.Usage{"tokens": 3.5, "usd": 0.25}, run.Used())
}

// Who is forgotten gets no new budget by it: what it has used stays counted until the period is over.
func TestForgettingAnAgentRenewsNoBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSpender(t, memstore.New(memstore.Config{Partitions: 1}), 600)
		require.NoError(t, w.SetBudgets(t.Context(), core.Budget{About: tokensOfAgents, Amount: core.AmountOf(500)}))
		submit := func() {
			_, err := w.Submit(t.Context(), core.NewTask{Agent: "a", ID: "t", Kind: "k"})
			require.NoError(t, err)
			w.pull(t)
		}
		submit()
		_, err := w.Forget(t.Context(), "a", nil)
		require.NoError(t, err)
		submit()
		assert.Equal(t, 1, w.runs["a"])
		time.Sleep(24 * time.Hour)
		w.pull(t)
		assert.Equal(t, 2, w.runs["a"])
	})
}

// A run whose task was cancelled or replaced while it ran has used what it says all the same.
func TestWhatARunHasUsedCountsHoweverItsTaskEnds(t *testing.T) {
	for name, change := range map[string]func(w *world) error{
		"cancelled": func(w *world) error { _, err := w.s.Cancel(w.Context(), "a", "1", core.Order{}); return err },
		"replaced": func(w *world) error {
			_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: note{"new"}, Delay: time.Hour, OnConflict: core.OnConflictReplace})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOn(t, memstore.New(memstore.Config{}), core.Config{})
				require.NoError(t, w.s.SetBudgets(w.Context(), core.Budget{
					About: core.BudgetTarget{Unit: "tokens", Per: core.PerDay}, Amount: 100 * bound.AmountOne, Then: core.ThenNotify,
				}))
				core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
					require.NoError(w, change(w))
					return t.Use(core.Usage{"tokens": 7})
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				w.run()
				used, err := w.s.Budgets(w.Context())
				require.NoError(t, err)
				assert.Equal(t, 7*bound.AmountOne, used[0].Used)
			})
		})
	}
}
