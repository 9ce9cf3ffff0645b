package memstore

// Which due tasks a claim takes: the share of each agent, round by round. Also the reference for claim.lua.

import (
	"slices"
	"sort"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// agents are the agents to look at, those that have waited longest first, and whether there are more of them.
// A claim looks at a bounded number of them, so that it takes a bounded time however many are due.
func (c *claiming) entries() (due []*entry, more bool) {
	most := pages * c.r.Limit
	if c.picky {
		// A picky claim passes over many, and looks further to find as many tasks.
		most = pages * max(c.r.Limit, wide)
	}
	switch {
	case c.r.Agents != nil:
		for _, name := range c.r.Agents {
			due = append(due, c.p.agents[name].shown()...)
		}
		due = c.waiting(due)
	// The caller has seen all up to After, and found nothing for itself there.
	case c.r.After != 0: // most that wait are passed over
		due = c.waiting(c.p.agenda.items)
	default:
		due = c.heads(most)
	}
	// More may be due than were looked at: then the caller continues from the last of them.
	return due[:min(len(due), most)], len(due) >= most
}

// waiting are those of some agents that are due and not passed over, in the agenda's order.
// The agents of a request may be named in any order; they are visited in that of the agenda.
func (c *claiming) waiting(entries []*entry) []*entry {
	var due []*entry
	for _, s := range entries {
		if s.visit <= c.now && (s.visit > c.r.After || s.visit == c.r.After && c.r.AfterName != "") {
			due = append(due, s)
		}
	}
	sort.Slice(due, func(i, j int) bool { return c.p.agenda.less(due[i], due[j]) })
	// guard: passed-within-a-time-in-memory
	if i := slices.IndexFunc(due, func(s *entry) bool { return s.visit == c.r.After && s.name == c.r.AfterName }); i >= 0 {
		due = due[i+1:]
	}
	return due
}

// heads are the first agents of the agenda that are due.
// They stay in the agenda: visiting decides their next place.
func (c *claiming) heads(most int) []*entry {
	return c.p.agenda.first(most, func(s *entry) bool { return s.visit <= c.now })
}

// shown are the entries of an agent in the agenda.
func (a *agent) shown() []*entry {
	if a == nil {
		return nil
	}
	entries := []*entry{a.entry}
	for _, t := range a.tasks {
		entries = append(entries, t.entry)
	}
	return slices.DeleteFunc(entries, func(s *entry) bool { return s.at < 0 })
}

// visit takes one task from each agent with a single one, and shares from the others, round by round.
// A single task goes first, as an agent with one needs no share; the rest
// of the limit is shared by the others.
func (c *claiming) visit() {
	var many []*visited
	if c.room > 0 { // otherwise lines have had it
		many = c.callOnAll()
	}
	visiting := many
	// Each round takes an equal share, and those who have more come again while room is left.
	for c.room > 0 && len(visiting) > 0 && c.parked < pages*c.r.Limit {
		visiting = c.round(visiting)
	}
	for _, v := range many {
		c.moveOn(v)
	}
	// At the end, as it needs to know whom this claim has left out.
	c.turnBack(many)
}

// turnBack lets the next claim begin with the first agent that this one had no room for, but not with all of this one's again.
// Otherwise large tasks of one agent could use up every claim, and another with
// large tasks would never be reached.
func (c *claiming) turnBack(many []*visited) {
	if !c.picky || c.unread == nil {
		return
	}
	last := c.unread
	for _, v := range many {
		if v.isBefore(c.unread) && (last == c.unread || last.isBefore(v)) {
			last = v
		}
	}
	c.passed, c.passedName = last.since, last.entry.name
}

// isBefore reports whether an agent has waited longer than another, or as long and comes first.
func (v *visited) isBefore(o *visited) bool {
	return v.since < o.since || v.since == o.since && v.nth < o.nth
}

// mayLook reports whether the next task of an agent may be looked at in this claim. If not, the turn of its agent ends.
// The first task is always looked at, however large: it could never run otherwise.
func (c *claiming) mayLook(v *visited, t *task) bool {
	if v.full {
		return false
	}
	if c.seen.fits(t) {
		v.seen.kib += weight(len(t.Body))
		return true
	}
	v.full = true
	// It is the agent's own turn that others have used up, not its own large
	// tasks: it has a claim to be first.
	if v.seen.kib < c.seen.kib && (c.unread == nil || v.isBefore(c.unread)) {
		c.unread = v
	}
	return false
}

// moveOn gives an agent that was visited its next place in the agenda.
// One that got tasks goes behind those that wait; one that got nothing keeps
// its place, if it was passed over only.
func (c *claiming) moveOn(v *visited) {
	first, ok := v.earliest()
	switch {
	// Nothing is left to wait for, or nothing more may run before its run ends.
	case !ok, c.r.Serial && v.got > 0:
		c.p.agenda.remove(v.entry)
	case first > c.now || !c.r.Urgent && (v.got > 0 || !c.picky && !v.full): // otherwise it keeps its turn
		v.entry.visit = max(first, c.now)
		c.p.agenda.fix(v.entry)
	}
}

// callOn looks at an agent: whether it has used its turn, and whether it has several tasks and is to be visited. An agent whose
// only task is not taken uses up no turn, nor does one without an urgent task if these are wanted.
func (c *claiming) callOn(s *entry) (turn, several bool) {
	a := s.agent
	if c.r.Serial && !a.many && !a.single() { // where one run of it keeps the others waiting, they wait in queues
		c.p.spread(a)
		s = a.entry
	}
	if s.at < 0 || s.visit > c.now { // it was seen to already, or has nothing that is due
		return false, false
	}
	// guard: serial
	if c.r.Serial && (c.p.serial[a.name] != nil || c.got[a] > 0) { // it is put back when its run ends
		c.p.agenda.remove(s)
		return false, false
	}
	// Its first task of level 1 decides for an urgent claim, which takes no others.
	if a.many {
		t, ok := a.levels[0].head()
		urgent := ok && t.due <= c.now
		// guard: urgent-in-queues-in-memory
		if ok && !urgent && (c.queued == 0 || t.due < c.queued) {
			c.queued = t.due
		}
		return !c.r.Urgent || urgent, !c.r.Urgent || urgent
	}
	return c.takeOne(s), false
}

// takeOne takes or parks a task that is in the agenda by itself: one of few, or the only one of its agent. It reports whether that
// was a turn.
func (c *claiming) takeOne(s *entry) bool {
	a, t := s.agent, s.task
	if most := c.perAgent(); most > 0 && c.got[a] >= most {
		return false
	}
	if c.r.Urgent && t.Level != store.LevelHigh || !c.consider(t) {
		return false
	}
	// It leaves the agenda also if it was parked.
	a.levels[t.Level-1].remove(t)
	if c.settleIn(t) {
		c.got[a]++
	}
	c.p.agenda.remove(s)
	return true
}

// perAgent is how many tasks of one agent are taken at most; zero for any number.
// A serial agent has one run at a time, so no claim may take two.
func (c *claiming) perAgent() int {
	if c.r.Serial {
		return 1
	}
	return c.r.PerAgent
}

// visited is an agent with several tasks that a claim takes some of.
// It lives as long as one claim.
type visited struct {
	*agent
	got   int           // tasks so far
	want  int           // in this round
	since moment.Millis // its place in the agenda, before this claim
	nth   int           // and among those that are visited
	seen  load          // how much of it was looked at
	lane  *lane         // that it comes out of; nil if it goes by age
	full  bool          // its next task is too large for this claim: nothing behind it may overtake it
}

// single reports whether the agent has one task, which is the first that it had.
func (a *agent) single() bool {
	for _, t := range a.tasks {
		if t.entry.name != a.name {
			return false
		}
	}
	return len(a.tasks) == 1
}

// consider reports whether a due task leaves the queue, to be taken or parked. It stays if the caller
// has no time for its kind, or no slot.
func (c *claiming) consider(t *task) bool {
	if slices.Contains(c.r.Leave, t.Kind) {
		c.left++
		return false
	}
	if most, bounded := c.most[t.Kind]; bounded && most <= 0 || c.heldApart(t.Kind) {
		return false
	}
	if of := c.sortOf(t); c.suspects != nil && of >= 0 && c.suspects[of] <= 0 {
		c.held++
		return false
	}
	return true
}

// parks counts a task that is parked, and notes why.
func (c *claiming) parks(t *task, why store.Why) {
	c.parked++
	if c.r.Tell && len(c.aside) < store.MostAside {
		c.aside = append(c.aside, store.Aside{Agent: t.Agent, ID: t.ID, Why: why})
	}
}

// settleIn takes a task, or parks it; it reports whether it was taken.
func (c *claiming) settleIn(t *task) bool {
	name, why := "", store.WhyHeld
	// The pause is checked first: a held task of an unknown kind is held.
	// guard: pause
	if s, ok := c.p.keptBy(t, c.now); ok {
		name = s.parking()
		// The claim has no handler for it: the task would be in the way of others at every claim.
		// guard: unknown-kind
	} else if !slices.Contains(c.r.Kinds, t.Kind) {
		name, why = t.Kind, store.WhyNoHandler
	}
	if name != "" {
		c.p.park(t, name)
		c.parks(t, why)
		return false
	}
	if b := c.barred(t, c.from); b != nil {
		c.p.joinLine(t, b, c.now, c.tight[b])
		if why = store.WhyLimit; b.rule.budget != nil {
			why = store.WhyBudget
		}
		c.parks(t, why)
		return false
	}
	if c.from != nil {
		if c.lined == nil {
			c.lined = map[*task]bool{}
		}
		c.lined[t] = true
	}
	c.take(t)
	return true
}

// take takes a task that nothing keeps from running.
func (c *claiming) take(t *task) {
	c.crossed = append(c.crossed, c.p.charge(t, c.r.Expect, c.now)...)
	// The order is used up, but comes back if this run dies or is released.
	if t.order != nil && t.order.op == orderRun {
		t.order.op = orderHand
	}
	if _, bounded := c.most[t.Kind]; bounded {
		c.most[t.Kind]--
	}
	c.taken = append(c.taken, t)
	c.lease = c.leaseOf(t.Kind)
	c.tookSuspect(t)
	c.room--
}

// round takes an equal share from each agent and returns those that may have more.
// Shares are equal and at least one: an agent with a thousand tasks gets no more than one with ten.
func (c *claiming) round(visiting []*visited) []*visited {
	share := max(1, c.room/len(visiting))
	divide(visiting)
	choices := make([][]*task, len(visiting))
	// wanted is how much agents before this one are to give: later ones share the rest.
	wanted, chosen := 0, 0
	more := make([]bool, len(visiting))
	for i, v := range visiting {
		v.want = min(v.mayGive(share), c.room-wanted)
		if most := c.perAgent(); most > 0 {
			v.want = min(v.want, most-v.got)
		}
		v.want = max(v.want, 0)
		tasks := c.first(v)
		// It may have more if it had as many as it was to give.
		more[i] = v.want > 0 && len(tasks) >= v.want
		// A picky claim may have to leave some, and keeps others in reserve.
		if !c.picky {
			tasks = tasks[:min(len(tasks), v.want)]
		}
		wanted += min(v.want, len(tasks))
		chosen += len(tasks)
		choices[i] = tasks
	}
	// Nothing could be taken: another round would find the same.
	if chosen == 0 {
		return nil
	}
	var again []*visited
	for i, v := range visiting {
		if c.serve(v, choices[i]) && more[i] {
			again = append(again, v)
		}
	}
	return again
}

// serve takes or parks an agent's chosen tasks while it is to give more. It reports whether none had to be left.
// A task that had to be left ends the visits of its agent, since the ones behind
// it were chosen as a reserve already.
func (c *claiming) serve(v *visited, tasks []*task) bool {
	all := true
	for _, t := range tasks {
		if v.want == 0 {
			break // it was chosen in case that others before it are left
		}
		if !c.mayLook(v, t) {
			return false
		}
		if !c.consider(t) {
			all = false
			continue
		}
		v.levels[t.Level-1].remove(t)
		if c.settleIn(t) {
			v.got++
		}
		v.want--
		if v.lane != nil {
			v.lane.gives--
		}
	}
	return all
}

// first are the first due tasks of an agent, at least as many as it is to give, in the order in which
// they run: by level, then due time, then submit. A task that has been overdue for store.RaiseAfter
// counts as level 1, so that a busy level 1 does not keep the others waiting for ever.
func (c *claiming) first(v *visited) []*task {
	if v.want == 0 {
		return nil
	}
	most := v.want
	if c.picky {
		most = max(most, deep)
	}
	raised := c.now.Add(-store.RaiseAfter)
	level := func(t *task) store.Level {
		if t.due <= raised {
			return store.LevelHigh
		}
		return t.Level
	}
	// An urgent claim takes real level 1 only: a raised task can wait for an ordinary one.
	levels := v.levels[:]
	if c.r.Urgent {
		levels = levels[:1]
	}
	var due []*task
	for _, q := range levels {
		due = append(due, q.first(most, func(t *task) bool { return t.due <= c.now })...)
	}
	// Stable, and before is a total order: the result does not depend on where the tasks were.
	sort.SliceStable(due, func(i, j int) bool {
		a, b := due[i], due[j]
		if level(a) != level(b) {
			// guard: order
			return level(a) < level(b)
		}
		return before(a, b)
	})
	return due
}
