package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// The members of a tick that EventBridge Scheduler fills in.
const (
	scheduleARN   = "schedule-arn"
	scheduledTime = "scheduled-time"
)

// order is what a tick is to do.
type order struct {
	scope core.Scope
	key   occasion // of the schedule; the zero value if none is named
}

// scheduled is the tick of an EventBridge rule or of a schedule without an input of its own. Its detail says nothing.
func (f *Function) scheduled(ctx context.Context, o object) (json.RawMessage, error) {
	arn := ""
	if resources := value[[]string](o, "resources"); len(resources) > 0 {
		arn = resources[0]
	}
	// A rule's event without them is still a tick: only the memory of repeats does without it.
	key, _ := newOccasion(arn, o.text("time"))
	return f.run(ctx, order{key: key})
}

// tick is an event made for us: all that it says must make sense.
func (f *Function) tick(ctx context.Context, o object) (json.RawMessage, error) {
	what, err := readTick(o)
	if err != nil {
		return nil, err
	}
	return f.run(ctx, what)
}

// readTick reads a tick strictly. It is for all agents unless it names some.
func readTick(o object) (order, error) {
	var agents []string
	var kind, arn, at string
	var ignored any
	var limit int
	var timeout int64
	all := true
	err := readFields(o,
		field{"kind", &kind, `must be "tick"`},
		field{"agent_ids", &agents, "must be a list of texts"},
		field{"all", &all, "must be true or false"},
		field{"max", &limit, "must be a whole number"},
		field{"timeout_ms", &timeout, "must be a whole number of milliseconds"},
		field{scheduleARN, &arn, "must be a text"},
		field{scheduledTime, &at, "must be a text"},
		field{"execution-id", &ignored, ""}, // another one at each attempt, so nothing to tell repeats by
		field{"attempt-number", &ignored, ""},
	)
	switch {
	case err != nil:
		return order{}, err
	case agents == nil && !all:
		return order{}, &core.InvalidError{Field: "agent_ids", Reason: `is required, or "all": true`}
	case agents != nil && o.has("all") && all:
		return order{}, &core.InvalidError{Field: "all", Reason: "excludes agent_ids"}
	}
	const longest = int64(24 * time.Hour / time.Millisecond)
	what := order{scope: core.Scope{
		Agents: agents, MaxTasks: limit, MaxDuration: time.Duration(min(max(timeout, -1), longest)) * time.Millisecond,
	}}
	if arn != "" || at != "" {
		what.key, err = newOccasion(arn, at)
	}
	return what, err
}

// field is a member of a JSON object: what it is read into, and what to say if that fails.
type field struct {
	name string
	into any
	must string
}

// readFields reads an object strictly: a member that is no field is refused. One that is null counts as left out.
func readFields(o object, fields ...field) error {
	known := map[string]bool{}
	for _, f := range fields {
		known[f.name] = true
		if o.has(f.name) && json.Unmarshal(o[f.name], f.into) != nil {
			return &core.InvalidError{Field: f.name, Reason: f.must}
		}
	}
	var others []string
	for name := range o {
		if !known[name] {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return &core.InvalidError{Field: clip(others[0], mostName), Reason: "is not a field of a tick"}
}

// newOccasion checks what names an occasion: a placeholder that nobody filled in would make all ticks one.
func newOccasion(arn, at string) (occasion, error) {
	if !strings.HasPrefix(arn, "arn:") {
		return occasion{}, &core.InvalidError{Field: scheduleARN, Reason: "must be the ARN of a schedule: <aws.scheduler.schedule-arn>"}
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return occasion{}, &core.InvalidError{Field: scheduledTime, Reason: "must be a time in RFC 3339: <aws.scheduler.scheduled-time>"}
	}
	return occasion{arn, when.UTC().Format(time.RFC3339Nano)}, nil
}

// run runs what is due, unless this occasion has been served before.
func (f *Function) run(ctx context.Context, what order) (json.RawMessage, error) {
	if f.seen.has(what.key) {
		return json.Marshal(struct {
			Duplicate bool   `json:"duplicate"`
			ARN       string `json:"schedule-arn"`
			Time      string `json:"scheduled-time"`
		}{true, what.key.arn, what.key.time})
	}
	report, err := f.scheduler.RunDue(ctx, what.scope)
	failed, err := failures(err)
	if err != nil {
		return nil, fmt.Errorf("lambda: tick: %w", err)
	}
	f.seen.add(what.key)
	f.logTick(ctx, report, failed)
	return encodeReport(report, failed)
}

// failures are the runs that failed, apart from what went wrong with the pull itself.
func failures(err error) ([]core.RunFailure, error) {
	if runs, ok := errors.AsType[*core.RunsError](err); ok {
		return runs.Failures, nil
	}
	return nil, err
}

func (f *Function) logTick(ctx context.Context, r core.Report, failed []core.RunFailure) {
	for _, run := range failed {
		f.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a run failed", slog.String("agent", run.Agent),
			slog.String("task", run.ID), slog.String("kind", run.Kind), slog.String("err", clip(run.Err.Error(), mostError)))
	}
	f.config.Logger.LogAttrs(ctx, slog.LevelInfo, "tick", slog.Int("agents", r.Agents), slog.Int("ran", r.Ran),
		slog.Int("completed", r.Completed), slog.Int("failed", r.Failed), slog.Int("retried", r.Retried),
		slog.Int("released", r.Released), slog.Bool("more", r.More), slog.Duration("took", r.Duration))
}

// mostError is how much of a run's error is told, in bytes.
const mostError = 1024

// failureJSON is a run that failed.
type failureJSON struct {
	Agent string `json:"agent_id"`
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// encodeReport writes the report as everywhere, and adds the first runs that failed.
func encodeReport(r core.Report, failed []core.RunFailure) (json.RawMessage, error) {
	data, err := json.Marshal(r)
	if err != nil || len(failed) == 0 {
		return data, err
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	list := make([]failureJSON, len(failed))
	for i, run := range failed {
		list[i] = failureJSON{run.Agent, run.ID, run.Kind, clip(run.Err.Error(), mostError)}
	}
	members["failures"] = list
	return json.Marshal(members)
}

// clip bounds a text, at a rune's edge.
func clip(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
