package core

// The tracker: what is known of a task, and how it is read.

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// TaskInfo is what the tracker knows of a task.
type TaskInfo struct {
	Agent, ID, Kind, Group string
	Status                 Status
	Parked                 bool // waits for a process that has a handler for its kind
	Level                  Level
	Payload                json.RawMessage // of tasks that are live or failed
	Every                  time.Duration
	From                   From
	Cron, Zone             string
	DayMatch               schedule.DayMatch
	Gap                    schedule.Gap
	Schedule               ScheduleType
	Jitter                 time.Duration
	Overlap                Overlap
	Misfire                Misfire
	PauseAfter             int
	MinInterval            time.Duration
	Urgent                 bool
	Manual                 bool // it is due only when it is told to run
	LimitKey               string
	Callback               string  // who is told how it has ended; kept of tasks that are live or failed
	Parent                 string  // the recurring task that this is one occurrence of
	Origin                 *Origin // by which run it was submitted; nil if by none
	MaxAttempts            int
	Backoff                time.Duration
	Timeout, Lease         time.Duration

	Submitted, Due, Started, Finished time.Time
	// UpdatedAt is when the task last changed: submitted, edited or replaced; claimed, settled, which is when its run ended, given back or taken from a process that died; its
	// progress stored; paused or resumed by itself, told to run, cancelled, told a signal, planned again, or touched by activity; ended. A pause of
	// its agent or kind is no change of the task, nor is a limit that it waits for.
	UpdatedAt                       time.Time
	LastActivity                    time.Time // of an activity task: when its subject was last active; zero if unknown, as after a replay
	NextRun                         time.Time // when a waiting task is due; zero for never
	Attempt                         int       // which attempt at its occurrence runs or is next; of a task that has ended the last one. From 1 on, as RunInfo has it
	Crashes                         int
	RunCount, SkipCount, ErrorCount int64
	ConsecutiveFailures             int
	RetryAfters                     int // how often in a row its handler returned RetryAfter
	GateClosed                      int // how often in a row its gate said that there was nothing to do
	LastRun                         time.Time
	LastDuration                    time.Duration
	LastOutcome                     Outcome
	LastError                       string
	Reason                          string // why it failed or was cancelled
	CallbackTask                    string // of one that has ended: the id of the task that delivers its callback
	Pauses                          []PauseInfo
	Resting                         bool      // an activity task that waits for activity
	Awaiting                        *Awaiting // the signal that it waits for; nil for none
	CoolingUntil                    time.Time // an activity task that failed too often tries again then
	Ending                          bool      // it was cancelled while it ran, and ends with its run
	LeaseUntil                      time.Time // in a list of what runs of all agents: when its lease ends, unless it is extended
	Holder                          string    // there: the name of the process that it runs in, if that has said something of itself
	HeldBy                          *Because  // in a list of what is held: by what
	Result, Progress                json.RawMessage
	Runs                            []TaskRun // the last ones, oldest first
	Dropped                         bool      // its record was dropped before its time: all else but Status and Finished is unknown

	TraceID, Traceparent, SessionID string
	UserID                          string
	Info                            json.RawMessage
	Tags                            []string
	Labels                          map[string]string
}

// Awaiting is a signal that a task waits for.
type Awaiting struct {
	Key   string
	Until time.Time // zero for ever
	From  string    // whose signals count; see [Signal]
	Fence Fence     // names this wait among those of the task: that of the run that has asked; see [Question]
}

// PauseInfo is a pause that a task is under.
type PauseInfo struct {
	Target Target // what was paused
	Order
	Since, Until time.Time // Until is zero for a pause without an end
}

// Recurring reports whether the task has a schedule, and so belongs to the registry.
func (info *TaskInfo) Recurring() bool {
	return info.Schedule != "" && info.Schedule != ScheduleAt
}

// Task returns one task. It fails with ErrNotFound if there is none, or its record is too old. Of a task whose record had to
// make room for later ones it returns how and when the task ended, with Dropped set, until KnownFor after its end.
func (s *Scheduler) Task(ctx context.Context, agent, id string) (TaskInfo, error) {
	t, err := s.stored(ctx, agent, id)
	if err != nil {
		return TaskInfo{}, err
	}
	return inform(&t), nil
}

// Group returns the counts of a group of an agent's tasks. It fails with ErrNotFound if the group has none, or all have
// been finished for longer than records are kept.
func (s *Scheduler) Group(ctx context.Context, agent, group string) (GroupCounts, error) {
	if err := validID("agent_id", agent); err != nil {
		return GroupCounts{}, err
	}
	if err := validID("group", group); err != nil {
		return GroupCounts{}, err
	}
	counts, err := s.store.Group(ctx, agent, group)
	if err != nil {
		return GroupCounts{}, err
	}
	if counts.Status() == "" {
		return GroupCounts{}, ErrNotFound
	}
	return GroupCounts(counts), nil
}

