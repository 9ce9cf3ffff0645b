package core_test

// The questions about all agents, and commands for what they find.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// names reads all pages of a list, and returns its tasks as agent/id. A page costs a bounded number of calls.
func (w *world) names(l core.List) []string {
	w.Helper()
	all := []string{}
	for {
		before := w.store.count("read")
		page, next, err := w.s.Tasks(w.Context(), l)
		require.NoError(w, err)
		require.LessOrEqual(w, w.store.count("read")-before, 128+128, "a page has a bounded cost")
		for i := range page {
			all = append(all, page[i].Agent+"/"+page[i].ID)
		}
		if l.Cursor = next; next == "" {
			return all
		}
	}
}

// failing submits tasks of some agents that fail, a second apart, and are dead at once.
func (w *world) failing(agents int, kinds ...string) {
	w.Helper()
	for _, kind := range kinds {
		core.Handle(w.s, kind, func(context.Context, *core.Task[string]) error { return errors.New("no") })
	}
	for i := range agents {
		w.submit(core.NewTask{
			Agent: fmt.Sprint("a", i), ID: "t", Kind: kinds[i%len(kinds)], MaxAttempts: 1, LimitKey: []string{"", "openai:x"}[i%2],
			Labels: map[string]string{"n": fmt.Sprint(i)},
		})
		w.runFailing()
		time.Sleep(time.Second)
	}
}

// Dead letters of all agents come newest first, chosen by kind, key, label and time, without a look at any other task.
func TestDeadLettersOfAllAgents(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for i := range 2000 {
			w.submit(core.NewTask{Agent: fmt.Sprint("idle", i), ID: "t", Kind: "k", Delay: time.Hour})
		}
		w.failing(6, "mail", "digest")
		dead := core.List{Status: []core.Status{core.StatusFailed}}
		choose := func(change func(l *core.List)) []string {
			l := dead
			change(&l)
			return w.names(l)
		}
		before := w.store.count("read")
		assert.Equal(w, []string{"a5/t", "a4/t", "a3/t", "a2/t", "a1/t", "a0/t"}, w.names(dead))
		assert.Equal(w, 1, w.store.count("read")-before)
		assert.Equal(w, []string{"a5/t", "a3/t", "a1/t"}, choose(func(l *core.List) { l.Kind = "digest" }))
		assert.Equal(w, []string{"a5/t", "a3/t", "a1/t"}, choose(func(l *core.List) { l.Key, l.Limit = "openai:x", 1 }))
		assert.Equal(w, []string{"a2/t"}, choose(func(l *core.List) { l.Labels = map[string]string{"n": "2"} }))
		assert.Equal(w, []string{"a3/t", "a2/t"}, choose(func(l *core.List) {
			l.Since, l.Until = w.begun.Add(2*time.Second), w.begun.Add(4*time.Second)
		}))
		assert.Equal(w, []string{"a2/t"}, choose(func(l *core.List) { l.Agent, l.Since = "a2", w.begun.Add(2*time.Second) }))
		assert.Empty(w, choose(func(l *core.List) { l.Agent, l.Until = "a2", w.begun.Add(2*time.Second) }))
	})
}

// What runs of all agents comes with the process that has it and the end of its lease, and what is overdue with nothing that is held or not due.
func TestWhatRunsAndWhatIsOverdueOfAllAgents(t *testing.T) {
	virtual(t, core.Config{Name: "worker-7"}, func(w *world) {
		release := make(chan struct{})
		core.Handle(w.s, "k", func(context.Context, *core.Task[string]) error {
			<-release
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "runs", Kind: "k"}, core.NewTask{Agent: "b", ID: "runs", Kind: "k"})
		done := make(chan core.Report)
		go func() { done <- w.run() }()
		time.Sleep(time.Second)
		w.submit(core.NewTask{Agent: "c", ID: "due", Kind: "k", LimitKey: "x"}, core.NewTask{Agent: "c", ID: "later", Kind: "k", Delay: time.Hour},
			core.NewTask{Agent: "d", ID: "held", Kind: "k", Paused: true})
		time.Sleep(time.Second)
		tasks, _, err := w.s.Tasks(w.Context(), core.List{Status: []core.Status{core.StatusInProgress}})
		require.NoError(w, err)
		require.NotEmpty(w, tasks)
		assert.Equal(w, "worker-7", tasks[0].Holder)
		assert.True(w, tasks[0].LeaseUntil.After(time.Now()))
		text, err := tasks[0].MarshalJSON()
		require.NoError(w, err)
		assert.Contains(w, string(text), `"holder":"worker-7"`)
		assert.Contains(w, string(text), `"lease_until":`)
		close(release)
		<-done
		w.run() // what came while it went on
		assert.Empty(w, w.names(core.List{Status: []core.Status{core.StatusInProgress}}))

		core.Handle(w.s, "never", func(context.Context, *core.Task[string]) error { return nil })
		for i := range 20 {
			w.submit(core.NewTask{Agent: "many", ID: fmt.Sprint(i), Kind: "never", LimitKey: "x"})
		}
		w.submit(core.NewTask{Agent: "many", ID: "paused", Kind: "never", Paused: true})
		time.Sleep(time.Second)
		overdue := w.names(core.List{Overdue: true, Limit: 3})
		assert.Len(w, overdue, 20)
		assert.Len(w, w.names(core.List{Overdue: true, Agent: "many", Key: "x"}), 20)
		assert.Empty(w, w.names(core.List{Overdue: true, Kind: "k"}))
		assert.Len(w, w.names(core.List{Status: []core.Status{core.StatusWaiting}, Key: "x"}), 20)
		assert.Len(w, w.names(core.List{}), 23, "all that is live")
	})
}

