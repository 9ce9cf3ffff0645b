package beside

// The wake-ups that are booked outside: those of the whole store, in its first partition, which every layout has.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// verbBook is the name of the script, and the verb of its errors.
const verbBook = "book"

// Book owes an alarm; see [store.Bookings].
func (s *Store) Book(ctx context.Context, b alarm.Booking) (alarm.Booked, error) {
	reply, err := s.book(ctx, b, b.For.Milliseconds())
	if err != nil || len(reply) < 6 {
		return alarm.Booked{}, err
	}
	return alarm.Booked{
		Now: moment.Millis(layout.Number(reply[0])), Next: moment.Millis(layout.Number(reply[1])), By: moment.Millis(layout.Number(reply[2])),
		Owed: moment.Millis(layout.Number(reply[3])), Set: moment.Millis(layout.Number(reply[4])), Fleet: layout.Number(reply[5]) == 1,
	}, nil
}

// Confirm notes that an alarm is set; see [store.Bookings].
func (s *Store) Confirm(ctx context.Context, b alarm.Booking) error {
	_, err := s.book(ctx, b, "")
	return err
}

// book runs book.lua. A call whose answer was lost may be sent again: the tag shows that it is the same.
func (s *Store) book(ctx context.Context, b alarm.Booking, span any) ([]any, error) {
	replies, err := s.db.Run(ctx, verbBook, []call.Call{{Script: &s.db.Scripts.Book, Args: []any{
		int64(b.At), b.Tag, span, alarm.Most, alarm.FleetFor.Milliseconds(), alarm.GatherFor.Milliseconds(),
		alarm.SureAfter.Milliseconds(),
	}}})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}
