package storetest

// Equal: the commands of operators, and signals.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
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
		touches = append(touches, touching(s, store.Pulse{
			Delay: time.Duration(d.pick(100)) * 50 * time.Millisecond, MaxWait: time.Duration(d.pick(100)) * 100 * time.Millisecond,
			Debounce: d.pick(2) == 0,
		}))
		if quoted(d, &s); d.quotas != nil {
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
		ra, ea := d.a.Delete(d.Context(), []store.Deletion{deletion(s)})
		rb, eb := d.b.Delete(d.Context(), []store.Deletion{deletion(s)})
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
		h.Target.Kind = equalKinds[d.pick(len(equalKinds))]
	case 2:
		h.Target.Key = equalKeys[2+d.pick(2)]
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
	require.Equal(d, audit(d.T, d.a), audit(d.T, d.b), "audit")
}

// agents compares all agents, whatever the pages.
// The order of a page is the store's business.
func (d *driver) agents() {
	all := func(s store.Store) []store.AgentStats {
		out := allAgents(d.T, s, 2)
		slices.SortFunc(out, func(a, b store.AgentStats) int { return strings.Compare(a.Agent, b.Agent) })
		return slices.CompactFunc(out, func(a, b store.AgentStats) bool { return a.Agent == b.Agent })
	}
	require.Equal(d, all(d.a), all(d.b), "agents")
}

// pauses compares all holds in force.
func (d *driver) pauses() {
	require.Equal(d, allPauses(d.T, d.a, 2), allPauses(d.T, d.b, 2), "pauses")
}

// everyPage reads pages until the last one: read is given where one begins, and returns where the next one does.
// The bound is far beyond any test's number of pages.
func everyPage(t *testing.T, read func(after string) (next string, err error)) {
	t.Helper()
	after := ""
	for range 10_000 {
		next, err := read(after)
		require.NoError(t, err)
		if after = next; after == "" {
			return
		}
	}
	require.Fail(t, "the pages have no end")
}

// everyTask reads all pages of a list.
func everyTask(t *testing.T, s store.Store, q store.List, add func(store.Page)) {
	t.Helper()
	everyPage(t, func(after string) (string, error) {
		q.After = after
		page, err := s.List(t.Context(), q)
		add(page)
		return page.Next, err
	})
}

// allAgents are the agents of all pages, as they come.
func allAgents(t *testing.T, s store.Store, limit int) []store.AgentStats {
	t.Helper()
	var out []store.AgentStats
	everyPage(t, func(after string) (string, error) {
		page, err := s.Agents(t.Context(), store.PageOf{After: after, Limit: limit})
		out = append(out, page.Agents...)
		return page.Next, err
	})
	return out
}

// allPauses are the holds of all pages, sorted by target, each once.
func allPauses(t *testing.T, s store.Store, limit int) []store.Held {
	t.Helper()
	var out []store.Held
	everyPage(t, func(after string) (string, error) {
		page, err := s.Holds(t.Context(), store.PageOf{After: after, Limit: limit})
		out = append(out, page.Holds...)
		return page.Next, err
	})
	order := func(a, b store.Held) int {
		return strings.Compare(fmt.Sprintf("%+v", a.Target), fmt.Sprintf("%+v", b.Target))
	}
	slices.SortFunc(out, order)
	return slices.CompactFunc(out, func(a, b store.Held) bool { return a.Target == b.Target })
}

// equalSignals are the keys that tasks wait for; none of them ends a wait alone.
var equalSignals = []string{"", "yes", "no:1"}

// signal tells whoever waits, and asks what some tasks were told.
func (d *driver) signal() {
	key := equalSignals[1+d.pick(2)]
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
