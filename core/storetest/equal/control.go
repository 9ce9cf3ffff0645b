package equal

// The commands of operators, and signals.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// touch is about ids of its own, so that most of the tasks it meets are activity tasks.
// They are not among the ids that submit uses, except for three.
func (d *driver) touch() {
	var touches []store.Touch
	for range 1 + d.pick(3) {
		s := d.submission()
		id := d.pick(43)
		if id > 2 {
			id = 40 + id%3
		}
		s.ID, s.Kind, s.Level = fmt.Sprintf("t%02d", id), "k0", store.LevelLow
		touches = append(touches, given.Touching(s, store.Pulse{
			Delay: time.Duration(d.pick(100)) * 50 * time.Millisecond, MaxWait: time.Duration(d.pick(100)) * 100 * time.Millisecond,
			Debounce: d.pick(2) == 0,
		}))
		if d.quoted(&s); d.quotas != nil {
			touches[len(touches)-1].Bound, touches[len(touches)-1].Mark = s.Bound, s.Mark
		}
		if d.pick(4) == 0 {
			break
		}
	}
	ra, ea := d.a.Touch(d.Context(), touches)
	rb, eb := d.b.Touch(d.Context(), touches)
	d.same("touch", ea, eb, ra, rb)
}

// order is an operator's command for one task.
// Half of the orders are for a task that has run lately, as most would otherwise find nothing.
func (d *driver) order() {
	id := d.pick(43)
	s := store.Submission{Agent: d.agent(), ID: fmt.Sprintf("t%02d", id)}
	if len(d.runs) > 0 && d.pick(2) == 0 {
		last := &d.runs[max(len(d.runs)-1-d.pick(10), 0)]
		s.Agent, s.ID = last.Agent, last.ID
	}
	s.Group = groupOf(s.ID)
	d.clock.Advance(time.Millisecond) // as in settle
	switch d.pick(4) {
	case 0:
		c := store.Cancellation{Agent: s.Agent, ID: s.ID, Group: s.Group, Record: []byte("cancelled"), Order: []byte("said")}
		// Versions are a store's own, so each store gets the one that it has given.
		ca, cb := c, c
		if d.pick(8) > 0 {
			ca.Version, cb.Version = d.version(d.a, s.Agent, s.ID), d.version(d.b, s.Agent, s.ID)
		}
		ra, ea := d.a.Cancel(d.Context(), []store.Cancellation{ca})
		rb, eb := d.b.Cancel(d.Context(), []store.Cancellation{cb})
		d.same("cancel", ea, eb, ra, rb)
	case 1:
		ra, ea := d.a.Delete(d.Context(), []store.Deletion{given.Deletion(s)})
		rb, eb := d.b.Delete(d.Context(), []store.Deletion{given.Deletion(s)})
		d.same("delete", ea, eb, ra, rb)
	default:
		runs := []store.RunNow{{Agent: s.Agent, ID: s.ID, Group: s.Group, Queue: d.pick(2) == 0}}
		ra, ea := d.a.RunNow(d.Context(), runs)
		rb, eb := d.b.RunNow(d.Context(), runs)
		d.same("run now", ea, eb, ra, rb)
	}
}

