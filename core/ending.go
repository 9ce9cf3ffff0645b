package core

import (
	"errors"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What becomes of a task that was cancelled or replaced while it ran.

// endCancelled ends a task that was told to end. What its run returned is recorded.
func (d *decision) endCancelled(v *verdict, err error, order []byte) {
	switch {
	case !d.ran:
		d.crashes(nil)
	case err == nil:
		d.note(v, OutcomeSuccess, nil)
	default:
		d.note(v, OutcomeCancelled, err)
	}
	d.endAsTold(v, order)
}

// endAsTold settles a task as cancelled, as what it was when it was told to end. What its run has returned is kept.
func (d *decision) endAsTold(v *verdict, order []byte) {
	by := record.DecodeHold(order)
	v.outcome = OutcomeCancelled
	d.group, v.settlement.Group = by.Group, by.Group
	switch by.Callback {
	case "": // a version that does not say has cancelled it
	case record.NoCallback:
		d.body.Callback = nil
	default:
		d.body.Callback = &record.Callback{URL: by.Callback}
	}
	rec := d.record(cancelReason(Order{By: by.By, Reason: by.Reason, Note: by.Note}))
	if by.Kind != "" { // else a version that does not say has cancelled it
		rec.Kind, rec.Level = by.Kind, by.Level
	}
	d.endWith(v, store.VerbCancel, StatusCancelled, &rec)
}

// revise changes a verdict that could not stand, as the task was cancelled or replaced while it ran; err is the store's refusal. What
// has been noted of the run stays. It is false for any other error.
func (d *decision) revise(v *verdict, err error) bool {
	tally, spent := v.settlement.Tally, v.settlement.Spent
	cancelled, told := errors.AsType[*store.EndingError](err)
	switch {
	case told:
		v.released, v.retried, v.err = false, false, nil
		v.settlement = store.Settlement{Run: d.claimed.Run, Kind: d.claimed.Kind, Tally: tally, Spent: spent}
		d.endAsTold(v, cancelled.Order)
	case errors.Is(err, store.ErrReplaced):
		v.status = StatusWaiting
		kept := d.state.Carry() // what belongs to the old definition is not left in place
		v.settlement = store.Settlement{
			Run: d.claimed.Run, Group: d.group, Kind: d.claimed.Kind, Tally: tally, Spent: spent, Verb: store.VerbAgain, Renewed: true, State: kept.Encode(),
		}
	default:
		return false
	}
	return true
}
