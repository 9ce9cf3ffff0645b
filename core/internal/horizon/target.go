// Package horizon is what pulls know of the partitions of a store: when each is due, as far as answers and news say, which does not answer, and when it is worth
// asking again. It asks the store for nothing itself.
package horizon

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/search"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Target is a partition that the pull takes tasks from, and its known state.
type Target struct {
	Partition int
	Agents    []string                 // nil for all
	dues      map[string]moment.Millis // of agents: when each is due next, by the last answer

	*seen

	away   error // why it did not answer last time
	looked bool  // it was looked at, and something has been due in it since

	aside      time.Time     // until when others come first, by the last look
	stood      bool          // it has left them what it has seen
	room       bool          // it is due regardless of the clock: a run has made room in it since it was asked last
	left       int           // tasks that it was seen to leave for lack of time
	nextSort   time.Duration // until another sort of these has its turn
	suspected  time.Time     // when a claim last left tasks whose last runs died with their process
	rest       search.Search // of claims that leave some kinds
	urgent     search.Urgent // of claims for urgent tasks
	emptyUntil time.Time     // until when nothing in it is for this pull, by the last claim
	because    uint64        // if not zero: unless slots have come free since, see slots.Grant
}

// seen is the last answer of a partition, and the news since. The pulls of a series share it.
type seen struct {
	asked   time.Time     // when the last answer was requested; zero: never
	next    moment.Millis // when it is due next, by the last answer
	settled moment.Millis // when the earliest of the tasks is due that were settled or announced since
	atNow   bool          // it answered that something was due at that very moment, or later
	// overdue reports that next was over when it answered, by its own clock: the clock of another partition, or of an answer that was long under
	// way, may be behind it, and then nothing would seem to be due.
	overdue bool
	clock   ahead.Clock   // of its server
	served  moment.Millis // when a claim has last brought something of it
	turns   bool          // tenants took turns then: its place among partitions does not follow from when it is due
	series  *Series       // that share it; nil for one pull alone
	lost    bool          // the last claim found nothing, as if others were faster: see asks
}

// suspects reports whether claims have left tasks lately whose last runs died with their process. A search that has passed them sees none.
func (t *Target) suspects(now time.Time) bool {
	return !t.suspected.IsZero() && now.Sub(t.suspected) < slots.SuspectsLinger
}

// due is when something is due in the partition, as far as is known.
func (s *seen) due() moment.Millis { return base.Earlier(s.next, s.settled) }

// place is its place among partitions that are due, those first that come first. Where tenants take turns partitions do, too: what is due in one for
// longest is of the tenant that has most, so that by age alone another one, in another partition, would wait behind all of it.
func (t *Target) place(turns bool) moment.Millis {
	// guard: partitions-in-turn
	if turns {
		return max(t.due(), t.served)
	}
	return t.due()
}

// urgentFrom is when it is worth asking it for urgent tasks.
func (t *Target) urgentFrom(q *Series) time.Time {
	return t.urgent.From(q != nil && q.hears.Load(), q.urgentNews(t.Partition))
}

// takeTurns reports whether tenants take turns in some target. The mutex is held.
func takeTurns(targets []*Target) bool {
	return slices.ContainsFunc(targets, func(t *Target) bool { return t.turns })
}

// longAgo is when an agent is due that is to be asked for in any case.
const longAgo moment.Millis = 1

// due is when the target is due; long ago if it has never been asked.
func (t *Target) due() moment.Millis {
	if t.asked.IsZero() && t.Agents != nil {
		return longAgo
	}
	return t.seen.due()
}

// answered learns from a look or a claim that asked for some agents of the target, or all.
func (t *Target) answered(asked time.Time, agents []string, c *store.Look) {
	t.asked, t.away, t.next, t.atNow = asked, nil, c.NextDue, c.NextDue >= c.Now
	for i := range c.AgentsDue {
		t.dues[agents[i]] = c.AgentsDue[i]
	}
	if len(agents) < len(t.Agents) { // the others are due when they were
		for _, due := range t.dues {
			t.next = base.Earlier(t.next, due)
		}
	}
	if t.Agents == nil || c.NextLease != 0 && c.NextLease <= c.Now { // expired leases may hold tasks of these agents
		t.next = base.Earlier(t.next, c.NextLease)
	}
	t.overdue = t.next != 0 && t.next <= c.Now
}

// AgentsNow are the agents to ask for: those that are due, or all if it is not known which are. The mutex is held.
func (t *Target) AgentsNow(now moment.Millis) []string {
	if t.Agents == nil {
		return nil
	}
	var due []string
	for _, agent := range t.Agents {
		if at := t.dues[agent]; at != 0 && at <= now {
			due = append(due, agent)
		}
	}
	if len(due) == 0 || t.settled != 0 && t.settled <= now || len(due) == len(t.Agents) {
		return slices.Clone(t.Agents)
	}
	return due
}
