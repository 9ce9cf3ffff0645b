package inspect

// The JSON of what is read from the store.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/count"
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

// kindStatsJSON are the counters of a kind. Durations are in milliseconds; depth are the tasks that wait, without those that rest.
type kindStatsJSON struct {
	Kind       string            `json:"kind"`
	Depth      int64             `json:"depth"`
	Resting    int64             `json:"resting"`
	Running    int64             `json:"running"`
	Runs       int64             `json:"runs"`
	Successes  int64             `json:"successes"`
	Failures   int64             `json:"failures"`
	Shortest   wire.Milliseconds `json:"min_duration_ms"`
	Average    wire.Milliseconds `json:"avg_duration_ms"`
	Longest    wire.Milliseconds `json:"max_duration_ms"`
	AverageLag wire.Milliseconds `json:"avg_lag_ms"`
	LongestLag wire.Milliseconds `json:"max_lag_ms"`
	BySchedule schedulesJSON     `json:"by_schedule"`
	Recent     []failureJSON     `json:"recent_failures"`
}

// schedulesJSON are the runs of a kind by the type of their schedule.
type schedulesJSON struct {
	At       int64 `json:"at"`
	Every    int64 `json:"every"`
	Cron     int64 `json:"cron"`
	Activity int64 `json:"activity"`
}

// failureJSON is a failed run.
type failureJSON struct {
	At    wire.Stamp `json:"at"`
	Agent string     `json:"agent_id"`
	ID    string     `json:"id"`
	Error string     `json:"error"`
}

// MarshalJSON writes the counters of a kind.
func (k KindStats) MarshalJSON() ([]byte, error) {
	w := kindStatsJSON{
		Depth: k.Depth(), Successes: k.Runs - k.Failures, Average: wire.Milliseconds(k.Average()), AverageLag: wire.Milliseconds(k.AverageLag()),
		Recent: make([]failureJSON, len(k.Failed)),
	}
	wire.Copy(&w, &k.KindCounters)
	wire.Copy(&w.BySchedule, &k.KindCounters)
	for i, f := range k.Failed {
		w.Recent[i] = failureJSON{At: wire.Stamp(f.At), Agent: f.Agent, ID: f.ID, Error: f.Error}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. Sums are made of the averages, which they give again.
func (k *KindStats) UnmarshalJSON(data []byte) error {
	w := kindStatsJSON{}
	err := json.Unmarshal(data, &w)
	*k = KindStats{KindCounters: count.KindCounters{
		Live: w.Depth + w.Resting + w.Running, Duration: time.Duration(w.Average) * time.Duration(w.Runs), Lag: time.Duration(w.AverageLag) * time.Duration(w.Runs),
	}}
	wire.Copy(&k.KindCounters, &w)
	wire.Copy(&k.KindCounters, &w.BySchedule)
	for _, f := range w.Recent {
		k.Failed = append(k.Failed, RecentFailure{At: time.Time(f.At), Agent: f.Agent, ID: f.ID, Error: f.Error})
	}
	return err
}

// statsJSON are the counters, with the store's time and when something is due next.
type statsJSON struct {
	Now     wire.Stamp `json:"now"`
	NextDue wire.Stamp `json:"next_due,omitzero"`
	count.Counters

	Kinds []KindStats `json:"kinds,omitempty"`
}

// MarshalJSON writes the counters.
func (s Stats) MarshalJSON() ([]byte, error) {
	return json.Marshal(statsJSON{wire.Stamp(s.Now), wire.Stamp(s.NextDue), s.Counters, s.Kinds})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Stats) UnmarshalJSON(data []byte) error {
	w := statsJSON{}
	err := json.Unmarshal(data, &w)
	*s = Stats{Counters: w.Counters, Now: time.Time(w.Now), NextDue: time.Time(w.NextDue), Kinds: w.Kinds}
	return err
}

// MarshalJSON writes what an audit found.
func (r AuditReport) MarshalJSON() ([]byte, error) {
	faults := r.Faults
	if faults == nil {
		faults = []audit.Fault{}
	}
	return json.Marshal(struct {
		Tasks      int           `json:"tasks"`
		Found      int           `json:"found"`
		Repairable int           `json:"repairable"`
		Faults     []audit.Fault `json:"faults"`
	}{r.Tasks, r.Found, r.Repairable, faults})
}
