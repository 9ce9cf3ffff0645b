package beside

// Runs of the last days.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// of is what ran of a kind.
func of(kind string, runs, failures int64, lags ...time.Duration) window.Kind {
	k := window.Kind{Kind: kind, Runs: runs, Failures: failures}
	for _, lag := range lags {
		k.Lags[window.LagStep(lag)]++
	}
	return k
}

// Tallies of processes add up, each once, in slots that are forgotten after a day. It is optional for a
// store; those that have it say so to the compiler.
func testWindow(_ *testing.T, b *bench) {
	b.with(given.Options{})
	st, ok := b.store.(window.Recent)
	if !ok {
		return
	}
	tally := func(process string, seq int64, kinds ...window.Kind) {
		require.NoError(b, st.Tally(b.Context(), window.Tally{Process: process, Seq: seq, Kinds: kinds}))
	}
	last := func(slots int) []window.Kind {
		kinds, now, err := st.Window(b.Context(), slots)
		require.NoError(b, err)
		assert.Equal(b, b.clock.Now().UnixMilli(), int64(now))
		return kinds
	}
	b.clock.Advance(window.SlotTime - time.Duration(b.clock.Now().UnixMilli()%window.SlotTime.Milliseconds())*time.Millisecond)
	assert.Empty(b, last(1))
	tally("p", 1, of("a\x00: @", 2, 1, 0, 3*time.Millisecond), of("r", 1, 0, time.Hour))
	tally("p", 1, of("r", 1, 0, time.Hour))
	tally("q", 1, of("r", 1, 1, time.Minute))
	tally("p", 2, of("r", 1, 0, 48*time.Hour))
	want := []window.Kind{of("a\x00: @", 2, 1, 0, 3*time.Millisecond), of("r", 3, 1, time.Hour, time.Minute, 48*time.Hour)}
	assert.Equal(b, want, last(1))
	b.clock.Advance(window.SlotTime)
	assert.Empty(b, last(1))
	assert.Equal(b, want, last(2))
	slots, now, err := st.Slots(b.Context(), window.SlotTime, 3)
	require.NoError(b, err)
	at := func(back int64) moment.Millis {
		return moment.Millis((window.SlotOf(now, window.SlotTime) - back) * window.SlotTime.Milliseconds())
	}
	assert.Equal(b, []window.Slot{{Since: at(2), Kinds: []window.Kind{}}, {Since: at(1), Kinds: want}, {Since: at(0), Kinds: []window.Kind{}}}, slots,
		"each by itself, oldest first")
	tally("p", 3, of("z", 1, 0))
	assert.Equal(b, []window.Kind{of("z", 1, 0)}, last(1))
	assert.Equal(b, append(want, of("z", 1, 0)), last(window.KeptSlots+5))
	slots, _, err = st.Slots(b.Context(), window.SlotTime, window.KeptSlots+5)
	require.NoError(b, err)
	assert.Len(b, slots, window.KeptSlots+1)
	var many []window.Kind
	for i := range window.MostCounters + 10 {
		many = append(many, of(fmt.Sprint("k", i), 1, 0))
	}
	tally("p", 4, many...)
	tally("p", 5, of("z", 1, 0), of("new", 1, 0))
	kinds := last(1)
	assert.Len(b, kinds, window.MostCounters-1, "beside what is known of the process")
	assert.Equal(b, of("z", 2, 0), kinds[len(kinds)-1], "known kinds are counted on")
	b.clock.Advance(time.Duration(window.KeptSlots-1) * window.SlotTime)
	assert.Contains(b, last(window.KeptSlots+1), want[1])
	b.clock.Advance(window.SlotTime)
	tally("p", 6, of("z", 1, 0))
	assert.NotContains(b, last(window.KeptSlots+1), want[1])
	b.clock.Advance(window.SlotTime)
	assert.Equal(b, []window.Kind{of("z", 1, 0)}, last(window.KeptSlots+1))
}

