package decide

// What a run has used, in its verdict.

import (
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// spent is what a settlement says of what its run has used and heard, to be added to.
func (v *Verdict) spent() *store.Spent {
	if v.Settlement.Spent == nil {
		v.Settlement.Spent = &store.Spent{}
	}
	return v.Settlement.Spent
}

// account adds what a run has used to its settlement, and whether it has asked anything: what did not run has not, nor has what was
// skipped or put off by itself.
func (d *Decision) account(v *Verdict) {
	if len(d.Used) > 0 {
		v.spent().Used = d.Used.Amounts()
	}
	busy := v.Settlement.Spent != nil && v.Settlement.Spent.Busy > 0
	if !d.Ran || !busy && (v.Outcome == model.OutcomeSkipped || v.Outcome == model.OutcomeSnoozed) || d.Body.OverlapPolicy().Spawns() {
		v.spent().Idle = true
	}
}