// What could only be answered by a look at all there is, or makes no sense, is refused before the store is called.
func TestListsOfAllAgentsRefuse(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		now := time.Now()
		for want, l := range map[string]core.List{
			"agent_id must be given": {Status: []core.Status{core.StatusCompleted}},
			"of all agents":          {Status: []core.Status{core.StatusFailed, core.StatusWaiting}},
			"brief needs an agent":   {Brief: true},
			"overdue is about":       {Overdue: true, Status: []core.Status{core.StatusFailed}},
			"since and until are":    {Since: now},
			"until are about":        {Agent: "a", Until: now, Status: []core.Status{core.StatusWaiting}},
			"later than since":       {Status: []core.Status{core.StatusFailed}, Since: now, Until: now},
			"limit must be between":  {Limit: -1},
			"key has the control":    {Key: "\x00"},
			"cursor is invalid":      {Overdue: true, Cursor: "x"},
		} {
			_, _, err := w.s.Tasks(w.Context(), l)
			require.ErrorContains(w, err, want)
			require.Equal(w, core.CodeInvalid, core.CodeOf(err))
		}
		for want, b := range map[string]operate.Bulk{
			"do must be":                {Do: "explode"},
			"status must not be failed": {Do: operate.BulkCancel, List: core.List{Status: []core.Status{core.StatusFailed}}},
			"status must be":            {Do: operate.BulkCancel, List: core.List{Status: []core.Status{"odd"}}},
			"status must say":           {Do: operate.BulkDelete, All: true},
			"all must be true":          {Do: operate.BulkCancel, Confirm: true},
			"all must be left out":      {Do: operate.BulkCancel, List: core.List{Kind: "a"}, All: true},
			"count must not be":         {Do: operate.BulkCancel, All: true, Count: -1},
			"count must be left out":    {Do: operate.BulkCancel, All: true, Count: 1, Confirm: true},
			"brief is for":              {Do: operate.BulkReplay, List: core.List{Agent: "a", Brief: true}},
			"reason ":                   {Do: operate.BulkPause, All: true, Order: core.Order{Reason: string(make([]byte, 5000))}},
			"by has the":                {Do: operate.BulkPause, All: true, Order: core.Order{By: "\x00"}},
		} {
			_, err := w.s.Bulk(w.Context(), b)
			require.ErrorContains(w, err, want)
			require.Equal(w, core.CodeInvalid, core.CodeOf(err))
		}
	})
}

// carryOut repeats the steps of a command to its end, and sums them up.
func (w *world) carryOut(b operate.Bulk) (sum operate.BulkStep, steps int) {
	w.Helper()
	b.Confirm = !b.DryRun
	for {
		step, err := w.s.Bulk(w.Context(), b)
		require.NoError(w, err)
		steps++
		sum.Matched += step.Matched
		sum.Changed += step.Changed
		sum.Refused = append(sum.Refused, step.Refused...)
		sum.Left += step.Left
		if b.List.Cursor = step.Next; step.Next == "" {
			return sum, steps
		}
	}
}

