package redisstore

// The wake-ups that are booked outside: those of the whole store, in its first partition, which every layout has.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// verbBook is the name of the script, and the verb of its errors.
const verbBook = "book"

// Book books an alarm; see [store.Bookings].
func (s *Store) Book(ctx context.Context, b store.Booking) (store.Booking, error) {
	reply, err := s.book(ctx, int64(b.At), b.Tag)
	if err != nil || len(reply) < 3 {
		return store.Booking{}, err
	}
	return store.Booking{At: score(reply[2]), Tag: text(reply[1])}, nil
}

// Unbook forgets a booking; see [store.Bookings].
func (s *Store) Unbook(ctx context.Context, b store.Booking) error {
	_, err := s.book(ctx, "", b.Tag)
	return err
}

// book runs book.lua. A call whose answer was lost may be sent again: the tag tells that it is the same.
func (s *Store) book(ctx context.Context, at any, tag string) ([]any, error) {
	replies, err := s.eval(ctx, verbBook, []call{{script: &s.scripts.book, args: []any{at, tag, store.MostBookings}}})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}
