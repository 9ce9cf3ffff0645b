package core_test

// Limits and budgets of the profile of one agent.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// A profile bounds its agent, in its zone, and no other; without it there are no bounds.
func TestAProfileBoundsItsAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSpender(t, memstore.New(memstore.Config{Partitions: 4}), 60)
		tokens := core.Budget{About: core.BudgetTarget{Unit: "tokens", Per: bound.PerDay}, Amount: 100 * bound.AmountOne}
		p, err := w.SetProfile(t.Context(), core.Profile{Agent: "a", Zone: "Asia/Tokyo", Budgets: []core.Budget{tokens}, Limits: []core.Limit{{Concurrency: 1}}})
		require.NoError(t, err)
		require.Len(t, p.Budgets, 1)
		assert.Equal(t, "Asia/Tokyo", p.Budgets[0].Zone)
		for i := range 5 {
			_, err := w.Submit(t.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "k"}, core.NewTask{Agent: "b", ID: fmt.Sprint(i), Kind: "k"})
			require.NoError(t, err)
		}
		w.pullAll(t, 6)
		assert.Equal(t, map[string]int{"a": 2, "b": 5}, w.runs)
		why, err := w.Explain(t.Context(), "a", "4")
		require.NoError(t, err)
		assert.Contains(t, why.Reasons[0].Text, `the budget of 100 tokens a day of agent "a" is used up (120 used); runs again at`)
		midnight := time.Date(2000, 1, 2, 0, 0, 0, 0, time.FixedZone("JST", 9*3600))
		assert.True(t, midnight.Equal(why.Reasons[0].Until), "%s", why.Reasons[0].Until)
		crossed := w.of(model.EventBudget)
		require.Len(t, crossed, 1)
		assert.Equal(t, "a", crossed[0].Agent)

		tokens.Then = bound.ThenPause
		_, err = w.SetProfile(t.Context(), core.Profile{Agent: "b", Budgets: []core.Budget{tokens}, Limits: []core.Limit{{About: core.LimitTarget{Kind: "k"}, Rate: 1, Per: time.Hour, Burst: -1}}})
		require.NoError(t, err)
		for i := range 3 {
			_, err := w.Submit(t.Context(), core.NewTask{Agent: "b", ID: fmt.Sprint("late", i), Kind: "k"})
			require.NoError(t, err)
		}
		w.pullAll(t, 3)
		assert.Equal(t, 6, w.runs["b"], "one start an hour")
		why, err = w.Explain(t.Context(), "b", "late1")
		require.NoError(t, err)
		assert.Contains(t, why.Reasons[0].Text, `the limit on kind "k" of agent "b" holds it back: 1 start per 1h`)

		require.NoError(t, w.DeleteProfile(t.Context(), "a"))
		w.pullAll(t, 6)
		assert.Equal(t, 5, w.runs["a"], "nothing bounds it")
	})
}

// pullAll pulls so often.
func (w *spender) pullAll(t *testing.T, times int) {
	t.Helper()
	for range times {
		w.pull(t)
	}
}

// What bounds an agent is part of its profile: shown, exported, imported and compared with it.
func TestBoundsGoWithTheProfile(t *testing.T) {
	t.Parallel()
	const text = `{"agent_id":"a","zone":"Europe/Berlin","limits":[{"kind":"k","concurrency":2},{"limit_key":"openai:*","rate":"60/1m","burst":0},{"adaptive":true}],` +
		`"budgets":[{"kind":"k","unit":"usd","amount":0.5,"per":"month","zone":"Europe/Berlin","then":"notify"},{"unit":"runs","amount":10,"per":"hour","zone":"UTC","then":"pause"}],"revision":1}`
	w := newSpender(t, memstore.New(memstore.Config{}), 0)
	var p core.Profile
	require.NoError(t, p.Read([]byte(text)))
	set, err := w.SetProfile(t.Context(), p)
	require.NoError(t, err)
	for _, shown := range []core.Profile{set, one(w.Profile(t.Context(), "a"))(t)} {
		data, err := json.Marshal(shown)
		require.NoError(t, err)
		assert.JSONEq(t, text, string(data))
	}
	again, err := w.SetProfile(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, int64(1), again.Revision, "it was so already")
}

