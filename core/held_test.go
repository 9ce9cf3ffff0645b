package core_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What is due and cannot start is listed over all agents, each task with what holds it; what waits for its time, or for a process alone, is not.
func TestHeldTasksOfAllAgents(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		Limits:  []core.Limit{{About: core.LimitTarget{Kind: "limited"}, Rate: 1, Per: time.Hour, Burst: -1}},
		Budgets: []core.Budget{{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "spent"}, Unit: store.UnitRuns, Per: store.PerDay}, Amount: store.AmountOne}},
	})
	require.NoError(t, err)
	for _, kind := range []string{"limited", "spent", "paused", "free"} {
		core.Handle(s, kind, func(context.Context, *core.Task[any]) error { return nil })
	}
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "limited"}, core.NewTask{Agent: "b", ID: "1", Kind: "spent"})
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	require.NoError(t, s.Pause(t.Context(), core.Target{Kind: "paused"}, core.Pause{}))
	_, err = s.Submit(t.Context(),
		core.NewTask{Agent: "a", ID: "2", Kind: "limited"}, core.NewTask{Agent: "b", ID: "2", Kind: "spent"}, core.NewTask{Agent: "c", ID: "1", Kind: "paused"},
		core.NewTask{Agent: "d", ID: "1", Kind: "unknown"}, core.NewTask{Agent: "e", ID: "1", Kind: "free", Delay: time.Hour},
		core.NewTask{Agent: "c", ID: "2", Kind: "paused", Delay: time.Hour},
	)
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "f", ID: "1", Kind: "free"})
	require.NoError(t, err)

	list := func(l core.List) map[string]model.BecauseCode {
		held := map[string]model.BecauseCode{}
		l.Held = true
		for {
			tasks, next, err := s.Tasks(t.Context(), l)
			require.NoError(t, err)
			for i := range tasks {
				held[tasks[i].Agent+"/"+tasks[i].ID] = tasks[i].HeldBy.Code
				data, err := json.Marshal(tasks[i])
				require.NoError(t, err)
				assert.Contains(t, string(data), `"held_by":{"code":"`)
			}
			if next == "" {
				return held
			}
			l.Cursor = next
		}
	}
	all := map[string]model.BecauseCode{"a/2": model.BecauseLimited, "b/2": model.BecauseBudget, "c/1": model.BecausePaused, "d/1": model.BecauseNoHandler}
	assert.Equal(t, all, list(core.List{}))
	assert.Equal(t, all, list(core.List{Limit: 1}), "page by page")
	assert.Equal(t, map[string]model.BecauseCode{"a/2": model.BecauseLimited}, list(core.List{Agent: "a"}))
	assert.Equal(t, map[string]model.BecauseCode{"b/2": model.BecauseBudget}, list(core.List{Kind: "spent"}))
	for _, wrong := range []core.List{{Held: true, Overdue: true}, {Held: true, Jobs: true}, {Held: true, Status: []core.Status{core.StatusFailed}}} {
		_, _, err := s.Tasks(t.Context(), wrong)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err), "%v", err)
	}
}
