package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// Messages of the queue for alarms, which adapters/alarm/sqs has put there: ticks, each for a time. One that comes before its time is from a
// schedule, whose precision is a minute, or has waited as long as a message can. The store believes that the time is booked, so no pull would book it
// again: the message is handed back to the clock.

// wakeEarly is how early a message may be to count as in time: a pull waits that long for what falls due.
const wakeEarly = time.Second

// rings reports whether an event of SQS is of the queue for alarms, as all of its records are of one queue.
func (f *Function) rings(o strictjson.Object) bool {
	records := strictjson.Value[[]strictjson.Object](o, "Records")
	return f.config.AlarmQueue != "" && slices.ContainsFunc(records, func(r strictjson.Object) bool {
		return r.Text("eventSourceARN") == f.config.AlarmQueue
	})
}

// wake runs what is due, once for all messages whose time has come, and sets the alarm again for the others. If either fails, the event does: SQS
// brings it again, and what was done before is done again, which changes nothing. A message that is no alarm never will be, and is dropped.
func (f *Function) wake(ctx context.Context, o strictjson.Object) (json.RawMessage, error) {
	var failed []error
	due := false
	var later []time.Time
	for _, r := range strictjson.Value[[]strictjson.Object](o, "Records") {
		at, err := readAlarm(r)
		switch {
		case err != nil:
			f.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a message is no alarm and was dropped", slog.String("err", err.Error()))
		case f.scheduler.EarlyBy(at) <= wakeEarly:
			due = true
		case !slices.Contains(later, at):
			later = append(later, at)
		}
	}
	for _, at := range later {
		if err := f.config.Alarm.Set(ctx, at); err != nil {
			failed = append(failed, fmt.Errorf("lambda: %w", &core.AlarmError{At: at, Err: err}))
		}
	}
	if due {
		if _, err := f.run(ctx, core.Scope{}, trigger.Occasion{}); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return json.RawMessage(`{"batchItemFailures":[]}`), nil
}

// readAlarm reads a message: {"kind": "tick"}, and its time. Without one it is due now.
func readAlarm(r strictjson.Object) (at time.Time, err error) {
	o, err := strictjson.Parse("message", []byte(r.Text("body")))
	if err != nil {
		return at, err
	}
	kind := ""
	if err = o.Read("an alarm", strictjson.Field{Name: "kind", Into: &kind, Must: `must be "tick"`}, strictjson.Field{
		Name: "at", Into: &at, Must: "must be a time in RFC 3339",
	}); err != nil {
		return at, err
	}
	if kind != "tick" {
		return at, &core.InvalidError{Field: "kind", Reason: `must be "tick"`}
	}
	return at, nil
}
