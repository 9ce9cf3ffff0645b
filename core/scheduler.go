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
	"github.com/seed-6f6f2c11/duly/core/internal/activity"
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
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/replan"
	"github.com/seed-6f6f2c11/duly/core/internal/shared"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Scheduler submits tasks and runs those that are due. It is safe for concurrent use. It has no goroutines of its own:
// they live as long as a call to RunDueTasks, RunDue or RunTick, except for handlers that ignore their context, and for the one that sends
// events to subscribers: see FlushEvents.
//
// Its desk is for operators, its view for readers, and its host for programs that decide when it pulls: their methods are the scheduler's.
type Scheduler struct {
	*operate.Desk
	*inspect.View
	*Host

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
	s.Host, s.atOnce.s = &Host{s}, s
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

// Ready is nil while the process can claim all there is, as far as its pulls know: it calls no store. Otherwise it is an
// *[model.AbandonedError], an *[AwayError], or both.
func (s *Scheduler) Ready() error {
	err := s.partitions.Absences.List()
	if st := s.slots.Stats(); st.Abandoned >= st.MaxAbandoned {
		err = errors.Join(&model.AbandonedError{Handlers: st.Abandoned, Limit: st.MaxAbandoned}, err)
	}
	return err
}

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

// NextDue is when work of any agent is due next, by a cheap look; the zero time if nothing is scheduled. A time that has
// passed means that something is due.
func (s *Scheduler) NextDue(ctx context.Context) (time.Time, error) { return s.base.NextDue(ctx) }

// Authorize asks [Config.Authorizer], if there is one, and the rights of the caller whether something is allowed: see [WithPrincipal]. It fails
// with a *[ForbiddenError].
func (s *Scheduler) Authorize(ctx context.Context, what Access) error {
	return s.base.Authorize(ctx, what)
}

// Notice records that a subject was active. It books a run of the kind's task for that subject; see [Activity]. The task is
// owned by the agent, or by the user if no agent is given or the kind does not distinguish agents. A scheduler whose kind has no Activity takes the
// rule from the subject's task, which every task keeps, so that a process without the settings can record activity too; the first
// activity of a subject needs a process that has them.
func (s *Scheduler) Notice(ctx context.Context, kind string, subject Subject) (model.Noticed, error) {
	return activity.Notice(ctx, s.base, originOf(ctx), kind, subject)
}

// FlushEvents returns once the events of this process so far were handed to the store for its subscribers, or ctx is done; a store that does not
// answer is waited for half a second. A host whose process is frozen between calls, such as a function, calls it at the end of each, and a
// program before it ends. It costs nothing without subscribers.
func (s *Scheduler) FlushEvents(ctx context.Context) { s.base.FlushEvents(ctx) }

// engine is a scheduler as its desk and its view see it.
type engine struct{ *Scheduler }

var (
	_ operate.Engine = engine{}
	_ inspect.Engine = engine{}
)

// EnsureDelivery is for the desk.
func (e engine) EnsureDelivery(ctx context.Context, t *store.Stored) error {
	return e.callbacks.Ensure(ctx, t)
}

// StoreCancelDelivery is for the desk.
func (e engine) StoreCancelDelivery(ctx context.Context, t *store.Stored, b *codec.Body, rec *record.Finished) (*store.Submission, error) {
	return e.callbacks.StoreCancel(ctx, t, b, rec)
}

// ConfirmCancel is for the desk.
func (e engine) ConfirmCancel(ctx context.Context, t *store.Stored, delivery *store.Submission) {
	e.callbacks.ConfirmCancel(ctx, t, delivery)
}

// OwnKinds are the kinds that have a handler or settings in this process, for the view.
func (e engine) OwnKinds() map[string]*inspect.KindInfo {
	all := map[string]*inspect.KindInfo{}
	for _, kind := range e.handled() {
		all[kind] = e.OwnKind(kind)
	}
	for kind := range e.config.Kinds {
		all[kind] = e.OwnKind(kind)
	}
	return all
}

// OwnKind is this process' settings for a kind, for the view.
func (e engine) OwnKind(kind string) *inspect.KindInfo {
	info := &inspect.KindInfo{Kind: kind, Settings: *e.base.Kind(kind), Counters: count.KindCounters{Kind: kind}, Slots: e.slots.Stats().Kinds[kind]}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if h := e.handlers[kind]; h != nil {
		info.Handled, info.Batches = true, h.batch
	}
	info.Gated = e.gates[kind] != nil
	info.Known = info.Handled || e.base.OfKind[kind] != nil
	return info
}

// ExplainAlarm is for the view: it adds that hosts are called by alarms and that none is booked for a task. It adds nothing if that is not known.
func (e engine) ExplainAlarm(ctx context.Context, to *inspect.Explanation, t *store.Stored) {
	waits := slices.ContainsFunc(to.Reasons, func(b model.Because) bool {
		return b.Code == model.BecauseNotDue || b.Code == model.BecauseRetry || b.Code == model.BecauseWaiting
	})
	if waits && e.alarm.Lacking(ctx, t.Due) {
		to.Because(model.BecauseAlarm, 0, "hosts are called by alarms here, and none is booked for it: it waits for the next call, unless a daemon runs; duly run-due --all -c FILE books one")
	}
}

// wireRooms gives a scheduler the base of its rooms, and the rooms.
func (s *Scheduler) wireRooms(st Store) {
	c := &s.config
	s.base = &base.Base{
		Store: st, Tag: s.nonce, Handled: s.handled, Self: s.presence.Self,
		Unnamed: KindConfig{}.Or(c.Default).Plain(), OfKind: make(map[string]*KindConfig, len(c.Kinds)),
		Config: base.Config{
			Name: c.Name, Zone: c.Zone, MaxPayload: c.MaxPayload, Kinds: c.Kinds, OnEvent: c.OnEvent, Allow: c.Allow, Authorizer: c.Authorizer,
			Logger: c.Logger, Clock: c.Clock, Presence: c.Presence, Feed: c.Feed, Recent: c.Recent, Servers: c.Servers,
		},
	}
	if c.Callbacks != nil {
		s.base.Config.Callbacks = c.Callbacks
	}
	for name, own := range c.Kinds {
		own = own.Or(c.Default).Plain()
		s.base.OfKind[name] = &own
	}
	s.partitions.Base = s.base
	s.steering.policy, s.admission = c.Policy, admission{base: s.base, bindings: c.Bindings}
	s.alarm.Base, s.alarm.Alarm = s.base, c.Alarm
	s.patrol.Base, s.runCounters.Base, s.steering.figures.Base = s.base, s.base, s.base
	s.presence.Base, s.presence.Slots, s.presence.Running = s.base, s.slots, s.pulls.running
	s.View = inspect.New(s.base, engine{s})
	s.Desk = operate.New(s.base, engine{s}, s.View)
	s.callbacks = callback.Outbox{
		Base: s.base, View: s.View, Callbacks: c.Callbacks, Wait: c.Default.Lease + callback.Margin, Submit: s.Submit, Signal: s.Signal,
	}
	s.placer = placing.Placer{Base: s.base, Steered: c.Policy != nil, Ensure: s.callbacks.Ensure, MaxDepth: c.MaxDepth, MaxSpawned: c.MaxSpawned}
	s.declared.Base, s.declared.Desk, s.declared.Limits, s.declared.Budgets, s.declared.Busy = s.base, s.Desk, c.Limits, c.Budgets, make(chan struct{}, 1)
}
