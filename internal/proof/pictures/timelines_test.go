package pictures_test

// The stories of a pull, of bounds and of quiet hours.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
	"github.com/seed-6f6f2c11/duly/dulytest"
	"github.com/seed-6f6f2c11/duly/internal/proof/pictures"
)

// claim is a process that takes what is due and never says anything again; recovery takes nothing, and finds what that has left.
var (
	claim    = store.ClaimRequest{Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 1, Lease: time.Second}
	recovery = store.ClaimRequest{Nonce: "fedcba9876543210", Leave: []string{"k"}, Limit: 1, Lease: time.Second}
)

// says is what each verb of a pull does, in the words of the package store.
var says = map[string]string{
	"Look":   "when is what due? takes nothing",
	"Claim":  "one atomic step: lease what is due, a share of each agent",
	"Settle": "store the outcomes, each checked against its fence",
}

// steps are those of a pull that finds three tasks of two agents.
func steps(t *testing.T) (out []pictures.Step) {
	t.Helper()
	s := dulytest.New(t, core.Config{})
	var mu sync.Mutex
	ticks := map[string][]string{}
	ticked := func() {
		mu.Lock()
		defer mu.Unlock()
		step := pictures.Step{}
		for agent, tasks := range ticks {
			step.Ticks = append(step.Ticks, fmt.Sprintf("tick of %s: runs %s", agent, strings.Join(tasks, ", ")))
		}
		if slices.Sort(step.Ticks); len(step.Ticks) > 0 {
			out = append(out, step)
		}
		clear(ticks)
	}
	for _, task := range []core.NewTask{{Agent: "ada", ID: "1", Kind: "k"}, {Agent: "ada", ID: "2", Kind: "k"}, {Agent: "bob", ID: "1", Kind: "k"}} {
		submit(t, s, task)
	}
	var all sync.WaitGroup // no run ends before all have begun: else some are settled first
	all.Add(3)
	core.Handle(s.Scheduler, "k", func(_ context.Context, task *core.Task[any]) error {
		mu.Lock()
		ticks[task.Agent] = append(ticks[task.Agent], task.ID)
		slices.Sort(ticks[task.Agent])
		mu.Unlock()
		all.Done()
		all.Wait()
		return nil
	})
	s.Store.Store = &spy.Store{Store: s.Store.Store, Before: func(_ context.Context, verb string) error {
		ticked()
		mu.Lock()
		defer mu.Unlock()
		if says[verb] != "" && (len(out) == 0 || out[len(out)-1].Verb != verb) {
			out = append(out, pictures.Step{Verb: verb, Says: says[verb]})
		}
		return nil
	}}
	s.RunDue(t)
	for _, verb := range []string{"Look", "Claim", "Settle"} {
		assert.True(t, slices.ContainsFunc(out, func(s pictures.Step) bool { return s.Verb == verb }), "a pull calls %s", verb)
	}
	return out
}

// lines are those of a limit, whose agents take turns, and of a budget that is used up.
func lines(t *testing.T) []pictures.Line {
	t.Helper()
	limit := pictures.Line{Bound: "limit: kind digest, rate 1/1s", StartedComment: "one a second, in turn"}
	s := begun(t, &limit, core.Config{Limits: []core.Limit{{About: core.LimitTarget{Kind: "digest"}, Rate: 1, Per: time.Second}}})
	for range limit.Submitted {
		s.RunDue(t)
		s.Clock.Advance(time.Second)
	}
	assert.Empty(t, held(t, s, &limit))
	assert.NotEqual(t, limit.Submitted, limit.Started, "agents take turns: nobody waits for all that another has in line")

	budget := pictures.Line{Bound: "budget: each agent, 2 runs per day", StartedComment: "two of each agent"}
	about := core.BudgetTarget{LimitTarget: core.LimitTarget{Each: core.EachAgent}, Unit: bound.UnitRuns, Per: core.PerDay}
	s = begun(t, &budget, core.Config{Budgets: []core.Budget{{About: about, Amount: core.AmountOf(2)}}})
	s.RunDue(t)
	slices.Sort(budget.Started) // those that may run at once have no order
	require.NotEmpty(t, held(t, s, &budget))
	today := budget // what starts tomorrow is not of today
	s.Clock.Advance(24 * time.Hour)
	assert.Equal(t, len(today.Held), s.RunDue(t).Completed, "the next day has a new budget")
	today.Until = "until the next day"
	return []pictures.Line{limit, today}
}

