package core

// The scheduler: what holds everything else together, and how tasks are submitted.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Scheduler submits tasks and runs those that are due. It is safe for concurrent use. It has no goroutines of its own:
// they live as long as a call to RunDueTasks, RunDue or RunTick, except for handlers that ignore their context.
type Scheduler struct {
	patrol patrol
	store  Store
	config Config
	slots  *slots
	nonce  string       // what the nonces of this process begin with
	offset atomic.Int64 // the store's clock minus ours, ms, as of the last answer
	known  atomic.Bool  // there was an answer
	crons  crons

	mu       sync.RWMutex
	handlers map[string]*handler
	gates    map[string]gate

	middleware []func(next Handler) Handler
	kinds      []string // sorted, and never changed in place
	usual      map[string]*usual

	absences absences
	fences   fences
	presence presence
	shared   sharedPulls
}

// New makes a scheduler on a store. It fails if a field of config makes no sense, naming it.
func New(st Store, config Config) (*Scheduler, error) {
	if st == nil {
		return nil, errors.New("duly: a store is required")
	}
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("duly: %w", err)
	}
	return &Scheduler{
		store: st, config: config, slots: newSlots(config), nonce: rand.Text()[:store.NonceLen/2],
		handlers: map[string]*handler{}, gates: map[string]gate{}, usual: map[string]*usual{}, fences: make(fences, st.Partitions()),
	}, nil
}

// MaxSubmit is the most tasks that one Submit takes, and MaxSubmitBytes the most bytes of them, as they are stored: all or none
// are stored, in one step of the store. A task that is submitted alone may have as many as [Config].MaxPayload allows.
const (
	MaxSubmit      = 1000
	MaxSubmitBytes = 4 << 20
)

// Submit stores tasks, all or none of them, and returns what became of each, in order. Once it has returned nil no
// crash of any process loses a task. After an error that is not about the input (see [CodeOf]) the outcome is unknown;
// submitting again is safe if the tasks have ids, as a task whose id is known stays unchanged (Created is false).
func (s *Scheduler) Submit(ctx context.Context, tasks ...NewTask) ([]Submitted, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	if len(tasks) > MaxSubmit {
		return nil, invalid("tasks", "are %d: the limit is %d a call", len(tasks), MaxSubmit)
	}
	tasks, err := filled(tasks)
	if err != nil {
		return nil, err
	}
	subs, err := s.prepare(tasks)
	if err != nil {
		return nil, err
	}
	if err := notTooLarge(subs); err != nil {
		return nil, err
	}
	if err := s.plan(ctx, tasks, subs); err != nil {
		return nil, err
	}
	placed, err := s.place(ctx, subs)
	if err != nil {
		return nil, err
	}
	out := make([]Submitted, len(subs))
	for i, p := range placed {
		out[i] = Submitted{
			Agent: subs[i].Agent, ID: subs[i].ID, Kind: subs[i].Kind, Status: StatusWaiting, Due: p.Due.Time(), Created: p.Created,
			Replaced: p.Replaced,
		}
		if p.Created {
			s.emit(Event{
				Type: EventEnqueue, Agent: subs[i].Agent, ID: subs[i].ID, Kind: subs[i].Kind,
				Group: subs[i].Group, TraceID: tasks[i].TraceID, Due: p.Due.Time(),
			})
		}
	}
	return out, s.describeExisting(ctx, out, subs)
}

// prepare checks tasks and turns them into what the store gets, without asking it.
func (s *Scheduler) prepare(tasks []NewTask) ([]store.Submission, error) {
	subs := make([]store.Submission, len(tasks))
	for i := range tasks {
		sub, err := tasks[i].prepare(s.storeNow(), s.config.MaxPayload)
		if err == nil && s.kind(sub.Kind).Disabled {
			err = &DisabledError{Kind: sub.Kind}
		}
		if err == nil && tasks[i].Cron != "" {
			_, err = s.crons.next(tasks[i].cron(), s.storeNow())
		}
		if err != nil {
			return nil, inBatch(tasks, i, err)
		}
		subs[i] = sub
	}
	return subs, distinct(subs)
}

// notTooLarge refuses several tasks that have too many bytes to be stored in one step.
func notTooLarge(subs []store.Submission) error {
	n := 0
	for i := range subs {
		n += len(subs[i].Body) + len(subs[i].State)
	}
	if len(subs) > 1 && n > MaxSubmitBytes {
		return invalid("tasks", "have %d bytes in all: the limit is %d a call; submit them in several calls", n, MaxSubmitBytes)
	}
	return nil
}

