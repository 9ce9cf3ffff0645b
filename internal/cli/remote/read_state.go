package remote

// The JSON of what is wider than a task, read into what it was written from.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

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

// ms is a duration in milliseconds.
type ms int64

func (m ms) duration() time.Duration { return time.Duration(m) * time.Millisecond }
