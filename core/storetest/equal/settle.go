package equal

// Settlements, of all sorts.

import (
	"bytes"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// settle ends some runs, mostly recent ones; old ones must be refused alike.
func (d *driver) settle() {
	sa, sb := d.settlements()
	if len(sa) == 0 {
		return
	}
	ra, ea := d.a.Settle(d.Context(), sa)
	rb, eb := d.b.Settle(d.Context(), sb)
	d.same("settle", ea, eb, ra, rb)
}

// settlements are the same ones for both stores; none if nothing was claimed.
func (d *driver) settlements() (sa, sb []store.Settlement) {
	if len(d.runs) == 0 {
		return nil, nil
	}
	d.clock.Advance(time.Millisecond) // which of the tasks that ended in one millisecond is dropped first is not laid down
	for range 1 + d.pick(8) {
		at := d.pick(len(d.runs))
		if d.pick(4) > 0 { // mostly one of the last
			at = max(len(d.runs)-1-d.pick(10), 0)
		}
		s := store.Settlement{Run: d.runs[at].Run, Group: groupOf(d.runs[at].ID), Kind: d.runs[at].Kind, Renewed: d.pick(4) == 0, Quiet: d.pick(2) == 0}
		d.extras(&s)
		s.Recurs = d.quotas != nil // any may
		switch d.pick(8) {
		case 0, 1:
			s.Verb, s.Record = store.VerbComplete, d.record("record")
		case 2:
			s.Verb, s.Record = store.VerbFail, d.record("dead")
			d.dead = append(d.dead, store.Submission{Agent: s.Agent, ID: s.ID, Kind: "k0", Level: 2, Group: s.Group, Body: []byte("again")})
		case 3:
			s.Verb = store.VerbCancel
		case 4, 5, 6:
			s.Verb, s.Due.After = store.VerbAgain, time.Duration(d.pick(100))*20*time.Millisecond
			s.Waited = time.Duration(d.pick(10)) * 30 * time.Millisecond
			if d.pick(2) == 0 {
				s.State, s.Unrun = []byte("state"), d.pick(4) == 0
			}
			d.rest(&s)
		default:
			s.Unrun = d.pick(2) == 0
			s.Verb, s.Due.At = store.VerbRelease, moment.Millis(d.clock.Now().UnixMilli())-moment.Millis(d.pick(100))
			if d.pick(2) == 0 {
				s.State = []byte("cut off")
			}
		}
		sa = append(sa, s)
		// The two stores number their claims differently: each is asked about its own fence of the
		// same claim.
		s.Fence = d.fences[claimName{s.Partition, s.Fence}]
		sb = append(sb, s)
	}
	return sa, sb
}

// extras are the statistics and the hold of some settlements.
func (d *draw) extras(s *store.Settlement) {
	if d.pick(2) == 0 {
		s.Tally = &store.RunStat{
			Kind: s.Kind, Schedule: schedules[d.pick(4)], Duration: time.Duration(d.pick(256)) * 333 * time.Millisecond,
			Lag: time.Duration(d.pick(256)) * time.Millisecond,
		}
		if d.pick(3) == 0 {
			s.Tally.Failed, s.Tally.Failure = true, []byte("failed "+s.ID)
		}
	}
	if d.pick(4) == 0 {
		s.Spent = &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: bound.Amount(d.pick(20)) * bound.AmountOne / 10}, {Unit: "usd", Amount: bound.Amount(d.pick(256)) * 333}}}
	}
	if c := d.pick(5); c == 0 {
		s.Spent = &store.Spent{Busy: time.Duration(d.pick(100)) * 50 * time.Millisecond, Idle: d.pick(2) == 0}
	}
	if d.pick(8) == 0 {
		s.Await = &store.Await{Key: signals[d.pick(len(signals))], Heard: d.pick(2) == 0, Wait: store.Fence(d.pick(3)), Approval: d.pick(2) == 0}
	}
	if d.pick(16) == 0 {
		s.Hold = []byte("too many failures")
	}
}

// rest makes a settlement one of an activity task, which it may not be.
func (d *draw) rest(s *store.Settlement) {
	choice := d.pick(4)
	if choice == 0 {
		return
	}
	now := moment.Millis(d.clock.Now().UnixMilli())
	s.Floor = &store.Floor{At: now + moment.Millis(d.pick(100)*20), Reason: store.ReasonInterval, Pulse: store.Pulse{
		Delay: time.Duration(d.pick(100)) * 10 * time.Millisecond, MaxWait: time.Duration(d.pick(100)) * 20 * time.Millisecond,
		Debounce: d.pick(2) == 0,
	}}
	if choice == 1 {
		s.Floor.Reason = store.ReasonCooling
		return
	}
	s.Verb, s.Due.After = store.VerbRest, time.Minute
}

// record is what is kept of a task; now and then it is so large that it is weighed.
func (d *draw) record(text string) []byte {
	if d.pick(6) > 0 {
		return []byte(text)
	}
	return bytes.Repeat([]byte(text), 700+d.pick(3000))
}

var schedules = []store.ScheduleType{store.ScheduleAt, store.ScheduleEvery, store.ScheduleCron, store.ScheduleActivity}