// Agents returns a page of the agents with live tasks, in no order, and the cursor of the next page: empty on the last one.
// An agent that comes or goes meanwhile may be missing, and one may be named twice.
func (s *Scheduler) Agents(ctx context.Context, limit int, cursor string) ([]AgentStats, string, error) {
	q, err := pageOf(limit, cursor)
	if err != nil {
		return nil, "", err
	}
	page, err := s.store.Agents(ctx, q)
	var agents []AgentStats
	for _, a := range page.Agents {
		agents = append(agents, AgentStats{Agent: a.Agent, Live: a.Live, Due: a.Due.Time(), Paused: a.Held})
	}
	return agents, page.Next, err
}

// Pauses is a page of all that is paused now, in no order: tasks, agents, kinds, limit keys, or everything, by operators or,
// as they kept failing, by duly. limit and cursor are those of Agents.
func (s *Scheduler) Pauses(ctx context.Context, limit int, cursor string) ([]PauseInfo, string, error) {
	q, err := pageOf(limit, cursor)
	if err != nil {
		return nil, "", err
	}
	page, err := s.store.Holds(ctx, q)
	pauses := make([]PauseInfo, len(page.Holds))
	for i := range page.Holds {
		pauses[i] = informPause(&page.Holds[i])
	}
	return pauses, page.Next, err
}

// pageOf is a page in the store's words, with the default limit.
func pageOf(limit int, cursor string) (store.PageOf, error) {
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return store.PageOf{}, invalid("limit", "must be between 1 and %d, not %d", MaxPage, limit)
	}
	return store.PageOf{Limit: limit, After: cursor}, validText("cursor", cursor, maxCursorLen)
}

// informPause is a hold as users see it.
func informPause(h *store.Held) PauseInfo {
	return PauseInfo{Target: h.Target, Order: decodeHold(h.Note), Since: h.Since.Time(), Until: h.Until.Time()}
}

// stored reads one task. It fails with ErrNotFound if it does not exist.
func (s *Scheduler) stored(ctx context.Context, agent, id string) (store.Stored, error) {
	t, _, err := s.look(ctx, store.Get{Agent: agent, IDs: []string{id}})
	return t, err
}

// look reads one task, as its question says, and what time it is.
func (s *Scheduler) look(ctx context.Context, g store.Get) (store.Stored, store.Millis, error) {
	if err := validID("agent_id", g.Agent); err != nil {
		return store.Stored{}, 0, err
	}
	if err := validID("id", g.IDs[0]); err != nil {
		return store.Stored{}, 0, err
	}
	page, err := s.store.Get(ctx, g)
	if err != nil {
		return store.Stored{}, 0, err
	}
	if len(page.Tasks) != 1 || page.Tasks[0].Status == "" {
		return store.Stored{}, 0, ErrNotFound
	}
	return page.Tasks[0], page.Now, nil
}

// droppedReason tells why a task is shown without what it was.
const droppedReason = "its record was dropped, as its agent has more finished tasks than are kept"

// inform decodes a stored task. A record that cannot be decoded is shown as far as it can be: it must not hide others.
func inform(t *store.Stored) TaskInfo {
	info := TaskInfo{
		Agent: t.Agent, ID: t.ID, Kind: t.Kind, Status: t.Status, Parked: t.Parked, Level: t.Level,
		Submitted: t.Submitted.Time(), Due: t.Due.Time(), NextRun: t.Due.Time(), Finished: t.Finished.Time(), Crashes: t.Crashes,
		UpdatedAt: t.Updated.Time(), LastActivity: t.LastActivity.Time(), Resting: t.Resting, Ending: t.Order != nil,
	}
	for i := range t.Holds {
		info.Pauses = append(info.Pauses, informPause(&t.Holds[i]))
	}
	if t.Status == StatusInProgress {
		info.LeaseUntil, info.Holder = t.Lease.Time(), t.Holder
	}
	if t.Dropped {
		info.Dropped, info.Reason = true, droppedReason
		return info
	}
	data, stored := t.Body, t.State
	if t.Status.Finished() {
		rec, err := record.DecodeFinished(t.Record)
		if err != nil {
			info.LastError = err.Error()
		}
		info.Kind, info.Level, info.Submitted, info.Due = rec.Kind, rec.Level, rec.Submitted.Time(), rec.Due.Time()
		info.NextRun, info.Reason, info.Group = time.Time{}, rec.Reason, rec.Group
		data, stored = rec.Body, rec.State
		info.Origin, info.CallbackTask = informOrigin(rec.Origin), rec.Callback
	}
	info.take(data, stored)
	for range t.Crashes { // they come into its history when a run of it ends
		info.Runs = append(info.Runs, TaskRun{Attempt: info.Attempt, Outcome: OutcomeCrashed, Error: whyCrashed})
	}
	info.Runs = info.Runs[max(len(info.Runs)-record.KeptRuns, 0):]
	return info
}

