package model

// Activity tasks: their settings, and the result of a notice of activity.

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// ActivityMode says when the run after some activity is due.
type ActivityMode string

// The modes.
const (
	ActivityThrottle ActivityMode = "throttle" // a time after the first activity
	ActivityDebounce ActivityMode = "debounce" // a time after the last activity, at most MaxWait after the first
)

// Activity says how tasks of a kind respond to activity: "summarise this user 30 minutes after they go quiet" is Quiet:
// 30 * time.Minute. There is one task for each subject; activity while it runs leads to another run. An occurrence has one
// attempt, unless the settings of the kind itself say MaxAttempts.
type Activity struct {
	Quiet time.Duration // the run is due this long after the last activity, at most MaxWait after the first: debounce
	Delay time.Duration // instead of Quiet: it is due this long after the first activity, regardless of later ones: throttle
	// Mode chooses between the two explicitly: Delay, or Quiet, is then the time of that mode. If empty, it follows from which of
	// them is set.
	Mode    ActivityMode
	MaxWait time.Duration // debounce: ten times the quiet time if zero
	// MinInterval is the least time between the starts of two runs for a subject, however long it is.
	MinInterval time.Duration
	// MaxFailures is how many occurrences fail in a row until the task cools down, for failures * interval * 2 and at least
	// 24 hours, where interval is the longest of MinInterval, Quiet and Delay: DefaultMaxFailures if zero, negative for never.
	MaxFailures int
	// Dimensions of the subject: 1 user, 2 user and device, 3 user, device and agent; 3 if zero.
	Dimensions int
	Level      store.Level // of the tasks; LevelLow if zero
}

// Defaults of Activity.
const (
	DefaultMaxFailures = 3
	defaultSubject     = "default" // the device or agent of activity that names none
)

// validate refuses invalid settings. The field of its error is one of Activity.
func (a *Activity) validate() *store.ConfigError {
	switch {
	case a == nil:
		return nil
	case a.Delay < 0 || a.Delay > check.MaxDelay:
		return check.Misconfigured("Delay", a.Delay, "must be between 0 and %s, not %s", check.MaxDelay, a.Delay)
	case a.Quiet < 0 || a.Quiet > check.MaxDelay:
		return check.Misconfigured("Quiet", a.Quiet, "must be between 0 and %s, not %s", check.MaxDelay, a.Quiet)
	case a.Quiet != 0 && a.Delay != 0:
		return check.Misconfigured("Quiet", a.Quiet, "excludes a delay: the quiet time counts from the last activity, a delay from the first")
	case a.Quiet != 0 && a.Mode == ActivityThrottle:
		return check.Misconfigured("Mode", a.Mode, "must not be %q with a quiet time: set a delay instead", ActivityThrottle)
	case a.Mode != "" && a.Mode != ActivityThrottle && a.Mode != ActivityDebounce:
		return check.Misconfigured("Mode", a.Mode, "must be %q or %q, not %q", ActivityThrottle, ActivityDebounce, a.Mode)
	case a.MaxWait != 0 && (!a.debounces() || a.MaxWait < a.time() || a.MaxWait > check.MaxDelay):
		return check.Misconfigured("MaxWait", a.MaxWait, "needs a quiet time and must be between that and %s, not %s", check.MaxDelay, a.MaxWait)
	case a.MinInterval < 0 || a.MinInterval > check.MaxDelay:
		return check.Misconfigured("MinInterval", a.MinInterval, "must be between 0 and %s, not %s", check.MaxDelay, a.MinInterval)
	case a.Dimensions < 0 || a.Dimensions > 3:
		return check.Misconfigured("Dimensions", a.Dimensions, "must be 1, 2 or 3, not %d", a.Dimensions)
	case a.Level < 0 || a.Level > store.LevelLow:
		return check.Misconfigured("Level", a.Level, "must be 1, 2 or 3, not %d", a.Level)
	}
	return nil
}

// time is how long the run is put off.
func (a *Activity) time() time.Duration { return max(a.Quiet, a.Delay) }

// debounces reports whether each activity moves the run; otherwise the first one alone decides.
func (a *Activity) debounces() bool { return a.Quiet != 0 || a.Mode == ActivityDebounce }

// Rule is the part that is stored with each task.
func (a *Activity) Rule() record.Activity {
	r := record.Activity{Pulse: store.Pulse{Delay: a.time()}, MaxFailures: a.MaxFailures}
	if a.debounces() {
		r.Debounce, r.MaxWait = true, a.MaxWait
		if a.MaxWait == 0 {
			r.MaxWait = 10 * a.time()
		}
	}
	if r.MaxFailures == 0 {
		r.MaxFailures = DefaultMaxFailures
	}
	return r
}

// Subject is who was active: the user is required, and a device or agent left out is "default".
type Subject struct {
	User, Device, Agent string
}

// Noticed is the result of a notice of activity.
type Noticed struct {
	Scheduled bool         // it booked a run; if not, one was booked before
	Reason    store.Reason // why
	Due       time.Time    // when that run is due; zero while one is under way: the next follows it
	Agent, ID string       // the task
}

// Access is what a notice of activity needs permission for. The subject's agent owns the task, or its user if no agent is named. The
// handler gets both, so a caller needs the right to act for each.
func (s Subject) Access(kind string) Access {
	agent := s.Agent
	if agent == "" || agent == defaultSubject {
		agent = s.User
	}
	return Access{Action: ActionSubmit, Agent: agent, User: s.User, Kind: kind}
}

// Payload is what the handler gets.
func (s Subject) Payload() (json.RawMessage, error) {
	return json.Marshal(map[string]string{"user_id": s.User, "device_id": s.Device, "agent_id": s.Agent})
}

// Subject is the owner and the id of the task of a subject. Two subjects never share one: each part is escaped, so that
// no part can contain the separator.
func (a *Activity) Subject(kind string, s Subject) (owner, id string) {
	parts := []string{s.User}
	if a.Dimensions != 1 {
		parts = append(parts, s.Device)
	}
	owner = s.User
	if a.Dimensions == 0 || a.Dimensions == 3 {
		parts = append(parts, s.Agent)
		if s.Agent != "" && s.Agent != defaultSubject {
			owner = s.Agent
		}
	}
	for i := range parts {
		if parts[i] == "" {
			parts[i] = defaultSubject
		}
		parts[i] = url.QueryEscape(parts[i])
	}
	name := strings.Join(parts, ":")
	id = "activity/" + kind + "/" + name
	if len(id) > check.MaxIDLen {
		sum := sha256.Sum256([]byte(name))
		id = "activity/" + kind + "/sha256-" + hex.EncodeToString(sum[:])
	}
	return owner, id
}
