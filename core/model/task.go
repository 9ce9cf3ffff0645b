// Package model defines the terms of duly: tasks as they are submitted ([NewTask]) and read ([TaskInfo]), outcomes, events, errors, orders, the settings of
// kinds, and their one form in JSON. It decides nothing and knows no store. Package core also exports the names that handlers and hosts need.
package model

// The task that a user submits: its fields, its defaults, and what is refused.

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Planned reports whether a task has fixed times of which the first is not now.
func (t *NewTask) Planned() bool { return t.Cron != "" || t.From == FromStart && t.Delay > 0 }

// kinder is a payload that knows the kind of its tasks.
type kinder interface{ Kind() string }

// From says what the interval of a recurring task is counted from.
type From string

// The origins of an interval.
const (
	FromCompletion From = "completion" // the end of the run: the task never overlaps itself and drifts
	FromStart      From = "start"      // the nominal time of the run: fixed slots without drift
)

// NewTask is a task to be submitted. Agent and Kind are required. At most one of When, At, Delay, Every, Cron and Manual says when it
// is due; with none of them it is due at once. Delay may also put off the first run of an Every.
type NewTask struct {
	Agent string // owner; any valid UTF-8 of 1 to 256 bytes without control characters
	ID    string // unique for its agent; made up if empty
	Kind  string // names the handler; that of the payload if empty and the payload has a method Kind() string
	// Payload is what the handler gets, as JSON. A json.RawMessage or []byte is JSON already.
	Payload any

	// When is a schedule as people say it, such as "every weekday at 9am": package phrase says what is understood. It takes the place of At, Delay, Every,
	// Cron and Manual, and of the fields that go with them but Zone, in which it is read, Config.Zone if empty. A phrase with two meanings is refused with
	// the question. It becomes one of these fields when the task is submitted: a task that is read has those, and never a phrase.
	When string

	At    time.Time     // due once, at this time, never before
	Delay time.Duration // due once, this long after the submit
	Every time.Duration // recurs with this interval, at least a second
	From  From          // what Every is counted from; FromCompletion if empty

	// Cron is an expression of 5 or 6 fields (seconds first) or a nickname such as @daily, in an IANA Zone, Config.Zone if
	// empty, that of the agent's profile if it is ZoneOfAgent. Package schedule says what fires when the clocks change, and what DayMatch and Gap change.
	Cron, Zone string
	DayMatch   schedule.DayMatch
	Gap        schedule.Gap

	// Manual is a task without a time: it waits until a caller runs it by hand (see [core.Scheduler.RunNow]), and waits again after each run.
	Manual bool

	// Of a recurring task:
	Jitter     time.Duration // puts each due time off by a stable time below this, so that tasks do not come all at once; negative for none in spite of a preset
	Overlap    Overlap       // what happens to occurrences that fall due while the task runs; OverlapSkip if empty
	Misfire    Misfire       // what to do about occurrences missed while no process ran; MisfireOnce if empty
	PauseAfter int           // pause the task after this many failed occurrences in a row; negative for never; if zero, the kind's

	MinInterval time.Duration // no occurrence starts sooner than this after the last one started; one whose process stopped or died is repeated at once
	Urgent      bool          // it starts in the quiet hours of its agent too, if the agent's profile says so
	LimitKey    string        // tasks that share a key can be paused together, and wait together when one returns RetryAfter

	// Paused stores the task paused, in one step, with PausedReason: it runs once it is resumed, or when it is run by hand. It applies to
	// a task that is created; one that exists, also if it is replaced, stays paused or not as before.
	Paused       bool
	PausedReason string // for people; at most 1 KiB

	UniqueKey  string     // the id is made from this, so that submitting twice makes one task; excludes ID
	OnConflict OnConflict // what to do when the id already exists; OnConflictKeep if empty
	// Callback is an https URL that is notified how the task ended, once it has ended for good: see [core.Callbacks]. "signal:" and a key has
	// that signal sent to the task's agent in place of it, and "signal-group:" and a key once the task's group has no live task left.
	Callback string

	// ExpectSuccess is within which time a run succeeds, counted from the last success or, before the first, from when the task is first due. If none does,
	// the task is late, and an event, a metric, a finding and a row of the console say so, for any reason that keeps it from succeeding. It has to be longer than
	// the schedule leaves between two runs.
	ExpectSuccess time.Duration
	// OnLate is notified once each time that the task becomes late: an https URL as Callback has it, "signal:" and the key of a signal for the agent, or "task:" and the
	// kind of a task that is submitted for the agent.
	OnLate string

	Preset string // fills in what is left out from a preset: see Presets

	Level store.Level // 1 (first) to 3; if zero, the kind's, which is LevelLow by default
	Group string      // ties several tasks of the agent together for one status

	MaxAttempts int           // of one occurrence; if zero, the kind's: by default 5, or 1 for a recurring task
	Backoff     time.Duration // the base of the pauses between attempts; if zero, the kind's; negative for no pause
	Timeout     time.Duration // of one run; if zero, the kind's; negative for none
	Lease       time.Duration // how long a run may go without a sign of life; if zero, the kind's

	// Traceparent is the W3C trace context of the submitter. It is about the submit, and not part of the definition: a task that differs
	// in it alone counts as the same.
	TraceID, Traceparent, SessionID string
	UserID                          string
	Info                            json.RawMessage // any JSON object of the submitter's
	Tags                            []string
	Labels                          map[string]string // the submitter's own, at most 32

	owned    bool      // the owner in Labels was set by OwnedBy
	restored *Restored // the progress of the task when it was exported; nil for a new task
}