// one is a value that came without an error.
func one[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// What makes no sense for one agent is refused, with its place.
func TestBoundsOfProfilesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	w := newSpender(t, memstore.New(memstore.Config{}), 0)
	many := `{"limits":[` + `{"concurrency":1}`
	for i := range bound.MostInProfile {
		many += fmt.Sprintf(`,{"kind":"k%d","concurrency":1}`, i)
	}
	for text, field := range map[string]string{
		`{"limits":{}}`: "limits",
		`{"limits":[{"each":"agent","concurrency":1}]}`:                                             "limits[0].each",
		`{"limits":[{"kind":"k"}]}`:                                                                 "limits[0].concurrency",
		`{"limits":[{"kind":"k","concurrency":0}]}`:                                                 "limits[0].concurrency",
		`{"limits":[{"kind":"","concurrency":1}]}`:                                                  "limits[0].kind",
		`{"limits":[{"rate":"many"}]}`:                                                              "limits[0].rate",
		`{"limits":[{"rate":"1/1s","burst":-1}]}`:                                                   "limits[0].burst",
		`{"limits":[{"concurrency":1,"speed":2}]}`:                                                  "limits[0].speed",
		`{"limits":[{"concurrency":1},{"concurrency":2}]}`:                                          "limits[1]",
		`{"budgets":[{"unit":"usd","per":"day"}]}`:                                                  "budgets[0].amount",
		`{"budgets":[{"unit":"usd","per":"week","amount":1}]}`:                                      "budgets[0].per",
		`{"budgets":[{"unit":"usd","per":"day","amount":1,"zone":"Mars"}]}`:                         "budgets[0].zone",
		`{"budgets":[{"unit":"usd","per":"day","amount":1,"kind":"k","then":"pause"}]}`:             "budgets[0].then",
		`{"budgets":[{"unit":"usd","per":"day","amount":1},{"unit":"usd","per":"day","amount":2}]}`: "budgets[1]",
		many + `]}`: "limits",
	} {
		var p core.Profile
		err := p.Read([]byte(text))
		if p.Agent = "a"; err == nil {
			_, err = w.SetProfile(t.Context(), p)
		}
		invalid, ok := errors.AsType[*core.InvalidError](err)
		if assert.True(t, ok, "%s: %v", text, err) {
			assert.Equal(t, field, invalid.Field, text)
		}
	}
	err := w.SetLimits(t.Context(), core.Limit{About: core.LimitTarget{Agent: "a"}, Concurrency: 1})
	assert.ErrorContains(t, err, "is set with its profile")
	err = w.SetBudgets(t.Context(), core.Budget{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Agent: "a"}, Unit: "usd", Per: bound.PerDay}, Amount: 1})
	assert.ErrorContains(t, err, "is set with its profile")
}

// Whoever may act for one agent alone cannot change what bounds it: neither with its profile, nor without one, nor by forgetting the agent.
func TestATenantKeepsItsBounds(t *testing.T) {
	t.Parallel()
	w := newSpender(t, memstore.New(memstore.Config{}), 0)
	tenant := core.WithPrincipal(t.Context(), core.Principal{Name: "tenant", Rights: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Agent != "a" {
			return errors.New("not its agent")
		}
		return nil
	})})
	bounds := []core.Limit{{Concurrency: 1}}
	_, err := w.SetProfile(t.Context(), core.Profile{Agent: "a", Limits: bounds})
	require.NoError(t, err)

	_, err = w.SetProfile(tenant, core.Profile{Agent: "a", Limits: []core.Limit{{Concurrency: 100}}})
	assert.Equal(t, core.CodeForbidden, core.CodeOf(err), "%v", err)
	_, err = w.SetProfile(tenant, core.Profile{Agent: "b", Limits: bounds})
	assert.Equal(t, core.CodeForbidden, core.CodeOf(err), "%v", err)
	for _, sent := range [][]core.Limit{bounds, nil} { // what it was shown, or none
		set, err := w.SetProfile(tenant, core.Profile{Agent: "a", Zone: "Asia/Tokyo", Limits: sent})
		require.NoError(t, err)
		assert.Equal(t, bounds, set.Limits)
	}
	require.NoError(t, w.DeleteProfile(tenant, "a"))
	left, err := w.Profile(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, bounds, left.Limits)
	assert.Empty(t, left.Zone)
	_, err = w.Forget(tenant, "a", nil)
	require.NoError(t, err)
	left, err = w.Profile(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, bounds, left.Limits)

	require.NoError(t, w.DeleteProfile(t.Context(), "a"), "an operator may")
	_, err = w.Profile(t.Context(), "a")
	assert.ErrorIs(t, err, core.ErrNotFound)
}
