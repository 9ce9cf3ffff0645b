package remote

// The JSON of what is wider than a task, read into what it was written from.

import (
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// target is what a pause is about.
type target struct {
	Agent string `json:"agent_id"`
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Key   string `json:"limit_key"`
}

// pause is a pause that was made.
type pause struct {
	Target target
	By     string
	Note   string
	Reason string
	Since  time.Time
	Until  time.Time
}

func (p *pause) core() model.PauseInfo {
	return model.PauseInfo{Target: core.Target(p.Target), Order: core.Order{By: p.By, Note: p.Note, Reason: p.Reason}, Since: p.Since, Until: p.Until}
}

// pausesOf keeps the difference between none and an empty array, which is written too.
func pausesOf(all []pause) []model.PauseInfo {
	if all == nil {
		return nil
	}
	out := make([]model.PauseInfo, len(all))
	for i := range all {
		out[i] = all[i].core()
	}
	return out
}

func (n *noticed) core() model.Noticed {
	out := model.Noticed{Scheduled: n.Scheduled, Reason: store.Reason(n.Reason), Agent: n.Agent, ID: n.ID}
	if n.Due != nil {
		out.Due = *n.Due
	}
	return out
}

// agent is an agent with its live tasks.
type agent struct {
	Agent  string    `json:"agent_id"`
	Live   int64     `json:"live"`
	Due    time.Time `json:"next_due"`
	Paused bool      `json:"is_paused"`
}

// profile is the profile of an agent, without the strictness of core: a newer server may have more fields.
type profile struct {
	Agent    string            `json:"agent_id"`
	Zone     string            `json:"zone"`
	Quiet    []core.QuietHours `json:"quiet"`
	Urgent   bool              `json:"urgent"`
	Labels   map[string]string `json:"labels"`
	Limits   []limit           `json:"limits"`
	Budgets  []budget          `json:"budgets"`
	Revision int64             `json:"revision"`
}

func (p *profile) core() core.Profile {
	out := core.Profile{Agent: p.Agent, Zone: p.Zone, Quiet: p.Quiet, Urgent: p.Urgent, Labels: p.Labels, Revision: p.Revision}
	for i := range p.Limits {
		out.Limits = append(out.Limits, p.Limits[i].core().Limit)
	}
	for i := range p.Budgets {
		out.Budgets = append(out.Budgets, p.Budgets[i].core().Budget)
	}
	return out
}

// stats are the counters of a store.
type stats struct {
	store.Counters

	Now     time.Time   `json:"now"`
	NextDue time.Time   `json:"next_due"`
	Kinds   []kindStats `json:"kinds"`
}

func (s *stats) core() inspect.Stats {
	out := inspect.Stats{Counters: s.Counters, Now: s.Now, NextDue: s.NextDue}
	for i := range s.Kinds {
		out.Kinds = append(out.Kinds, s.Kinds[i].core())
	}
	return out
}

// kindStats are the counters of a kind.
type kindStats struct {
	Kind       string `json:"kind"`
	Depth      int64  `json:"depth"`
	Resting    int64  `json:"resting"`
	Running    int64  `json:"running"`
	Runs       int64  `json:"runs"`
	Failures   int64  `json:"failures"`
	Min        ms     `json:"min_duration_ms"`
	Avg        ms     `json:"avg_duration_ms"`
	Max        ms     `json:"max_duration_ms"`
	AvgLag     ms     `json:"avg_lag_ms"`
	MaxLag     ms     `json:"max_lag_ms"`
	BySchedule struct {
		At, Every, Cron, Activity int64
	} `json:"by_schedule"`
	Recent []struct {
		At    time.Time `json:"at"`
		Agent string    `json:"agent_id"`
		ID    string    `json:"id"`
		Error string    `json:"error"`
	} `json:"recent_failures"`
}

// core makes sums of what the server has divided: they give the same averages again.
func (k *kindStats) core() inspect.KindStats {
	out := inspect.KindStats{KindCounters: store.KindCounters{
		Kind: k.Kind, Live: k.Depth + k.Resting + k.Running, Running: k.Running, Resting: k.Resting, Runs: k.Runs, Failures: k.Failures,
		Duration: k.Avg.duration() * time.Duration(k.Runs), Shortest: k.Min.duration(), Longest: k.Max.duration(),
		Lag: k.AvgLag.duration() * time.Duration(k.Runs), LongestLag: k.MaxLag.duration(),
		At: k.BySchedule.At, Every: k.BySchedule.Every, Cron: k.BySchedule.Cron, Activity: k.BySchedule.Activity,
	}}
	for _, f := range k.Recent {
		failed := inspect.RecentFailure{}
		failed.At, failed.Agent, failed.ID, failed.Error = f.At, f.Agent, f.ID, f.Error
		out.Failed = append(out.Failed, failed)
	}
	return out
}

// window is what ran lately.
type window struct {
	For   span      `json:"window"`
	Until time.Time `json:"now"`
	Kinds []struct {
		Kind     string `json:"kind"`
		Runs     int64  `json:"runs"`
		Failures int64  `json:"failures"`
		LagP50   ms     `json:"lag_p50_ms"`
		LagP95   ms     `json:"lag_p95_ms"`
	} `json:"kinds"`
}

func (w *window) core() inspect.Window {
	out := inspect.Window{For: max(time.Duration(w.For), 0), Until: w.Until}
	for _, k := range w.Kinds {
		out.Kinds = append(out.Kinds, inspect.KindWindow{
			Kind: k.Kind, Runs: k.Runs, Failures: k.Failures, LagP50: k.LagP50.duration(), LagP95: k.LagP95.duration(),
		})
	}
	return out
}

// imported is what became of an import.
type imported struct {
	New, Same, Differs, Refused int
	Errors                      []importError
}

// importError says why a line was refused.
type importError struct {
	Line  int
	Code  core.Code
	Field string
	Error string
}

func (e *importError) core() operate.ImportError {
	var err error = &Error{Code: e.Code, Detail: e.Error, like: alike(e.Code, e.Error)}
	if e.Code == core.CodeInvalid && len(e.Error) > len(e.Field) {
		err = &core.InvalidError{Field: e.Field, Reason: e.Error[len(e.Field)+1:]}
	}
	return operate.ImportError{Line: e.Line, Err: err}
}

// report says what a pull did.
type report struct {
	Agents, Ran, Completed, Failed, Retried, Released, Skipped, Parked, Lost, Cancelled, Snoozed, Recovered, Left int

	Away     []int
	Next     time.Time `json:"next_due_at"`
	Alarm    time.Time `json:"alarm_at"`
	More     bool
	Duration ms `json:"duration_ms"`
	Failures []struct {
		Agent string `json:"agent_id"`
		ID    string
		Kind  string
		Error string
	}
}

func (r *report) core() core.Report {
	out := core.Report{
		Agents: r.Agents, Ran: r.Ran, Completed: r.Completed, Failed: r.Failed, Retried: r.Retried, Released: r.Released, Skipped: r.Skipped,
		Parked: r.Parked, Lost: r.Lost, Cancelled: r.Cancelled, Snoozed: r.Snoozed, Recovered: r.Recovered, Left: r.Left, Away: r.Away,
		NextDueAt: r.Next, AlarmAt: r.Alarm, More: r.More, Duration: r.Duration.duration(),
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, model.RunFailure{Agent: f.Agent, ID: f.ID, Kind: f.Kind, Err: errors.New(f.Error)})
	}
	return out
}
