package memstore

// Counters of the runs of the last day.

import (
	"context"
	"maps"

	"github.com/seed-6f6f2c11/duly/core/store"
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
	number := store.SlotOf(s.now())
	maps.DeleteFunc(s.slots, func(old int64, _ map[string]int64) bool { return old < number-int64(store.KeptSlots) })
	slot := s.slots[number]
	if slot == nil {
		slot = map[string]int64{}
		s.slots[number] = slot
	}
	// The number of its last tally is among the counters, as in Redis.
	// guard: tally
	if last, known := slot["@"+t.Process]; known && last >= t.Seq {
		return nil
	}
	slot["@"+t.Process] = t.Seq
	for _, c := range t.Counters() {
		if _, known := slot[c.Name]; known || len(slot) < store.MostCounters {
			slot[c.Name] += c.N
		}
	}
	return nil
}

// Window returns the counters of the last slots; see [store.Recent].
func (s *Store) Window(ctx context.Context, slots int) ([]store.KindWindow, store.Millis, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var all store.WindowTable
	for back := range int64(min(slots, store.KeptSlots+1)) {
		for name, n := range s.slots[store.SlotOf(now)-back] {
			all.Add(name, n)
		}
	}
	return all.Sorted(), now, nil
}

// Slots returns the counters of each of the last slots; see [store.Recent].
func (s *Store) Slots(ctx context.Context, slots int) ([]store.Slot, store.Millis, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, &store.Error{Verb: "stats", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	out := make([]store.Slot, min(slots, store.KeptSlots+1))
	for i := range out {
		number := store.SlotOf(now) - int64(len(out)-1-i)
		var one store.WindowTable
		for name, n := range s.slots[number] {
			one.Add(name, n)
		}
		out[i] = store.Slot{Since: store.Millis(number * store.SlotTime.Milliseconds()), Kinds: one.Sorted(), Recovered: one.Recovered}
	}
	return out, now, nil
}
