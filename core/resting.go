package core

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// What becomes of an activity task after a run: it rests until something happens for its subject, or cools down.

// rest lets an activity task wait for the next activity, if there was none while it ran.
func (d *decision) rest(v *verdict) {
	d.nextOccurrence()
	d.state.Cooling = 0
	floor := d.floor(store.ReasonInterval)
	if v.pause > 0 {
		floor.At = max(floor.At, d.now.Add(v.pause))
	}
	v.status, v.because = StatusWaiting, waitsResting
	until := max(floor.At, d.now).Add(restFor)
	d.state.Retire = until
	v.settlement.Verb, v.settlement.Due, v.settlement.State = store.VerbRest, store.When{At: until}, d.state.Encode()
	v.settlement.Floor = floor
}

// floor is the earliest time of the next run: MinInterval after the start of this one.
func (d *decision) floor(reason store.Reason) *store.Floor {
	f := &store.Floor{Reason: reason, Pulse: d.body.Activity.Pulse}
	if d.body.MinInterval > 0 {
		f.At = d.claimedAt.Add(d.body.MinInterval)
	}
	return f
}

// coolOrRest settles an occurrence of an activity task that has failed. Once too many have, the task cools down and then
// tries again by itself; until then activity is noted, and waits.
func (d *decision) coolOrRest(v *verdict) {
	most := d.body.Activity.MaxFailures
	if most < 0 || d.state.Failures < most {
		d.rest(v)
		return
	}
	interval := max(d.body.MinInterval, d.body.Activity.Delay)
	wait := max(time.Duration(d.state.Failures)*interval*2, leastCoolDown)
	d.nextOccurrence()
	floor := d.floor(store.ReasonCooling)
	floor.At = d.now.Add(min(max(wait, v.pause), maxDelay))
	d.state.Cooling, d.state.Retire = floor.At, 0
	v.status, v.because = StatusWaiting, waitsCooling
	v.settlement.Verb, v.settlement.Due, v.settlement.State = store.VerbAgain, store.When{At: floor.At}, d.state.Encode()
	v.settlement.Floor = floor
}
