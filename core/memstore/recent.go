package memstore

// Counters of the runs of the last days.

import (
	"context"
	"maps"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// store.Recent is optional; this line has the compiler check it.
var _ store.Recent = (*Store)(nil)

// Tally adds the counts of a process; see [store.Recent].
func (s *Store) Tally(ctx context.Context, t store.Tally) error {
	if err := ctx.Err(); err != nil {
		return &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, long := currentSlot(s, store.SlotTime), currentSlot(s, store.LongSlot)
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
func (m slot) put(c store.Counter) {
	if _, known := m[c.Name]; !known && len(m) >= store.MostCounters {
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
	if each != store.LongSlot {
		return s.slots
	}
	if s.hours == nil { // an older version has written the state
		s.hours = map[int64]slot{}
	}
	return s.hours
}

// currentSlot is the slot of now, of a length; those that are too old are dropped.
func currentSlot(s *Store, each time.Duration) slot {
	all, number := slotsOf(s, each), store.SlotOf(s.now(), each)
	maps.DeleteFunc(all, func(old int64, _ slot) bool { return old < number-int64(store.Kept(each)) })
	if all[number] == nil {
		all[number] = slot{}
	}
	return all[number]
}

// Window returns the counters of the last slots; see [store.Recent].
func (s *Store) Window(ctx context.Context, slots int) ([]store.KindWindow, moment.Millis, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var all store.WindowTable
	for back := range int64(min(slots, store.KeptSlots+1)) {
		for name, n := range s.slots[store.SlotOf(now, store.SlotTime)-back] {
			all.Add(name, n)
		}
	}
	return all.Sorted(), now, nil
}

// Slots returns the counters of each of the last slots; see [store.Recent].
func (s *Store) Slots(ctx context.Context, each time.Duration, slots int) ([]store.Slot, moment.Millis, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]store.Slot, min(slots, store.Kept(each)+1))
	for i := range out {
		number := store.SlotOf(now, each) - int64(len(out)-1-i)
		var one store.WindowTable
		for name, n := range slotsOf(s, each)[number] {
			one.Add(name, n)
		}
		out[i] = one.Slot(moment.Millis(number * each.Milliseconds()))
	}
	return out, now, nil
}
