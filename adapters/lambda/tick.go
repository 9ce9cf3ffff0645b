package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// Ticks, and of how a repeated delivery is recognised: AWS delivers at least once, so a schedule may fire twice.

// The members of a tick that EventBridge Scheduler fills in.
// The names are those that EventBridge Scheduler's own placeholders suggest.
const (
	scheduleARN   = "schedule-arn"
	scheduledTime = "scheduled-time"
)

// scheduled is the tick of an EventBridge rule or of a schedule without an input of its own. Its detail says nothing.
func (f *Function) scheduled(ctx context.Context, o strictjson.Object) (json.RawMessage, error) {
	arn := ""
	// The ARN of the rule or schedule names it across accounts and regions.
	if resources := strictjson.Value[[]string](o, "resources"); len(resources) > 0 {
		arn = resources[0]
	}
	return f.run(ctx, core.Scope{}, trigger.OccasionOf(arn, o.Text("time")))
}

// tick is an event made for us: all that it says must make sense.
func (f *Function) tick(ctx context.Context, o strictjson.Object) (json.RawMessage, error) {
	var arn, at string
	var ignored any
	scope, err := trigger.ReadTick(o,
		strictjson.Field{Name: scheduleARN, Into: &arn, Must: "must be a string"},
		strictjson.Field{Name: scheduledTime, Into: &at, Must: "must be a string"},
		strictjson.Field{Name: "execution-id", Into: &ignored}, // another one at each attempt, so nothing to tell repeats by
		strictjson.Field{Name: "attempt-number", Into: &ignored},
	)
	if err != nil {
		return nil, err
	}
	// Without either it is a tick that was sent by hand, and never a repeat.
	var key trigger.Occasion
	if arn != "" || at != "" {
		if key, err = newOccasion(arn, at); err != nil {
			return nil, err
		}
	}
	return f.run(ctx, scope, key)
}

// newOccasion checks what names an occasion: a placeholder that was not filled in would make all ticks one.
// Lambda shows the error in the log of the schedule.
func newOccasion(arn, at string) (trigger.Occasion, error) {
	if !strings.HasPrefix(arn, "arn:") {
		return trigger.Occasion{}, &core.InvalidError{Field: scheduleARN, Reason: "must be the ARN of a schedule: <aws.scheduler.schedule-arn>"}
	}
	if _, err := time.Parse(time.RFC3339, at); err != nil {
		return trigger.Occasion{}, &core.InvalidError{Field: scheduledTime, Reason: "must be a time in RFC 3339: <aws.scheduler.scheduled-time>"}
	}
	return trigger.OccasionOf(arn, at), nil
}

// run runs what is due, unless this occasion has been served before.
func (f *Function) run(ctx context.Context, scope core.Scope, key trigger.Occasion) (json.RawMessage, error) {
	report, repeated, err := f.runner.Run(ctx, scope, key)
	if err != nil {
		return nil, fmt.Errorf("lambda: tick: %w", err)
	}
	// A repeat answers with success, so that it is not sent again.
	if repeated {
		return json.Marshal(struct {
			Duplicate bool   `json:"duplicate"`
			ARN       string `json:"schedule-arn"`
			Time      string `json:"scheduled-time"`
		}{true, key.Of, key.At})
	}
	return json.Marshal(report)
}
