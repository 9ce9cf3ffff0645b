package memstore

// Counters of the runs of the last days.

import (
	"context"
	"maps"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// window.Recent is optional; this line has the compiler check it.
var _ window.Recent = (*Store)(nil)

// Tally adds the counts of a process; see [window.Recent].
func (s *Store) Tally(ctx context.Context, t window.Tally) error {
	if err := ctx.Err(); err != nil {
		return &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, long := currentSlot(s, window.SlotTime), currentSlot(s, window.LongSlot)
	// The number of its last tally is among the counters, as in Redis.
	// guard: tally
	if last, known := slot["@"+t.Process]; known && last >= t.Seq {
		return nil
	}
	slot["@"+t.Process] = t.Seq
	for _, c := range t.Counters() {
		slot.put(c)
		long.put(c)
	}
	return nil
}

// slot has the counters of a slot.
type slot map[string]int64

// put adds a counter to a slot, or replaces one that was measured.
func (m slot) put(c window.Counter) {
	if _, known := m[c.Name]; !known && len(m) >= window.MostCounters {
		return
	}
	if c.Level() {
		m[c.Name] = c.N
		return
	}
	m[c.Name] += c.N
}

// slotsOf are the slots of a length.
func slotsOf(s *Store, each time.Duration) map[int64]slot {
	if each != window.LongSlot {
		return s.slots
	}
	if s.hours == nil { // an older version has written the state
		s.hours = map[int64]slot{}
	}
	return s.hours
}

// currentSlot is the slot of now, of a length; those that are too old are dropped.
func currentSlot(s *Store, each time.Duration) slot {
	all, number := slotsOf(s, each), window.SlotOf(s.now(), each)
	maps.DeleteFunc(all, func(old int64, _ slot) bool { return old < number-int64(window.Kept(each)) })
	if all[number] == nil {
		all[number] = slot{}
	}
	return all[number]
}

// Window returns the counters of the last slots; see [window.Recent].
func (s *Store) Window(ctx context.Context, slots int) ([]window.Kind, moment.Millis, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var all window.Table
	for back := range int64(min(slots, window.KeptSlots+1)) {
		for name, n := range s.slots[window.SlotOf(now, window.SlotTime)-back] {
			all.Add(name, n)
		}
	}
	return all.Sorted(), now, nil
}

// Slots returns the counters of each of the last slots; see [window.Recent].
func (s *Store) Slots(ctx context.Context, each time.Duration, slots int) ([]window.Slot, moment.Millis, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]window.Slot, min(slots, window.Kept(each)+1))
	for i := range out {
		number := window.SlotOf(now, each) - int64(len(out)-1-i)
		var one window.Table
		for name, n := range slotsOf(s, each)[number] {
			one.Add(name, n)
		}
		out[i] = one.Slot(moment.Millis(number * each.Milliseconds()))
	}
	return out, now, nil
}
