package core

// The task that a user submits: its fields, its defaults, and what is refused.

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// From says what the interval of a recurring task is counted from.
type From string

// The origins of an interval.
const (
	FromCompletion From = "completion" // the end of the run: the task never overlaps itself and drifts
	FromStart      From = "start"      // the nominal time of the run: fixed slots without drift
)

// NewTask is a task to be submitted. Agent and Kind are required. At most one of At, Delay, Every, Cron and Manual says when it
// is due; with none of them it is due at once. Delay may also put off the first run of an Every.
type NewTask struct {
	Agent string // owner; any valid UTF-8 of 1 to 256 bytes without control characters
	ID    string // unique for its agent; made up if empty
	Kind  string // names the handler; that of the payload if empty and the payload is a [Kinder]
	// Payload is what the handler gets, as JSON. A json.RawMessage or []byte is JSON already.
	Payload any

	At    time.Time     // due once, at this time, never before
	Delay time.Duration // due once, this long after the submit
	Every time.Duration // recurs with this interval, at least a second
	From  From          // what Every is counted from; FromCompletion if empty

	// Cron is an expression of 5 or 6 fields (seconds first) or a nickname such as @daily, in an IANA Zone, Config.Zone if
	// empty, that of the agent's profile if it is ZoneOfAgent. Package schedule says what fires when the clocks change, and what DayMatch and Gap change.
	Cron, Zone string
	DayMatch   schedule.DayMatch
	Gap        schedule.Gap

	// Manual is a task without a time: it waits until somebody runs it by hand (see [Scheduler.RunNow]), and waits again after each run.
	Manual bool

	// Of a recurring task:
	Jitter     time.Duration // puts each due time off by a stable time below this, so that tasks do not come all at once; negative for none in spite of a preset
	Overlap    Overlap       // what becomes of occurrences that fall due while the task runs; OverlapSkip if empty
	Misfire    Misfire       // what to do about occurrences missed while no process ran; MisfireOnce if empty
	PauseAfter int           // pause the task after this many failed occurrences in a row; negative for never; if zero, the kind's

	MinInterval time.Duration // no occurrence starts sooner than this after the last one started; one whose process stopped or died is repeated at once
	Urgent      bool          // it starts in the quiet hours of its agent too, if the profile of that says so
	LimitKey    string        // tasks that share a key can be paused together, and wait together when one returns RetryAfter

	// Paused stores the task paused, in one step, with PausedReason: it runs once it is resumed, or when it is run by hand. It counts for
	// a task that is created; one that exists, or is replaced, stays paused or not as it was.
	Paused       bool
	PausedReason string // for people; at most 1 KiB

	UniqueKey  string     // the id is made from this, so that submitting twice makes one task; excludes ID
	OnConflict OnConflict // what to do when the id already exists; OnConflictKeep if empty
	// Callback is an https URL that is told how the task has ended, once it has for good: see [Callbacks].
	Callback string

	Preset string // fills in what is left out from a preset: see Presets

	Level Level  // 1 (first) to 3; if zero, the kind's, which is LevelLow by default
	Group string // ties several tasks of the agent together for one status

	MaxAttempts int           // of one occurrence; if zero, the kind's: by default 5, or 1 for a recurring task
	Backoff     time.Duration // the base of the pauses between attempts; if zero, the kind's; negative for no pause
	Timeout     time.Duration // of one run; if zero, the kind's; negative for none
	Lease       time.Duration // how long a run may go without a sign of life; if zero, the kind's

	// Traceparent is the W3C trace context of whoever submits. It is about the submit, and no part of the definition: one that differs in
	// it alone is the same.
	TraceID, Traceparent, SessionID string
	UserID                          string
	Info                            json.RawMessage // any JSON object of the submitter's
	Tags                            []string
	Labels                          map[string]string // the submitter's own, at most 32

	owned    bool      // that Labels has its owner was said by OwnedBy
	restored *restored // where the task was when it was exported; nil for one that is new
}

