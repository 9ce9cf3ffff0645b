package store

// The wake-up that is booked outside.

import "context"

// Bookings is what a store remembers of the alarms that hosts without a process of their own have booked with a clock outside: those of
// the whole store together, so that a hundred processes book one.
type Bookings interface {
	// Book books an alarm, unless one is booked that is to come and no later, and returns the next one that is booked then: it has
	// the Tag of the caller if that has to set it. Those that are booked for later stay, as the clock outside rings them
	// too. The same booking again changes nothing. One that is not to come, as At is zero or has passed, is not stored, so that it only asks.
	Book(ctx context.Context, b Booking) (Booking, error)

	// Unbook forgets an alarm.
	Unbook(ctx context.Context, b Booking) error
}

// Booking is an alarm that is booked. The zero value is none.
type Booking struct {
	At  Millis
	Tag string // of who has booked it: of at most MaxTag bytes, and another one for each booking
}

// MaxTag is the most bytes that the tag of a booking has, and MostBookings the most alarms that are remembered: the earliest.
const (
	MaxTag       = 64
	MostBookings = 100
)
