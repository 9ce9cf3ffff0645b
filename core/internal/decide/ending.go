package decide

import (
	"errors"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What happens to a task that was cancelled or replaced while it ran.

// endCancelled ends a task that was cancelled. What its run returned is recorded.
func (d *Decision) endCancelled(v *Verdict, err error, order []byte) {
	switch {
	case !d.Ran:
		d.crashes(nil)
	case err == nil:
		d.note(v, model.OutcomeSuccess, nil)
	default:
		d.note(v, model.OutcomeCancelled, err)
	}
	d.endAsTold(v, order)
}

// endAsTold settles a task as cancelled, with the definition it had when it was cancelled. What its run has returned is kept.
func (d *Decision) endAsTold(v *Verdict, order []byte) {
	by := record.DecodeHold(order)
	v.Outcome = model.OutcomeCancelled
	d.Group, v.Settlement.Group = by.Group, by.Group
	switch by.Callback {
	case "": // a version that does not record it has cancelled the task
	case record.NoCallback:
		d.Body.Callback = nil
	default:
		d.Body.Callback = &record.Callback{URL: by.Callback}
	}
	rec := d.record(codec.CancelReason(model.Order{By: by.By, Reason: by.Reason, Note: by.Note}))
	if by.Kind != "" { // else a version that does not record it has cancelled the task
		rec.Kind, rec.Level = by.Kind, by.Level
	}
	d.endWith(v, store.VerbCancel, store.StatusCancelled, &rec)
}

// Revise changes a verdict that the store refused, as the task was cancelled or replaced while it ran; err is the refusal. What
// was recorded of the run stays. It is false for any other error.
func (d *Decision) Revise(v *Verdict, err error) bool {
	tally, spent := v.Settlement.Tally, v.Settlement.Spent
	cancelled, told := errors.AsType[*store.EndingError](err)
	switch {
	case told:
		v.Released, v.Retried, v.Err = false, false, nil
		v.Settlement = store.Settlement{Run: d.Claimed.Run, Kind: d.Claimed.Kind, Tally: tally, Spent: spent}
		d.endAsTold(v, cancelled.Order)
	case errors.Is(err, store.ErrReplaced):
		v.Status = store.StatusWaiting
		kept := d.State.Carry() // what belongs to the old definition is dropped
		v.Settlement = store.Settlement{
			Run: d.Claimed.Run, Group: d.Group, Kind: d.Claimed.Kind, Tally: tally, Spent: spent, Verb: store.VerbAgain, Renewed: true, State: kept.Encode(),
		}
	default:
		return false
	}
	return true
}