// Bounds of a task, besides those of ids.
const (
	DefaultMaxPayload = 256 << 10
	DefaultMaxResult  = 64 << 10
	maxErrorLen       = 1 << 10
	maxTags           = 32
	maxJitter         = 24 * time.Hour
	maxPauseAfter     = 1000
	maxKeyLen         = MaxIDLen
	maxAttempts       = 1000
	maxDelay          = 10 * 365 * 24 * time.Hour
	maxYear           = 2285 // after it a time in milliseconds has more than 13 digits
	minLease          = 100 * time.Millisecond
	maxLease          = time.Hour
)

// filled are tasks with what presets and the default zone fill in, and what negative durations mean. The caller's are left as they are.
func (s *Scheduler) filled(tasks []NewTask) ([]NewTask, error) {
	own := false
	for i := range tasks {
		t := &tasks[i]
		zone := t.Cron != "" && t.Zone == "" && s.config.Zone != ""
		if t.Kind != "" && t.Preset == "" && t.Jitter >= 0 && t.Backoff >= 0 && t.Timeout >= 0 && !zone {
			continue
		}
		if !own {
			tasks, own = slices.Clone(tasks), true
			t = &tasks[i]
		}
		if err := t.fill(); err != nil {
			return nil, inBatch(tasks, i, err)
		}
		if t.Cron != "" && t.Zone == "" { // also one of a preset
			t.Zone = s.config.Zone
		}
		t.Jitter, t.Backoff, t.Timeout = max(t.Jitter, 0), orNone(t.Backoff), orNone(t.Timeout)
	}
	return tasks, nil
}

// orNone is a duration that may be none at all, which is stored as one that is not lost by rounding.
func orNone(d time.Duration) time.Duration {
	if d < 0 {
		return none
	}
	return d
}

// prepare checks a task and turns it into what a store gets. The checks need no store.
func (t *NewTask) prepare(maxPayload int, origin *Origin) (store.Submission, error) {
	sub := store.Submission{Agent: t.Agent, ID: t.ID, Kind: t.Kind, Group: t.Group, Level: t.Level, Key: t.LimitKey, Conflict: t.OnConflict.rule()}
	if t.UniqueKey != "" {
		sub.ID = uniqueID(t.UniqueKey)
	}
	if sub.ID == "" {
		sub.ID = newID()
	}
	payload, err := t.payload(maxPayload)
	if err != nil {
		return sub, err
	}
	if err := t.check(sub.ID); err != nil {
		return sub, err
	}
	switch {
	case t.Manual:
		// Its planned occurrence never comes: so each run of it is one by hand, which no misfire puts off.
		sub.Due.At, sub.State = store.Never, (&state{Nominal: store.Never}).First()
	case !t.At.IsZero():
		sub.Due.At = max(store.MillisOf(t.At), 1)
	default:
		sub.Due.After = t.Delay
		if t.Every != 0 {
			sub.Due.After += jitter(t.Jitter, t.Agent, sub.ID, 0)
		}
	}
	b := record.Body{
		Payload: payload, Every: t.Every, FromStart: t.From == FromStart, Cron: t.Cron, Zone: t.Zone,
		MatchAll: t.DayMatch == schedule.DayMatchAll, GapSkip: t.Gap == schedule.GapSkip,
		Jitter: t.Jitter, Overlap: string(t.Overlap), Misfire: string(t.Misfire), PauseAfter: t.PauseAfter, MinInterval: t.MinInterval, Urgent: t.Urgent,
		LimitKey: t.LimitKey, MaxAttempts: t.MaxAttempts, Backoff: t.Backoff,
		Timeout: t.Timeout, Lease: t.Lease, Group: t.Group, TraceID: t.TraceID, Traceparent: t.Traceparent,
		SessionID: t.SessionID, UserID: t.UserID, Info: t.Info, Tags: t.Tags, Origin: origin.stored(),
	}
	if t.Callback != "" {
		b.Callback = &record.Callback{URL: t.Callback}
	}
	if t.Manual {
		b.Manual, b.Every = true, maxDelay // versions that know no manual tasks take it for one with this interval
	}
	storeLabels(&b, t.Labels)
	if t.restored != nil {
		t.restored.into(&sub, &b)
	}
	sub.Body = b.Encode()
	return sub, nil
}

