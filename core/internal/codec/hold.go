package codec

// The pause and the progress with which a new task is stored.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// restore gives a submission the progress that its task had when it was exported.
func restore(r *model.Restored, sub *store.Submission, b *record.Body) {
	if r.Due != 0 {
		sub.Due = moment.When{At: r.Due}
	}
	if r.Activity != nil {
		b.Activity = r.Activity
	}
	st := State{Nominal: r.Nominal, Interval: r.Interval, Attempt: max(r.Attempt-1, 0), Calls: r.Calls, Failures: r.Failures, Checkpoint: r.Checkpoint}
	if b.Manual {
		st.Nominal = moment.Never
	}
	sub.State = st.First()
}

// PauseHold is a pause as the store gets it, by the caller that imports it; nil if it is over.
func PauseHold(ctx context.Context, p *model.PauseLine, now moment.Millis) *store.Hold {
	until := moment.Of(time.Time(p.Until))
	if until != 0 && until <= now {
		return nil
	}
	return &store.Hold{Note: model.OrderOf(ctx, p.Order()).Encode(), Until: moment.When{At: until}}
}

// HoldNew adds holds to the submissions of tasks that are to be paused from the beginning. The store sets each in the step that
// creates its task, so that no process ever finds the task without its hold.
func HoldNew(ctx context.Context, tasks []model.NewTask, subs []store.Submission) {
	for i := range tasks {
		subs[i].Hold = HoldOf(ctx, &tasks[i])
	}
}

// HoldOf is the pause that a task has from the beginning; nil for none.
func HoldOf(ctx context.Context, t *model.NewTask) *store.Hold {
	switch {
	case t.Restored() != nil && t.Restored().Hold != nil:
		return t.Restored().Hold
	case t.Paused:
		return &store.Hold{Note: model.OrderOf(ctx, model.Order{Reason: t.PausedReason}).Encode()}
	default:
		return nil
	}
}
