package beside

// The wake-ups that are booked outside.

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// booking is a test of what is booked, at its beginning.
type booking struct {
	*bench

	begun time.Time
}

func testsBooking(b *bench) *booking {
	b.with(given.Options{})
	// A whole second, as alarms are.
	b.clock.Advance(time.Second - time.Duration(b.clock.Now().UnixMilli()%1000)*time.Millisecond)
	return &booking{bench: b, begun: b.clock.Now()}
}

// at is a time after the begin.
func (b *booking) at(d time.Duration) moment.Millis { return moment.Of(b.begun.Add(d)) }

// books asks for an alarm, with a second to set it.
func (b *booking) books(tag string, d time.Duration) alarm.Booked {
	b.Helper()
	wanted := alarm.Booking{Tag: tag, For: time.Second}
	if d != 0 {
		wanted.At = b.at(d)
	}
	got, err := b.store.Book(b.Context(), wanted)
	require.NoError(b, err)
	return got
}

// sets is the time of what a caller has to set, after the begin; zero for nothing.
func (b *booking) sets(tag string, d time.Duration) time.Duration {
	b.Helper()
	got := b.books(tag, d)
	if got.Set == 0 {
		return 0
	}
	return got.Set.Time().Sub(b.begun)
}

// confirm says that the clock has it.
func (b *booking) confirm(tag string, d time.Duration) {
	b.Helper()
	require.NoError(b, b.store.Confirm(b.Context(), alarm.Booking{At: b.at(d), Tag: tag}))
}

// next is the first that is confirmed, after the begin; zero for none. It only asks.
func (b *booking) next() time.Duration {
	b.Helper()
	got, err := b.store.Book(b.Context(), alarm.Booking{})
	require.NoError(b, err)
	if got.Next == 0 {
		return 0
	}
	return got.Next.Time().Sub(b.begun)
}

// An alarm is owed until the clock has confirmed it, and no other process sets it while one does.
func testBooking(_ *testing.T, bb *bench) {
	b := testsBooking(bb)
	const minute, hour = time.Minute, time.Hour
	assert.Equal(b, hour, b.sets("p", hour), "the first")
	assert.Equal(b, hour, b.sets("p", hour), "the same again")
	assert.Zero(b, b.next(), "what is not confirmed is not known")
	assert.Zero(b, b.sets("q", hour), "another process is setting it")
	assert.Zero(b, b.sets("q", 2*hour))
	assert.Equal(b, minute, b.sets("q", minute), "an earlier one is for whoever wants it")
	b.confirm("q", minute)
	assert.Equal(b, minute, b.next())
	assert.Zero(b, b.sets("q", 2*minute), "there is an earlier one")
	b.confirm("p", hour)
	assert.Zero(b, b.books("p", hour).Owed)
	b.clock.Advance(minute - time.Millisecond)
	assert.Equal(b, minute, b.next(), "it is still to come")
	b.clock.Advance(time.Millisecond)
	assert.Equal(b, hour, b.next(), "its time has come, and that for later rings too")
	assert.Zero(b, b.sets("r", 2*hour))
	b.clock.Advance(hour - minute - alarm.SureAfter)
	assert.Zero(b, b.sets("r", hour), "it is booked")
	assert.Equal(b, 2*hour, b.sets("r", 2*hour), "it may have rung")
	b.confirm("r", 2*hour)
	b.clock.Advance(2 * hour)
	assert.Zero(b, b.next())
}