// payload is the payload as JSON, at most so many bytes of it.
func (t *NewTask) payload(most int) ([]byte, error) {
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
			return nil, invalid("payload", "cannot be turned into JSON: %v", err)
		}
	}
	if len(data) == 0 { // no JSON is none, nil or not
		return nil, nil
	}
	if len(data) > most {
		return nil, invalid("payload", "is %d bytes long: the limit is %d", len(data), most)
	}
	return data, CheckJSON("payload", data)
}

// check refuses a task that makes no sense, with the field that is wrong. It asks no store.
func (t *NewTask) check(id string) error {
	if err := validID("agent_id", t.Agent); err != nil {
		return err
	}
	if err := validID("id", id); err != nil {
		return err
	}
	if err := validKind("kind", t.Kind); err != nil {
		return err
	}
	if err := notReserved(t.Kind); err != nil {
		return err
	}
	if err := validText("group", t.Group, MaxIDLen); err != nil {
		return err
	}
	if err := t.checkIdentity(id); err != nil {
		return err
	}
	if t.Level < 0 || t.Level > LevelLow {
		return invalid("level", "must be 1, 2 or 3, not %d", t.Level)
	}
	if err := t.checkSchedule(); err != nil {
		return err
	}
	if err := t.checkLimits(); err != nil {
		return err
	}
	if t.PausedReason != "" && !t.Paused {
		return invalid("paused_reason", "needs paused")
	}
	if err := validText("paused_reason", t.PausedReason, maxErrorLen); err != nil {
		return err
	}
	return t.checkTexts()
}

// checkSchedule refuses fields that do not go together, or that mean nothing for the schedule.
func (t *NewTask) checkSchedule() error {
	switch {
	case t.Manual && t.timed():
		return invalid("manual", "excludes at, delay, every and cron")
	case !t.At.IsZero() && (t.Delay != 0 || t.Every != 0 || t.Cron != ""):
		return invalid("at", "excludes delay, every and cron")
	case t.Cron != "" && (t.Delay != 0 || t.Every != 0):
		return invalid("cron", "excludes delay and every")
	case t.Cron == "" && t.Zone != "":
		return invalid("zone", "needs cron")
	case t.Cron == "" && t.DayMatch != "":
		return invalid("day_match", "needs cron")
	case t.Cron == "" && t.Gap != "":
		return invalid("gap", "needs cron")
	case !t.At.IsZero() && t.At.Year() > maxYear:
		return invalid("at", "is too far away: the year %d", t.At.Year())
	case t.Delay < 0 || t.Delay > maxDelay:
		return invalid("delay", "must be between 0 and %s, not %s", maxDelay, t.Delay)
	case t.Every != 0 && (t.Every < schedule.MinInterval || t.Every > maxDelay):
		return invalid("every", "must be between %s and %s, not %s", schedule.MinInterval, maxDelay, t.Every)
	case t.From != "" && t.Every == 0:
		return invalid("from", "needs every")
	case t.From != "" && t.From != FromCompletion && t.From != FromStart:
		return invalid("from", "must be %q or %q, not %q", FromCompletion, FromStart, t.From)
	}
	return t.checkPolicies()
}

// timed reports whether the task says when it is due.
func (t *NewTask) timed() bool { return !t.At.IsZero() || t.Delay != 0 || t.Every != 0 || t.Cron != "" }

