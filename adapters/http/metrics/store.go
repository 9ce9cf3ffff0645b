package metrics

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Store calls: how many, how long, and how they ended.

// The values of the label verb: a store's methods that are calls.
const (
	verbSubmit  = "submit"
	verbClaim   = "claim"
	verbSettle  = "settle"
	verbExtend  = "extend"
	verbControl = "control"
	verbRead    = "read"
	verbStats   = "stats"
)

var verbs = []string{verbSubmit, verbClaim, verbSettle, verbExtend, verbControl, verbRead, verbStats}

// Store is a store that does what s does, and counts: each call with its time, and what claims have recovered. If s is a
// core.Waker or core.Presence it is one too.
func (m *Metrics) Store(s core.Store) core.Store {
	counted := &store{next: s, m: m}
	waker, wakes := s.(core.Waker)
	presence, knows := s.(core.Presence)
	switch {
	case wakes && knows:
		return &wholeStore{store: counted, Waker: waker, Presence: presence}
	case wakes:
		return &wakingStore{store: counted, Waker: waker}
	case knows:
		return &knowingStore{store: counted, Presence: presence}
	default:
		return counted
	}
}

// store counts the calls of the next one.
type store struct {
	next core.Store
	m    *Metrics
}

type wakingStore struct {
	*store
	core.Waker
}

type knowingStore struct {
	*store
	core.Presence
}

type wholeStore struct {
	*store
	core.Waker
	core.Presence
}

var (
	_ core.Store = (*store)(nil)
	_ core.Store = (*wakingStore)(nil)
	_ core.Waker = (*wakingStore)(nil)
	_ core.Waker = (*wholeStore)(nil)

	_ core.Presence = (*knowingStore)(nil)
	_ core.Presence = (*wholeStore)(nil)
)

func (s *store) now() time.Time { return s.m.config.Clock.Now() }

// count counts a call that ends now.
func (s *store) count(verb string, begun time.Time) {
	s.m.calls.WithLabelValues(verb).Inc()
	s.m.callTook.WithLabelValues(verb).Observe(s.now().Sub(begun).Seconds())
}

func (s *store) Partitions() int { return s.next.Partitions() } // known without a call

func (s *store) Submit(ctx context.Context, tasks []core.Submission) ([]core.Placed, error) {
	defer s.count(verbSubmit, s.now())
	return s.next.Submit(ctx, tasks)
}

func (s *store) Claim(ctx context.Context, requests []core.ClaimRequest) ([]core.Claim, error) {
	defer s.count(verbClaim, s.now())
	claims, err := s.next.Claim(ctx, requests)
	for i := range claims {
		s.m.recovered.Add(float64(claims[i].Recovered))
	}
	return claims, err
}

func (s *store) Settle(ctx context.Context, runs []core.Settlement) ([]core.Settled, error) {
	defer s.count(verbSettle, s.now())
	return s.next.Settle(ctx, runs)
}

func (s *store) Extend(ctx context.Context, leases []core.Extension) ([]core.Extended, error) {
	defer s.count(verbExtend, s.now())
	return s.next.Extend(ctx, leases)
}

func (s *store) Control(ctx context.Context, commands []core.Command) ([]core.Effect, error) {
	defer s.count(verbControl, s.now())
	return s.next.Control(ctx, commands)
}

func (s *store) Read(ctx context.Context, query core.Query) (core.Page, error) {
	defer s.count(verbRead, s.now())
	return s.next.Read(ctx, query)
}

func (s *store) Stats(ctx context.Context) (core.Stats, error) {
	defer s.count(verbStats, s.now())
	return s.next.Stats(ctx)
}
