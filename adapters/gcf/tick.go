package gcf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core"
)

// object is a JSON object whose values are read when they are asked for. Unlike encoding/json it tells apart names that
// differ in case only.
type object map[string]json.RawMessage

// parse reads a JSON object; nil if it is none.
func parse(data []byte) object {
	var o object
	if json.Unmarshal(data, &o) != nil || !utf8.Valid(data) {
		return nil
	}
	return o
}

func (o object) has(name string) bool {
	value, ok := o[name]
	return ok && string(value) != "null"
}

// isTick reports whether an object means a tick. A task of the kind "tick" belongs to an agent.
func (o object) isTick() bool {
	var kind string
	return json.Unmarshal(o["kind"], &kind) == nil && kind == "tick" && !o.has("agent_id")
}

// readTick reads a tick strictly. It is for all agents unless it names some.
func readTick(o object) (core.Scope, error) {
	var agents []string
	var kind string
	var limit int
	var timeout int64
	all := true
	err := readFields(o,
		field{"kind", &kind, `must be "tick"`},
		field{"agent_ids", &agents, "must be a list of texts"},
		field{"all", &all, "must be true or false"},
		field{"max", &limit, "must be a whole number"},
		field{"timeout_ms", &timeout, "must be a whole number of milliseconds"},
	)
	switch {
	case err != nil:
		return core.Scope{}, err
	case o.has("kind") && kind != "tick":
		return core.Scope{}, &core.InvalidError{Field: "kind", Reason: `must be "tick"`}
	case agents == nil && !all:
		return core.Scope{}, &core.InvalidError{Field: "agent_ids", Reason: `is required, or "all": true`}
	case agents != nil && o.has("all") && all:
		return core.Scope{}, &core.InvalidError{Field: "all", Reason: "excludes agent_ids"}
	}
	const longest = int64(24 * time.Hour / time.Millisecond)
	return core.Scope{
		Agents: agents, MaxTasks: limit, MaxDuration: time.Duration(min(max(timeout, -1), longest)) * time.Millisecond,
	}, nil
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

// run runs what is due, unless this occasion has been served before. One that left due work behind is not remembered, as
// its repeat can go on with it.
func (f *Function) run(ctx context.Context, scope core.Scope, key occasion) (any, error) {
	if f.seen.has(key) {
		return duplicate{true, key.job, key.time}, nil
	}
	report, err := f.scheduler.RunDue(ctx, scope)
	failed, err := failures(err)
	if err != nil {
		return nil, fmt.Errorf("tick: %w", err)
	}
	if !report.More {
		f.seen.add(key)
	}
	f.logTick(ctx, report, failed)
	return encodeReport(report, failed)
}

// duplicate is the answer to a repeat.
type duplicate struct {
	Duplicate bool   `json:"duplicate"`
	Job       string `json:"job"`
	Time      string `json:"time"`
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

// Bounds of what is told of others' texts, in bytes.
const (
	mostName  = 40
	mostError = 1024
)

// failureJSON is a run that failed.
type failureJSON struct {
	Agent string `json:"agent_id"`
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// encodeReport writes the report as everywhere, and adds the first runs that failed.
func encodeReport(r core.Report, failed []core.RunFailure) (any, error) {
	if len(failed) == 0 {
		return r, nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
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
	return members, nil
}

// clip bounds a text, at a rune's edge.
func clip(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
