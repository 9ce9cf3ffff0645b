package world

// The model: what is known of each task from what the store was asked and has answered. It knows nothing of queues, agendas and
// counters: only what is promised of a task.

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

type ref struct{ agent, id string }

func (r ref) String() string { return r.agent + "/" + r.id }

// phase is where a task is.
// The model has fewer than the tracker: resting, paused and parked tasks all wait.
type phase byte

const (
	waiting phase = iota
	claimed       // under a lease, which may be over
	ended
)

// task is what is known of a task that is live, or has ended.
// One that was deleted is not kept at all. What ends with the claim that holds the task is in its
// lease; what an order has asked for outlives the claim and is a field here.
type task struct {
	ref
	phase  phase
	status store.Status  // of one that has ended
	at     moment.Millis // when it ended

	kind, group, key string
	level            store.Level
	body, state      []byte
	number           int
	def              *draw.Definition // nil for an activity task, and what one has become
	due              moment.Millis
	submitted        moment.Millis
	parent           string // of an occurrence that is a task of its own
	activity         *activity

	lease   lease
	crashes int
	lost    store.Fence // of the last of these, until its process has shown that it lives
	since   bool        // a process has claimed it since
	was     lease       // that was lost
	stirred bool        // it was taken out of a line, or its run was given back, since claims have looked for lines
	// Of the run under way, or of the next claim:
	ending  bool
	renewed *renewal
	byHand  moment.Millis // an order to run in spite of holds that had begun by then
	inHand  moment.Millis // the same, used by the run under way
	queued  bool          // it is due once more when its run ends
	parked  bool          // it may be where a claim has put it aside
	owed    bool          // it was stored regardless of its agent's other tasks
	await   *awaiting     // nil if it does not wait for a signal

	waits   moment.Millis // since when it waits, after a run
	history history
}

// lease is the claim that holds a task.
// Its end comes from the claim, or from the last heartbeat that the store accepted. A lease whose end has passed
// is still the task's own until a claim of its partition takes it back: see over, and [auditor.takenBack].
type lease struct {
	fence   store.Fence
	index   int
	due     moment.Millis // as claimed
	from    moment.Millis
	back    moment.Millis // when its process has taken it back; zero: it has not
	end     moment.Millis
	holder  *process
	over    bool         // it has ended, and a claim has looked for such since: the store may have taken it back
	noticed bool         // a claim has found it over: it ends with the notice
	leaving bool         // its process has said that it ends
	began   *run         // nil until a handler was called
	number  int64        // of the last state that it has sent
	charged bound.Amount // for what it has used so far
	serial  bool
	told    bool // its loss was reported
	// A definition that the claim has not: it was replaced since.
	crashes int  // as claimed
	ends    bool // it was claimed to be ended
	profile *core.Profile
	key     string
	buckets []inBucket // of limits that it counts in
	shares  []inBucket // of budgets
	period  int        // of budgets, in which it was claimed
}

// renewal is a definition that waits for a run to end.
// Only the last one counts: a second replacement takes the place of the first.
type renewal struct {
	sub store.Submission
	due moment.Millis
}

// activity is what is known of an activity task.
type activity struct {
	pulse    store.Pulse
	first    moment.Millis // the first touch that the booked run is for; zero while it rests
	from, to moment.Millis // touches while a run is under way
}

// hold is a pause in force.
// Since decides between it and an order to run now: the later of the two wins. Zero in until is no
// end.
type hold struct{ since, until moment.Millis }

func (h hold) inForce(now moment.Millis) bool { return h.until == 0 || h.until > now }

type storeModel struct {
	w         *World
	tasks     map[ref]*task
	holds     map[store.Target]hold
	groups    map[[2]string]*store.GroupCounts
	fences    []store.Fence // the last one of each partition
	claims    map[claimName]*claimRecord
	nonces    map[string]*claimRecord
	settled   map[settledRun]bool
	totals    count.Counters
	freed     moment.Millis // when the last pause was ended
	spawned   map[spawning]string
	cancelled map[ref]bool                 // at some time
	stored    map[int]bool                 // numbers of definitions
	starts    map[inBucket][]moment.Millis // of claims
	watchers  []watcher                    // one of each feature that has one
	books     *books
}

// claimName names a claim: each partition numbers its own.
type claimName struct {
	partition int
	fence     store.Fence
}

