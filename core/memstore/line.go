package memstore

// Lines: who waits for room under a limit or a budget, and how those come to their turn. Also the reference for limits.lua.

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// line is who waits for room in a bucket: agents in turn, and the tasks of each.
type line struct {
	agents []*standing
	tasks  int
}

// standing are the tasks of an agent in a line, in the order in which they run.
type standing struct {
	agent string
	turn  int64
	tasks []*task
}

func (b *bucket) scope() scope { return scope{kind: 'l', name: b.name} }

// reopen puts a scope among the opened ones; with move also one that is there already, behind the others.
func (p *partition) reopen(s scope, now moment.Millis, move bool) {
	at := slices.IndexFunc(p.open, func(o opened) bool { return o.scope == s })
	switch {
	case at >= 0 && !move:
		return
	case at >= 0:
		p.open = slices.Delete(slices.Clone(p.open), at, at+1)
	}
	p.open = append(p.open, opened{at: now, scope: s})
	rouse(p, now)
	// Scopes that were opened in the same millisecond are ordered by name, as members of a sorted set in Redis are.
	for i := len(p.open) - 1; i > 0 && p.open[i].at == p.open[i-1].at && p.open[i].scope.String() < p.open[i-1].scope.String(); i-- {
		p.open[i], p.open[i-1] = p.open[i-1], p.open[i]
	}
}

func (p *partition) shut(s scope) {
	p.open = slices.DeleteFunc(slices.Clone(p.open), func(o opened) bool { return o.scope == s })
}

// comesNext makes sure that a line with tasks in it is looked at again: by the next claim, when there is room for a start, or when
// a run ends.
func (p *partition) comesNext(b *bucket, now moment.Millis, tight bool) {
	switch at := b.startAt(now); {
	case b.full(), tight && at <= float64(now):
		p.shut(b.scope())
	case at > float64(now):
		p.shut(b.scope())
		p.endTerm(b)
		b.term = &term{end: moment.Millis(math.Ceil(at)), scope: b.scope(), at: -1}
		p.leases.add(b.term)
	default:
		p.reopen(b.scope(), now, true)
	}
}

func (p *partition) endTerm(b *bucket) {
	if b.term != nil {
		p.leases.remove(b.term)
		b.term = nil
	}
}

// barred is the first bucket that has no room for a task, or in which others wait that came before it; from is the one that lets it
// go now: it has been through the lines before that, or they were empty. Otherwise two lines could pass it back and forth for ever.
func (c *claiming) barred(t *task, from *bucket) *bucket {
	buckets := c.p.bucketsOf(t)
	for i, first := 0, slices.Index(buckets, from); i < len(buckets); i++ {
		b := buckets[i]
		// guard: limit-line
		if !b.vacant(c.now) || b.line.tasks > 0 && i > first {
			return b
		}
		if c.p.tight(b, t.Kind, c.r.Expect, c.now) {
			c.tight[b] = true
			return b
		}
	}
	return nil
}

// remains reports whether the first task of a line stays there, as its budget has room for others, but not for a run of its kind.
func (c *claiming) remains(t *task, b *bucket) bool {
	if _, held := c.p.keptBy(t, c.now); held || !slices.Contains(c.r.Kinds, t.Kind) {
		return false
	}
	return c.barred(t, b) == b
}

// turnOf is the place that a task gets in the line of its agent: its due time, where a level counts as a minute. It keeps it, even
// if its due time changes.
func turnOf(t *task) moment.Millis { return t.due.Add(time.Duration(t.Level-1) * time.Minute) }

// joinLine parks a task until there is room in a bucket.
func (p *partition) joinLine(t *task, b *bucket, now moment.Millis, tight bool) {
	p.park(t, "@l:"+t.Agent)
	t.lined, t.turn = b, turnOf(t)
	at := slices.IndexFunc(b.line.agents, func(s *standing) bool { return s.agent == t.Agent })
	if at < 0 {
		at = len(b.line.agents)
		b.line.agents = append(b.line.agents, &standing{agent: t.Agent, turn: b.line.last()})
	}
	s := b.line.agents[at]
	s.tasks = append(s.tasks, t)
	slices.SortFunc(s.tasks, func(a, b *task) int {
		if x, y := a.turn, b.turn; x != y {
			return int(x - y)
		}
		return strings.Compare(a.ID, b.ID)
	})
	b.line.tasks++
	if b.line.tasks == 1 {
		p.comesNext(b, now, tight)
	}
}