// A bulk command counts first, goes on where a step ended, and does to each task what the command for one does.
func TestBulkCommands(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.failing(10, "mail", "digest")
		replay := operate.Bulk{Do: operate.BulkReplay, List: core.List{Kind: "mail", Limit: 2}, DryRun: true}
		counted, _ := w.carryOut(replay)
		assert.Equal(w, [2]int{5, 0}, [2]int{counted.Matched, counted.Changed})
		assert.Len(w, w.names(core.List{Status: []core.Status{core.StatusFailed}}), 10, "nothing has changed")
		replay.DryRun = false
		sum, steps := w.carryOut(replay)
		assert.Equal(w, [2]int{5, 5}, [2]int{sum.Matched, sum.Changed})
		assert.GreaterOrEqual(w, steps, 3)
		assert.Len(w, w.names(core.List{Status: []core.Status{core.StatusFailed}}), 5)

		waiting := core.List{Status: []core.Status{core.StatusWaiting}, Kind: "mail", Limit: 2}
		sum, _ = w.carryOut(operate.Bulk{Do: operate.BulkPause, List: waiting, Order: core.Order{By: "ann", Reason: "incident"}})
		assert.Equal(w, [2]int{5, 5}, [2]int{sum.Matched, sum.Changed})
		sum, _ = w.carryOut(operate.Bulk{Do: operate.BulkPause, List: waiting})
		assert.Zero(w, sum.Matched, "what is paused is not paused again")
		assert.Equal(w, "incident", w.task("a0", "t").Pauses[0].Reason)
		w.run()
		sum, _ = w.carryOut(operate.Bulk{Do: operate.BulkResume, List: waiting})
		assert.Equal(w, 5, sum.Changed)
		sum, _ = w.carryOut(operate.Bulk{Do: operate.BulkCancel, List: core.List{Kind: "mail"}, Order: core.Order{By: "ann"}})
		assert.Equal(w, 5, sum.Changed)
		assert.Equal(w, core.StatusCancelled, w.task("a0", "t").Status)
		sum, _ = w.carryOut(operate.Bulk{Do: operate.BulkDelete, List: core.List{Status: []core.Status{core.StatusFailed}, Limit: 3}})
		assert.Equal(w, 5, sum.Changed)
		assert.Empty(w, w.names(core.List{Status: []core.Status{core.StatusFailed}}))
		w.submit(core.NewTask{Agent: "r", ID: "t", Kind: "mail", Delay: time.Hour})
		sum, _ = w.carryOut(operate.Bulk{Do: operate.BulkRun, All: true})
		assert.Equal(w, 1, sum.Changed)
		assert.Equal(w, 1, w.runFailing0Ran())
	})
}

// A command that does not say whom it means, or for how many, changes nothing.
func TestBulkSaysWhomItMeans(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.failing(3, "mail")
		for _, verb := range []operate.BulkVerb{operate.BulkReplay, operate.BulkCancel, operate.BulkDelete, operate.BulkRun, operate.BulkPause, operate.BulkResume} {
			_, err := w.s.Bulk(w.Context(), operate.Bulk{Do: verb, Confirm: true})
			require.ErrorContains(w, err, "all must be true", verb)
		}
		replay := operate.Bulk{Do: operate.BulkReplay, List: core.List{Kind: "mail"}}
		_, err := w.s.Bulk(w.Context(), replay)
		require.ErrorContains(w, err, "confirm must be true, or count the number of tasks: this step would replay 3")
		for _, replay.Count = range []int{2, 4} {
			_, err = w.s.Bulk(w.Context(), replay)
			require.ErrorIs(w, err, model.ErrCount)
			require.Equal(w, core.CodeConflict, core.CodeOf(err))
		}
		assert.Len(w, w.names(core.List{Status: []core.Status{core.StatusFailed}}), 3, "nothing has changed")
		replay.Count = 3
		step, err := w.s.Bulk(w.Context(), replay)
		require.NoError(w, err)
		assert.Equal(w, 3, step.Changed)
	})
}

// runFailing0Ran pulls once, whatever becomes of the runs, and returns how many there were.
func (w *world) runFailing0Ran() int {
	w.Helper()
	report, _ := w.s.RunDue(w.Context(), core.Scope{})
	return report.Ran
}

