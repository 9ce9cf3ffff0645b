package memstore

// A partition, its agents and its tasks: where each task is at any time.

import (
	"slices"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// partition is the slice of all agents that one step changes at once.
// All of its methods run under the lock of the store.
type partition struct {
	store *Store `image:"-"`
	// agents have live tasks, finished the records of those that have ended.
	index  int
	agents map[string]*agent
	agenda *queue[*entry]      // of waiting tasks, and of agents that have many
	parked map[string]*parking // by kind, or by the scope of a hold
	holds  map[scope]hold
	open   []opened // scopes whose holds have ended and whose tasks are being put back, oldest first
	// nonces find the claim that a repetition is about.
	claims map[store.Fence]*claim
	nonces map[string]store.Fence
	// leases are the ends of leases and of holds, the first one in front.
	leases *queue[*term]
	serial map[string]*claim // agents of which no other task may run, by the claim that holds the one that does
	ended  []store.Fence     // oldest first
	// groups are counts by agent and name.
	groups   map[[2]string]*group
	finished map[string]*history
	gone     map[[2]string]finished // agent and id of those whose record was dropped, without it
	fading   [][2]string            // of gone, in the order of their drops
	clock    int64                  // the hybrid clock that numbers tasks and claims
	// counts only grow; live and running are of now.
	counts   count.Stats
	live     int64
	running  int64
	kinds    map[string]*count.KindStats
	suspects map[[2]string]*task // by agent and id: tasks whose last run died with its process
	limits   []rule              // and budgets, in the order of their names
	buckets  map[string]*bucket
	// profiles are those of agents, which need not have tasks.
	profiles map[string][]byte
	bounds   map[string][]rule        // limits and budgets of profiles, by agent
	usual    map[useOf][]bound.Amount // the use of the last runs of a kind, oldest first
	roots    roots
	quotas   quotas
	tenants  tenants
	signals  signals
	// overruled is when a held task was last ordered to run.
	overruled moment.Millis
	ahead     moment.Millis // until when tasks begin that were claimed before they were due
	stamps    []string      // of definitions that are stored, those given last at the end
	// asked is until when no process asks for tasks of level 1 alone, unless it hears of one; zero if none waits.
	asked moment.Millis `image:"-"`
}

// newPartition makes an empty partition. Its orders are total, so that
// every run gives the same answers.
func newPartition(s *Store, index int) *partition {
	return &partition{
		store: s, index: index, agents: map[string]*agent{}, parked: map[string]*parking{}, holds: map[scope]hold{}, kinds: map[string]*count.KindStats{},
		claims: map[store.Fence]*claim{}, nonces: map[string]store.Fence{}, groups: map[[2]string]*group{},
		finished: map[string]*history{}, serial: map[string]*claim{}, gone: map[[2]string]finished{}, buckets: map[string]*bucket{}, profiles: map[string][]byte{}, bounds: map[string][]rule{}, usual: map[useOf][]bound.Amount{},
		roots: roots{counts: map[[2]string]map[int64]int{}}, signals: signals{waiting: map[[2]string]map[string]*task{}, early: map[[2]string]early{}}, suspects: map[[2]string]*task{},
		agenda: newQueue(byVisit), leases: newQueue(byEnd),
	}
}

// byVisit is the order of an agenda, and byEnd that of leases.
func byVisit(a, b *entry) bool { return a.visit < b.visit || a.visit == b.visit && a.name < b.name }

func byEnd(a, b *term) bool { return a.end < b.end || a.end == b.end && a.name() < b.name() }

// agent is an agent with live tasks.
// It exists as long as it has a live task.
type agent struct {
	name  string
	tasks map[string]*task
	// many is set if the agent has had more than a few live tasks, tasks of different levels or a large one since it last had none.
	// Then it has one entry in the agenda, which is the time of its last visit, if that was later than its earliest due time: the
	// agents take turns. Otherwise each of its tasks has an entry.
	many  bool
	entry *entry
	// levels are its waiting tasks, by level from 1 on.
	levels [3]*queue[*task]
}

// entry is a place in the agenda.
type entry struct {
	agent *agent
	task  *task         // nil for that of an agent with many
	name  string        // orders entries of the same time as their members in Redis are ordered
	visit moment.Millis // when it is looked at
	at    int           // its place in the agenda; -1 if nothing waits there
}

func (s *entry) position() *int { return &s.at }

// task is a live task.
type task struct {
	store.Submission
	agent *agent
	// seq orders tasks that are due at the same time, and holds when it was
	// submitted, in units of the hybrid clock.
	seq int64
	// due is when it is due, or was when its run began.
	due moment.Millis
	// state is core's state between runs, and crashes how many of its runs in a row have died.
	state   []byte
	crashes int
	lost    *loss                   // the last of these; nil for none, and once its process has shown that it lives
	parked  string                  // the name of where it is parked; empty if it is not
	entry   *entry                  // in the agenda, while its agent does not have many
	claim   *claim                  // that holds it
	order   *order                  // what happens to it when its run ends
	uses    []*bucket               // that its run counts in
	kept    []kept                  // for its run, by budgets
	charged map[string]bound.Amount // for its run while that goes on, by unit; nil for nothing
	lined   *bucket                 // that it waits for
	lifted  bool                    // it has no place for as long as the call lasts that replaces it
	turn    moment.Millis           // its place there, as of when it came
	pulse   *pulse                  // of an activity task
	awaits  string                  // the key of the signal that it waits for, and what it received; empty for none
	told    *store.Told
	wait    waiting
	// at is its place in a queue of its agent or in a parking place.
	at int
	// changed is when it last changed, but for its submit, its claims and its touches.
	changed moment.Millis
}

func (t *task) position() *int { return &t.at }

// parking is where tasks are that no process takes for now: those of a kind for which a process claimed without a handler, or
// those of a hold.
type parking struct{ tasks *queue[*task] }

// term is something that ends by itself: a lease, or a hold.
type term struct {
	// Either a claim, or the scope of a hold.
	end   moment.Millis
	claim *claim
	scope scope
	// noticed is set if a claim has found the lease over, and leaving if its process has reported that it ends.
	noticed, leaving bool
	at               int
}

func (t *term) position() *int { return &t.at }

// name orders terms that end together as their members in Redis are ordered.
func (t *term) name() string {
	if t.claim != nil {
		return strconv.FormatInt(int64(t.claim.fence), 10)
	}
	return "@" + t.scope.String()
}

// claim is a set of tasks under one lease.
// open counts the runs that have not ended: at zero the lease is over.
type claim struct {
	fence store.Fence
	nonce string
	term  *term
	runs  []held
	// runs keep their index for as long as the claim is known, which is how settlements name them.
	open int
}

// held is the place of a task in a claim.
// lost means that the run no longer holds its lease, in contrast to one that has settled.
type held struct {
	task   *task // nil when the run has ended
	due    moment.Millis
	number int64 // of the last state that the run has sent
	lost   bool
}

// group counts the tasks of a group. It is forgotten some time after its last task has ended.
// over is when; zero while it has live tasks.
type group struct {
	store.GroupCounts
	over moment.Millis
}

// clockUnit is how many numbers the hybrid clock has for a millisecond.
const clockUnit = 1024

// ticks takes n numbers of the hybrid clock, and returns the first. They only grow,
// also when the machine's clock goes back.
func (p *partition) ticks(n int, now moment.Millis) int64 {
	first := max(p.clock+1, int64(now)*clockUnit)
	p.clock = first + int64(n) - 1
	return first
}

// agent is an agent by name, which is made if it does not exist.
func (p *partition) agent(name string) *agent {
	a := p.agents[name]
	if a == nil {
		a = &agent{name: name, tasks: map[string]*task{}}
		a.entry = &entry{agent: a, name: name, at: -1}
		for i := range a.levels {
			a.levels[i] = newQueue(before)
		}
		p.agents[name] = a
	}
	return a
}

// before is the order of the tasks of one level: by due time, then in the order of their submit.
// The id decides only where even the sequence numbers are equal.
func before(a, b *task) bool {
	return a.due < b.due || a.due == b.due && (a.seq < b.seq || a.seq == b.seq && a.ID < b.ID)
}

// place puts a task among the waiting ones.
// The agent takes its place by the task if that is earlier: an agent is in
// the agenda once, regardless of its number of tasks.
func (p *partition) place(t *task, due moment.Millis) {
	t.due, t.claim, t.parked = due, nil, ""
	t.agent.levels[t.Level-1].add(t)
	hurry(p, t, due)
	p.show(t.place(), due)
}

// place is the entry that a task waits at.
func (t *task) place() *entry {
	if t.agent.many {
		return t.agent.entry
	}
	return t.entry
}

// show puts an entry into the agenda, or moves it to the front if it is there for later.
func (p *partition) show(s *entry, at moment.Millis) {
	switch {
	case s.at < 0:
		// guard: early
		s.visit = at
		p.agenda.add(s)
	// guard: agenda
	case at < s.visit:
		s.visit = at
		p.agenda.fix(s)
	}
}

// next is when an agent is in the agenda next; false if it is not.
func (a *agent) next() (moment.Millis, bool) {
	if a.many {
		return a.entry.visit, a.entry.at >= 0
	}
	return a.earliest()
}

// earliest is when an agent's next waiting task is due.
// Levels do not matter here: the agent is visited when anything of it is due.
func (a *agent) earliest() (moment.Millis, bool) {
	var due moment.Millis
	found := false
	for _, q := range a.levels {
		if t, ok := q.head(); ok && (!found || t.due < due) {
			due, found = t.due, true
		}
	}
	return due, found
}

// free puts an agent back whose only run has ended, behind those that wait already. It reports whether it is due.
// An agent with a single task has none that could have waited.
func (p *partition) free(agent string, c *claim, now moment.Millis) (due bool) {
	if p.serial[agent] != c {
		return false
	}
	delete(p.serial, agent)
	a := p.agents[agent]
	if a == nil || !a.many {
		return false
	}
	first, ok := a.earliest()
	if !ok {
		return false
	}
	// Not before now: it has just had a run, and others have waited.
	at := max(first, now)
	p.show(a.entry, at)
	rouse(p, at)
	p.store.announce(p, at)
	return first <= now
}

// lift takes a waiting task out of where it is.
// An agent that has no other waiting task leaves the agenda.
func (p *partition) lift(t *task) {
	if t.parked != "" {
		p.parked[t.parked].tasks.remove(t)
		t.parked = ""
		p.leaveLine(t)
		return
	}
	a := t.agent
	a.levels[t.Level-1].remove(t)
	if _, ok := a.earliest(); !a.many || !ok {
		p.agenda.remove(t.place())
	}
}

// move gives a waiting task another due time, where it is.
// A debounced activity task is moved with each touch, so this has to be cheap.
func (p *partition) move(t *task, due moment.Millis) {
	if t.lined != nil { // tasks in line are taken whenever there is room
		p.lift(t)
		p.place(t, due)
		return
	}
	hurry(p, t, due)
	if t.parked != "" {
		t.due = due
		p.parked[t.parked].tasks.fix(t)
		return
	}
	a := t.agent
	t.due = due
	a.levels[t.Level-1].fix(t)
	s := t.place()
	// An agent with many tasks keeps its turn, unless the task is due sooner.
	if s.at >= 0 && !a.many {
		s.visit = due
		p.agenda.fix(s)
		return
	}
	p.show(s, due)
}

// drop removes a task that is no longer live.
// Everything about it alone goes with it: its hold and its place among its agent's tasks.
func (p *partition) drop(t *task) {
	p.unwait(t)
	delete(p.suspects, [2]string{t.Agent, t.ID})
	// guard: pause-of-task
	p.forget(scope{kind: 't', name: t.Agent, id: t.ID})
	p.live--
	// guard: quota-ended
	p.quotas.count(t.Agent, t.ID, false)
	p.stats(t.Kind).Live--
	if t.dozing() {
		p.stats(t.Kind).Resting--
	}
	delete(t.agent.tasks, t.ID)
	if len(t.agent.tasks) == 0 {
		delete(p.agents, t.agent.name)
	}
}

// next is the earliest entry of the agenda and of the leases; zero for none.
// It is kept in the first place of two queues, so a look costs nothing.
func (p *partition) next() (due, lease moment.Millis) {
	if s, ok := p.agenda.head(); ok {
		due = s.visit
	}
	if t, ok := p.leases.head(); ok {
		lease = t.end
	}
	return due, lease
}

// close ends a claim of which nothing runs any more.
// Its marks stay for a while: a settle that is sent again has to get the same answer.
func (p *partition) close(c *claim) {
	p.leases.remove(c.term)
	p.ended = append(p.ended, c.fence)
	if len(p.ended) > endedKept {
		old := p.claims[p.ended[0]]
		p.ended = slices.Clone(p.ended[1:])
		delete(p.claims, old.fence)
		delete(p.nonces, old.nonce)
	}
}

// isParked reports whether a task of one of these kinds is parked.
// Used by looks: a parked task of a kind with a handler is due now.
func (p *partition) isParked(kinds []string) bool {
	for _, name := range kinds {
		if k := p.parked[name]; k != nil && k.tasks.Len() > 0 {
			return true
		}
	}
	return false
}

// byDue is the order in a parking place: by due time, then agent and id, as in Redis.
func byDue(a, b *task) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	if a.agent != b.agent {
		return a.agent.name < b.agent.name
	}
	return a.ID < b.ID
}

// park takes a task out of the queue, to a place with a name.
func (p *partition) park(t *task, name string) {
	k := p.parked[name]
	if k == nil {
		k = &parking{tasks: newQueue(byDue)}
		p.parked[name] = k
	}
	t.parked = name
	k.tasks.add(t)
}

// group is the group of a task, which is made if it does not exist; nil for a task without one.
func (p *partition) group(agent, name string, now moment.Millis) *group {
	if name == "" {
		return nil
	}
	key := [2]string{agent, name}
	g := p.groups[key]
	// One that is over starts from zero: a name may be used again after the retention.
	if g == nil || g.over != 0 && g.over <= now {
		g = &group{}
		p.groups[key] = g
	}
	return g
}