// claimRecord is a claim that was made.
// It outlives its tasks, as heartbeats, events and repeated claims may name a claim long after its
// last task has been settled or taken by others.
type claimRecord struct {
	fence  store.Fence
	refs   []ref
	holder *process
	end    moment.Millis
	over   map[ref]time.Duration // the tasks whose runs are over, and since when the process must know
}

// ends records that a run is over, and that its process must know after a while. It may be called while the driver waits.
func (c *claimRecord) ends(r ref, w *World, after time.Duration) {
	if c == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := c.over[r]; !known {
		c.over[r] = w.elapsed() + after
	}
}

// nobodys reports whether the process knows at a time that all runs of the claim are over.
// The moment itself does not count yet: a heartbeat that was sent in the same instant was right.
func (c *claimRecord) nobodys(at time.Duration) bool {
	for _, r := range c.refs {
		if known, ok := c.over[r]; !ok || known >= at {
			return false
		}
	}
	return true
}

// spawning is an occurrence of a recurring task that runs as a task of its own, by when it was due.
type spawning struct {
	parent ref
	number int
	due    moment.Millis
}

type settledRun struct {
	ref
	fence store.Fence
}

// A world that is restored gets a second one, which sees the deeds of the first again.
func newModel(w *World) *storeModel {
	return &storeModel{
		w: w, tasks: map[ref]*task{}, holds: map[store.Target]hold{}, groups: map[[2]string]*store.GroupCounts{},
		fences: make([]store.Fence, w.plan.Settings.Partitions), claims: map[claimName]*claimRecord{}, nonces: map[string]*claimRecord{},
		settled: map[settledRun]bool{}, stored: map[int]bool{}, spawned: map[spawning]string{}, cancelled: map[ref]bool{}, starts: map[inBucket][]moment.Millis{},
	}
}

// live is a task that is live; nil if it is not.
// A task whose lease is over is live like any other.
func (m *storeModel) live(r ref) *task {
	if t := m.tasks[r]; t != nil && t.phase != ended {
		return t
	}
	return nil
}

// sorted are all tasks that are known, in one order.
// Code that calls the store, or writes to the story, for each task has to use it: the order of a map
// differs from play to play.
func (m *storeModel) sorted() []*task {
	all := make([]*task, 0, len(m.tasks))
	for _, t := range m.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *task) int { return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.id, b.id)) })
	return all
}

func (m *storeModel) partition(agent string) int {
	return store.PartitionOf(agent, m.w.plan.Settings.Partitions)
}

// retention is how long finished tasks are kept, and knownFor how long their ids are known at least.
func (m *storeModel) retention() moment.Millis {
	return moment.Millis(cmp.Or(m.w.plan.Settings.Retention, memstore.DefaultRetention).Milliseconds())
}

func (m *storeModel) knownFor() moment.Millis {
	return min(moment.Millis(store.KnownFor.Milliseconds()), m.retention())
}

// targets are those that a task is under.
// Any of them is enough to keep it, and each has to be resumed by itself.
func (t *task) targets() []store.Target {
	all := []store.Target{{}, {Kind: t.kind}, {Agent: t.agent}, {Agent: t.agent, ID: t.id}}
	if t.key != "" {
		all = append(all, store.Target{Key: t.key})
	}
	return all
}

// held are the pauses that a task is under.
// They are read as of a time, since a pause that has ended may still be in the map.
func (m *storeModel) held(t *task, now moment.Millis) []store.Target {
	var all []store.Target
	for _, target := range t.targets() {
		if h, ok := m.holds[target]; ok && h.inForce(now) {
			all = append(all, target)
		}
	}
	return all
}

// keeps reports whether a pause keeps a task from being claimed.
// A task that is to be ended is claimed under any pause, as no handler is called for it.
func (m *storeModel) keeps(t *task, now moment.Millis) bool {
	if t.ending {
		return false
	}
	for _, target := range m.held(t, now) {
		if target == (store.Target{}) { // claims take nothing then, even runs by hand: see docs/proof.md
			return true
		}
		if t.byHand == 0 || m.holds[target].since > t.byHand {
			return true
		}
	}
	return false
}