// What was measured is that of the last process that did so; counters are kept for an hour each, too, for some days.
func testHours(_ *testing.T, b *bench) {
	b.with(given.Options{})
	st, ok := b.store.(window.Recent)
	if !ok {
		return
	}
	tally := func(process string, seq int64, levels window.Levels, kinds ...window.Kind) {
		require.NoError(b, st.Tally(b.Context(), window.Tally{Process: process, Seq: seq, Kinds: kinds, Levels: levels, Recovered: map[string]int64{"gone": 2}}))
	}
	slots := func(each time.Duration, n int) []window.Slot {
		all, now, err := st.Slots(b.Context(), each, n)
		require.NoError(b, err)
		assert.Equal(b, b.clock.Now().UnixMilli(), int64(now))
		for i, slot := range all {
			assert.Equal(b, (window.SlotOf(now, each)-int64(len(all)-1-i))*each.Milliseconds(), int64(slot.Since), i)
			all[i].Since = 0
		}
		return all
	}
	b.clock.Advance(window.LongSlot - time.Duration(b.clock.Now().UnixMilli()%window.LongSlot.Milliseconds())*time.Millisecond)
	tally("p", 1, window.Levels{Depth: map[string]int64{"a": 5, "empty": 0}, Used: map[string]int64{"runs a day of w": 400}}, of("a", 2, 1, time.Minute))
	tally("q", 1, window.Levels{Depth: map[string]int64{"a": 3}, Used: map[string]int64{"usd an hour": 1200}}, of("a", 1, 0, time.Hour))
	first := window.Slot{Kinds: []window.Kind{of("a", 3, 1, time.Minute, time.Hour)}, Recovered: map[string]int64{"gone": 4}, Levels: window.Levels{
		Depth: map[string]int64{"a": 3, "empty": 0}, Used: map[string]int64{"runs a day of w": 400, "usd an hour": 1200},
	}}
	assert.Equal(b, []window.Slot{first}, slots(window.SlotTime, 1))
	assert.Equal(b, []window.Slot{first}, slots(window.LongSlot, 1))
	b.clock.Advance(window.SlotTime)
	tally("p", 2, window.Levels{Depth: map[string]int64{"a": 0}}, of("b", 1, 0))
	tally("p", 2, window.Levels{Depth: map[string]int64{"a": 9}}, of("b", 1, 0))
	next := window.Slot{Kinds: []window.Kind{of("b", 1, 0)}, Recovered: map[string]int64{"gone": 2}, Levels: window.Levels{Depth: map[string]int64{"a": 0}}}
	assert.Equal(b, []window.Slot{first, next}, slots(window.SlotTime, 2))
	hour := window.Slot{Kinds: []window.Kind{first.Kinds[0], of("b", 1, 0)}, Recovered: map[string]int64{"gone": 6}, Levels: window.Levels{
		Depth: map[string]int64{"a": 0, "empty": 0}, Used: first.Used,
	}}
	none := window.Slot{Kinds: []window.Kind{}}
	assert.Equal(b, []window.Slot{none, hour}, slots(window.LongSlot, 2), "an hour is the sum of its slots, and what was measured last")
	b.clock.Advance(time.Duration(window.Kept(window.LongSlot)-1) * window.LongSlot)
	tally("p", 3, window.Levels{})
	all := slots(window.LongSlot, window.Kept(window.LongSlot)+5)
	require.Len(b, all, window.Kept(window.LongSlot)+1)
	assert.Equal(b, hour, all[1], "it is known after days")
	b.clock.Advance(2 * window.LongSlot)
	tally("p", 4, window.Levels{})
	assert.Equal(b, none, slots(window.LongSlot, window.Kept(window.LongSlot)+1)[0])
	assert.Len(b, slots(window.SlotTime, window.KeptSlots+9), window.KeptSlots+1)
}
