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
// they live as long as a call to RunDueTasks, RunDue or RunTick, except for handlers that ignore their context, and for what hands
// events to those who listen: see FlushEvents.
type Scheduler struct {
	patrol  patrol
	store   Store
	waker   store.Waker // the store, if it is one
	config  Config
	slots   *slots
	tallies tallies
	nonce   string       // what the nonces of this process begin with
	offset  atomic.Int64 // the store's clock minus ours, ms, as of the last answer
	known   atomic.Bool  // there was an answer
	crons   crons
	habits  keptHabits
	cron    func(spec cronSpec, after store.Millis) (store.Millis, error) // that of crons, made once
	unnamed KindConfig                                                    // the settings of kinds that have none of their own
	ofKind  map[string]*KindConfig                                        // those of the others
	calls   atomic.Int64                                                  // of handlers, under way

	mu       sync.RWMutex
	handlers map[string]*handler
	gates    map[string]gate
	hosts    []*host // never changed in place

	middleware []func(next Handler) Handler
	submitting []func(next Submitter) Submitter
	kinds      []string // sorted, and never changed in place
	usual      map[string]*usual

	absences absences
	fences   fences
	presence presence
	pulls    openPulls
	figures  figures
	shared   sharedPulls
	alarm    alarm
	telling  telling

	declared declared
	expected []store.Expected // what runs use of which nothing is known yet
}

// New makes a scheduler on a store. It fails if a field of config makes no sense, naming it.
func New(st Store, config Config) (*Scheduler, error) {
	if st == nil {
		return nil, errors.New("duly: a store is required")
	}
	config = config.withDefaults()
	if config.Feed == nil {
		config.Feed, _ = st.(store.Feed)
	}
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("duly: %w", err)
	}
	s := &Scheduler{
		store: st, config: config, slots: newSlots(config), nonce: rand.Text()[:store.NonceLen/2],
		handlers: map[string]*handler{}, gates: map[string]gate{}, usual: map[string]*usual{}, fences: make(fences, st.Partitions()),
		unnamed: KindConfig{}.or(config.Default).plain(), ofKind: make(map[string]*KindConfig, len(config.Kinds)),
	}
	for name, own := range config.Kinds {
		own = own.or(config.Default).plain()
		s.ofKind[name] = &own
	}
	s.waker, _ = st.(store.Waker)
	s.expected = config.expected()
	s.cron = s.crons.next
	s.handleCallbacks()
	s.store, s.alarm.turn = &alarmed{Store: &paced{st}, s: s}, make(chan struct{}, 1)
	return s, nil
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
	s.mu.RLock()
	around := s.submitting
	s.mu.RUnlock()
	if len(around) == 0 {
		return s.submit(ctx, tasks)
	}
	next := Submitter(s.submit)
	for i := range around {
		next = around[len(around)-1-i](next)
	}
	return next(ctx, slices.Clone(tasks))
}

// submit is Submit within the middleware.
func (s *Scheduler) submit(ctx context.Context, tasks []NewTask) ([]Submitted, error) {
	if len(tasks) > MaxSubmit {
		return nil, invalid("tasks", "are %d: the limit is %d a call", len(tasks), MaxSubmit)
	}
	tasks, err := s.filled(tasks)
	if err != nil {
		return nil, err
	}
	if err := s.authorizeSubmit(ctx, tasks); err != nil {
		return nil, err
	}
	if s.config.Policy != nil {
		tasks = s.steered(ctx, tasks)
	}
	origin := originOf(ctx)
	subs, err := s.checked(tasks, origin)
	if err != nil {
		return nil, err
	}
	if err := s.plan(ctx, tasks, subs); err != nil {
		return nil, err
	}
	if err := s.allowSubmit(ctx, tasks, subs); err != nil {
		return nil, err
	}
	holdNew(ctx, tasks, subs)
	with := s.foresee(subs)
	var was []Status
	start, placed, err := s.placeNow(ctx, subs)
	if placed == nil && err == nil {
		placed, was, err = s.place(ctx, subs)
	}
	if err != nil {
		return nil, s.broken(origin, subs, err)
	}
	s.habituate(ctx, subs, placed, with)
	out := make([]Submitted, len(subs))
	for i, p := range placed {
		out[i] = Submitted{
			Agent: subs[i].Agent, ID: subs[i].ID, Kind: subs[i].Kind, Status: StatusWaiting, Due: p.Due.Time(), Created: p.Created,
			Replaced: p.Replaced, NotBooked: s.alarm.lacks(p.Due),
		}
	}
	if s.tells() {
		s.tellPlaced(ctx, tasks, out, was)
	}
	if start != nil { // it is told of after it was stored
		go start()
	} else {
		s.startListed(ctx, subs, placed)
	}
	return out, s.describeExisting(ctx, out, subs)
}

// prepare checks tasks and turns them into what the store gets, without asking it.
func (s *Scheduler) prepare(tasks []NewTask, origin *Origin) ([]store.Submission, error) {
	subs := make([]store.Submission, len(tasks))
	for i := range tasks {
		sub, err := tasks[i].prepare(s.config.MaxPayload, origin)
		if tasks[i].Level == 0 {
			sub.Level = s.kind(sub.Kind).Level
		}
		if err == nil && s.kind(sub.Kind).Disabled {
			err = &DisabledError{Kind: sub.Kind}
		}
		if err == nil && tasks[i].Cron != "" {
			var none *habits
			_, err = s.crons.next(none.zoned(tasks[i].cron(), s.config.Zone), s.storeNow())
		}
		if err == nil {
			err = s.checkCallback(tasks[i].Callback)
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
	s.observe(latestOf(looks, func(l *store.Look) *store.Look { return l }))
	var next store.Millis
	for i := range looks {
		if looks[i].Err != nil {
			continue // pulls ask it, and say so
		}
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

// Waker is the store, if it announces what falls due early; nil otherwise.
func (s *Scheduler) Waker() store.Waker { return s.waker }

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

// kind are the settings of a kind, not to be changed.
func (s *Scheduler) kind(name string) *KindConfig {
	if own := s.ofKind[name]; own != nil {
		return own
	}
	return &s.unnamed
}

// latestOf is the latest time in the answers to one call. They come together, when the slowest has come: the others say what time it was
// some while ago.
func latestOf[A any](answers []A, look func(*A) *store.Look) (latest store.Millis) {
	for i := range answers {
		if l := look(&answers[i]); l.Err == nil {
			latest = max(latest, l.Now)
		}
	}
	return latest
}

// observe learns the store's clock from the answer to a call.
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

// emit hands an event to the program and to those who listen through the store, with its time.
func (s *Scheduler) emit(e Event) {
	e.Time, e.Process = s.storeNow().Time(), s.config.Name
	if s.config.OnEvent != nil {
		s.config.OnEvent(e)
	}
	if s.heard() {
		s.publish(e)
	}
}

// earlier is the earlier of two times, of which zero and store.Never mean never; it returns zero for that.
func earlier(a, b store.Millis) store.Millis {
	if a == 0 || b != 0 && b < a {
		a = b
	}
	if a >= store.Never {
		return 0
	}
	return a
}
