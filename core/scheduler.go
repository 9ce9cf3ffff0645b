package core

// The scheduler: it holds everything else together, and submits tasks.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/booking"
	"github.com/seed-6f6f2c11/duly/core/internal/callback"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/counters"
	"github.com/seed-6f6f2c11/duly/core/internal/declared"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/internal/notices"
	"github.com/seed-6f6f2c11/duly/core/internal/placing"
	"github.com/seed-6f6f2c11/duly/core/internal/presence"
	"github.com/seed-6f6f2c11/duly/core/internal/printing"
	"github.com/seed-6f6f2c11/duly/core/internal/replan"
	"github.com/seed-6f6f2c11/duly/core/internal/shared"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Scheduler submits tasks and runs those that are due. It is safe for concurrent use. It has no goroutines of its own:
// they live as long as a call to RunDueTasks, RunDue or RunTick, except for handlers that ignore their context, and for the one that sends
// events to subscribers: see FlushEvents.
//
// Its desk and its view are for operators and readers: their methods are the scheduler's.
type Scheduler struct {
	*operate.Desk
	*inspect.View

	base        *base.Base
	patrol      notices.Patrol
	store       Store
	waker       store.Waker // the store, if it is one
	config      Config
	slots       *slots.Slots
	runCounters counters.Runs
	nonce       string                                                                // the beginning of the nonces of this process
	cron        func(spec codec.CronSpec, after moment.Millis) (moment.Millis, error) // the calculation of crons, made once
	calls       atomic.Int64                                                          // of handlers, under way

	mu       sync.RWMutex
	handlers map[string]*handler
	gates    map[string]gate

	kinds    []string // sorted, and never changed in place
	claims   []string // the same with that of signals of ends, which every process that runs anything sends
	runTimes slots.RunTimes

	partitions horizon.Partitions
	presence   presence.Presence
	pulls      openPulls
	steering   steering
	shared     shared.Pulls
	alarm      booking.Booker
	printing   *printing.Sender // of what runs print; nil if the store keeps none

	declared   declared.Declared
	callbacks  callback.Outbox
	admission  admission
	middleware middleware
	atOnce     hosts
	placer     placing.Placer
	expected   []bound.Expected // the expected use of runs whose use is not known yet
}

// New makes a scheduler on a store. It fails if a field of config makes no sense, naming it.
func New(st Store, config Config) (*Scheduler, error) {
	if st == nil {
		return nil, errors.New("duly: a store is required")
	}
	config = config.withDefaults()
	if config.Feed == nil {
		config.Feed, _ = st.(feed.Feed)
	}
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("duly: %w", err)
	}
	s := &Scheduler{
		store: st, config: config, slots: slots.New(config.Clock, config.Concurrency, config.Urgent, config.MaxAbandoned), nonce: rand.Text()[:store.NonceLen/2],
		handlers: map[string]*handler{}, gates: map[string]gate{},
		partitions: horizon.Partitions{Fences: make(horizon.Fences, st.Partitions())},
	}
	s.atOnce.s = s
	s.store, s.alarm.Turn = &booking.Store{Store: &base.Paced{Store: st}, By: &s.alarm, PullNow: s.atOnce.pullNow}, make(chan struct{}, 1)
	s.wireRooms(s.store)
	s.base.Config.Outputs, _ = st.(output.Keeper)
	s.printing = printing.New(s.base.Config.Outputs, config.Clock)
	s.waker, _ = st.(store.Waker)
	s.expected = config.expected()
	s.cron = s.base.Crons.Next
	handleCallbacks(s)
	return s, nil
}

