package decide

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// What happens to an activity task after a run: it rests until its subject is active, or cools down.

// rest lets an activity task wait for the next activity, if there was none while it ran.
func (d *Decision) rest(v *Verdict) {
	d.nextOccurrence()
	d.State.Cooling = 0
	floor := d.floor(store.ReasonInterval)
	if v.pause > 0 {
		floor.At = max(floor.At, d.Now.Add(v.pause))
	}
	v.Status, v.Because = store.StatusWaiting, WaitsResting
	until := max(floor.At, d.Now).Add(check.RestFor)
	d.State.Retire = until
	v.Settlement.Verb, v.Settlement.Due, v.Settlement.State = store.VerbRest, moment.When{At: until}, d.State.Encode()
	v.Settlement.Floor = floor
}

// floor is the earliest time of the next run: MinInterval after the start of this one.
func (d *Facts) floor(reason store.Reason) *store.Floor {
	f := &store.Floor{Reason: reason, Pulse: d.Body.Activity.Pulse}
	if d.Body.MinInterval > 0 {
		f.At = d.ClaimedAt.Add(d.Body.MinInterval)
	}
	return f
}

// coolOrRest settles an occurrence of an activity task that has failed. Once too many have, the task cools down and then
// tries again by itself; until then activity is recorded, and waits.
func (d *Decision) coolOrRest(v *Verdict) {
	most := d.Body.Activity.MaxFailures
	if most < 0 || d.State.Failures < most {
		d.rest(v)
		return
	}
	interval := max(d.Body.MinInterval, d.Body.Activity.Delay)
	wait := max(time.Duration(d.State.Failures)*interval*2, check.LeastCoolDown)
	d.nextOccurrence()
	floor := d.floor(store.ReasonCooling)
	floor.At = d.Now.Add(min(max(wait, v.pause), check.MaxDelay))
	d.State.Cooling, d.State.Retire = floor.At, 0
	v.Status, v.Because = store.StatusWaiting, waitsCooling
	v.Settlement.Verb, v.Settlement.Due, v.Settlement.State = store.VerbAgain, moment.When{At: floor.At}, d.State.Encode()
	v.Settlement.Floor = floor
}
