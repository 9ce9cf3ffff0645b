package core

// What the packages above the base need from core, and what users ask of core that other rooms answer.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/activity"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/callback"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/placing"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
)

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

// NextDue is when work of any agent is due next, by a cheap look; the zero time if nothing is scheduled. A time that has
// passed means that something is due.
func (s *Scheduler) NextDue(ctx context.Context) (time.Time, error) { return s.base.NextDue(ctx) }

// Authorize asks [Config.Authorizer], if there is one, and the rights of the caller whether something is allowed: see [WithPrincipal]. It fails
// with a *[ForbiddenError].
func (s *Scheduler) Authorize(ctx context.Context, what Access) error {
	return s.base.Authorize(ctx, what)
}

// FlushEvents returns once the events of this process so far were handed to the store for its subscribers, or ctx is done; a store that does not
// answer is waited for half a second. A host whose process is frozen between calls, such as a function, calls it at the end of each, and a
// program before it ends. It costs nothing without subscribers.
func (s *Scheduler) FlushEvents(ctx context.Context) { s.base.FlushEvents(ctx) }

// Patrol audits the next page of the store, as [Scheduler.Audit] does, and repairs what it finds, so that a task that would have stopped
// silently runs on without a command. Called every few seconds it goes round all partitions, or those that are named. Each
// fault is an event, and an error in the log: once when it is repaired, and once if it cannot be. A partition that does not answer
// begins again when the others have had their turn.
func (s *Scheduler) Patrol(ctx context.Context, partitions []int) error {
	return s.patrol.Next(ctx, partitions)
}

// Announce stores what this process runs, unless it has done so within the last 20 seconds: a host that lives on, such as a daemon, calls it
// after each pull, so that it is among [Scheduler.Processes] while it is idle too. It costs one command, and does nothing without Config.Presence.
// The runs counted since the last time are added to what Config.Recent keeps, every five seconds; what waits, and what of budgets is used, is
// measured every five minutes by one of all processes.
func (s *Scheduler) Announce(ctx context.Context) {
	s.runCounters.Measure(ctx)
	s.runCounters.Flush(ctx, inspect.TallyEvery)
	if s.config.Presence == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, base.LongestLook)
	defer cancel()
	s.presence.Announce(ctx, base.LiveEvery, base.AnnounceFor)
}

// Retire takes back what this process has announced: a host that has called Announce calls it when it ends, so that the process is not
// taken for an idle one that leaves work undone. It costs one command, and does nothing where nothing was announced.
func (s *Scheduler) Retire(ctx context.Context) {
	s.runCounters.Flush(ctx, 0)
	s.presence.Retire(ctx)
}

// Notice records that a subject was active. It books a run of the kind's task for that subject; see [Activity]. The task is
// owned by the agent, or by the user if no agent is given or the kind does not distinguish agents. A scheduler whose kind has no Activity takes the
// rule from the subject's task, which every task keeps, so that a process without the settings can record activity too; the first
// activity of a subject needs a process that has them.
func (s *Scheduler) Notice(ctx context.Context, kind string, subject Subject) (model.Noticed, error) {
	return activity.Notice(ctx, s.base, originOf(ctx), kind, subject)
}