// group are the counts of a group; those of none go nowhere.
func (m *storeModel) group(agent, name string) *store.GroupCounts {
	if name == "" {
		return &store.GroupCounts{}
	}
	g := m.groups[[2]string{agent, name}]
	if g == nil {
		g = &store.GroupCounts{}
		m.groups[[2]string{agent, name}] = g
	}
	return g
}

// liveOf counts the live tasks of an agent.
func (m *storeModel) liveOf(agent string) int {
	n := 0
	for _, t := range m.tasks {
		if t.agent == agent && t.phase != ended {
			n++
		}
	}
	return n
}

// owedOf counts those of them that were stored regardless of the agent's other tasks.
func (m *storeModel) owedOf(agent string) int {
	n := 0
	for _, t := range m.tasks {
		if t.agent == agent && t.phase != ended && t.owed {
			n++
		}
	}
	return n
}

// define gives a task what a submission says that it is.
// The number in the body leads to the definition that was planned, so that the model never decodes
// what the scheduler has encoded.
func (m *storeModel) define(t *task, sub *store.Submission) {
	t.kind, t.group, t.key, t.level, t.body = sub.Kind, sub.Group, sub.Key, sub.Level, sub.Body
	t.number = numberOf(sub.Body)
	m.stored[t.number] = true
	m.w.numbers[t.ref] = t.number
	t.def, t.activity = m.w.defs[t.number], nil
	if t.def != nil && t.def.ID != t.id {
		t.parent = t.def.ID
	}
}

var numberMark = []byte(`{"number":`)

// numberOf is the number of the definition that a body was made of; zero for none.
func numberOf(body []byte) int {
	_, rest, _ := bytes.Cut(body, numberMark)
	n, _ := strconv.Atoi(string(rest[:max(bytes.IndexAny(rest, ",}"), 0)])) // there is none, or it was written by us
	return n
}

// end ends a task.
// The counts of its group and the totals change with it, once; a pause of that single task goes with
// the task.
func (m *storeModel) end(t *task, status store.Status, now moment.Millis) {
	g := m.group(t.agent, t.group)
	g.Live--
	switch status {
	case core.StatusCompleted:
		g.Completed++
		m.totals.Completed++
	case core.StatusFailed:
		g.Failed++
		m.totals.Failed++
	default:
		m.cancelled[t.ref] = true
		g.Cancelled++
		m.totals.Cancelled++
	}
	t.await = nil
	t.phase, t.status, t.at, t.lease, t.ending, t.renewed, t.byHand, t.inHand, t.queued, t.crashes, t.lost = ended, status, now, lease{}, false, nil, 0, 0, false, 0, 0
	delete(m.holds, store.Target{Agent: t.agent, ID: t.id})
}

// wait lets a task wait until it is due.
// It clears the lease: its holder has lost or settled the task.
func (t *task) wait(due moment.Millis) {
	t.phase, t.due, t.lease = waiting, due, lease{}
}

// renew gives a task the definition that waited for its run to end.
// Its crashes are forgotten. Its state comes from the replacement, in which a settlement may have put the
// state that its run left.
func (m *storeModel) renew(t *task) {
	m.define(t, &t.renewed.sub)
	t.await = nil
	t.state, t.crashes, t.lost = t.renewed.sub.State, 0, 0
	t.history.renew()
	t.wait(t.renewed.due)
	t.renewed = nil
	m.look(t)
}

// look reads what the tracker says of a task that has changed.
// It is read past the bus, at the moment of the change, and compared when the next run is settled.
func (m *storeModel) look(t *task) {
	t.history.info, _ = m.w.reader.Task(m.w.ctx, t.agent, t.id) // nothing is known of one that is gone
}

// crash puts a task back whose lease is over.
// Nothing is charged to the task but the crash: it is due as it was before. One that was replaced
// while it ran becomes what it was replaced by.
func (m *storeModel) crash(t *task) {
	if !t.lease.leaving {
		t.crashes++
		t.lost, t.since, t.was = t.lease.fence, false, t.lease
	}
	if t.inHand != 0 {
		t.byHand, t.inHand = t.inHand, 0
	}
	due := t.lease.due
	t.parked = true // it may have been parked since: the store does not report that
	t.history.reason, t.history.last = "its lease was lost", 0
	m.totals.Recovered++
	if t.renewed != nil {
		m.renew(t)
		return
	}
	t.wait(due)
}
