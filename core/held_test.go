package core_test

import (
	"context"
	"encoding/json"
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

// What is due and cannot start is listed over all agents, each task with what holds it; what waits for its time, or for a process alone, is not.
func TestHeldTasksOfAllAgents(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		Limits:  []core.Limit{{About: core.LimitTarget{Kind: "limited"}, Rate: 1, Per: time.Hour, Burst: -1}},
		Budgets: []core.Budget{{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "spent"}, Unit: bound.UnitRuns, Per: bound.PerDay}, Amount: bound.AmountOne}},
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

	about := map[string]string{
		"limited": `limit on kind "limited"`, "spent": `budget of runs ` + bound.PerDay.Text() + ` of kind "spent"`, "paused": "kind paused", "unknown": "kind unknown",
	}
	list := func(l core.List) map[string]model.BecauseCode {
		held := map[string]model.BecauseCode{}
		l.Held = true
		for {
			tasks, next, err := s.Tasks(t.Context(), l)
			require.NoError(t, err)
			for i := range tasks {
				held[tasks[i].Agent+"/"+tasks[i].ID] = tasks[i].HeldBy.Code
				assert.Equal(t, about[tasks[i].Kind], tasks[i].HeldBy.About)
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

// A task that is due says how many of its own agent are served first: those of a lower level, those that have been due for longer, and those that have been due
// for a minute, whatever their level is.
func TestExplainCountsTheTasksOfTheSameAgentThatAreAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
		require.NoError(t, err)
		submit := func(id string, level core.Level) {
			_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: id, Kind: "k", Level: level}, core.NewTask{Agent: "b", ID: id, Kind: "k", Level: level})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		says := func(id, want string) {
			t.Helper()
			e, err := s.Explain(t.Context(), "a", id)
			require.NoError(t, err)
			assert.Equal(t, model.BecauseWaiting, e.Reasons[0].Code)
			assert.Regexp(t, want, e.Reasons[0].Text)
		}
		submit("old", 3)
		says("old", `(other is|others are) ahead\. Is`)
		submit("low", 3)
		submit("high", 1)
		submit("last", 3)
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "later", Kind: "k", Delay: time.Hour})
		require.NoError(t, err)
		require.NoError(t, s.Pause(t.Context(), core.Target{Agent: "a", ID: "low"}, core.Pause{}))
		says("high", `(other is|others are) ahead\. Is`)
		says("old", `(other is|others are) ahead, and 1 of its own agent\. Is`)
		require.NoError(t, s.Resume(t.Context(), core.Target{Agent: "a", ID: "low"}))
		says("last", `(other is|others are) ahead, and 3 of its own agent\. Is`)
		time.Sleep(time.Minute - 4*time.Second)
		says("high", `(other is|others are) ahead, and 1 of its own agent\. Is`)
		_, err = s.SetProfile(t.Context(), core.Profile{Agent: "a", Tenant: "acme"})
		require.NoError(t, err)
		says("high", `(other is|others are) ahead, and 1 of its own agent; tenants take turns, so that it is not behind all of them: its tenant is acme\. Is`)
	})
}