// checkPolicies checks what says how occurrences follow one another.
func (t *NewTask) checkPolicies() error {
	recurs, fixed := t.Every != 0 || t.Cron != "", t.From == FromStart || t.Cron != ""
	switch {
	case t.Jitter != 0 && !recurs:
		return invalid("jitter", "needs every or cron")
	case t.Jitter > maxJitter:
		return invalid("jitter", "must be between 0 and %s, not %s", maxJitter, t.Jitter)
	case t.Overlap != "" && !fixed:
		return invalid("overlap", `needs cron, or every with from "start": other tasks never overlap themselves`)
	case t.Overlap != "" && !store.Among(t.Overlap, overlaps):
		return invalid("overlap", "must be one of %q, not %q", overlaps, t.Overlap)
	case t.Misfire != "" && !recurs:
		return invalid("misfire", "needs every or cron")
	case t.Misfire != "" && !store.Among(t.Misfire, misfires):
		return invalid("misfire", "must be one of %q, not %q", misfires, t.Misfire)
	case t.PauseAfter != 0 && !recurs:
		return invalid("pause_after_failures", "needs every or cron")
	case t.PauseAfter > maxPauseAfter:
		return invalid("pause_after_failures", "must be at most %d, not %d", maxPauseAfter, t.PauseAfter)
	case t.MinInterval < 0 || t.MinInterval > maxDelay:
		return invalid("min_interval", "must be between 0 and %s, not %s", maxDelay, t.MinInterval)
	}
	return nil
}

// checkIdentity checks what says which task it is.
func (t *NewTask) checkIdentity(id string) error {
	if err := validText("unique_key", t.UniqueKey, MaxTextLen); err != nil {
		return err
	}
	if err := validText("limit_key", t.LimitKey, maxKeyLen); err != nil {
		return err
	}
	switch {
	case t.UniqueKey != "" && t.ID != "":
		return invalid("unique_key", "excludes id")
	case t.OnConflict != "" && !store.Among(t.OnConflict, onConflicts):
		return invalid("on_conflict", "must be one of %q, not %q", onConflicts, t.OnConflict)
	case t.Overlap.spawns() && len(id) > MaxIDLen-childSuffix:
		return invalid("id", "is %d bytes long: with overlap %q the limit is %d", len(id), t.Overlap, MaxIDLen-childSuffix)
	}
	return nil
}

// checkLimits refuses numbers and durations outside of their bounds.
func (t *NewTask) checkLimits() error {
	switch {
	case t.MaxAttempts < 0 || t.MaxAttempts > maxAttempts:
		return invalid("max_attempts", "must be between 1 and %d, not %d", maxAttempts, t.MaxAttempts)
	case t.Backoff > maxDelay:
		return invalid("backoff", "must be between 0 and %s, not %s", maxDelay, t.Backoff)
	case t.Timeout > maxDelay:
		return invalid("timeout", "must be between 0 and %s, not %s", maxDelay, t.Timeout)
	case t.Lease != 0 && (t.Lease < minLease || t.Lease > maxLease):
		return invalid("lease", "must be between %s and %s, not %s", minLease, maxLease, t.Lease)
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
		if err := validText(f.name, f.value, MaxTextLen); err != nil {
			return err
		}
	}
	if err := t.checkOwned(); err != nil {
		return err
	}
	if len(t.Tags) > maxTags {
		return invalid("tags", "are %d: the limit is %d", len(t.Tags), maxTags)
	}
	for i, tag := range t.Tags {
		if err := validText(fmt.Sprintf("tags[%d]", i), tag, MaxIDLen); err != nil {
			return err
		}
	}
	if len(t.Info) > MaxTextLen*8 {
		return invalid("info", "is %d bytes long: the limit is %d", len(t.Info), MaxTextLen*8)
	}
	if len(t.Info) > 0 {
		return CheckJSON("info", t.Info)
	}
	return nil
}
