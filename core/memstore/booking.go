package memstore

// The wake-ups that are booked outside.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Book books an alarm; see [store.Bookings].
func (s *Store) Book(ctx context.Context, b store.Booking) (store.Booking, error) {
	if err := ctx.Err(); err != nil {
		return store.Booking{}, &store.Error{Verb: "book", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.booked = slices.DeleteFunc(s.booked, func(old store.Booking) bool { return old.At <= now })
	if b.At > now && (len(s.booked) == 0 || b.At < s.booked[0].At) {
		s.booked = slices.Insert(s.booked, 0, b)
		s.booked = s.booked[:min(len(s.booked), store.MostBookings)]
	}
	if len(s.booked) == 0 {
		return store.Booking{}, nil
	}
	return s.booked[0], nil
}

// Unbook forgets a booking; see [store.Bookings].
func (s *Store) Unbook(ctx context.Context, b store.Booking) error {
	if err := ctx.Err(); err != nil {
		return &store.Error{Verb: "book", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.booked = slices.DeleteFunc(s.booked, func(old store.Booking) bool { return old == b })
	return nil
}
