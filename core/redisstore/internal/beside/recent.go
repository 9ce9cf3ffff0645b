package beside

// Counters of the runs of the last days: a hash for each slot, in the first partition, which every layout has.

import (
	"context"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// Tally adds the counts of a process; see [window.Recent].
func (s *Store) Tally(ctx context.Context, t window.Tally) error {
	slot, long := window.SlotTime.Milliseconds(), window.LongSlot.Milliseconds()
	args := []any{t.Process, t.Seq, slot, slot * int64(window.KeptSlots+1), long, long * int64(window.Kept(window.LongSlot)+1), window.MostCounters}
	for _, c := range t.Counters() {
		args = append(args, c.Name, c.N)
	}
	_, err := s.db.Run(ctx, "stats", []call.Call{{Script: &s.db.Scripts.Tally, Args: args}})
	return err
}

// Window returns the counters of the last slots; see [window.Recent].
func (s *Store) Window(ctx context.Context, slots int) ([]window.Kind, moment.Millis, error) {
	replies, now, err := s.recent(ctx, window.SlotTime, slots)
	if err != nil {
		return nil, 0, err
	}
	var all window.Table
	for _, reply := range replies {
		addSlot(&all, reply)
	}
	return all.Sorted(), now, nil
}

// Slots returns the counters of each of the last slots; see [window.Recent].
func (s *Store) Slots(ctx context.Context, each time.Duration, slots int) ([]window.Slot, moment.Millis, error) {
	replies, now, err := s.recent(ctx, each, slots)
	if err != nil {
		return nil, 0, err
	}
	out := make([]window.Slot, len(replies))
	first := window.SlotOf(now, each) - int64(len(replies)-1)
	for i, reply := range replies {
		var one window.Table
		addSlot(&one, reply)
		out[i] = one.Slot(moment.Millis((first + int64(i)) * each.Milliseconds()))
	}
	return out, now, nil
}

// recent are the replies of the last slots, oldest first, and the time of the store. It asks for the slot of now first, and then for all others
// in one round trip.
func (s *Store) recent(ctx context.Context, each time.Duration, slots int) ([][]any, moment.Millis, error) {
	prefix := ""
	if each == window.LongSlot {
		prefix = "h"
	}
	first, err := s.db.Run(ctx, "stats", []call.Call{{Script: &s.db.Scripts.Recent, Args: []any{"", each.Milliseconds(), prefix}}})
	if err != nil {
		return nil, 0, err
	}
	now, err := layout.Millis(first[0][0])
	if err != nil {
		return nil, 0, call.Wrap("stats", err)
	}
	var calls []call.Call
	for back := int64(min(slots, window.Kept(each)+1)) - 1; back > 0; back-- {
		calls = append(calls, call.Call{Script: &s.db.Scripts.Recent, Args: []any{strconv.FormatInt(window.SlotOf(now, each)-back, 10), each.Milliseconds(), prefix}})
	}
	replies, err := s.db.Run(ctx, "stats", calls)
	return append(replies, first[0]), now, err
}

// addSlot adds the counters of a reply to a table.
func addSlot(to *window.Table, reply []any) {
	for i := 1; i+1 < len(reply); i += 2 {
		to.Add(layout.Text(reply[i]), layout.Int(layout.Text(reply[i+1])))
	}
}
