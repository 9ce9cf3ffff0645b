package trigger

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// A triggered pull: what is logged about it, and what a host answers.

// Runner runs what is due when a trigger says so. It is safe for concurrent use.
type Runner struct {
	Scheduler *core.Scheduler
	Logger    *slog.Logger // gets a line for each pull and one for each run that failed
	// Also, if it is set, has what a host adds to the line of a pull.
	Also func(report *core.Report) []slog.Attr

	seen repeats
}

// Run runs what is due within a scope, unless this occasion has been served before. One that failed, or left due work
// behind, is not remembered: its repeat has work to do. Handlers that fail are part of the report, not an error. With a
// *core.AwayError the report is what was done for the partitions that are not away, and with a *core.AlarmError all of it.
// The occasion is only looked up and stored around the pull: two deliveries at the same
// time both pull, and leases keep them apart.
func (r *Runner) Run(ctx context.Context, scope core.Scope, key Occasion) (report core.Report, repeated bool, err error) {
	if r.seen.has(key) {
		return core.Report{}, true, nil
	}
	report, err = r.run(ctx, scope)
	if err == nil && !report.More {
		r.seen.add(key)
	}
	return report, false, err
}

// run pulls once. Of the errors that a pull returns with a complete report it keeps those that the sender should retry for: absent
// partitions, and an alarm that could not be set. The report names the handlers that failed.
func (r *Runner) run(ctx context.Context, scope core.Scope) (core.Report, error) {
	report, err := r.Scheduler.RunDue(ctx, scope)
	away, partly := errors.AsType[*core.AwayError](err)
	unbooked, unset := errors.AsType[*core.AlarmError](err)
	if err != nil && !partly && !unset && core.CodeOf(err) != core.CodeRunsFailed {
		return core.Report{}, err
	}
	r.log(ctx, &report)
	if unset {
		return report, unbooked
	}
	// The report is returned with the error, as most of the work was done.
	if partly {
		return report, away
	}
	return report, nil
}

// RunSubmitted runs what is due for the agents whose tasks a message brought. An error does not concern the sender: the
// tasks are safe, and the next tick runs them.
func (r *Runner) RunSubmitted(ctx context.Context, submitted []core.Submitted) {
	agents := make([]string, len(submitted))
	for i := range submitted {
		agents[i] = submitted[i].Agent
	}
	// As many at a time as one pull may name.
	slices.Sort(agents)
	for some := range slices.Chunk(slices.Compact(agents), core.MaxAgents) {
		if _, err := r.run(ctx, core.Scope{Agents: some}); err != nil {
			r.Logger.LogAttrs(ctx, slog.LevelWarn, "submitted tasks could not be run now", slog.Any("err", err))
			return
		}
	}
}

// log writes what a pull did, as most triggers discard the answer.
func (r *Runner) log(ctx context.Context, report *core.Report) {
	for _, run := range report.Failures {
		r.Logger.LogAttrs(ctx, slog.LevelWarn, "a run failed", slog.String("agent", run.Agent),
			slog.String("task", run.ID), slog.String("kind", run.Kind), slog.String("err", Clip(run.Err.Error(), MaxError)))
	}
	attrs := []slog.Attr{
		slog.Int("agents", report.Agents), slog.Int("ran", report.Ran),
		slog.Int("completed", report.Completed), slog.Int("failed", report.Failed), slog.Int("retried", report.Retried),
		slog.Int("released", report.Released), slog.Int("left", report.Left), slog.Any("away", report.Away),
		slog.Bool("more", report.More), slog.Duration("took", report.Duration),
	}
	if r.Also != nil {
		attrs = append(attrs, r.Also(report)...)
	}
	r.Logger.LogAttrs(ctx, slog.LevelInfo, "tick", attrs...)
}

// Bounds of the texts of others in answers and logs, in bytes.
const (
	MaxName  = 40
	MaxError = 1024
)

// Clip bounds a text, at a rune's edge.
// An invalid end is cut off, so that a log stays valid UTF-8.
func Clip(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
