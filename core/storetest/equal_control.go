package storetest

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
func (d *driver) touch() {
	var subs []store.Submission
	for range 1 + d.pick(3) {
		s := d.submission()
		id := d.pick(43)
		if id > 2 {
			id = 40 + id%3
		}
		s.ID, s.Kind, s.State, s.Key, s.Due = fmt.Sprintf("t%02d", id), "k0", nil, "", store.When{}
		s.Level, s.Group = store.LevelLow, groupOf(s.ID)
		s.Pulse = &store.Pulse{
			Delay: time.Duration(d.pick(100)) * 50 * time.Millisecond, MaxWait: time.Duration(d.pick(100)) * 100 * time.Millisecond,
			Debounce: d.pick(2) == 0,
		}
		subs = append(subs, s)
		if d.pick(4) == 0 {
			break
		}
	}
	ra, ea := d.a.Submit(d.Context(), subs)
	rb, eb := d.b.Submit(d.Context(), subs)
	d.same("touch", ea, eb, ra, rb)
}

// order is an operator's command for one task.
func (d *driver) order() {
	id := d.pick(43)
	s := store.Submission{Agent: d.agent(), ID: fmt.Sprintf("t%02d", id)}
	if len(d.runs) > 0 && d.pick(2) == 0 {
		last := &d.runs[max(len(d.runs)-1-d.pick(10), 0)]
		s.Agent, s.ID = last.Agent, last.ID
	}
	s.Group = groupOf(s.ID)
	c := store.Command{Op: store.OpRun, Submission: s}
	switch d.pick(4) {
	case 0:
		c.Op, c.Record, c.Order = store.OpCancel, []byte("cancelled"), []byte("said")
	case 1:
		c.Op = store.OpDelete
	default:
		c.Queue = d.pick(2) == 0
	}
	d.clock.Advance(time.Millisecond) // as in settle
	ca, cb := c, c
	if c.Op == store.OpCancel && d.pick(8) > 0 {
		ca.Version, cb.Version = d.version(d.a, s.Agent, s.ID), d.version(d.b, s.Agent, s.ID)
	}
	ra, ea := d.a.Control(d.Context(), []store.Command{ca})
	rb, eb := d.b.Control(d.Context(), []store.Command{cb})
	d.same("control "+string(c.Op), ea, eb, ra, rb)
}

// hold begins or ends a hold, mostly of something narrow, and mostly for a while.
func (d *driver) hold() {
	c := store.Command{Op: store.OpUnhold}
	switch d.pick(8) {
	case 0:
	case 1:
		c.Scope.Kind = equalKinds[d.pick(len(equalKinds))]
	case 2:
		c.Scope.Key = equalKeys[2+d.pick(2)]
	case 3, 4:
		c.Scope.Agent = d.agent()
	default:
		c.Scope.Agent, c.Scope.ID = d.agent(), fmt.Sprintf("t%02d", d.pick(43))
		if len(d.runs) > 0 && d.pick(2) == 0 {
			last := &d.runs[max(len(d.runs)-1-d.pick(10), 0)]
			c.Scope.Agent, c.Scope.ID = last.Agent, last.ID
		}
	}
	if d.pick(2) == 0 {
		c.Op, c.Hold = store.OpHold, []byte("why")
		if d.pick(3) == 0 {
			c.Op, c.Hold = store.OpProlong, []byte("still")
		}
		if d.pick(4) > 0 || c.Scope == (store.Scoped{}) {
			c.Until.After = time.Duration(1+d.pick(100)) * 50 * time.Millisecond
		}
	}
	ra, ea := d.a.Control(d.Context(), []store.Command{c})
	rb, eb := d.b.Control(d.Context(), []store.Command{c})
	d.same("control "+string(c.Op), ea, eb, ra, rb)
}

// audit demands that both stores would find every task again, and have the same number.
func (d *driver) audit() {
	require.Equal(d, audit(d.T, d.a), audit(d.T, d.b), "audit")
}

// agents compares all agents, whatever the pages.
func (d *driver) agents() {
	all := func(s store.Store) []store.AgentStats {
		var out []store.AgentStats
		everyPage(d.T, s, store.Query{Limit: 2}, func(p store.Page) { out = append(out, p.Agents...) })
		slices.SortFunc(out, func(a, b store.AgentStats) int { return strings.Compare(a.Agent, b.Agent) })
		return slices.CompactFunc(out, func(a, b store.AgentStats) bool { return a.Agent == b.Agent })
	}
	require.Equal(d, all(d.a), all(d.b), "agents")
}

// pauses compares all holds in force.
func (d *driver) pauses() {
	require.Equal(d, allPauses(d.T, d.a, 2), allPauses(d.T, d.b, 2), "pauses")
}

// everyPage reads pages until the last one.
func everyPage(t *testing.T, s store.Store, q store.Query, add func(store.Page)) {
	t.Helper()
	for range 10_000 {
		page, err := s.Read(t.Context(), q)
		require.NoError(t, err)
		add(page)
		if q.After = page.Next; q.After == "" {
			return
		}
	}
	require.Fail(t, "the pages have no end")
}

func allPauses(t *testing.T, s store.Store, limit int) []store.Held {
	t.Helper()
	var out []store.Held
	everyPage(t, s, store.Query{Pauses: true, Limit: limit}, func(p store.Page) { out = append(out, p.Holds...) })
	order := func(a, b store.Held) int { return strings.Compare(fmt.Sprint(a.Scope), fmt.Sprint(b.Scope)) }
	slices.SortFunc(out, order)
	return slices.CompactFunc(out, func(a, b store.Held) bool { return a.Scope == b.Scope })
}