// inBatch says which task of a call an error is about, if the call has several.
func inBatch(tasks []NewTask, i int, err error) error {
	if inv, ok := errors.AsType[*InvalidError](err); ok && len(tasks) > 1 {
		return invalid(fmt.Sprintf("tasks[%d].%s", i, inv.Field), "%s", inv.Reason)
	}
	return err
}

// distinct refuses two tasks with the same name in one call: which one is meant would be a guess.
func distinct(subs []store.Submission) error {
	if len(subs) == 1 {
		return nil
	}
	seen := make(map[[2]string]int, len(subs))
	for i := range subs {
		name := [2]string{subs[i].Agent, subs[i].ID}
		if first, ok := seen[name]; ok {
			return invalid(fmt.Sprintf("tasks[%d].id", i), "is the same as that of tasks[%d]", first)
		}
		seen[name] = i
	}
	return nil
}

// Scope says whose due tasks a pull runs, and how much of them.
type Scope struct {
	Agents      []string      // these agents; nil for all
	Partitions  []int         // with Agents nil: only agents of these partitions; nil for all
	MaxTasks    int           // most tasks to run; zero for no limit
	MaxDuration time.Duration // after which nothing more is claimed; zero for no limit
	PerAgent    int           // most tasks of one agent in one claim; zero for no limit
	Grace       time.Duration // how long running handlers may continue once the context is cancelled
	// Idle, if set, is called once when the pull has nothing to claim for now, because nothing is due, MaxTasks is reached or
	// the store failed, while handlers may still run: with the time when something is due next as far as is known, or the
	// zero time. It is not called when the context or MaxDuration ended the claiming. It says whether the caller follows
	// with another pull: if not, this one still takes the occurrences of its own runs that become tasks of their own, and
	// looks again in the end.
	Idle func(next time.Time) (follows bool)
	// Join, if set, is asked whenever the pull is about to claim which agents it is to serve from then on, as if they had
	// been among Agents, and which no more. It must return at once.
	Join func() (in, out []string)
	// OnDue, if set, is called when a task that the pull has run is due again. It must not block.
	OnDue func(agent string, due time.Time)
	// OnTick, if set, is called for the ticks of this pull, as Config.OnTick is.
	OnTick func(Tick)
}

// RunDueTasks runs what is due for the given agents: one batched fetch, then one tick for each agent. It is RunDue with
// these agents; without agents it does nothing and calls no store.
func (s *Scheduler) RunDueTasks(ctx context.Context, agents []string) (Report, error) {
	if len(agents) == 0 {
		return Report{}, nil
	}
	return s.RunDue(ctx, Scope{Agents: agents})
}

// RunDue runs what is due within a scope. It claims tasks, runs and settles them until nothing is due, the scope's
// budget is spent, or the context's deadline minus Config.Margin is reached; then it waits for the handlers
// under way. While handlers run, each slot that comes free goes to the agent that has waited longest, in any partition:
// an agent that is never done keeps no other waiting.
// When the context is done nothing more is claimed, handlers are cancelled after the scope's grace, and what has not
// ended is released uncharged. On return nothing is left under lease, unless the store cannot be reached.
//
// The error is a *[RunsError] when handlers failed, although all healthy work was done and the report is whole, and an
// *[AwayError] when some partitions of the store did not answer, although the others were served; it may be both, joined. Any
// other error says why the pull ended early.
func (s *Scheduler) RunDue(ctx context.Context, scope Scope) (Report, error) {
	if err := s.check(scope); err != nil {
		return Report{}, err
	}
	if scope.Agents != nil && len(scope.Agents) == 0 {
		return Report{}, nil
	}
	p := newPull(ctx, s, scope)
	defer p.close()
	return p.run()
}

// MaxAgents is the most agents that one scope names.
const MaxAgents = 1000

// check refuses a scope before any store call.
func (s *Scheduler) check(scope Scope) error {
	if len(scope.Agents) > MaxAgents {
		return invalid("agent_ids", "are %d: the limit is %d a call", len(scope.Agents), MaxAgents)
	}
	for i, agent := range scope.Agents {
		if err := validID(fmt.Sprintf("agent_ids[%d]", i), agent); err != nil {
			return err
		}
	}
	for _, p := range scope.Partitions {
		if p < 0 || p >= s.store.Partitions() {
			return invalid("partitions", "must be between 0 and %d, not %d", s.store.Partitions()-1, p)
		}
	}
	switch {
	case scope.MaxTasks < 0:
		return invalid("max", "must not be negative, not %d", scope.MaxTasks)
	case scope.MaxDuration < 0:
		return invalid("timeout_ms", "must not be negative, not %s", scope.MaxDuration)
	case scope.PerAgent < 0:
		return invalid("per_agent", "must not be negative, not %d", scope.PerAgent)
	}
	return nil
}

