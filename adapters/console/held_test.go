package console_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// All that holds tasks is on one page, with how many wait for it: pauses of every sort, kinds without a process, limits and budgets.
func TestHeld(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	f.get("/ui/held").says(t, "Nothing is held.")
	ctx := t.Context()
	require.NoError(t, f.scheduler.SetBudgets(ctx, core.Budget{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "ok"}, Unit: "runs", Per: "day"}, Amount: core.AmountOf(1)}))
	f.submit(core.NewTask{Agent: "eve", Kind: "ok", Delay: time.Hour})
	for _, id := range []string{"1", "2", "3"} {
		f.submit(core.NewTask{Agent: "ann", ID: id, Kind: "ok"}, core.NewTask{Agent: "bob", ID: id, Kind: "zed"}, core.NewTask{Agent: "bob", ID: "later" + id, Kind: "bad", Delay: time.Hour})
	}
	require.NoError(t, f.scheduler.Pause(ctx, core.Target{Kind: "bad"}, core.Pause{By: "ops", Reason: "a move", Until: time.Now().Add(time.Hour)}))
	require.NoError(t, f.scheduler.Pause(ctx, core.Target{Agent: "eve"}, core.Pause{}))
	require.NoError(t, f.scheduler.Pause(ctx, core.Target{Agent: "bob", ID: "later1"}, core.Pause{}))
	f.run()
	a := f.get("/ui/held")
	for _, says := range []string{
		"kind &#34;zed&#34;", "no known process has a handler", `href="/ui/tasks?kind=zed"`,
		"1 runs a day of kind &#34;ok&#34;", "100 % used; the next period begins in", `<td class="num" data-h="Tasks that wait">2</td>`,
		"by ops: a move", `href="/ui/tasks?kind=bad&amp;status=waiting"`,
		`href="/ui/tasks?agent=eve&amp;status=waiting"`, `<td class="num" data-h="Tasks that wait">–</td>`,
		`href="/ui/task?agent=bob&amp;id=later1"`, "Resume",
	} {
		a.says(t, says)
	}
	f.get("/ui").says(t, `href="/ui/held"`)
	f.with(console.Options{ReadOnly: true}).get("/ui/held").lacks(t, "Resume")
	before := f.calls.Load()
	f.get("/ui/held")
	assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
}