// begun submits digests of three agents, to a scheduler that has set its bounds.
func begun(t *testing.T, line *pictures.Line, config core.Config) *dulytest.Scheduler {
	t.Helper()
	var mu sync.Mutex
	s := dulytest.New(t, config)
	core.Handle(s.Scheduler, "digest", func(_ context.Context, task *core.Task[any]) error {
		mu.Lock()
		defer mu.Unlock()
		line.Started = append(line.Started, task.Agent+" "+task.ID)
		return nil
	})
	s.RunDue(t) // sets the bounds
	line.Submitted = []string{"ada 1", "ada 2", "ada 3", "ada 4", "bob 1", "cleo 1"}
	for _, task := range line.Submitted {
		agent, id, _ := strings.Cut(task, " ")
		if task == "bob 1" {
			s.RunDue(t) // ada's are first, and all in line before anybody else comes
		}
		submit(t, s, core.NewTask{Agent: agent, ID: id, Kind: "digest"})
	}
	return s
}

// held are the tasks that did not start, with what Explain says of them.
func held(t *testing.T, s *dulytest.Scheduler, line *pictures.Line) []string {
	t.Helper()
	for _, task := range line.Submitted {
		if slices.Contains(line.Started, task) {
			continue
		}
		agent, id, _ := strings.Cut(task, " ")
		e, err := s.Explain(t.Context(), agent, id)
		require.NoError(t, err)
		line.Held = append(line.Held, task)
		line.Because = string(e.Reasons[0].Code)
	}
	return line.Held
}

// quiet is a day and a half of an agent with a task that is due every two hours, without and with quiet hours.
func quiet(t *testing.T) string {
	t.Helper()
	const hours = 36
	s := dulytest.New(t, core.Config{})
	from := s.Clock.Now().UTC()
	_, err := s.SetProfile(t.Context(), core.Profile{Agent: "bob", Quiet: []core.QuietHours{{From: "22:00", To: "07:00"}}})
	require.NoError(t, err)
	starts := map[string][]time.Time{}
	var mu sync.Mutex
	core.Handle(s.Scheduler, "k", func(_ context.Context, task *core.Task[any]) error {
		mu.Lock()
		defer mu.Unlock()
		starts[task.Agent] = append(starts[task.Agent], s.Clock.Now().UTC())
		return nil
	})
	for _, agent := range []string{"ada", "bob"} {
		submit(t, s, core.NewTask{Agent: agent, ID: "poll", Kind: "k", Cron: "0 */2 * * *"})
	}
	for s.Clock.Now().Before(from.Add(hours * time.Hour)) {
		s.RunDue(t)
		s.Clock.Advance(30 * time.Minute)
	}
	night := func(day int) [2]time.Time {
		return [2]time.Time{from.Add(time.Duration(24*day-2) * time.Hour), from.Add(time.Duration(24*day+7) * time.Hour)}
	}
	first := night(0)
	first[0] = from
	for _, at := range starts["bob"] {
		for _, q := range [][2]time.Time{first, night(1)} {
			assert.False(t, at.After(q[0]) && at.Before(q[1]), "no start at %s", at)
		}
	}
	return pictures.Quiet(from, hours, [][2]time.Time{first, night(1)}, []pictures.Day{{Name: "without", Starts: starts["ada"]}, {Name: "with quiet hours", Starts: starts["bob"]}})
}
