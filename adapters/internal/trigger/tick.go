package trigger

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

// What a tick may say.

// IsTick reports whether an object means a tick. A task of the kind "tick" belongs to an agent.
// A tick has no agent_id: the list of agents is called agent_ids.
func IsTick(o strictjson.Object) bool { return o.Text("kind") == "tick" && !o.Has("agent_id") }

// ReadTick reads a tick: the fields of POST /v1/run-due, a kind, which must be "tick" if it is given, and what the host adds. It is
// for all agents unless it names some.
func ReadTick(o strictjson.Object, also ...strictjson.Field) (core.Scope, error) {
	kind := "tick"
	also = append(also, strictjson.Field{Name: "kind", Into: &kind, Must: `must be "tick"`})
	scope, err := readScope(o, "a tick", !o.Has("agent_ids") && !o.Has("all"), also)
	if err == nil && kind != "tick" {
		err = &core.InvalidError{Field: "kind", Reason: `must be "tick"`}
	}
	return scope, err
}

// ReadScope reads the body of POST /v1/run-due, which has to say whose tasks to run.
// Unlike in a tick, an empty scope is an error: a caller of the API must not run all agents by accident.
func ReadScope(o strictjson.Object) (core.Scope, error) { return readScope(o, "this call", false, nil) }

// readScope reads what both have in common. all is whether it is for all agents if it does not say.
func readScope(o strictjson.Object, what string, all bool, also []strictjson.Field) (core.Scope, error) {
	var agents []string
	var limit int
	var timeout int64
	var alarm time.Time
	err := o.Read(what, append(also,
		strictjson.Field{Name: "agent_ids", Into: &agents, Must: "must be an array of strings"},
		strictjson.Field{Name: "all", Into: &all, Must: "must be true or false"},
		strictjson.Field{Name: "max", Into: &limit, Must: "must be a whole number"},
		strictjson.Field{Name: "timeout_ms", Into: &timeout, Must: "must be a whole number of milliseconds"},
		strictjson.Field{Name: "alarm_at", Into: &alarm, Must: "must be a time in RFC 3339"},
	)...)
	switch {
	case err != nil:
		return core.Scope{}, err
	case agents == nil && !all:
		return core.Scope{}, &core.InvalidError{Field: "agent_ids", Reason: `is required, or "all": true`}
	case limit < 0:
		return core.Scope{}, &core.InvalidError{Field: "max", Reason: fmt.Sprintf("must be at least 1, not %d: leave it out for no limit", limit)}
	case timeout < 0:
		return core.Scope{}, &core.InvalidError{Field: "timeout_ms", Reason: fmt.Sprintf("must be at least 1, not %d: leave it out for no limit", timeout)}
	case agents != nil && all:
		return core.Scope{}, &core.InvalidError{Field: "all", Reason: "excludes agent_ids"}
	}
	return core.Scope{Agents: agents, MaxTasks: limit, MaxDuration: milliseconds(timeout), AlarmAt: alarm}, nil
}

// milliseconds is a duration that cannot overflow: a day is longer than any host's limit.
func milliseconds(n int64) time.Duration {
	const longest = int64(24 * time.Hour / time.Millisecond)
	return time.Duration(min(n, longest)) * time.Millisecond
}
