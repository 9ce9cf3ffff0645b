package decide

// What a run has used, in its verdict.

import (
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// spent is the part of a settlement about what its run used and asked, to be added to.
func (v *Verdict) spent() *store.Spent {
	if v.Settlement.Spent == nil {
		v.Settlement.Spent = &store.Spent{}
	}
	return v.Settlement.Spent
}

// account adds to the settlement what a run has used, and whether it has asked anything: a run that did not start has not, nor has one that was
// skipped or put itself off.
func (d *Decision) account(v *Verdict) {
	// guard: budget-of-failures
	if len(d.Used) > 0 {
		v.spent().Used = d.Used.Amounts()
	}
	busy := v.Settlement.Spent != nil && v.Settlement.Spent.Busy > 0
	if !d.Ran || !busy && (v.Outcome == model.OutcomeSkipped || v.Outcome == model.OutcomeSnoozed) || d.Body.OverlapPolicy().Spawns() {
		v.spent().Idle = true
	}
}
