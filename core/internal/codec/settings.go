package codec

// The settings of a task: what it was submitted with as its record has it, and back.

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// bodyOf is the body of a new task.
func bodyOf(t *model.NewTask, payload []byte, origin *model.Origin) record.Body {
	b := record.Body{
		Payload: payload, Every: t.Every, FromStart: t.From == model.FromStart, Cron: t.Cron, Zone: t.Zone,
		MatchAll: t.DayMatch == schedule.DayMatchAll, GapSkip: t.Gap == schedule.GapSkip,
		Jitter: t.Jitter, Overlap: string(t.Overlap), Misfire: string(t.Misfire), PauseAfter: t.PauseAfter, MinInterval: t.MinInterval, Urgent: t.Urgent,
		LimitKey: t.LimitKey, MaxAttempts: t.MaxAttempts, Backoff: t.Backoff,
		Timeout: t.Timeout, Lease: t.Lease, Group: t.Group, TraceID: t.TraceID, Traceparent: t.Traceparent,
		SessionID: t.SessionID, UserID: t.UserID, Info: t.Info, Tags: t.Tags, Origin: OriginRecord(origin),
	}
	if t.Callback != "" {
		b.Callback = &record.Callback{URL: t.Callback}
	}
	if t.ExpectSuccess != 0 {
		b.Expects = &record.Expectation{Within: t.ExpectSuccess, Notify: t.OnLate}
	}
	if t.Manual {
		b.Manual, b.Every = true, check.MaxDelay // versions without manual tasks treat it as one with this interval
	}
	storeLabels(&b, t.Labels)
	return b
}

// settingsOf are the settings in a body. It has no level: that of a live task is where its store puts it, and may be changed.
func settingsOf(b *Body) model.TaskSettings {
	s := model.TaskSettings{
		Payload: b.Payload, Every: b.Every, From: from(b.FromStart), Cron: b.Cron, Zone: b.Zone,
		DayMatch: dayMatch(b.MatchAll), Gap: gap(b.GapSkip), Manual: b.Manual,
		Jitter: b.Jitter, Overlap: b.OverlapPolicy(), Misfire: b.MisfirePolicy(), PauseAfter: b.PauseAfter, MinInterval: b.MinInterval, Urgent: b.Urgent,
		LimitKey: b.LimitKey, MaxAttempts: b.MaxAttempts, Backoff: b.Backoff,
		Timeout: b.Timeout, Lease: b.Lease, Group: b.Group, TraceID: b.TraceID, Traceparent: b.Traceparent,
		SessionID: b.SessionID, UserID: b.UserID, Info: b.Info, Tags: b.Tags, Labels: b.AllLabels(),
	}
	if b.Callback != nil {
		s.Callback = b.Callback.URL
	}
	if b.Expects != nil {
		s.ExpectSuccess, s.OnLate = b.Expects.Within, b.Expects.Notify
	}
	if b.Manual {
		s.Every = 0
	}
	return s
}

// storeLabels puts labels into a body, in a fixed order.
func storeLabels(b *record.Body, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.Labels = append(b.Labels, name+"\x00"+labels[name])
	}
}

// AllLabels are those of a stored task; nil if it has none.
func (b *Body) AllLabels() map[string]string {
	if len(b.Labels) == 0 {
		return nil
	}
	labels := make(map[string]string, len(b.Labels))
	for _, l := range b.Labels {
		name, value, _ := strings.Cut(l, "\x00")
		labels[name] = value
	}
	return labels
}