// last is the turn after all others.
func (l *line) last() int64 {
	if len(l.agents) == 0 {
		return 1
	}
	return l.agents[len(l.agents)-1].turn + 1
}

// leaveLine takes a task out of the line that it waits in.
func (p *partition) leaveLine(t *task) {
	b := t.lined
	if b == nil {
		return
	}
	t.lined = nil
	for _, s := range b.line.agents {
		s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == t })
	}
	b.line.agents = slices.DeleteFunc(b.line.agents, func(s *standing) bool { return len(s.tasks) == 0 })
	if b.line.tasks--; b.line.tasks == 0 {
		p.shut(b.scope())
		p.endTerm(b)
	}
}

// serveLines takes from the lines that may have room, before anything else is looked at.
func (c *claiming) serveLines() {
	var lines []*bucket
	for _, o := range c.p.open[:min(len(c.p.open), openedLooks)] {
		if o.scope.kind == 'l' {
			lines = append(lines, c.p.buckets[o.scope.name])
		}
	}
	for _, b := range lines {
		c.serveLine(b)
	}
}

// serveLine takes from a line while there is room in its bucket, one task of each agent in turn.
func (c *claiming) serveLine(b *bucket) {
	c.p.refresh(b)
	agents := slices.Clone(b.line.agents)
	if c.r.Agents != nil {
		agents = slices.DeleteFunc(agents, func(s *standing) bool { return !slices.Contains(c.r.Agents, s.agent) })
	} else {
		agents = agents[:min(len(agents), lineAgents)]
	}
	for len(agents) > 0 {
		agents = c.serveRound(b, agents)
	}
	if b.line.tasks > 0 {
		c.p.comesNext(b, c.now, c.tight[b])
	} else {
		c.p.shut(b.scope())
	}
}

// serveRound takes the first task of each of some agents, while there is room, and returns those that have more.
func (c *claiming) serveRound(b *bucket, agents []*standing) (again []*standing) {
	for _, s := range agents {
		t := s.tasks[0]
		if !b.vacant(c.now) || weight(len(t.Body)) > 0 && !c.fromLine.fits(t) || !c.leaves(t) || c.remains(t, b) {
			continue
		}
		c.p.lift(t)
		if len(s.tasks) > 0 { // behind the others
			b.line.agents = slices.DeleteFunc(b.line.agents, func(other *standing) bool { return other == s })
			s.turn = b.line.last()
			// guard: limit-turns
			b.line.agents = append(b.line.agents, s)
			again = append(again, s)
		}
		c.from = b
		if c.settleIn(t) {
			c.got[t.agent]++
		}
		c.from = nil
	}
	return again
}

// leaves reports whether a task that waits in line may leave it.
func (c *claiming) leaves(t *task) bool {
	busy := c.r.Serial && (c.got[t.agent] > 0 || c.p.serial[t.Agent] != nil)
	most := c.perAgent()
	switch {
	case c.room <= 0, c.r.Urgent && t.Level != store.LevelHigh, busy, most > 0 && c.got[t.agent] >= most:
		return false
	default:
		return c.consider(t)
	}
}

// lineOf is the line that a task waits in.
func (p reading) lineOf(t *task) store.Line {
	b := t.lined
	if b == nil {
		return store.Line{}
	}
	p.refresh(b)
	if b.about.Unit != "" {
		return b.budgetLine(p.now)
	}
	line := store.Line{Limit: bound.LimitUse{Limit: b.rule.limit, Running: int64(b.runs), Waiting: int64(b.line.tasks)}, Of: b.of}
	line.Limit.About = b.about.LimitTarget
	if k := b.learned(); k != nil {
		line.Limit.Learned = []bound.Learned{k.learned("")}
		line.StartAt = k.till
	}
	if b.gap() > 0 && b.empty > float64(p.now) {
		line.StartAt = max(line.StartAt, moment.Millis(math.Ceil(b.startAt(p.now))))
	}
	if c := b.rule.limit.Concurrency; c > 0 && b.runs >= c {
		line.StartAt = 0
	}
	return line
}