// A task that may not be changed, or has changed, is named and keeps no other from its change; an error of the store ends the step.
func TestBulkRefusals(t *testing.T) {
	odd := errors.New("not by bulk")
	config := core.Config{Allow: func(_ context.Context, tr core.Transition) error {
		if tr.Type == model.EventReplay && len(tr.Agent) > 0 && (tr.Agent[len(tr.Agent)-1]-'0')%2 == 1 {
			return odd
		}
		return nil
	}}
	virtual(t, config, func(w *world) {
		w.failing(30, "mail")
		sum, err := w.s.Bulk(w.Context(), operate.Bulk{Do: operate.BulkReplay, All: true, Confirm: true})
		require.NoError(w, err)
		assert.Equal(w, [4]int{30, 15, 10, 5}, [4]int{sum.Matched, sum.Changed, len(sum.Refused), sum.Left})
		assert.Equal(w, core.CodeForbidden, sum.Refused[0].Code)
		assert.Contains(w, sum.Refused[0].Error, "not by bulk")
		w.store.fail = func(verb string, _ int) error {
			if verb == "control" {
				return errors.New("the store is away")
			}
			return nil
		}
		_, err = w.s.Bulk(w.Context(), operate.Bulk{Do: operate.BulkDelete, List: core.List{Status: []core.Status{core.StatusFailed}}, Confirm: true})
		require.ErrorContains(w, err, "the store is away")
		require.ErrorContains(w, err, "delete task t of agent a")
	})
}

// Lists select by what is inside tasks, of one agent and of all, and a caller may bound the calls of a page.
func TestListsLookInsideTasks(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.failing(2, "mail", "digest")
		core.Handle(w.s, "ask", func(context.Context, *core.Task[string]) error {
			return core.Await(core.Signal{Key: "k", Question: "Why?"}, nil)
		})
		core.Handle(w.s, "approve", func(context.Context, *core.Task[string]) error {
			return core.Await(core.Signal{Key: "k", From: core.FromApproval}, nil)
		})
		core.Handle(w.s, "program", func(context.Context, *core.Task[string]) error { return core.Await(core.Signal{Key: "k"}, nil) })
		w.submit(core.NewTask{Agent: "b", ID: "ask", Kind: "ask"}, core.NewTask{Agent: "c:d", ID: "approve:1/x", Kind: "approve"}, core.NewTask{Agent: "e", ID: "program", Kind: "program"})
		w.run()
		w.submit(core.NewTask{Agent: "b", ID: "soon", Kind: "mail", Delay: time.Hour, SessionID: "s"}, core.NewTask{Agent: "b", ID: "later", Kind: "mail", Delay: 3 * time.Hour})
		failed := []core.Status{core.StatusFailed}
		for _, c := range []struct {
			list core.List
			want []string
		}{
			{core.List{Session: "s"}, []string{"b/soon"}},
			{core.List{Session: "s", Agent: "b"}, []string{"b/soon"}},
			{core.List{Text: "APP"}, []string{"c:d/approve:1/x"}},
			{core.List{Text: "no", Status: failed}, []string{"a1/t", "a0/t"}},
			{core.List{Text: "other", Status: failed}, []string{}},
			{core.List{Cause: "no", Status: failed, Kind: "mail"}, []string{"a0/t"}},
			{core.List{Cause: "n", Status: failed}, []string{}},
			{core.List{DueBy: time.Now().Add(2 * time.Hour), Agent: "b"}, []string{"b/soon"}},
			{core.List{Asking: true}, []string{"b/ask", "c:d/approve:1/x"}},
			{core.List{Asking: true, Agent: "b"}, []string{"b/ask"}},
			{core.List{Asking: true, Agent: "e"}, []string{}},
		} {
			assert.ElementsMatch(w, c.want, w.names(c.list), "%+v", c.list)
		}
		for i := range 40 {
			w.submit(core.NewTask{Agent: fmt.Sprint("many", i), ID: "t", Kind: "mail", Delay: time.Hour})
		}
		before := w.store.count("read")
		_, next, err := w.s.Tasks(w.Context(), core.List{Kind: "mail", Reads: 8})
		require.NoError(w, err)
		assert.LessOrEqual(w, w.store.count("read")-before, 8)
		assert.NotEmpty(w, next)
		assert.Len(w, w.names(core.List{Kind: "mail", Reads: 2}), 42, "pages that read little have all tasks, too")
		for _, l := range []core.List{{Reads: 1}, {Asking: true, Overdue: true}, {Asking: true, Status: failed}, {Session: "\xff"}} {
			_, _, err := w.s.Tasks(w.Context(), l)
			assert.Equal(w, core.CodeInvalid, core.CodeOf(err), "%+v", l)
		}
	})
}
