package core

// Activity: what users notice of it, its settings, and the tasks that it makes due.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"time"

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

// Activity says how tasks of a kind answer to activity: "summarise this user 30 minutes after they go quiet" is Quiet:
// 30 * time.Minute. There is one task for each subject; activity while it runs makes one run more. An occurrence has one
// attempt, unless the settings of the kind itself say MaxAttempts.
type Activity struct {
	Quiet time.Duration // the run is due this long after the last activity, at most MaxWait after the first: debounce
	Delay time.Duration // instead of Quiet: it is due this long after the first activity, whatever follows: throttle
	// Mode is another way to say which: with it Delay, or Quiet, is the time of that mode. It follows from which of them is
	// set if empty.
	Mode    ActivityMode
	MaxWait time.Duration // debounce: ten times the quiet time if zero
	// MinInterval is the least time between the starts of two runs for a subject, however long it is.
	MinInterval time.Duration
	// MaxFailures is how many occurrences fail in a row until the task cools down, for failures * interval * 2 and at least
	// 24 hours, where interval is the longest of MinInterval, Quiet and Delay: DefaultMaxFailures if zero, negative for never.
	MaxFailures int
	// Dimensions of the subject: 1 user, 2 user and device, 3 user, device and agent; 3 if zero.
	Dimensions int
	Level      Level // of the tasks; LevelLow if zero
}

// Defaults of Activity.
const (
	DefaultMaxFailures = 3
	leastCoolDown      = 24 * time.Hour
	// restFor is how long a task is kept after its last run, waiting for activity: then it is finished and its record kept
	// as long as others. Its MinInterval and its cooling down are over by then.
	restFor        = 7 * 24 * time.Hour
	defaultSubject = "default" // the device or agent of activity that names none
)

// validate refuses what makes no sense. The field is one of Activity.
func (a *Activity) validate() *ConfigError {
	switch {
	case a == nil:
		return nil
	case a.Delay < 0 || a.Delay > maxDelay:
		return misconfigured("Delay", a.Delay, "must be between 0 and %s, not %s", maxDelay, a.Delay)
	case a.Quiet < 0 || a.Quiet > maxDelay:
		return misconfigured("Quiet", a.Quiet, "must be between 0 and %s, not %s", maxDelay, a.Quiet)
	case a.Quiet != 0 && a.Delay != 0:
		return misconfigured("Quiet", a.Quiet, "excludes a delay: the quiet time counts from the last activity, a delay from the first")
	case a.Quiet != 0 && a.Mode == ActivityThrottle:
		return misconfigured("Mode", a.Mode, "must not be %q with a quiet time: set a delay instead", ActivityThrottle)
	case a.Mode != "" && a.Mode != ActivityThrottle && a.Mode != ActivityDebounce:
		return misconfigured("Mode", a.Mode, "must be %q or %q, not %q", ActivityThrottle, ActivityDebounce, a.Mode)
	case a.MaxWait != 0 && (!a.debounces() || a.MaxWait < a.time() || a.MaxWait > maxDelay):
		return misconfigured("MaxWait", a.MaxWait, "needs a quiet time and must be between that and %s, not %s", maxDelay, a.MaxWait)
	case a.MinInterval < 0 || a.MinInterval > maxDelay:
		return misconfigured("MinInterval", a.MinInterval, "must be between 0 and %s, not %s", maxDelay, a.MinInterval)
	case a.Dimensions < 0 || a.Dimensions > 3:
		return misconfigured("Dimensions", a.Dimensions, "must be 1, 2 or 3, not %d", a.Dimensions)
	case a.Level < 0 || a.Level > LevelLow:
		return misconfigured("Level", a.Level, "must be 1, 2 or 3, not %d", a.Level)
	}
	return nil
}

// time is what the run is put off by, and debounces reports whether that begins again with each activity.
func (a *Activity) time() time.Duration { return max(a.Quiet, a.Delay) }

// debounces reports whether each touch moves the run, rather than the first one alone deciding.
func (a *Activity) debounces() bool { return a.Quiet != 0 || a.Mode == ActivityDebounce }

