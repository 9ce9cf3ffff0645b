package inspect

// The JSON of what is read from the store.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// explanationJSON is a task, and why it has not run.
type explanationJSON struct {
	Now     wire.Stamp      `json:"now"`
	Reasons []model.Because `json:"reasons"`
	Task    model.TaskInfo  `json:"task"`
}

// MarshalJSON writes the task, and why it has not run.
func (e Explanation) MarshalJSON() ([]byte, error) {
	w := explanationJSON{}
	wire.Copy(&w, &e)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Explanation) UnmarshalJSON(data []byte) error {
	w := explanationJSON{}
	err := json.Unmarshal(data, &w)
	wire.Copy(e, &w)
	return err
}

// MarshalJSON writes the counters of a kind. Durations are in milliseconds; depth are the tasks that wait, without those that rest.
func (k KindStats) MarshalJSON() ([]byte, error) {
	type schedules struct {
		At       int64 `json:"at"`
		Every    int64 `json:"every"`
		Cron     int64 `json:"cron"`
		Activity int64 `json:"activity"`
	}
	type failure struct {
		At    wire.Stamp `json:"at"`
		Agent string     `json:"agent_id"`
		ID    string     `json:"id"`
		Error string     `json:"error"`
	}
	failures := make([]failure, len(k.Failed))
	for i, f := range k.Failed {
		failures[i] = failure{At: wire.Stamp(f.At), Agent: f.Agent, ID: f.ID, Error: f.Error}
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	return json.Marshal(struct {
		Kind       string    `json:"kind"`
		Depth      int64     `json:"depth"`
		Resting    int64     `json:"resting"`
		Running    int64     `json:"running"`
		Runs       int64     `json:"runs"`
		Successes  int64     `json:"successes"`
		Failures   int64     `json:"failures"`
		Min        int64     `json:"min_duration_ms"`
		Avg        int64     `json:"avg_duration_ms"`
		Max        int64     `json:"max_duration_ms"`
		AvgLag     int64     `json:"avg_lag_ms"`
		MaxLag     int64     `json:"max_lag_ms"`
		BySchedule schedules `json:"by_schedule"`
		Recent     []failure `json:"recent_failures"`
	}{
		k.Kind, k.Depth(), k.Resting, k.Running, k.Runs, k.Runs - k.Failures, k.Failures, ms(k.Shortest), ms(k.Average()), ms(k.Longest),
		ms(k.AverageLag()), ms(k.LongestLag),
		schedules{k.At, k.Every, k.Cron, k.Activity},
		failures,
	})
}

// MarshalJSON writes the counters, with the store's time and when something is due next.
func (s Stats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Now     wire.Stamp `json:"now"`
		NextDue wire.Stamp `json:"next_due,omitzero"`
		store.Counters

		Kinds []KindStats `json:"kinds,omitempty"`
	}{wire.Stamp(s.Now), wire.Stamp(s.NextDue), s.Counters, s.Kinds})
}

// MarshalJSON writes what an audit found.
func (r AuditReport) MarshalJSON() ([]byte, error) {
	faults := r.Faults
	if faults == nil {
		faults = []store.Fault{}
	}
	return json.Marshal(struct {
		Tasks      int           `json:"tasks"`
		Found      int           `json:"found"`
		Repairable int           `json:"repairable"`
		Faults     []store.Fault `json:"faults"`
	}{r.Tasks, r.Found, r.Repairable, faults})
}
