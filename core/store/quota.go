package store

// Quotas: what the profile of an agent lets its callers store.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Quota bounds what is stored for an agent by callers that may not act for all agents, and by runs. Zero bounds nothing.
type Quota struct {
	Live      int   // most tasks of the agent that have not ended
	Recurring int   // most of them that have a cron expression or an interval
	Bytes     int64 // most bytes of their definitions, counted as MaxBytes of a store is: those of 4 KiB and more
	Submits   int   // most tasks that are created, replaced or replayed in any minute
	// The rest is checked before the store is called, by the Mark of what it was checked by.
	Interval time.Duration // least time between two runs of a recurring task, as its schedule has them
	Horizon  time.Duration // most time until a task is due
	Kinds    []string      // that may be submitted; one with a * at its end is all that begin so; empty for all
	Depth    int           // most steps between a task that a run has submitted and its root
	Spawned  int           // most tasks that runs below one root submit in an hour
}

// A store counts submits in spans of quotaSpan: no minute, wherever it begins, has more than Quota.Submits. A count is forgotten quotaWindow
// after the end of its span.
const (
	quotaWindow = time.Minute
	quotaSpan   = 5 * time.Second
)

// Slot is the number of the span of submits that a time lies in.
func (*Quota) Slot(at moment.Millis) int64 { return int64(at) / quotaSpan.Milliseconds() }

// SlotEnds is when the submits of a span are forgotten.
func (*Quota) SlotEnds(slot int64) moment.Millis {
	return moment.Millis((slot+1)*quotaSpan.Milliseconds() + quotaWindow.Milliseconds())
}

// quotaFields are those of a quota in JSON.
type quotaFields struct {
	Live      int      `json:"live,omitempty"`
	Recurring int      `json:"recurring,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
	Submits   int      `json:"submits,omitempty"`
	Interval  string   `json:"interval,omitempty"`
	Horizon   string   `json:"horizon,omitempty"`
	Kinds     []string `json:"kinds,omitempty"`
	Depth     int      `json:"depth,omitempty"`
	Spawned   int      `json:"spawned,omitempty"`
}

// MarshalJSON writes a quota with the fields that it has.
func (q Quota) MarshalJSON() ([]byte, error) {
	f := quotaFields{Live: q.Live, Recurring: q.Recurring, Bytes: q.Bytes, Submits: q.Submits, Kinds: q.Kinds, Depth: q.Depth, Spawned: q.Spawned}
	if q.Interval > 0 {
		f.Interval = moment.ShortDuration(q.Interval)
	}
	if q.Horizon > 0 {
		f.Horizon = moment.ShortDuration(q.Horizon)
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON writes, in this version or another: it ignores unknown fields.
func (q *Quota) UnmarshalJSON(data []byte) error {
	var f quotaFields
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	*q = Quota{Live: f.Live, Recurring: f.Recurring, Bytes: f.Bytes, Submits: f.Submits, Kinds: f.Kinds, Depth: f.Depth, Spawned: f.Spawned}
	q.Interval, _ = time.ParseDuration(f.Interval)
	q.Horizon, _ = time.ParseDuration(f.Horizon)
	return nil
}

// IsZero reports whether the quota bounds nothing.
func (q *Quota) IsZero() bool {
	return q == nil || q.Live|q.Recurring|q.Submits|q.Depth|q.Spawned == 0 && q.Bytes == 0 && q.Interval == 0 && q.Horizon == 0 && len(q.Kinds) == 0
}

// quotaMarkLen is the length of a mark.
const quotaMarkLen = 16

// Mark names the quota by what it says; empty for one that bounds nothing.
func (q *Quota) Mark() string {
	if q.IsZero() {
		return ""
	}
	data, err := json.Marshal(*q)
	if err != nil {
		return "" // its fields cannot fail
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:quotaMarkLen/2])
}

// QuotaUse is how much of the quota of an agent is used.
type QuotaUse struct {
	Live      int   `json:"live"`
	Recurring int   `json:"recurring"` // counted while the quota bounds it
	Bytes     int64 `json:"bytes"`
	Submits   int   `json:"submits"` // within the last minute, or little more
}

// Refuse is the refusal of a task by a part of the quota of its agent, of which so much is used. until is when there is room again, if that is known.
func (q *Quota) Refuse(agent, part string, used int, until moment.Millis) error {
	limit := map[string]int{
		"live": q.Live, "recurring": q.Recurring, "bytes": int(q.Bytes), "submits": q.Submits,
	}[part]
	return &LimitError{Agent: agent, Quota: part, Limit: limit, Used: used, Until: until}
}

// quotaHints say what was refused, and what to do.
var quotaHints = map[string]string{
	"live":      "%d of %d live tasks are there: cancel or delete some, wait until some have ended",
	"recurring": "%d of %d live tasks that recur are there: cancel or delete some",
	"bytes":     "%d of %d bytes of live tasks are used: make the payload smaller, wait until some have ended",
	"submits":   "%d of %d tasks were submitted within a minute: there is room again at %s",
}

// quotaError is the message of a refusal by a quota.
func (e *LimitError) quotaError() string {
	text := e.Reason
	if hint := quotaHints[e.Quota]; text == "" {
		args := []any{e.Used, e.Limit}
		if e.Until != 0 {
			args = append(args, e.Until.Time().Format("2006-01-02T15:04:05.000Z07:00"))
		}
		text = fmt.Sprintf(hint, args...)
	}
	return fmt.Sprintf("the quota %s of agent %q: %s, or ask an operator to raise it", e.Quota, e.Agent, text)
}
