package beside

// Runs of the last days.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// of is what ran of a kind.
func of(kind string, runs, failures int64, lags ...time.Duration) store.KindWindow {
	k := store.KindWindow{Kind: kind, Runs: runs, Failures: failures}
	for _, lag := range lags {
		k.Lags[store.LagStep(lag)]++
	}
	return k
}

// Tallies of processes add up, each once, in slots that are forgotten after a day. It is optional for a
// store; those that have it say so to the compiler.
func testWindow(_ *testing.T, b *bench) {
	b.with(given.Options{})
	st, ok := b.store.(store.Recent)
	if !ok {
		return
	}
	tally := func(process string, seq int64, kinds ...store.KindWindow) {
		require.NoError(b, st.Tally(b.Context(), store.Tally{Process: process, Seq: seq, Kinds: kinds}))
	}
	window := func(slots int) []store.KindWindow {
		kinds, now, err := st.Window(b.Context(), slots)
		require.NoError(b, err)
		assert.Equal(b, b.clock.Now().UnixMilli(), int64(now))
		return kinds
	}
	b.clock.Advance(store.SlotTime - time.Duration(b.clock.Now().UnixMilli()%store.SlotTime.Milliseconds())*time.Millisecond)
	assert.Empty(b, window(1))
	tally("p", 1, of("a\x00: @", 2, 1, 0, 3*time.Millisecond), of("r", 1, 0, time.Hour))
	tally("p", 1, of("r", 1, 0, time.Hour))
	tally("q", 1, of("r", 1, 1, time.Minute))
	tally("p", 2, of("r", 1, 0, 48*time.Hour))
	want := []store.KindWindow{of("a\x00: @", 2, 1, 0, 3*time.Millisecond), of("r", 3, 1, time.Hour, time.Minute, 48*time.Hour)}
	assert.Equal(b, want, window(1))
	b.clock.Advance(store.SlotTime)
	assert.Empty(b, window(1))
	assert.Equal(b, want, window(2))
	slots, now, err := st.Slots(b.Context(), store.SlotTime, 3)
	require.NoError(b, err)
	at := func(back int64) moment.Millis {
		return moment.Millis((store.SlotOf(now, store.SlotTime) - back) * store.SlotTime.Milliseconds())
	}
	assert.Equal(b, []store.Slot{{Since: at(2), Kinds: []store.KindWindow{}}, {Since: at(1), Kinds: want}, {Since: at(0), Kinds: []store.KindWindow{}}}, slots,
		"each by itself, oldest first")
	tally("p", 3, of("z", 1, 0))
	assert.Equal(b, []store.KindWindow{of("z", 1, 0)}, window(1))
	assert.Equal(b, append(want, of("z", 1, 0)), window(store.KeptSlots+5))
	slots, _, err = st.Slots(b.Context(), store.SlotTime, store.KeptSlots+5)
	require.NoError(b, err)
	assert.Len(b, slots, store.KeptSlots+1)
	var many []store.KindWindow
	for i := range store.MostCounters + 10 {
		many = append(many, of(fmt.Sprint("k", i), 1, 0))
	}
	tally("p", 4, many...)
	tally("p", 5, of("z", 1, 0), of("new", 1, 0))
	kinds := window(1)
	assert.Len(b, kinds, store.MostCounters-1, "beside what is known of the process")
	assert.Equal(b, of("z", 2, 0), kinds[len(kinds)-1], "known kinds are counted on")
	b.clock.Advance(time.Duration(store.KeptSlots-1) * store.SlotTime)
	assert.Contains(b, window(store.KeptSlots+1), want[1])
	b.clock.Advance(store.SlotTime)
	tally("p", 6, of("z", 1, 0))
	assert.NotContains(b, window(store.KeptSlots+1), want[1])
	b.clock.Advance(store.SlotTime)
	assert.Equal(b, []store.KindWindow{of("z", 1, 0)}, window(store.KeptSlots+1))
}