// Bounds of a task, besides those of ids.
const (
	DefaultMaxPayload = 256 << 10
	DefaultMaxResult  = 64 << 10
)

// ReadNegatives takes a negative jitter, pause or timeout as none: that of the last two is a duration of its own, which rounding does not lose.
func (t *NewTask) ReadNegatives() {
	t.Jitter = max(t.Jitter, 0)
	for _, d := range []*time.Duration{&t.Backoff, &t.Timeout} {
		if *d < 0 {
			*d = none
		}
	}
}

// PayloadJSON returns the payload as JSON, and refuses one of more than most bytes.
func (t *NewTask) PayloadJSON(most int) ([]byte, error) {
	var data []byte
	switch p := t.Payload.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		data = p
	case []byte:
		data = p
	default:
		var err error
		if data, err = json.Marshal(p); err != nil {
			return nil, check.Invalid("payload", "cannot be turned into JSON: %v", err)
		}
	}
	if len(data) == 0 { // empty JSON is no payload, nil or not
		return nil, nil
	}
	if len(data) > most {
		return nil, check.Invalid("payload", "is %d bytes long: the limit is %d", len(data), most)
	}
	return data, check.JSON("payload", data)
}

// Validate refuses an invalid task, and names the wrong field. It does not ask the store.
func (t *NewTask) Validate(id string) error {
	if err := check.ValidID("agent_id", t.Agent); err != nil {
		return err
	}
	if err := check.ValidID("id", id); err != nil {
		return err
	}
	if err := check.ValidKind("kind", t.Kind); err != nil {
		return err
	}
	if err := NotReserved(t.Kind); err != nil {
		return err
	}
	if err := check.ValidText("group", t.Group, check.MaxIDLen); err != nil {
		return err
	}
	if err := t.checkIdentity(id); err != nil {
		return err
	}
	if t.Level < 0 || t.Level > store.LevelLow {
		return check.Invalid("level", "must be 1, 2 or 3, not %d", t.Level)
	}
	if err := t.CheckSchedule(); err != nil {
		return err
	}
	if err := t.checkLimits(); err != nil {
		return err
	}
	if t.PausedReason != "" && !t.Paused {
		return check.Invalid("paused_reason", "needs paused")
	}
	if err := check.ValidText("paused_reason", t.PausedReason, check.MaxErrorLen); err != nil {
		return err
	}
	return t.checkTexts()
}