// rule is what is kept with each task.
func (a *Activity) rule() record.Activity {
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

// Subject is who did something: the user is required, and what is left out is "default".
type Subject struct {
	User, Device, Agent string
}

// Noticed is what a notice of activity did.
type Noticed struct {
	Scheduled bool         // it booked a run; if not, one was booked before
	Reason    store.Reason // why
	Due       time.Time    // when that run is due; zero while one is under way: the next follows it
	Agent, ID string       // the task
}

// Notice says that a subject was active. It books a run of the kind's task for that subject; see [Activity]. The task is
// owned by the agent, or by the user if no agent is given or the kind does not tell agents apart. A scheduler whose kind has no Activity takes the
// rule from the subject's task, which every task keeps, so that a process without the settings can tell of activity too; the first
// activity of a subject needs one that has them.
func (s *Scheduler) Notice(ctx context.Context, kind string, subject Subject) (Noticed, error) {
	sub, err := s.activityTask(kind, subject)
	if err != nil {
		return Noticed{}, err
	}
	if err := s.Authorize(ctx, subject.access(kind)); err != nil {
		return Noticed{}, err
	}
	if sub.ID == "" {
		if sub, err = s.ruled(ctx, kind, subject); err != nil {
			return Noticed{}, err
		}
	}
	change := &Transition{Type: EventActivity, Agent: sub.Agent, ID: sub.ID, Kind: sub.Kind, To: StatusWaiting, Order: orderOf(ctx, Order{})}
	if err := s.allowActivity(ctx, change); err != nil {
		return Noticed{}, err
	}
	touched, err := s.store.Touch(ctx, []store.Touch{sub})
	if err != nil {
		return Noticed{}, err
	}
	t := touched[0]
	if t.Booked {
		if t.Due == 0 {
			change.To = StatusInProgress
		}
		s.changedAll(change, t.Due.Time())
	}
	return Noticed{Scheduled: t.Booked, Reason: t.Reason, Due: t.Due.Time(), Agent: sub.Agent, ID: sub.ID}, nil
}

// access is what a notice wants to do. The user that its subject names or its agent, unless that is left out, owns the task, and its
// handler is given both, so a caller needs the right to act for each.
func (s Subject) access(kind string) Access {
	agent := s.Agent
	if agent == "" || agent == defaultSubject {
		agent = s.User
	}
	return Access{Action: ActionSubmit, Agent: agent, User: s.User, Kind: kind}
}

// activityTask is the touch that a notice becomes: the task of its subject, whether it exists or not; none if only that task can have the rule.
// Everything is checked before the store is called.
func (s *Scheduler) activityTask(kind string, subject Subject) (store.Touch, error) {
	if err := validKind("kind", kind); err != nil {
		return store.Touch{}, err
	}
	if err := validID("user_id", subject.User); err != nil {
		return store.Touch{}, err
	}
	if err := validText("device_id", subject.Device, MaxIDLen); err != nil {
		return store.Touch{}, err
	}
	if err := validText("agent_id", subject.Agent, MaxIDLen); err != nil {
		return store.Touch{}, err
	}
	config := s.kind(kind)
	switch {
	case config.Disabled:
		return store.Touch{}, &DisabledError{Kind: kind}
	case config.Activity == nil:
		return store.Touch{}, nil
	}
	a := config.Activity
	owner, id := a.subject(kind, subject)
	payload, err := subject.payload()
	if err != nil {
		return store.Touch{}, err
	}
	rule := a.rule()
	b := record.Body{Payload: payload, Activity: &rule, MinInterval: a.MinInterval, UserID: subject.User}
	level := a.Level
	if level == 0 {
		level = LevelLow
	}
	return store.Touch{Agent: owner, ID: id, Kind: kind, Level: level, Body: b.Encode(), Pulse: rule.Pulse}, nil
}

// payload is what the handler is given.
func (s Subject) payload() (json.RawMessage, error) {
	return json.Marshal(map[string]string{"user_id": s.User, "device_id": s.Device, "agent_id": s.Agent})
}

// ruled is the touch of a subject whose task says itself how it answers to activity. How many dimensions the kind tells apart is only
// known where its settings are: the task with the most of them is the subject's.
func (s *Scheduler) ruled(ctx context.Context, kind string, subject Subject) (store.Touch, error) {
	for dimensions := 3; dimensions > 0; dimensions-- {
		owner, id := (&Activity{Dimensions: dimensions}).subject(kind, subject)
		page, err := s.store.Get(ctx, store.Get{Agent: owner, IDs: []string{id}})
		if err != nil {
			return store.Touch{}, err
		}
		t := &page.Tasks[0]
		b, err := record.DecodeBody(t.Body)
		if err != nil || b.Activity == nil || t.Kind != kind {
			continue
		}
		if b.Payload, err = subject.payload(); err != nil {
			return store.Touch{}, err
		}
		return store.Touch{Agent: owner, ID: id, Kind: kind, Level: t.Level, Body: b.Encode(), Pulse: b.Activity.Pulse}, nil
	}
	return store.Touch{}, invalid("kind", "%q has no activity schedule here, and the subject has no task of this kind yet", kind)
}

// subject is the owner and the id of the task of a subject. Two subjects never share one: each part is escaped, so that
// no part can hold what stands between them.
func (a *Activity) subject(kind string, s Subject) (owner, id string) {
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
	if len(id) > MaxIDLen {
		sum := sha256.Sum256([]byte(name))
		id = "activity/" + kind + "/sha256-" + hex.EncodeToString(sum[:])
	}
	return owner, id
}
