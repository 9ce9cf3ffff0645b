package core

// Callbacks: how a task's end is reported to the URL that the task names. Package callback explains why none is lost.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/callback"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Callbacks decides which URLs may be notified of the end of a task, and notifies them. NewTask.Callback names one; package
// handlers/webhook has an implementation that posts to it.
//
// A delivery is a task of its own, of [model.KindCallback]: it belongs to the agent of the task that has ended, has its level and its urgency, and
// waits, is retried, paused, limited, explained and given up as any task. So pausing the agent holds its callbacks too, and quiet hours
// put them off unless the task was urgent. TaskInfo.CallbackTask names it. At least one delivery follows each end of a task, even if processes die;
// a recurring task ends when it is cancelled, and not with a run. A task that is deleted, or whose agent is forgotten, has not ended.
type Callbacks interface {
	// Check returns nil if a URL may be called. It is called when a task is submitted, and before each attempt to deliver. Its error says
	// what is allowed, and not what the URL is, which may contain a secret.
	Check(url string) error
	// Deliver posts a message, which is JSON, under an ID that stays the same for all attempts. Its error means the same as that of a
	// handler. It has to return when ctx is done.
	Deliver(ctx context.Context, url, id string, message []byte) error
}

// callbackSettings are the settings of deliveries that Config.Kinds leaves out: half a day of attempts, as a receiver may be down for a night.
func callbackSettings() KindConfig {
	return KindConfig{MaxAttempts: 12, Backoff: 10 * time.Second, MaxBackoff: 2 * time.Hour, Timeout: 15 * time.Second}
}

// handleCallbacks registers the handler that delivers callbacks, if this process does.
func handleCallbacks(s *Scheduler) {
	for _, kind := range append([]string{model.KindCallback}, check.Everywhere...) {
		settings := callbackSettings()
		switch kind {
		case model.KindCallback: // a receiver that does not answer would keep all slots, each for a timeout
			// guard: callback-slots
			settings.Slots = max(s.config.Concurrency/2, 1)
		case check.KindWatch: // it is never given up
			settings.MaxAttempts = check.MaxAttempts
		}
		own := s.config.Kinds[kind].Or(settings).Or(s.config.Default).Plain()
		s.base.OfKind[kind] = &own
		if kind == model.KindCallback && s.config.Callbacks == nil {
			continue
		}
		s.register(handler{kind: kind, call: func(ctx context.Context, runs []*run, outcomes []error) {
			t, err := decodeTask[callback.Message](runs[0])
			if err == nil {
				err = s.callbacks.Run(ctx, &callback.Delivery{
					Agent: t.Agent, ID: t.ID, Kind: t.Kind, Attempt: t.Attempt, Fence: t.Fence, Submitted: t.Submitted, Payload: t.Payload, Run: t.RunInfo,
				})
			}
			outcomes[0] = err
		}})
	}
}

// EndsWithCallback reports whether the verdict on a run ends a task with a callback.
func (r *run) EndsWithCallback() bool {
	return r.body.Callback != nil && r.verdict.Settlement.Verb.Ends()
}

// Delivery is the delivery that follows the end of a run.
func (r *run) Delivery() (store.Submission, error) {
	c, v := r.claimed, &r.verdict
	of := store.Stored{Agent: c.Agent, ID: c.ID, Status: v.Status, Record: v.Settlement.Record}
	return callback.Of(&of, &r.body, r.pull.heartbeat.RunOf(c).Fence, r.pull.LeaseOf(r)+callback.Margin)
}

// Ends are the task of a run, its definition, and the record of its end.
func (r *run) Ends() (c *store.Claimed, b *codec.Body, rec []byte) {
	return r.claimed, &r.body, r.verdict.Settlement.Record
}
