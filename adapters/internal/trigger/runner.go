package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// Runner runs what is due when a trigger says so. It is safe for concurrent use.
type Runner struct {
	Scheduler *core.Scheduler
	Logger    *slog.Logger // gets a line for each pull and one for each run that failed

	seen repeats
}

// Run runs what is due within a scope, unless this occasion has been served before. One that failed, or left due work
// behind, is not remembered: its repeat has work to do. Handlers that fail are part of the answer, not an error. With a
// *core.AwayError the answer is what was done for the partitions that are not away.
func (r *Runner) Run(ctx context.Context, scope core.Scope, key Occasion) (answer Answer, repeated bool, err error) {
	if r.seen.has(key) {
		return Answer{}, true, nil
	}
	answer, err = r.run(ctx, scope)
	if err == nil && !answer.Report.More {
		r.seen.add(key)
	}
	return answer, false, err
}

func (r *Runner) run(ctx context.Context, scope core.Scope) (Answer, error) {
	report, err := r.Scheduler.RunDue(ctx, scope)
	answer := Answer{Report: report}
	runs, failed := errors.AsType[*core.RunsError](err)
	away, partly := errors.AsType[*core.AwayError](err)
	if failed {
		answer.Failures, err = runs.Failures, nil
	}
	if err != nil && !partly {
		return Answer{}, err
	}
	r.log(ctx, answer)
	if partly {
		return answer, away
	}
	return answer, nil
}

// RunSubmitted runs what is due for the agents whose tasks a message brought. An error is none of the sender's affair: the
// tasks are safe, and the next tick runs them.
func (r *Runner) RunSubmitted(ctx context.Context, submitted []core.Submitted) {
	agents := make([]string, len(submitted))
	for i := range submitted {
		agents[i] = submitted[i].Agent
	}
	slices.Sort(agents)
	for some := range slices.Chunk(slices.Compact(agents), core.MaxAgents) {
		if _, err := r.run(ctx, core.Scope{Agents: some}); err != nil {
			r.Logger.LogAttrs(ctx, slog.LevelWarn, "what was submitted could not be run now", slog.Any("err", err))
			return
		}
	}
}

func (r *Runner) log(ctx context.Context, a Answer) {
	for _, run := range a.Failures {
		r.Logger.LogAttrs(ctx, slog.LevelWarn, "a run failed", slog.String("agent", run.Agent),
			slog.String("task", run.ID), slog.String("kind", run.Kind), slog.String("err", Clip(run.Err.Error(), MaxError)))
	}
	r.Logger.LogAttrs(ctx, slog.LevelInfo, "tick", slog.Int("agents", a.Report.Agents), slog.Int("ran", a.Report.Ran),
		slog.Int("completed", a.Report.Completed), slog.Int("failed", a.Report.Failed), slog.Int("retried", a.Report.Retried),
		slog.Int("released", a.Report.Released), slog.Int("left", a.Report.Left), slog.Any("away", a.Report.Away),
		slog.Bool("more", a.Report.More), slog.Duration("took", a.Report.Duration))
}

// Answer is what a pull did.
type Answer struct {
	Report   core.Report
	Failures []core.RunFailure // the first runs that failed
}

// MarshalJSON writes the report as everywhere, and adds the failures as a member of that name.
func (a Answer) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(a.Report)
	if err != nil || len(a.Failures) == 0 {
		return data, err
	}
	type failure struct {
		Agent string `json:"agent_id"`
		ID    string `json:"id"`
		Kind  string `json:"kind"`
		Error string `json:"error"`
	}
	list := make([]failure, len(a.Failures))
	for i, run := range a.Failures {
		list[i] = failure{run.Agent, run.ID, run.Kind, Clip(run.Err.Error(), MaxError)}
	}
	failures, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	data = append(data[:len(data)-1], `,"failures":`...)
	return append(append(data, failures...), '}'), nil
}

// Bounds of what is told and logged of others' texts, in bytes.
const (
	MaxName  = 40
	MaxError = 1024
)

// Clip bounds a text, at a rune's edge.
func Clip(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
