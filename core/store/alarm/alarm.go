// Package alarm is what a store remembers of the alarms that external clocks ring for hosts without a process of their own.
package alarm

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Booking is an alarm that is wanted.
type Booking struct {
	At  moment.Millis
	Tag string // of the process: of at most 64 bytes
	// For is how long the caller has to set it, and no other process does. A process without a clock has none: its alarms
	// are for others, and are owed at all only if Fleet.
	For time.Duration
}

// Booked is the state after a call of Book.
type Booked struct {
	Now  moment.Millis
	Next moment.Millis // the first alarm to come that a clock has confirmed; zero for none
	// By is the confirmed alarm that serves the request; zero for none. One that is to come within SureAfter serves nothing later than itself: it
	// may have rung already.
	By   moment.Millis
	Owed moment.Millis // the earliest time of those that are owed; zero for none
	// Set is the alarm that the caller has to set and confirm, within the time that it has asked for; zero for nothing. It may have passed. It may be
	// sooner than requested, if an alarm was confirmed just now: the call that comes books for all that was made due by then.
	Set moment.Millis
	// Fleet says that the hosts of the store are called by alarms: one was booked within FleetFor.
	Fleet bool
}

const (
	// Most is how many alarms are remembered, of those that are confirmed and of those that are owed: the earliest.
	Most = 100
	// FleetFor is how long after the last booking a store still counts as one whose hosts are called by alarms.
	FleetFor = 30 * 24 * time.Hour
	// SureAfter is how early an alarm may ring that is right: it is given in whole seconds, of another clock.
	SureAfter = time.Second
	// GatherFor is how long after an alarm was confirmed an earlier one makes for one call that soon, in place of an alarm for each
	// of many submits that are due ever earlier.
	GatherFor = 5 * time.Second
)