// Submit stores tasks, all or none of them, and returns the outcome for each, in order. Once it has returned nil no
// crash of any process loses a task. After an error that is not about the input (see [CodeOf]) the outcome is unknown;
// submitting again is safe if the tasks have ids, as a task whose id is known stays unchanged (Created is false).
func (s *Scheduler) Submit(ctx context.Context, tasks ...NewTask) ([]Submitted, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	s.middleware.mu.RLock()
	around := s.middleware.submits
	s.middleware.mu.RUnlock()
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
		return nil, check.Invalid("tasks", "are %d: the limit is %d a call", len(tasks), MaxSubmit)
	}
	tasks, err := s.base.Filled(ctx, tasks)
	if err != nil {
		return nil, err
	}
	if err := s.base.AuthorizeSubmit(ctx, tasks); err != nil {
		return nil, err
	}
	if s.config.Policy != nil {
		tasks = s.steering.place(ctx, tasks)
	}
	origin := originOf(ctx)
	subs, err := s.placer.Checked(tasks, origin)
	if err != nil {
		return nil, err
	}
	if err := s.placer.Admit(ctx, origin, tasks, subs); err != nil {
		return nil, err
	}
	codec.HoldNew(ctx, tasks, subs)
	watched, armed, err := placing.WatchFirst(ctx, s.base, tasks, subs)
	if err != nil {
		return nil, err
	}
	with := replan.Submissions(s.base, subs)
	var was []Status
	start, placed, err := s.atOnce.submit(ctx, subs)
	if placed == nil && err == nil || errors.Is(err, store.ErrChanged) {
		placed, was, err = s.placer.Place(ctx, origin, tasks, subs, err)
	}
	if err != nil {
		placing.WatchNoMore(ctx, s.base, armed, err)
		return nil, s.placer.Broken(origin, subs, err)
	}
	replan.Submitted(ctx, s.base, subs, placed, with)
	placing.WatchReplaced(ctx, s.base, watched, subs, placed)
	out := make([]Submitted, len(subs))
	for i, p := range placed {
		out[i] = Submitted{
			Agent: subs[i].Agent, ID: subs[i].ID, Kind: subs[i].Kind, Status: StatusWaiting, Due: p.Due.Time(), Created: p.Created,
			Replaced: p.Replaced, NotBooked: s.alarm.Lacks(p.Due),
		}
	}
	if s.base.HasListeners() {
		s.placer.Emit(ctx, ParentOf(ctx), tasks, out, was)
	}
	if start != nil { // its event comes after it was stored
		go start()
	} else {
		s.atOnce.startListed(ctx, subs, placed)
	}
	return out, s.placer.Describe(ctx, out, subs)
}

// Existing returns what Submit would find of tasks whose ids are known already, in order; nothing is stored. A task that does not
// exist has no Status.
func (s *Scheduler) Existing(ctx context.Context, tasks ...NewTask) ([]Submitted, error) {
	tasks, err := s.base.Filled(ctx, tasks)
	if err != nil {
		return nil, err
	}
	if err := s.base.AuthorizeSubmit(ctx, tasks); err != nil {
		return nil, err
	}
	subs, err := s.base.Prepare(tasks, originOf(ctx))
	if err != nil {
		return nil, err
	}
	out := make([]Submitted, len(subs))
	for i := range subs {
		out[i] = Submitted{Agent: subs[i].Agent, ID: subs[i].ID, Kind: subs[i].Kind}
	}
	return out, s.placer.Describe(ctx, out, subs)
}

// Until is how long it is until t, a time of the store's clock as Report.NextDueAt is, judged by the last answer of the
// store. Hosts sleep by it, so that their own clock does not matter.
func (s *Scheduler) Until(t time.Time) time.Duration { return t.Sub(s.base.StoreNow().Time()) }

// Slots returns how the slots of this process are used.
func (s *Scheduler) Slots() model.SlotStats {
	st := s.slots.Stats()
	st.OfOneAgent = s.pulls.ofOneAgent()
	return st
}

// Ready is nil while the process can claim all there is, as far as its pulls know: it calls no store. Otherwise it is an
// *[model.AbandonedError], an *[AwayError], or both.
func (s *Scheduler) Ready() error {
	err := s.partitions.Absences.List()
	if st := s.slots.Stats(); st.Abandoned >= st.MaxAbandoned {
		err = errors.Join(&model.AbandonedError{Handlers: st.Abandoned, Limit: st.MaxAbandoned}, err)
	}
	return err
}

// Waker is the store, if it announces what falls due early; nil otherwise.
func (s *Scheduler) Waker() store.Waker { return s.waker }

// Partitions is the number of partitions of the store; see [store.PartitionOf].
func (s *Scheduler) Partitions() int { return s.store.Partitions() }

// Kinds are the kinds that have a handler here, sorted. Tasks of other kinds are never run here.
func (s *Scheduler) Kinds() []string {
	return slices.Clone(s.handled())
}

// claimed are the kinds that are claimed here, not to be changed.
func claimed(s *Scheduler) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.claims
}

// handled is Kinds, not to be changed.
func (s *Scheduler) handled() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds
}
