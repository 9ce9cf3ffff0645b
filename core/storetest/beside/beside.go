// Package beside is the part of the contract of [store.Store] about what a store keeps beside tasks: its feed, wake-ups that are booked outside,
// messages of senders, and what runs of the last days were.
package beside

import (
	"testing"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// contract are the tests, by name. docs/guarantees.md names some of them.
var contract = []struct {
	name string
	test func(t *testing.T, b *bench)
}{
	{"events that are followed", testFeed},
	{"events that are lost", testFeedLost},
	{"events that nobody follows any more", testFeedLapse},
	{"alarms that are booked", testBooking},
	{"alarms that are owed", testOwed},
	{"alarms that are owed by a process without a clock", testOwedByWhoeverHasNoClock},
	{"alarms that are wanted ever earlier", testGathered},
	{"messages", testMessages},
	{"runs of the last day", testWindow},
	{"hours, and what was measured", testHours},
}

// Run runs all tests in parallel, each on an empty store that open makes for its clock.
func Run(t *testing.T, open func(t *testing.T, clock *given.Clock, o given.Options) store.Store) {
	t.Helper()
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := given.NewClock()
			c.test(t, &bench{T: t, clock: clock, open: func(o given.Options) store.Store { return open(t, clock, o) }})
		})
	}
}

// bench is what a test works with.
// It is the *testing.T as well, so that its methods can fail the test.
type bench struct {
	*testing.T

	clock *given.Clock
	open  func(o given.Options) store.Store
	store store.Store
}

// with opens the store. Without options it has one partition.
func (b *bench) with(o given.Options) {
	b.Helper()
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	b.store = b.open(o)
}