// attempt is that of a run under way, of the next one, or of the last one of a task that has ended: so many have failed before it.
func (info *TaskInfo) attempt(failed int) int {
	if !info.Status.Finished() {
		return failed + 1
	}
	for _, r := range slices.Backward(info.Runs) {
		if r.Attempt > 0 { // what was skipped has none
			return r.Attempt
		}
	}
	return 1 // it has ended before its first
}

// take fills in what the body and the state say. Bytes that cannot be read show as the last error, and
// hide nothing else.
func (info *TaskInfo) take(data, stored []byte) {
	b, err := decodeBody(data)
	if err != nil {
		info.LastError = err.Error()
	}
	info.Payload, info.Every, info.From, info.MaxAttempts = b.Payload, b.Every, from(b.FromStart), b.MaxAttempts
	info.Cron, info.Zone, info.DayMatch, info.Gap = b.Cron, b.Zone, dayMatch(b.MatchAll), gap(b.GapSkip)
	info.Jitter, info.Overlap, info.Misfire, info.PauseAfter = b.Jitter, b.overlap(), b.misfire(), b.PauseAfter
	info.MinInterval, info.Urgent, info.LimitKey, info.Parent = b.MinInterval, b.Urgent, b.LimitKey, b.Parent
	if info.Manual = b.Manual; b.Manual {
		info.Every = 0
	}
	if len(data) > 0 {
		info.Schedule = b.schedule()
	}
	if b.Callback != nil {
		info.Callback = b.Callback.URL
	}
	if b.Origin != nil {
		info.Origin = informOrigin(b.Origin)
	}
	info.Backoff, info.Timeout, info.Lease = b.Backoff, b.Timeout, b.Lease
	info.TraceID, info.Traceparent, info.SessionID = b.TraceID, b.Traceparent, b.SessionID
	info.UserID, info.Labels = b.UserID, b.labels()
	info.Info, info.Tags = b.Info, b.Tags
	if b.Group != "" {
		info.Group = b.Group
	}
	st, err := record.DecodeState(stored)
	if err != nil {
		info.LastError = err.Error()
	}
	info.RunCount, info.SkipCount, info.ErrorCount = st.RunCount, st.SkipCount, st.ErrorCount
	info.CoolingUntil, info.RetryAfters, info.GateClosed = st.Cooling.Time(), st.RetryAfters, st.Idle
	info.ConsecutiveFailures, info.Result, info.Progress, info.Runs = st.Failures, st.Result, st.Progress, informRuns(st.Runs.All())
	info.Attempt = info.attempt(st.Attempt)
	if st.Nominal != 0 && st.Nominal < store.Never {
		info.Due = st.Nominal.Time()
	}
	// The due time of a task that rests is when it has rested for long enough, unless its gate is to be asked again.
	if info.Resting && !st.Nominal.Time().Equal(info.NextRun) {
		info.Due, info.NextRun = time.Time{}, time.Time{}
	}
	if n := len(info.Runs); n > 0 {
		last := info.Runs[n-1]
		info.LastRun, info.LastDuration, info.LastOutcome, info.LastError = last.Started, last.Duration, last.Outcome, last.Error
		info.Started = last.Started
		info.settledBy(&last)
	}
	// A run that has heard its signal and failed is tried again: what it was told stays, and nothing is waited for.
	heard := info.LastOutcome != "" && info.LastOutcome != OutcomeAwaiting
	if a := st.Await; a != nil && info.Status == StatusWaiting && !heard {
		info.Awaiting = &Awaiting{Key: a.Key, Until: a.Until.Time(), From: a.From, Fence: a.Fence}
	}
}

// settledBy takes the end of the last run of a live task for a change of it: of most settlements the store knows no time.
func (info *TaskInfo) settledBy(last *TaskRun) {
	if end := last.Started.Add(last.Duration); !last.Started.IsZero() && !info.Status.Finished() && end.After(info.UpdatedAt) {
		info.UpdatedAt = end
	}
}
