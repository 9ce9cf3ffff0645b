package codec

// A stored task, as users see it.

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// CancelReason is the reason in the record of a cancelled task: who and why, as far as the caller said so.
func CancelReason(by model.Order) string {
	text := "cancelled"
	if who := by.Who(); who != "" {
		text += " by " + who
	}
	if by.Reason != "" {
		text += ": " + by.Reason
	}
	return text
}

// OriginRecord is the origin as it is stored; nil for none.
func OriginRecord(o *model.Origin) *record.Origin {
	if o == nil {
		return nil
	}
	return &record.Origin{Agent: o.By.Agent, ID: o.By.ID, RootAgent: o.Root.Agent, RootID: o.Root.ID, Depth: o.Depth}
}

// InformOrigin is the origin that was stored; nil for none.
func InformOrigin(o *record.Origin) *model.Origin {
	if o == nil {
		return nil
	}
	return &model.Origin{By: model.TaskName{Agent: o.Agent, ID: o.ID}, Root: model.TaskName{Agent: o.RootAgent, ID: o.RootID}, Depth: o.Depth}
}

// State is the part of a task that its runs change.
type State = record.State

// informRuns are stored runs as users see them.
func informRuns(runs []record.Run) []model.TaskRun {
	var out []model.TaskRun
	for _, r := range runs {
		out = append(out, model.TaskRun{
			Started: r.Started.Time(), Duration: r.Duration, Attempt: r.Attempt, Outcome: model.Outcome(r.Outcome), Error: r.Error, Used: readUsage(r.Used), Process: r.Process,
		})
	}
	return out
}

// Order reads an order as it is stored. It never fails: one that cannot be read says so in its reason.
func Order(data []byte) model.Order {
	h := record.DecodeHold(data)
	return model.Order{By: h.By, Reason: h.Reason, Note: h.Note}
}

// PauseInfo is a hold as users see it.
func PauseInfo(h *store.Held) model.PauseInfo {
	return model.PauseInfo{Target: h.Target, Order: Order(h.Note), Since: h.Since.Time(), Until: h.Until.Time()}
}

// DroppedReason says why a task is shown without its details.
const DroppedReason = "its record was dropped, as its agent has more finished tasks than are kept"

// Inform decodes a stored task. A record that cannot be decoded is shown as far as it can be: it must not hide others.
func Inform(t *store.Stored) model.TaskInfo {
	info := model.TaskInfo{
		Agent: t.Agent, ID: t.ID, Kind: t.Kind, Status: t.Status, Parked: t.Parked, TaskSettings: model.TaskSettings{Level: t.Level},
		Submitted: t.Submitted.Time(), Due: t.Due.Time(), NextRun: t.Due.Time(), Finished: t.Finished.Time(), Crashes: t.Crashes,
		UpdatedAt: t.Updated.Time(), LastActivity: t.LastActivity.Time(), Resting: t.Resting, Ending: t.Order != nil,
	}
	for i := range t.Holds {
		info.Pauses = append(info.Pauses, PauseInfo(&t.Holds[i]))
	}
	if t.Status == store.StatusInProgress {
		info.LeaseUntil, info.Holder = t.Lease.Time(), t.Holder
	}
	if t.Dropped {
		info.Dropped, info.Reason = true, DroppedReason
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
		info.Origin, info.CallbackTask = InformOrigin(rec.Origin), rec.Callback
	}
	take(&info, data, stored)
	for range t.Crashes { // they are added to its history when a run of it ends
		info.Runs = append(info.Runs, model.TaskRun{Attempt: info.Attempt, Outcome: model.OutcomeCrashed, Error: WhyCrashed})
	}
	info.Runs = info.Runs[max(len(info.Runs)-record.KeptRuns, 0):]
	return info
}

// attempt is the attempt of a run under way, of the next run, or of the last one of a task that has ended, after failed earlier ones.
func attempt(info *model.TaskInfo, failed int) int {
	if !info.Status.Finished() {
		return failed + 1
	}
	for _, r := range slices.Backward(info.Runs) {
		if r.Attempt > 0 { // skipped runs have none
			return r.Attempt
		}
	}
	return 1 // it has ended before its first
}

// take fills in what the body and the state say. Bytes that cannot be read show as the last error, and
// hide nothing else.
func take(info *model.TaskInfo, data, stored []byte) {
	b, err := DecodeBody(data)
	if err != nil {
		info.LastError = err.Error()
	}
	beside := info.TaskSettings // what the store, or the record of its end, says itself
	info.TaskSettings, info.Parent = settingsOf(&b), b.Parent
	if info.Level = beside.Level; info.Group == "" {
		info.Group = beside.Group
	}
	if len(data) > 0 {
		info.Schedule = b.Schedule()
	}
	if b.Origin != nil {
		info.Origin = InformOrigin(b.Origin)
	}
	st, err := record.DecodeState(stored)
	if err != nil {
		info.LastError = err.Error()
	}
	info.RunCount, info.SkipCount, info.ErrorCount = st.RunCount, st.SkipCount, st.ErrorCount
	if st.Watched != nil {
		info.LastSuccess = st.Watched.Succeeded.Time()
	}
	info.CoolingUntil, info.RetryAfters, info.GateClosed = st.Cooling.Time(), st.RetryAfters, st.Idle
	info.ConsecutiveFailures, info.Result, info.Progress, info.Checkpoint, info.Runs = st.Failures, st.Result, st.Progress, st.Checkpoint, informRuns(st.Runs.All())
	info.Attempt = attempt(info, st.Attempt)
	if st.Nominal != 0 && st.Nominal < moment.Never {
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
		settledBy(info, &last)
	}
	// A run that got its signal and failed is tried again: the signal stays, and the task waits for none.
	heard := info.LastOutcome != "" && info.LastOutcome != model.OutcomeAwaiting
	if a := st.Await; a != nil && info.Status == store.StatusWaiting && !heard {
		info.Awaiting = awaiting(a)
	}
}

// awaiting is what a task waits for.
func awaiting(a *record.Await) *model.Awaiting {
	w := &model.Awaiting{Key: a.Key, Until: a.Until.Time(), From: a.From, Fence: a.Fence, Question: a.Question}
	if a.Answer != "" {
		w.Answer = json.RawMessage(a.Answer)
	}
	return w
}

// settledBy counts the end of the last run of a live task as a change of it: the store has no time for most settlements.
func settledBy(info *model.TaskInfo, last *model.TaskRun) {
	if end := last.Started.Add(last.Duration); !last.Started.IsZero() && !info.Status.Finished() && end.After(info.UpdatedAt) {
		info.UpdatedAt = end
	}
}

// WhyCrashed is the error of a run that died with its process.
const WhyCrashed = "its process died: its lease ran out, and its task was taken over"