// hold begins or ends a hold, mostly of something narrow, and mostly for a while.
// A hold of everything always ends by itself, or the rest of the run would compare nothing.
func (d *driver) hold() {
	h := store.Hold{Note: []byte("why")}
	switch d.pick(8) {
	case 0:
	case 1:
		h.Target.Kind = kinds[d.pick(len(kinds))]
	case 2:
		h.Target.Key = keys[2+d.pick(2)]
	case 3, 4:
		h.Target.Agent = d.agent()
	default:
		h.Target.Agent, h.Target.ID = d.agent(), fmt.Sprintf("t%02d", d.pick(43))
		if len(d.runs) > 0 && d.pick(2) == 0 {
			last := &d.runs[max(len(d.runs)-1-d.pick(10), 0)]
			h.Target.Agent, h.Target.ID = last.Agent, last.ID
		}
	}
	if d.pick(2) == 0 {
		ra, ea := d.a.Unhold(d.Context(), []store.Target{h.Target})
		rb, eb := d.b.Unhold(d.Context(), []store.Target{h.Target})
		d.same("unhold", ea, eb, ra, rb)
		return
	}
	if d.pick(3) == 0 {
		h.Prolong, h.Note = true, []byte("still")
	}
	if d.pick(4) > 0 || h.Target == (store.Target{}) {
		h.Until.After = time.Duration(1+d.pick(100)) * 50 * time.Millisecond
	}
	ra, ea := d.a.Hold(d.Context(), []store.Hold{h})
	rb, eb := d.b.Hold(d.Context(), []store.Hold{h})
	d.same("hold", ea, eb, ra, rb)
}

// audit demands that both stores would find every task again, and have the same number.
// audit fails the test by itself if either store finds a fault.
func (d *driver) audit() {
	require.Equal(d, whole.Audit(d.T, d.a), whole.Audit(d.T, d.b), "audit")
}

// agents compares all agents, whatever the pages.
// The order of a page is the store's business.
func (d *driver) agents() {
	all := func(s store.Store) []store.AgentStats {
		out := whole.Agents(d.T, s, 2)
		slices.SortFunc(out, func(a, b store.AgentStats) int { return strings.Compare(a.Agent, b.Agent) })
		return slices.CompactFunc(out, func(a, b store.AgentStats) bool { return a.Agent == b.Agent })
	}
	require.Equal(d, all(d.a), all(d.b), "agents")
}

// pauses compares all holds in force.
func (d *driver) pauses() {
	require.Equal(d, whole.Pauses(d.T, d.a, 2), whole.Pauses(d.T, d.b, 2), "pauses")
}

// signals are the keys that tasks wait for; none of them ends a wait alone.
var signals = []string{"", "yes", "no:1"}

// signal tells whoever waits, and asks what some tasks were told.
func (d *driver) signal() {
	key := signals[1+d.pick(2)]
	n := []store.Signal{{Agent: d.agent(), Key: key, Payload: []byte{byte(d.pick(256))}, Keep: time.Duration(1+d.pick(100)) * 20 * time.Millisecond}}
	n[0].Approval = d.pick(2) == 0
	if d.pick(3) == 0 {
		n[0].Message, n[0].Remember = fmt.Sprint("m", d.pick(3)), time.Duration(1+d.pick(100))*20*time.Millisecond
	}
	if d.pick(3) == 0 {
		n[0].ID, n[0].Wait = fmt.Sprintf("t%02d", d.pick(43)), store.Fence(d.pick(3))
	}
	ra, ea := d.a.Signal(d.Context(), n)
	rb, eb := d.b.Signal(d.Context(), n)
	d.same("signal", ea, eb, ra, rb)
	if len(d.runs) == 0 {
		return
	}
	c := &d.runs[d.pick(len(d.runs))]
	w := []store.Wait{{Agent: c.Agent, ID: c.ID, Key: key}}
	ha, ea := d.a.Heard(d.Context(), w)
	hb, eb := d.b.Heard(d.Context(), w)
	d.same("heard", ea, eb, ha, hb)
}

// receive notes something about a message, and compares what was known of it.
func (d *driver) receive() {
	n := d.clock.Now().UnixMilli() // as good as drawn, and what is drawn for the others stays what it was
	r := given.Receipt([]string{"m", "n"}[n%2], []string{"a", "b"}[n/2%2], message.Begun, time.Duration(1+n/4%20)*50*time.Millisecond)
	r.State = []message.State{message.Begun, message.Begun, message.Done, message.Dropped}[n/100%4]
	ra, ea := d.a.Receive(d.Context(), r)
	rb, eb := d.b.Receive(d.Context(), r)
	d.same("receive", ea, eb, ra, rb)
}