// What was measured is that of the last process that did so; counters are kept for an hour each, too, for some days.
func testHours(_ *testing.T, b *bench) {
	b.with(given.Options{})
	st, ok := b.store.(store.Recent)
	if !ok {
		return
	}
	tally := func(process string, seq int64, levels store.Levels, kinds ...store.KindWindow) {
		require.NoError(b, st.Tally(b.Context(), store.Tally{Process: process, Seq: seq, Kinds: kinds, Levels: levels, Recovered: map[string]int64{"gone": 2}}))
	}
	slots := func(each time.Duration, n int) []store.Slot {
		all, now, err := st.Slots(b.Context(), each, n)
		require.NoError(b, err)
		assert.Equal(b, b.clock.Now().UnixMilli(), int64(now))
		for i, slot := range all {
			assert.Equal(b, (store.SlotOf(now, each)-int64(len(all)-1-i))*each.Milliseconds(), int64(slot.Since), i)
			all[i].Since = 0
		}
		return all
	}
	b.clock.Advance(store.LongSlot - time.Duration(b.clock.Now().UnixMilli()%store.LongSlot.Milliseconds())*time.Millisecond)
	tally("p", 1, store.Levels{Depth: map[string]int64{"a": 5, "empty": 0}, Used: map[string]int64{"runs a day of w": 400}}, of("a", 2, 1, time.Minute))
	tally("q", 1, store.Levels{Depth: map[string]int64{"a": 3}, Used: map[string]int64{"usd an hour": 1200}}, of("a", 1, 0, time.Hour))
	first := store.Slot{Kinds: []store.KindWindow{of("a", 3, 1, time.Minute, time.Hour)}, Recovered: map[string]int64{"gone": 4}, Levels: store.Levels{
		Depth: map[string]int64{"a": 3, "empty": 0}, Used: map[string]int64{"runs a day of w": 400, "usd an hour": 1200},
	}}
	assert.Equal(b, []store.Slot{first}, slots(store.SlotTime, 1))
	assert.Equal(b, []store.Slot{first}, slots(store.LongSlot, 1))
	b.clock.Advance(store.SlotTime)
	tally("p", 2, store.Levels{Depth: map[string]int64{"a": 0}}, of("b", 1, 0))
	tally("p", 2, store.Levels{Depth: map[string]int64{"a": 9}}, of("b", 1, 0))
	next := store.Slot{Kinds: []store.KindWindow{of("b", 1, 0)}, Recovered: map[string]int64{"gone": 2}, Levels: store.Levels{Depth: map[string]int64{"a": 0}}}
	assert.Equal(b, []store.Slot{first, next}, slots(store.SlotTime, 2))
	hour := store.Slot{Kinds: []store.KindWindow{first.Kinds[0], of("b", 1, 0)}, Recovered: map[string]int64{"gone": 6}, Levels: store.Levels{
		Depth: map[string]int64{"a": 0, "empty": 0}, Used: first.Used,
	}}
	none := store.Slot{Kinds: []store.KindWindow{}}
	assert.Equal(b, []store.Slot{none, hour}, slots(store.LongSlot, 2), "an hour is the sum of its slots, and what was measured last")
	b.clock.Advance(time.Duration(store.Kept(store.LongSlot)-1) * store.LongSlot)
	tally("p", 3, store.Levels{})
	all := slots(store.LongSlot, store.Kept(store.LongSlot)+5)
	require.Len(b, all, store.Kept(store.LongSlot)+1)
	assert.Equal(b, hour, all[1], "it is known after days")
	b.clock.Advance(2 * store.LongSlot)
	tally("p", 4, store.Levels{})
	assert.Equal(b, none, slots(store.LongSlot, store.Kept(store.LongSlot)+1)[0])
	assert.Len(b, slots(store.SlotTime, store.KeptSlots+9), store.KeptSlots+1)
}
