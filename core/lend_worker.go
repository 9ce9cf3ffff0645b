package core

// The other side of a loan: a lent run in the process of its worker, and how its end is reported.

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Outside is a run that another process has lent, for a handler that its worker calls: what the run has beside the fields of its [RunInfo].
type Outside struct {
	RunInfo

	Calls            int // of the task's handler before: [RunInfo.Call] is one more
	Checkpoint, Gate json.RawMessage
	Heard            *Heard // nil if the task has not waited
	Values           Values
	// News is called when the run has reported progress or use; nil for not at all. It must not block.
	News func()
	// Store does what [RunInfo.Save] promises, with a checkpoint that may be stored.
	Store func(ctx context.Context, checkpoint json.RawMessage) error
}

// made is what a run has that no scheduler of this process made.
type made struct {
	recorder

	news  func()
	store func(ctx context.Context, checkpoint json.RawMessage) error
}

// Run is the run as its handler gets it.
func (o *Outside) Run() *RunInfo {
	t := o.RunInfo
	t.made = &made{recorder: recorder{most: model.DefaultMaxResult}, news: o.News, store: o.Store}
	t.made.state.Calls, t.made.state.Checkpoint = o.Calls, o.Checkpoint
	t.extra = &extra{bound: o.Values, heard: o.Heard}
	if o.Gate != nil {
		t.extra.answer = &GateAnswer{Open: true, Input: o.Gate}
	}
	return &t
}

// OutcomeFields are what a handler has returned, and why its context was done, as workers report it: the members of an outcome in JSON, see
// docs/workers.md. now is the time that retry_after counts from. A run that has to end with its process alone has the member release.
func OutcomeFields(err, cause error, now time.Time) map[string]any {
	err = because(err, cause)
	fields := map[string]any{}
	if err == nil {
		return fields
	}
	if o, is := errors.AsType[*outcome.SnoozeError](err); is {
		return map[string]any{"snooze": o.After.String()}
	}
	if o, is := errors.AsType[*outcome.YieldError](err); is {
		return map[string]any{"yield": o.After.String(), "checkpoint": json.RawMessage(o.Checkpoint)}
	}
	if o, is := errors.AsType[*outcome.NextInError](err); is {
		return map[string]any{"next_in": o.After.String()}
	}
	if o, is := errors.AsType[*outcome.AwaitError](err); is {
		signal := map[string]any{"key": o.Signal.Key, "on_timeout": o.Signal.OnTimeout, "from": o.Signal.From}
		if o.Signal.Timeout > 0 {
			signal["timeout"] = o.Signal.Timeout.String()
		}
		return map[string]any{"await": signal, "checkpoint": json.RawMessage(o.Checkpoint)}
	}
	fields["error"] = err.Error()
	_, cancels := errors.AsType[*outcome.CancelError](err)
	_, fatal := errors.AsType[*outcome.FatalError](err)
	_, skips := errors.AsType[*outcome.SkipRetryError](err)
	later, retries := errors.AsType[*outcome.RetryAfterError](err)
	switch {
	case cancels:
		fields["cancel"] = true
	case retries:
		fields["retry_after"] = max(later.At.Sub(now), 0).String()
	case fatal || skips:
		fields["no_retry"] = true
	case errors.Is(err, ErrStopping):
		return map[string]any{"release": true}
	}
	return fields
}