// CheckSchedule refuses fields that do not go together, or that mean nothing for the schedule.
func (t *NewTask) CheckSchedule() error {
	switch {
	case t.Manual && t.Timed():
		return check.Invalid("manual", "excludes at, delay, every and cron")
	case !t.At.IsZero() && (t.Delay != 0 || t.Every != 0 || t.Cron != ""):
		return check.Invalid("at", "excludes delay, every and cron")
	case t.Cron != "" && (t.Delay != 0 || t.Every != 0):
		return check.Invalid("cron", "excludes delay and every")
	case t.Cron == "" && t.Zone != "":
		return check.Invalid("zone", "needs cron")
	case t.Cron == "" && t.DayMatch != "":
		return check.Invalid("day_match", "needs cron")
	case t.Cron == "" && t.Gap != "":
		return check.Invalid("gap", "needs cron")
	case !t.At.IsZero() && t.At.Year() > check.MaxYear:
		return check.Invalid("at", "is too far away: the year %d", t.At.Year())
	case t.Delay < 0 || t.Delay > check.MaxDelay:
		return check.Invalid("delay", "must be between 0 and %s, not %s", check.MaxDelay, t.Delay)
	case t.Every != 0 && (t.Every < schedule.MinInterval || t.Every > check.MaxDelay):
		return check.Invalid("every", "must be between %s and %s, not %s", schedule.MinInterval, check.MaxDelay, t.Every)
	case t.From != "" && t.Every == 0:
		return check.Invalid("from", "needs every")
	case t.From != "" && t.From != FromCompletion && t.From != FromStart:
		return check.Invalid("from", "must be %q or %q, not %q", FromCompletion, FromStart, t.From)
	}
	return t.checkPolicies()
}

// CheckWhen refuses a phrase beside a field that says when the task is due, too.
func (t *NewTask) CheckWhen() error {
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"at", !t.At.IsZero()},
		{"delay", t.Delay != 0},
		{"every", t.Every != 0},
		{"cron", t.Cron != ""},
		{"manual", t.Manual},
		{"from", t.From != ""},
		{"day_match", t.DayMatch != ""},
		{"gap", t.Gap != ""},
	} {
		if t.When != "" && field.given {
			return check.Invalid("when", "excludes %s: say the whole schedule in one of them", field.name)
		}
	}
	return nil
}

// Timed reports whether the task says when it is due.
func (t *NewTask) Timed() bool { return !t.At.IsZero() || t.Delay != 0 || t.Every != 0 || t.Cron != "" }

// checkPolicies checks the fields that say how occurrences follow one another.
func (t *NewTask) checkPolicies() error {
	recurs, fixed := t.Every != 0 || t.Cron != "", t.From == FromStart || t.Cron != ""
	switch {
	case t.Jitter != 0 && !recurs:
		return check.Invalid("jitter", "needs every or cron")
	case t.Jitter > check.MaxJitter:
		return check.Invalid("jitter", "must be between 0 and %s, not %s", check.MaxJitter, t.Jitter)
	case t.Overlap != "" && !fixed:
		return check.Invalid("overlap", `needs cron, or every with from "start": other tasks never overlap themselves`)
	case t.Overlap != "" && !store.Among(t.Overlap, overlaps):
		return check.Invalid("overlap", "must be one of %q, not %q", overlaps, t.Overlap)
	case t.Misfire != "" && !recurs:
		return check.Invalid("misfire", "needs every or cron")
	case t.Misfire != "" && !store.Among(t.Misfire, misfires):
		return check.Invalid("misfire", "must be one of %q, not %q", misfires, t.Misfire)
	case t.PauseAfter != 0 && !recurs:
		return check.Invalid("pause_after_failures", "needs every or cron")
	case t.PauseAfter > check.MaxPauseAfter:
		return check.Invalid("pause_after_failures", "must be at most %d, not %d", check.MaxPauseAfter, t.PauseAfter)
	case t.MinInterval < 0 || t.MinInterval > check.MaxDelay:
		return check.Invalid("min_interval", "must be between 0 and %s, not %s", check.MaxDelay, t.MinInterval)
	}
	return t.checkExpectation()
}

