package inspect

// Whether one agent takes most of what runs while others wait.

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// fewestUnderWay is how many runs there have to be for shares of them to mean something.
const fewestUnderWay = 4

// shares says which agent has more than half of what is under way while tasks of others have been due for more than a minute. It looks at the first thousand
// tasks of both, and at none if nothing is overdue.
func shares(ctx context.Context, s *View, h *Health) (Finding, error) {
	fine := well("shares", "no agent has more than half of the runs while others are overdue")
	if h.Overdue() == 0 {
		return fine, nil
	}
	running, _, err := s.tasksOfAll(ctx, List{Status: []store.Status{store.StatusInProgress}, Limit: MaxPage})
	if err != nil {
		return Finding{}, err
	}
	most, n := mostOf(running)
	if len(running) < fewestUnderWay || 2*n <= len(running) {
		return fine, nil
	}
	due, _, err := s.tasksOfAll(ctx, List{Overdue: true, Limit: MaxPage})
	if err != nil {
		return Finding{}, err
	}
	others := map[string]bool{}
	for i := range due {
		if t := &due[i]; t.Agent != most && h.Stats.Now.Sub(t.NextRun) >= lateAfter {
			others[t.Agent] = true
		}
	}
	if len(others) == 0 {
		return fine, nil
	}
	return Finding{
		"shares", SeverityWarning, fmt.Sprintf("agent %q has %d of the %d runs under way, and tasks of %s have been due for more than a minute", most, n, len(running), some(len(others), "other agent")),
		"duly top shows who takes what; duly limit set --each agent bounds the runs of each, and duly pause stops one",
	}, nil
}

// mostOf is the agent with the most of some tasks, and how many it has.
func mostOf(tasks []model.TaskInfo) (agent string, n int) {
	of := map[string]int{}
	for i := range tasks {
		of[tasks[i].Agent]++
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] > n {
			agent, n = name, of[name]
		}
	}
	return agent, n
}
