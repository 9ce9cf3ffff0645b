package operation

// What is sent. A field is read strictly: by its type, and by its tag `must`, the text of the error; `zero:"ok"` allows an empty one.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Duration is a duration in a request, such as "90s" or "1d".
type Duration = strictjson.Duration

// Run says whose tasks to run, and how much of them.
type Run struct {
	All     bool     `json:"all,omitempty"`
	Agents  []string `json:"agent_ids,omitzero"`
	Max     int      `json:"max,omitempty"`
	Timeout int64    `json:"timeout_ms,omitempty"`
}

// Submit are tasks to be stored, all or none.
type Submit struct {
	Tasks []core.NewTask `json:"tasks"`
}

// Wait is how long to wait for the end of a task.
type Wait struct {
	Wait string `json:"wait,omitempty"`
}

// OutputFrom asks for the output behind what was read before.
type OutputFrom struct {
	Run   int64 `json:"run,omitempty"`
	After int64 `json:"after,omitempty"`
}

// List are the filters and the page of a list of tasks.
type List struct {
	Agent   string   `json:"agent_id,omitempty"`
	Status  string   `json:"status,omitempty"` // several are separated by commas
	Kind    string   `json:"kind,omitempty"`
	Key     string   `json:"key,omitempty"`
	Group   string   `json:"group,omitempty"`
	Labels  []string `json:"label,omitempty"` // name=value
	Since   string   `json:"since,omitempty"`
	Until   string   `json:"until,omitempty"`
	Overdue bool     `json:"overdue,omitempty"`
	Held    bool     `json:"held,omitempty"`
	Late    bool     `json:"late,omitempty"`
	Asking  bool     `json:"asking,omitempty"`
	Inside
	Page
}

// Inside is what a list looks for inside tasks.
type Inside struct {
	Session string `json:"session_id,omitempty"`
	Text    string `json:"text,omitempty"`
	Cause   string `json:"cause,omitempty"`
	DueBy   string `json:"due_by,omitempty"`
}

// JobList are the filters and the page of a list of recurring tasks.
type JobList struct {
	Agent  string   `json:"agent_id,omitempty"`
	Kind   string   `json:"kind,omitempty"`
	Labels []string `json:"label,omitempty"`
	Page
}

// Page is a page of a list.
type Page struct {
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// Bulk is one step of a command for the tasks of a list.
type Bulk struct {
	Agent   string            `json:"agent_id,omitempty"`
	Status  []core.Status     `json:"status,omitzero" must:"must be an array of statuses"`
	Kind    string            `json:"kind,omitempty"`
	Key     string            `json:"key,omitempty"`
	Group   string            `json:"group,omitempty"`
	Labels  map[string]string `json:"labels,omitzero" must:"must be an object of strings"`
	Since   string            `json:"since,omitempty"`
	Until   string            `json:"until,omitempty"`
	Overdue bool              `json:"overdue,omitempty"`
	Inside
	Page
	All     bool `json:"all,omitempty"`
	DryRun  bool `json:"dry_run,omitempty"`
	Confirm bool `json:"confirm,omitempty"`
	Count   int  `json:"count,omitempty"`
	Order
}

// Order is who orders something, and why.
type Order struct {
	Reason string `json:"reason,omitempty" zero:"ok"`
	By     string `json:"by,omitempty" zero:"ok"`
}

// Replayed is a dead task that is to live again. Without a payload, or with null, it keeps its own.
type Replayed struct {
	Payload json.RawMessage `json:"payload,omitempty" zero:"ok"`
}

// Pause keeps tasks from being started. Durations and times have no zero here: a pause until nothing would be an endless one.
type Pause struct {
	Order
	Until time.Time `json:"until,omitzero"`
	For   Duration  `json:"for,omitzero"`
	Resume
}

// Resume ends a pause.
type Resume struct {
	Ahead bool `json:"ahead,omitempty"` // what is meant may not exist yet
	All   bool `json:"all,omitempty"`   // all tasks: required where the path names nothing
}

// Activity is a subject that was active.
type Activity struct {
	Kind   string `json:"kind,omitempty"`
	User   string `json:"user_id,omitempty"`
	Device string `json:"device_id,omitempty"`
	Agent  string `json:"agent_id,omitempty"`
}

// Signal is a message to tasks that wait for it.
type Signal struct {
	Payload json.RawMessage `json:"payload,omitempty" must:"must be JSON" zero:"ok"`
}

// Limit is a limit as it is set: without a burst it has the default.
type Limit struct {
	core.LimitTarget

	Concurrency int    `json:"concurrency,omitempty"`
	Rate        string `json:"rate,omitempty"`
	Burst       *int   `json:"burst,omitempty"`
	Adaptive    bool   `json:"adaptive,omitempty"`
}

// LimitOf is a limit as requests have it.
func LimitOf(l *core.Limit) Limit {
	out := Limit{LimitTarget: l.About, Concurrency: l.Concurrency, Rate: l.RateText(), Adaptive: l.Adaptive}
	if l.Burst != 0 { // core's -1 is a burst of none
		burst := max(l.Burst, 0)
		out.Burst = &burst
	}
	return out
}

// Budget is a budget as it is set.
type Budget struct {
	core.LimitTarget

	Unit   string       `json:"unit,omitempty"`
	Per    bound.Period `json:"per,omitempty"`
	Amount bound.Amount `json:"amount"`
	Zone   string       `json:"zone,omitempty"`
	Then   bound.Then   `json:"then,omitempty"`
}

// BudgetOf is a budget as requests have it.
func BudgetOf(b *core.Budget) Budget {
	return Budget{b.About.LimitTarget, b.About.Unit, b.About.Per, b.Amount, b.Zone, b.Then}
}

// Profile is the profile of an agent as it is set.
type Profile struct {
	Zone    string            `json:"zone,omitempty"`
	Quiet   []core.QuietHours `json:"quiet,omitempty"`
	Urgent  bool              `json:"urgent,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Limits  []Limit           `json:"limits,omitempty"`
	Budgets []Budget          `json:"budgets,omitempty"`
	Quota   store.Quota       `json:"quota,omitzero"`
	Tenant  string            `json:"tenant,omitempty"`
	// Revision is that of the profile to be replaced; zero for any.
	Revision int64 `json:"revision,omitempty"`
}

// ProfileOf is a profile as requests have it.
func ProfileOf(p *core.Profile) Profile {
	out := Profile{Zone: p.Zone, Quiet: p.Quiet, Urgent: p.Urgent, Labels: p.Labels, Quota: p.Quota, Tenant: p.Tenant, Revision: p.Revision}
	for i := range p.Limits {
		out.Limits = append(out.Limits, LimitOf(&p.Limits[i]))
	}
	for i := range p.Budgets {
		out.Budgets = append(out.Budgets, BudgetOf(&p.Budgets[i]))
	}
	return out
}

// Forget says whether all of an agent is only counted.
type Forget struct {
	DryRun bool `json:"dry_run,omitempty"`
}

// Window is how far back to look; all counters without it.
type Window struct {
	Window string `json:"window,omitempty"`
}

// Audit is one step of an audit.
type Audit struct {
	Repair bool   `json:"repair,omitempty"`
	Cursor string `json:"cursor,omitempty"`
	Pages  int    `json:"pages,omitempty" must:"must be a whole number from 1 to 1000"`
}
