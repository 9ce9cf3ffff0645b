package metrics

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Store calls: how many, how long, and how they ended.

// The values of the label verb: a store's methods that are calls.
// A store has more methods; those that do the same for a user share a value.
const (
	verbSubmit  = "submit"
	verbClaim   = "claim"
	verbSettle  = "settle"
	verbExtend  = "extend"
	verbControl = "control"
	verbRead    = "read"
	verbStats   = "stats"
	verbPrint   = "print"
)

var verbs = []string{verbSubmit, verbClaim, verbSettle, verbExtend, verbControl, verbRead, verbStats, verbPrint}

// Store is a store that does what s does, and counts: each call with its time, and what claims have recovered. If s is a
// store.Waker or store.Presence it is one too, and a feed.Feed if it is both of these and a feed, as the stores of duly are; these keep output, too.
// The types below differ in nothing but the optional interfaces: a wrapper that
// had them all would promise too much.
func (m *Metrics) Store(s core.Store) core.Store {
	counted := &countedStore{next: s, m: m}
	waker, wakes := s.(store.Waker)
	presence, knows := s.(store.Presence)
	events, tells := s.(feed.Feed)
	keeper, keeps := s.(output.Keeper)
	switch {
	case wakes && knows && tells && keeps:
		whole := &tellingStore{wholeStore: &wholeStore{countedStore: counted, Waker: waker, Presence: presence}, Feed: events}
		return &keepingStore{tellingStore: whole, countedKeeper: countedKeeper{keeper, counted}}
	case wakes && knows && tells:
		return &tellingStore{wholeStore: &wholeStore{countedStore: counted, Waker: waker, Presence: presence}, Feed: events}
	case wakes && knows:
		return &wholeStore{countedStore: counted, Waker: waker, Presence: presence}
	case wakes:
		return &wakingStore{countedStore: counted, Waker: waker}
	case knows:
		return &knowingStore{countedStore: counted, Presence: presence}
	default:
		return counted
	}
}

// countedStore counts the calls of the next one.
type countedStore struct {
	next core.Store
	m    *Metrics
}

// wakingStore is a counted store that announces wake-ups, which are not counted: they are no calls.
type wakingStore struct {
	*countedStore
	store.Waker
}

// knowingStore is a counted store that knows its processes.
type knowingStore struct {
	*countedStore
	store.Presence
}

// wholeStore is one with both.
type wholeStore struct {
	*countedStore
	store.Waker
	store.Presence
}

// tellingStore is one that hands events to those who listen as well.
type tellingStore struct {
	*wholeStore
	feed.Feed
}

// keepingStore is one that keeps output as well.
type keepingStore struct {
	*tellingStore
	countedKeeper
}

// countedKeeper counts the calls that store and read output.
type countedKeeper struct {
	keeper output.Keeper
	by     *countedStore
}

func (k countedKeeper) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	defer k.by.count(verbPrint, k.by.now())
	return k.keeper.Print(ctx, chunks)
}

func (k countedKeeper) Printed(ctx context.Context, agent, id string) ([]output.Run, error) {
	defer k.by.count(verbRead, k.by.now())
	return k.keeper.Printed(ctx, agent, id)
}

var (
	_ core.Store    = (*keepingStore)(nil)
	_ feed.Feed     = (*keepingStore)(nil)
	_ output.Keeper = (*keepingStore)(nil)

	_ core.Store  = (*countedStore)(nil)
	_ core.Store  = (*wakingStore)(nil)
	_ store.Waker = (*wakingStore)(nil)
	_ store.Waker = (*wholeStore)(nil)

	_ store.Presence = (*knowingStore)(nil)
	_ store.Presence = (*wholeStore)(nil)

	_ core.Store     = (*tellingStore)(nil)
	_ store.Waker    = (*tellingStore)(nil)
	_ store.Presence = (*tellingStore)(nil)
	_ feed.Feed      = (*tellingStore)(nil)
)

// now is by the clock of the metrics, so that tests can set it.
func (s *countedStore) now() time.Time { return s.m.config.Clock.Now() }

// count counts a call that ends now.
func (s *countedStore) count(verb string, begun time.Time) {
	s.m.calls.WithLabelValues(verb).Inc()
	s.m.callTook.WithLabelValues(verb).Observe(s.now().Sub(begun).Seconds())
}

// The methods below pass each call on, and count it when it ends, with or without an error.
func (s *countedStore) Partitions() int { return s.next.Partitions() } // known without a call

func (s *countedStore) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	defer s.count(verbSubmit, s.now())
	return s.next.Submit(ctx, tasks)
}

func (s *countedStore) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	defer s.count(verbClaim, s.now())
	claims, err := s.next.Claim(ctx, requests)
	for i := range claims {
		s.m.recovered.Add(float64(claims[i].Recovered))
	}
	return claims, err
}

func (s *countedStore) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	defer s.count(verbSubmit, s.now())
	return s.next.Touch(ctx, touches)
}

