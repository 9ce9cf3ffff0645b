package base

// The clock of the store, and the events with its time.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// LongestLook bounds a call of the store that takes nothing, so that cutting it off loses nothing.
const LongestLook = 2 * time.Second

// NextDue is when work of any agent is due next, by a cheap look; the zero time if nothing is scheduled. A time that has
// passed means that something is due.
func (s *Base) NextDue(ctx context.Context) (time.Time, error) {
	requests := make([]store.LookRequest, s.Store.Partitions())
	for i := range requests {
		requests[i] = store.LookRequest{Partition: i, Kinds: s.Handled()}
	}
	looks, err := s.Store.Look(ctx, requests)
	if err != nil {
		return time.Time{}, err
	}
	s.Observe(LatestOf(looks, func(l *store.Look) *store.Look { return l }))
	var next moment.Millis
	for i := range looks {
		if looks[i].Err != nil {
			continue // pulls ask it too, and report the error
		}
		next = Earlier(next, Earlier(looks[i].NextDue, looks[i].NextLease))
	}
	return next.Time(), nil
}

// LatestOf is the latest time in the answers to one call. They are returned together, once the slowest has arrived: the others have an
// older time.
func LatestOf[A any](answers []A, look func(*A) *store.Look) (latest moment.Millis) {
	for i := range answers {
		if l := look(&answers[i]); l.Err == nil {
			latest = max(latest, l.Now)
		}
	}
	return latest
}

// Observe learns the store's clock from the answer to a call.
func (s *Base) Observe(now moment.Millis) {
	if now != 0 {
		s.Offset.Store(int64(now) - s.Config.Clock.Now().UnixMilli())
		s.known.Store(true)
	}
}

// StoreNow is the store's clock, as of the last answer.
func (s *Base) StoreNow() moment.Millis {
	return moment.Millis(s.Config.Clock.Now().UnixMilli() + s.Offset.Load())
}

// AskedNow is the store's clock; the store is asked if it has not answered anything yet.
func (s *Base) AskedNow(ctx context.Context) (moment.Millis, error) {
	if !s.known.Load() {
		if _, err := s.NextDue(ctx); err != nil {
			return 0, err
		}
	}
	return s.StoreNow(), nil
}

// Emit hands an event, with its time, to the program and to listeners through the store.
func (s *Base) Emit(e model.Event) {
	e.Time, e.Process = s.StoreNow().Time(), s.Config.Name
	if s.Config.OnEvent != nil {
		s.Config.OnEvent(e)
	}
	if s.heard() {
		s.publish(e)
	}
}

// Earlier is the earlier of two times, of which zero and moment.Never mean never; it returns zero for that.
func Earlier(a, b moment.Millis) moment.Millis {
	if a == 0 || b != 0 && b < a {
		a = b
	}
	if a >= moment.Never {
		return 0
	}
	return a
}