// checkExpectation checks within which time the task is to succeed. Base.Prepare compares it with the times of a cron expression.
func (t *NewTask) checkExpectation() error {
	switch {
	case t.ExpectSuccess == 0 && t.OnLate == "":
		return nil
	case t.ExpectSuccess == 0:
		return check.Invalid("on_late", "needs expect_success: within which time is the task to succeed?")
	case t.ExpectSuccess < schedule.MinInterval || t.ExpectSuccess > check.MaxDelay:
		return check.Invalid("expect_success", "must be between %s and %s, not %s", schedule.MinInterval, check.MaxDelay, t.ExpectSuccess)
	case t.Manual:
		return check.Invalid("expect_success", "excludes manual: no run of it is expected at any time")
	case t.Every != 0 && t.Every+t.Jitter >= t.ExpectSuccess:
		return check.TooShort(t.Every + t.Jitter)
	}
	return nil
}

// checkIdentity checks the fields that say which task it is.
func (t *NewTask) checkIdentity(id string) error {
	if err := check.ValidText("unique_key", t.UniqueKey, check.MaxTextLen); err != nil {
		return err
	}
	if err := check.ValidText("limit_key", t.LimitKey, check.MaxKeyLen); err != nil {
		return err
	}
	switch {
	case t.UniqueKey != "" && t.ID != "":
		return check.Invalid("unique_key", "excludes id")
	case t.OnConflict != "" && !store.Among(t.OnConflict, onConflicts):
		return check.Invalid("on_conflict", "must be one of %q, not %q", onConflicts, t.OnConflict)
	case t.Overlap.Spawns() && len(id) > check.MaxIDLen-childSuffix:
		return check.Invalid("id", "is %d bytes long: with overlap %q the limit is %d", len(id), t.Overlap, check.MaxIDLen-childSuffix)
	}
	return nil
}

// checkLimits refuses numbers and durations outside of their bounds.
func (t *NewTask) checkLimits() error {
	switch {
	case t.MaxAttempts < 0 || t.MaxAttempts > check.MaxAttempts:
		return check.Invalid("max_attempts", "must be between 1 and %d, not %d", check.MaxAttempts, t.MaxAttempts)
	case t.Backoff > check.MaxDelay:
		return check.Invalid("backoff", "must be between 0 and %s, not %s", check.MaxDelay, t.Backoff)
	case t.Timeout > check.MaxDelay:
		return check.Invalid("timeout", "must be between 0 and %s, not %s", check.MaxDelay, t.Timeout)
	case t.Lease != 0 && (t.Lease < check.MinLease || t.Lease > check.MaxLease):
		return check.Invalid("lease", "must be between %s and %s, not %s", check.MinLease, check.MaxLease, t.Lease)
	}
	return nil
}

// checkTexts refuses strings that are too long or unreadable.
func (t *NewTask) checkTexts() error {
	for _, f := range []struct{ name, value string }{
		{"trace_id", t.TraceID},
		{"traceparent", t.Traceparent},
		{"session_id", t.SessionID},
		{"user_id", t.UserID},
	} {
		if err := check.ValidText(f.name, f.value, check.MaxTextLen); err != nil {
			return err
		}
	}
	if err := t.checkOwned(); err != nil {
		return err
	}
	if len(t.Tags) > check.MaxTags {
		return check.Invalid("tags", "are %d: the limit is %d", len(t.Tags), check.MaxTags)
	}
	for i, tag := range t.Tags {
		if err := check.ValidText(fmt.Sprintf("tags[%d]", i), tag, check.MaxIDLen); err != nil {
			return err
		}
	}
	if len(t.Info) > check.MaxTextLen*8 {
		return check.Invalid("info", "is %d bytes long: the limit is %d", len(t.Info), check.MaxTextLen*8)
	}
	if len(t.Info) > 0 {
		return check.JSON("info", t.Info)
	}
	return nil
}
