package memstore

// The wake-ups that are booked outside.

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// bookings are the alarms of the store.
type bookings struct {
	confirmed []moment.Millis
	owed      []owed        // by their times
	last      moment.Millis // when one was booked
}

// owed is an alarm that no clock has confirmed.
type owed struct {
	at, until moment.Millis // until when its process may still set it
	tag       string
}

// Book owes an alarm; see [store.Bookings].
func (s *Store) Book(ctx context.Context, b alarm.Booking) (alarm.Booked, error) {
	if err := ctx.Err(); err != nil {
		return alarm.Booked{}, &store.Error{Verb: "book", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, of := s.now(), &s.booked
	of.confirmed = slices.DeleteFunc(of.confirmed, func(at moment.Millis) bool { return at <= now })
	out := alarm.Booked{Now: now, Fleet: b.For > 0 || of.last != 0 && now.Sub(of.last) < alarm.FleetFor}
	if len(of.confirmed) > 0 {
		out.Next = of.confirmed[0]
	}
	out.By = of.by(b.At, now)
	// The first that the caller may set, and whether another process is about to set one that is early enough.
	mine := func(o owed) bool { return o.tag == b.Tag || o.until <= now }
	free := slices.IndexFunc(of.owed, mine)
	theirs := slices.ContainsFunc(of.owed, func(o owed) bool { return !mine(o) && o.at <= b.At })
	// guard: alarm-booked
	wanted := b.At != 0 && out.By == 0 && !theirs
	switch until := now.Add(b.For); {
	case b.For > 0 && free >= 0 && (!wanted || of.owed[free].at <= b.At):
		o := &of.owed[free]
		o.tag, o.until = b.Tag, until
		out.Set = o.at
	case wanted && out.Fleet:
		at := of.owe(&b, out.Next, now)
		if b.For > 0 {
			out.Set = at
		}
	}
	if len(of.owed) > 0 {
		out.Owed = of.owed[0].at
	}
	return out, nil
}

// by is the alarm that serves instead of one at a time; zero if there is none.
func (of *bookings) by(wanted, now moment.Millis) moment.Millis {
	for _, at := range of.confirmed {
		if at == wanted || at < wanted && at > now.Add(alarm.SureAfter) {
			return at
		}
	}
	return 0
}

// owe adds an alarm, and returns when it is to ring: soon, if others were wanted a moment ago that would have rung later.
func (of *bookings) owe(b *alarm.Booking, next, now moment.Millis) moment.Millis {
	at := b.At
	// guard: alarm-gathers
	if soon := (now.Add(alarm.GatherFor) + 999) / 1000 * 1000; b.For > 0 && next != 0 && at > soon && now.Sub(of.last) < alarm.GatherFor {
		at = soon
	}
	of.owed = append(of.owed, owed{at: at, until: now.Add(b.For), tag: b.Tag})
	slices.SortStableFunc(of.owed, func(x, y owed) int { return cmp.Compare(x.at, y.at) })
	of.owed = of.owed[:min(len(of.owed), alarm.Most)]
	return at
}

// Confirm notes that an alarm is set; see [store.Bookings].
func (s *Store) Confirm(ctx context.Context, b alarm.Booking) error {
	if err := ctx.Err(); err != nil {
		return &store.Error{Verb: "book", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, of := s.now(), &s.booked
	of.last = now
	of.owed = slices.DeleteFunc(of.owed, func(o owed) bool { return o.at <= b.At && (o.tag == b.Tag || o.at <= now && o.until <= now) })
	if at, found := slices.BinarySearch(of.confirmed, b.At); !found && b.At > now {
		of.confirmed = slices.Insert(of.confirmed, at, b.At)
		of.confirmed = of.confirmed[:min(len(of.confirmed), alarm.Most)]
	}
	return nil
}
