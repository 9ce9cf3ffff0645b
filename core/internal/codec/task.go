package codec

// A new task as it is stored.

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

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

// uniqueID is the id made from a unique key.
func uniqueID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "unique-" + hex.EncodeToString(sum[:16])
}

// Prepare checks a task and turns it into a submission. The checks need no store.
func Prepare(t *model.NewTask, maxPayload int, origin *model.Origin) (store.Submission, error) {
	sub := store.Submission{Agent: t.Agent, ID: t.ID, Kind: t.Kind, Group: t.Group, Level: t.Level, Key: t.LimitKey, Conflict: t.OnConflict.Rule(), Recurs: t.Cron != "" || t.Every != 0}
	if t.UniqueKey != "" {
		sub.ID = uniqueID(t.UniqueKey)
	}
	if sub.ID == "" {
		sub.ID = check.NewID()
	}
	payload, err := t.PayloadJSON(maxPayload)
	if err != nil {
		return sub, err
	}
	if err := t.Validate(sub.ID); err != nil {
		return sub, err
	}
	switch {
	case t.Manual:
		// Its planned occurrence never comes, so each of its runs is one by hand, which no misfire puts off.
		sub.Due.At, sub.State = moment.Never, (&State{Nominal: moment.Never}).First()
	case !t.At.IsZero():
		sub.Due.At = max(moment.Of(t.At), 1)
	default:
		sub.Due.After = t.Delay
		if t.Every != 0 {
			sub.Due.After += spread.Jitter(t.Jitter, t.Agent, sub.ID, 0)
		}
	}
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
	if t.Restored() != nil {
		restore(t.Restored(), &sub, &b)
	}
	sub.Body = b.Encode()
	return sub, nil
}
