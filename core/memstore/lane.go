package memstore

// Whose turn it is: by age, and in lanes among tenants while more is due than one claim may take. See lanes.lua, which keeps as an index what is
// worked out here at each such claim.

import (
	"cmp"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// byAge is which claims go by age alone, counted in those that have to choose.
const byAge = 32

// tenants are those of the agents of a partition, and whose turn it is.
type tenants struct {
	of     map[string]string // by agent; of those that have one
	visits map[string]int64  // the last turn of each, while more is due than claims may take
	chose  int64             // claims since that began
	laned  laned
}

// laned is the last of the agenda that was due when a claim chose; zero if none has.
type laned struct {
	visit moment.Millis
	name  string
}

// set gives an agent a tenant; empty for none.
func (t *tenants) set(agent, tenant string) {
	if tenant == "" {
		delete(t.of, agent)
		return
	}
	if t.of == nil {
		t.of = map[string]string{}
	}
	t.of[agent] = tenant
}

// lane is what waits of a tenant.
type lane struct {
	name  string
	waits []*entry
	// used are so many of them whose turn it is, and gives how many tasks it may give, of its agents with many more than one each.
	used, gives int
	last        int64 // its place among those that were served
	rest        int   // tasks of its agents with many, behind the first of each; less than 0 before they were counted
	// agents are those with many that are visited, and free what they may still give, in a round.
	agents, free int
}

// choose returns whose turn it is, and the lane of each; nil if it goes by age.
func (c *claiming) choose() (chosen []*entry, of map[*entry]*lane) {
	t := &c.p.tenants
	// guard: lanes-of-urgent-in-memory
	if len(t.of) == 0 || c.r.Agents != nil || c.r.Urgent || c.r.After != 0 {
		return nil, nil
	}
	due := c.waiting(c.p.agenda.items)
	if len(due) <= c.r.Limit && len(due)+restOf(due, c.r.Limit, c.now) <= c.r.Limit {
		return nil, nil // all of it is taken
	}
	if head := due[0]; head.visit > t.laned.visit || head.visit == t.laned.visit && head.name > t.laned.name {
		t.visits, t.chose, t.laned = nil, 0, laned{} // nothing is left of what waited then
	}
	due = slices.DeleteFunc(due, func(s *entry) bool { return s.visit >= c.now })
	if len(due) > 0 {
		t.laned = latest(t.laned, due[len(due)-1])
	}
	c.turns = []*lane{}
	if (t.chose+1)%byAge == 0 || len(due) == 0 {
		return nil, nil
	}
	width := c.r.Limit
	if c.picky {
		width = max(width, wide)
	}
	return take(c, t.lanes(due, width))
}

// latest is the later of two places in the agenda.
func latest(a laned, b *entry) laned {
	if b.visit < a.visit || b.visit == a.visit && b.name < a.name {
		return a
	}
	return laned{b.visit, b.name}
}

// lanes are those whose turn it is, at most so many.
func (t *tenants) lanes(due []*entry, most int) []*lane {
	by := map[string]*lane{}
	for _, s := range due {
		name := t.of[s.agent.name]
		if by[name] == nil {
			by[name] = &lane{name: name, rest: -1}
		}
		by[name].waits = append(by[name].waits, s)
	}
	all := slices.SortedFunc(maps.Values(by), func(a, b *lane) int {
		return cmp.Or(cmp.Compare(t.visits[a.name], t.visits[b.name]), cmp.Compare(a.name, b.name))
	})
	return all[:min(len(all), most)]
}

// take shares the room of a claim among lanes.
func take(c *claiming, all []*lane) (chosen []*entry, of map[*entry]*lane) {
	c.turns = all
	c.share(all)
	of = map[*entry]*lane{}
	for _, l := range all {
		for _, s := range l.waits[:l.used] {
			chosen, of[s] = append(chosen, s), l
		}
	}
	return chosen, of
}

// note keeps whose turn it was in a claim that had to choose, if it has taken or parked anything.
func (t *tenants) note(c *claiming) {
	if c.turns == nil || len(c.taken)+c.parked == 0 {
		return
	}
	if t.chose++; t.visits == nil {
		t.visits = map[string]int64{}
	}
	for _, l := range c.turns {
		// guard: lanes-turns-in-memory
		if l.last > 0 {
			t.visits[l.name] = t.chose*1e6 + l.last
		}
	}
}

// share divides the room of a claim among lanes: equally, and what one cannot use goes to the others.
func (c *claiming) share(all []*lane) {
	room, live, step := c.room, all, int64(0)
	for room > 0 && len(live) > 0 {
		// rule: tenants
		share := max(1, room/len(live))
		var again []*lane
		for _, l := range live {
			want := min(share, room)
			got := c.give(l, want, room)
			if got == 0 {
				continue
			}
			step++
			room, l.last = room-got, step
			if got == want {
				again = append(again, l)
			}
		}
		live = again
	}
}

// give lets a lane give up to so many tasks more, and returns how many those are.
func (c *claiming) give(l *lane, want, room int) int {
	members := min(len(l.waits)-l.used, want)
	got := members
	if members < want {
		if l.rest < 0 {
			l.rest = restOf(l.waits, room, c.now)
		}
		got += min(l.rest, want-members)
		l.rest -= got - members
	}
	l.used, l.gives = l.used+members, l.gives+got
	return got
}

// restOf is how much more than one task each the agents of some entries have that is due, up to a number.
func restOf(entries []*entry, most int, now moment.Millis) (n int) {
	for _, s := range entries {
		if !s.agent.many {
			continue
		}
		due := 0
		for _, q := range s.agent.levels {
			due += len(q.first(most+1, func(t *task) bool { return t.due <= now }))
		}
		n += max(due-1, 0)
	}
	return min(n, most)
}

// keptFor is what the lanes of some agents may still give: no other gets it.
func keptFor(visiting []*visited) (n int) {
	seen := map[*lane]bool{}
	for _, v := range visiting {
		// guard: lanes-kept-in-memory
		if v.lane != nil && !seen[v.lane] {
			n, seen[v.lane] = n+v.lane.gives, true
		}
	}
	return n
}

// divide lets the agents that are visited share what their lanes may still give.
func divide(visiting []*visited) {
	for _, v := range visiting {
		if v.lane != nil {
			v.lane.agents, v.lane.free = 0, v.lane.gives
		}
	}
	for _, v := range visiting {
		if v.lane != nil {
			v.lane.agents++
		}
	}
}

// mayGive is how much of its lane an agent may give in a round; share without one.
func (v *visited) mayGive(share int) int {
	l := v.lane
	if l == nil {
		return share
	}
	// guard: lanes-quota-in-memory
	n := min(max(1, l.gives/l.agents), l.free)
	l.free -= n
	return n
}

// calls are the agents that a claim has called on.
type calls struct {
	*claiming

	many  []*visited // those that have several tasks
	turns int
	kept  int // room for agents with many
}

// on calls on one, and reports whether either as many agents have had a turn as there is room for tasks, or there is no room any more.
func (c *calls) on(s *entry, l *lane) (full bool) {
	turn, several := c.callOn(s)
	if several {
		c.many = append(c.many, &visited{agent: s.agent, since: s.agent.entry.visit, nth: len(c.many), got: c.got[s.agent], lane: l})
	}
	if turn {
		c.turns++
	}
	if turn && !several && l != nil {
		l.gives--
	}
	return c.full()
}

func (c *calls) full() bool { return c.turns == c.r.Limit || c.room <= c.kept }

// onTurn calls on those whose tenants have their turn, and returns the lane of each, and the agents whose tasks wait in queues from now on.
func (c *calls) onTurn() (of map[*entry]*lane, spread map[*agent]bool) {
	chosen, of := c.choose()
	spread = map[*agent]bool{}
	for _, s := range chosen {
		if c.r.Serial && !s.agent.many && !s.agent.single() {
			spread[s.agent] = true
		}
		if c.on(s, of[s]) {
			break
		}
	}
	c.kept = keptFor(c.many)
	// guard: lanes-passed-in-memory
	if c.picky && c.kept > 0 && c.full() {
		c.passed = 1 // nothing is for this caller that has its turn: it goes on by age
	}
	return of, spread
}

// callOnAll takes the task of each agent that has one, and returns the agents that have several.
func (c *claiming) callOnAll() []*visited {
	all := &calls{claiming: c}
	entries, more := c.entries()
	of, spread := all.onTurn()
	if all.full() {
		return all.many
	}
	for i, s := range entries {
		since, name := s.visit, s.name
		// More may be due than was looked at.
		if of[s] == nil && !spread[s.agent] && all.on(s, nil) || more && i == len(entries)-1 {
			// Only a picky claim may have passed over work: any other has taken all that it saw.
			if c.picky {
				c.passed, c.passedName = since, name
			}
			break
		}
	}
	return all.many
}