// RunTick runs tasks of one agent that were claimed elsewhere with [Store.Claim], in the order given, and settles them.
// It never fetches. It refuses, without running anything, tasks of another agent.
func (s *Scheduler) RunTick(ctx context.Context, agent string, claimed []Claimed) (Report, error) {
	for i := range claimed {
		if claimed[i].Agent != agent {
			return Report{}, invalid(fmt.Sprintf("claimed[%d].agent_id", i), "is %q, not %q", claimed[i].Agent, agent)
		}
	}
	if len(claimed) == 0 {
		return Report{}, nil
	}
	p := newPull(ctx, s, Scope{Agents: []string{agent}})
	defer p.close()
	return p.runTick(agent, claimed)
}

// NextDue is when work of any agent is due next, by a cheap look; the zero time if nothing is scheduled. A time that has
// passed means that something is due.
func (s *Scheduler) NextDue(ctx context.Context) (time.Time, error) {
	requests := make([]store.LookRequest, s.store.Partitions())
	for i := range requests {
		requests[i] = store.LookRequest{Partition: i, Kinds: s.handled()}
	}
	looks, err := s.store.Look(ctx, requests)
	if err != nil {
		return time.Time{}, err
	}
	var next store.Millis
	for i := range looks {
		if looks[i].Err != nil {
			continue // pulls ask it, and say so
		}
		s.observe(looks[i].Now)
		next = earlier(next, earlier(looks[i].NextDue, looks[i].NextLease))
	}
	return next.Time(), nil
}

// Until is how long it is until t, a time of the store's clock as Report.NextDueAt is, judged by the last answer of the
// store. Hosts sleep by it, so that their own clock does not matter.
func (s *Scheduler) Until(t time.Time) time.Duration { return t.Sub(s.storeNow().Time()) }

// Slots says how the slots of this process are used.
func (s *Scheduler) Slots() SlotStats { return s.slots.stats() }

// Ready is nil while the process can claim all there is, as far as its pulls know: it calls no store. Otherwise it is an
// *[AbandonedError], an *[AwayError], or both.
func (s *Scheduler) Ready() error {
	err := s.absences.list()
	if st := s.slots.stats(); st.Abandoned >= st.MaxAbandoned {
		err = errors.Join(&AbandonedError{Handlers: st.Abandoned, Limit: st.MaxAbandoned}, err)
	}
	return err
}

// Partitions is the number of partitions of the store; see [store.PartitionOf].
func (s *Scheduler) Partitions() int { return s.store.Partitions() }

// Kinds are the kinds that have a handler here, sorted. No other kind is ever run here, whatever is submitted.
func (s *Scheduler) Kinds() []string {
	return slices.Clone(s.handled())
}

// handled is Kinds, not to be changed.
func (s *Scheduler) handled() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds
}

// kind are the settings of a kind.
func (s *Scheduler) kind(name string) KindConfig {
	return s.config.Kinds[name].or(s.config.Default).plain()
}

// observe learns the store's clock from an answer.
func (s *Scheduler) observe(now store.Millis) {
	if now != 0 {
		s.offset.Store(int64(now) - s.config.Clock.Now().UnixMilli())
		s.known.Store(true)
	}
}

// storeNow is the store's clock, as of the last answer.
func (s *Scheduler) storeNow() store.Millis {
	return store.Millis(s.config.Clock.Now().UnixMilli() + s.offset.Load())
}

// askedNow is the store's clock; the store is asked if it has not answered anything yet.
func (s *Scheduler) askedNow(ctx context.Context) (store.Millis, error) {
	if !s.known.Load() {
		if _, err := s.NextDue(ctx); err != nil {
			return 0, err
		}
	}
	return s.storeNow(), nil
}

// emit hands an event to the program, with the store's time.
func (s *Scheduler) emit(e Event) {
	if s.config.OnEvent != nil {
		e.Time = s.storeNow().Time()
		s.config.OnEvent(e)
	}
}

// earlier is the earlier of two times, of which zero means never.
func earlier(a, b store.Millis) store.Millis {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