// What a process has not confirmed in its time is for whoever comes next, also once it has passed: all that has is one call.
func testOwed(_ *testing.T, bb *bench) {
	b := testsBooking(bb)
	const minute, hour = time.Minute, time.Hour
	assert.Equal(b, hour, b.sets("p", hour))
	assert.Equal(b, minute, b.sets("q", minute))
	b.clock.Advance(time.Second)
	assert.Equal(b, minute, b.sets("r", 2*hour), "the first that is owed pays for what is later")
	assert.Equal(b, hour, b.sets("s", 2*hour), "r sets it, and there is more that is owed")
	b.confirm("r", minute)
	assert.Equal(b, hour, b.sets("s", 2*hour), "nothing is wanted, and p has paid nothing")
	assert.Equal(b, b.at(hour), b.books("s", 0).Owed)
	b.clock.Advance(2 * hour)
	got := b.books("t", 0)
	assert.Equal(b, b.at(hour), got.Set, "it is owed although it has passed")
	later := 3 * hour
	b.confirm("t", later)
	assert.Equal(b, later, b.next())
	assert.Zero(b, b.books("u", 0).Owed, "it is paid")
	b.clock.Advance(alarm.GatherFor)
	assert.Equal(b, later-minute, b.sets("v", later-minute))
	b.clock.Advance(time.Minute)
	for i := range 3 { // each dies
		assert.Equal(b, later-minute-time.Duration(i+1)*time.Second, b.sets("v"+strconv.Itoa(i), later-minute-time.Duration(i+1)*time.Second))
	}
	b.clock.Advance(hour)
	b.books("w", 0)
	b.confirm("w", 4*hour)
	assert.Zero(b, b.books("x", 0).Owed, "one call comes for all that has passed")
}

// A process without a clock owes what others are to set, in a fleet that is called by alarms.
func testOwedByWhoeverHasNoClock(_ *testing.T, bb *bench) {
	b := testsBooking(bb)
	owes := func(d time.Duration) alarm.Booked {
		got, err := b.store.Book(b.Context(), alarm.Booking{At: b.at(d), Tag: "none"})
		require.NoError(b, err)
		return got
	}
	assert.Equal(b, alarm.Booked{Now: b.at(0)}, owes(time.Minute), "nobody has a clock")
	assert.Equal(b, time.Hour, b.sets("p", time.Hour))
	b.confirm("p", time.Hour)
	assert.Equal(b, alarm.Booked{Now: b.at(0), Next: b.at(time.Hour), Owed: b.at(time.Minute), Fleet: true}, owes(time.Minute))
	assert.Equal(b, alarm.Booked{Now: b.at(0), Next: b.at(time.Hour), By: b.at(time.Hour), Owed: b.at(time.Minute), Fleet: true}, owes(2*time.Hour), "there is one")
	assert.Equal(b, b.at(time.Hour), owes(time.Hour).By)
	assert.Equal(b, time.Minute, b.sets("p", 0), "whoever comes next sets it")
	b.clock.Advance(alarm.FleetFor)
	assert.False(b, owes(2*alarm.FleetFor).Fleet)
}

// Alarms that are wanted ever earlier make one call that gathers them.
func testGathered(_ *testing.T, bb *bench) {
	b := testsBooking(bb)
	assert.Equal(b, time.Hour, b.sets("p", time.Hour))
	b.confirm("p", time.Hour)
	b.clock.Advance(alarm.GatherFor - time.Millisecond)
	assert.Equal(b, 2*alarm.GatherFor, b.sets("p", 30*time.Minute))
	b.confirm("p", 2*alarm.GatherFor)
	for i := range 58 {
		assert.Zero(b, b.sets("p", time.Duration(58-i)*time.Second+2*alarm.GatherFor))
	}
	assert.Equal(b, 8*time.Second, b.sets("p", 8*time.Second), "what is due sooner is called for")
	b.confirm("p", 8*time.Second)
	b.clock.Advance(time.Hour + alarm.GatherFor)
	// The earliest are remembered.
	for i := range alarm.Most + 1 {
		at := 9*time.Hour - time.Duration(i)*6*time.Second
		assert.Equal(b, at, b.sets("p", at))
		b.confirm("p", at)
		b.clock.Advance(alarm.GatherFor)
	}
	b.clock.Advance(9*time.Hour - 6*time.Second - b.clock.Now().Sub(b.begun))
	assert.Zero(b, b.next())
}