func (s *countedStore) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	defer s.count(verbClaim, s.now())
	return s.next.Look(ctx, requests)
}

func (s *countedStore) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	defer s.count(verbSettle, s.now())
	return s.next.Settle(ctx, runs)
}

// Turn counts as the two calls that it is made of.
func (s *countedStore) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	begun := s.now()
	defer s.count(verbClaim, begun)
	defer s.count(verbSettle, begun)
	settled, claims, err := s.next.Turn(ctx, runs, requests)
	for i := range claims {
		s.m.recovered.Add(float64(claims[i].Recovered))
	}
	return settled, claims, err
}

func (s *countedStore) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	defer s.count(verbExtend, s.now())
	return s.next.Extend(ctx, leases)
}

func (s *countedStore) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Replay(ctx, tasks)
}

func (s *countedStore) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.RunNow(ctx, tasks)
}

func (s *countedStore) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Cancel(ctx, tasks)
}

func (s *countedStore) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Delete(ctx, tasks)
}

func (s *countedStore) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Hold(ctx, holds)
}

func (s *countedStore) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Unhold(ctx, targets)
}

func (s *countedStore) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Profile(ctx, changes)
}

func (s *countedStore) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Replan(ctx, tasks)
}

func (s *countedStore) Forget(ctx context.Context, r store.Remains) (string, error) {
	defer s.count(verbControl, s.now())
	return s.next.Forget(ctx, r)
}

func (s *countedStore) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	defer s.count(verbRead, s.now())
	return s.next.ProfileOf(ctx, agent)
}

func (s *countedStore) Profiles(ctx context.Context, page store.PageOf) (store.ProfilePage, error) {
	defer s.count(verbRead, s.now())
	return s.next.Profiles(ctx, page)
}

func (s *countedStore) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Limit(ctx, changes)
}

func (s *countedStore) Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error) {
	defer s.count(verbControl, s.now())
	audited, err := s.next.Audit(ctx, pages)
	s.m.audited.Add(float64(len(audited)))
	return audited, err
}

func (s *countedStore) Get(ctx context.Context, query store.Get) (store.Found, error) {
	defer s.count(verbRead, s.now())
	return s.next.Get(ctx, query)
}

func (s *countedStore) List(ctx context.Context, query store.List) (store.Page, error) {
	defer s.count(verbRead, s.now())
	return s.next.List(ctx, query)
}

func (s *countedStore) Find(ctx context.Context, query store.Find) (store.Page, error) {
	defer s.count(verbRead, s.now())
	return s.next.Find(ctx, query)
}

func (s *countedStore) Group(ctx context.Context, agent, group string) (store.GroupCounts, error) {
	defer s.count(verbRead, s.now())
	return s.next.Group(ctx, agent, group)
}

func (s *countedStore) Agents(ctx context.Context, page store.PageOf) (store.AgentPage, error) {
	defer s.count(verbRead, s.now())
	return s.next.Agents(ctx, page)
}

func (s *countedStore) Holds(ctx context.Context, page store.PageOf) (store.HoldPage, error) {
	defer s.count(verbRead, s.now())
	return s.next.Holds(ctx, page)
}

func (s *countedStore) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Budget(ctx, changes)
}

func (s *countedStore) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	defer s.count(verbStats, s.now())
	return s.next.Budgets(ctx)
}

func (s *countedStore) Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	defer s.count(verbControl, s.now())
	return s.next.Stamp(ctx, stamp, of...)
}

func (s *countedStore) Stamped(ctx context.Context, partition int, stamp string) (bool, error) {
	defer s.count(verbRead, s.now())
	return s.next.Stamped(ctx, partition, stamp)
}

func (s *countedStore) Receive(ctx context.Context, r message.Receipt) (message.Received, error) {
	defer s.count(verbControl, s.now())
	return s.next.Receive(ctx, r)
}

func (s *countedStore) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	defer s.count(verbStats, s.now())
	return s.next.Limits(ctx)
}

func (s *countedStore) Stats(ctx context.Context) (count.Stats, error) {
	defer s.count(verbStats, s.now())
	return s.next.Stats(ctx)
}

func (s *countedStore) Book(ctx context.Context, b alarm.Booking) (alarm.Booked, error) {
	defer s.count(verbControl, s.now())
	return s.next.Book(ctx, b)
}

func (s *countedStore) Confirm(ctx context.Context, b alarm.Booking) error {
	defer s.count(verbControl, s.now())
	return s.next.Confirm(ctx, b)
}

func (s *countedStore) Signal(ctx context.Context, signals []store.Signal) ([]store.Signalled, error) {
	defer s.count(verbControl, s.now())
	return s.next.Signal(ctx, signals)
}

func (s *countedStore) Heard(ctx context.Context, waits []store.Wait) ([]*store.Told, error) {
	defer s.count(verbRead, s.now())
	return s.next.Heard(ctx, waits)
}
