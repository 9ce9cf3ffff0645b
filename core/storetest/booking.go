package storetest

// The wake-ups that are booked outside.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// An alarm is booked if it is earlier than those that are to come, which stay.
func testBooking(_ *testing.T, b *bench) {
	b.with(Options{})
	at := func(d time.Duration, tag string) store.Booking {
		return store.Booking{At: store.MillisOf(b.clock.Now().Add(d)), Tag: tag}
	}
	books := func(wanted, booked store.Booking, why string) {
		b.Helper()
		got, err := b.store.Book(b.Context(), wanted)
		require.NoError(b, err)
		assert.Equal(b, booked, got, why)
	}
	none, hour, minute := store.Booking{}, at(time.Hour, "hour"), at(time.Minute, "minute")
	books(none, none, "nothing is booked, and asking books nothing")
	books(at(0, "now"), none, "an alarm that is not to come")
	books(hour, hour, "the first")
	books(hour, hour, "the same again")
	books(at(time.Hour, "another"), hour, "no second one for the same time")
	books(at(2*time.Hour, "later"), hour, "nor one for a later time")
	books(minute, minute, "but one for an earlier time")
	books(none, minute, "it is the next")
	b.clock.Advance(time.Minute - time.Millisecond)
	books(at(30*time.Minute, "soon"), minute, "it is still to come")
	b.clock.Advance(time.Millisecond)
	books(none, hour, "its time has come, and that for later rings too")

	require.NoError(b, b.store.Unbook(b.Context(), at(time.Second, "nobody's")))
	books(none, hour, "another one stays")
	require.NoError(b, b.store.Unbook(b.Context(), hour))
	books(none, none, "forgotten")
	again := at(time.Hour, "again")
	books(again, again, "so the next is booked")

	// Each is earlier than all before: the first ones are not remembered any more.
	for i := range store.MostBookings + 1 {
		d := 30*time.Minute - time.Duration(i)*time.Second
		books(at(d, d.String()), at(d, d.String()), "earlier")
	}
	b.clock.Advance(30 * time.Minute)
	books(none, none, "it has been dropped")
}
