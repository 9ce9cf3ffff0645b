package core

// Definitions: what a task was submitted with, made out of what the tracker knows of it.

// Definition is what the task was submitted with, but for its time, what it says of ids that exist, and whether it was to be paused: two
// tasks with the same definition differ only in what has become of them. Of one that has completed or was cancelled the payload is not kept.
func (info *TaskInfo) Definition() NewTask {
	t := NewTask{
		Agent: info.Agent, ID: info.ID, Kind: info.Kind, Every: info.Every, From: info.From, Cron: info.Cron, Zone: info.Zone,
		DayMatch: info.DayMatch, Gap: info.Gap, Manual: info.Manual, Jitter: info.Jitter, Overlap: info.Overlap, Misfire: info.Misfire,
		PauseAfter: info.PauseAfter, MinInterval: info.MinInterval, Urgent: info.Urgent, LimitKey: info.LimitKey, Callback: info.Callback, Level: info.Level,
		Group: info.Group, MaxAttempts: info.MaxAttempts, Backoff: info.Backoff, Timeout: info.Timeout, Lease: info.Lease,
		TraceID: info.TraceID, Traceparent: info.Traceparent, SessionID: info.SessionID, UserID: info.UserID,
		Labels: info.Labels, Info: info.Info, Tags: info.Tags,
		owned: info.Owner() != "",
	}
	if info.Payload != nil {
		t.Payload = info.Payload
	}
	return t
}
