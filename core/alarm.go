package core

// The alarm: one wake-up, booked with a clock outside, in place of a process that waits.

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/booking"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Alarm is an external clock that calls a host once at a requested time: a queue that delays messages, a scheduler of one-time
// calls. With one, a host that only lives while it is called needs no tick a minute: each pull books the next, and so does
// each call that makes something due earlier. The packages in adapters/alarm have some.
type Alarm interface {
	// Set has the host called at a time, which is a whole second and at most a week ahead: not before, and soon after it. The host then runs what is due, for all
	// agents that use the alarm. A time that was set stays set: no other call takes it back. The same time again may, but
	// need not, have the host called twice.
	Set(ctx context.Context, at time.Time) error
}

// book books an alarm for something that is due, and waits for it so long at most; zero is nothing.
func (s *Scheduler) book(ctx context.Context, due store.Millis, patience time.Duration) error {
	if s.config.Alarm == nil || due == 0 {
		return nil
	}
	within, cancel := alarmContext(ctx, patience)
	defer cancel()
	// A process that has not yet had an answer from the store may be wrong about the time by any amount.
	now, err := s.base.AskedNow(within)
	if err != nil {
		return &AlarmError{At: due.Time(), Err: err}
	}
	at := booking.At(due, now)
	if s.alarm.Covers(at, now) {
		return nil
	}
	if err = s.alarm.Begin(within, at); err == nil {
		defer s.alarm.End()
		for done := s.alarm.Covers(at, now); !done && err == nil; {
			if done, err = s.bookOnce(within, s.alarm.Take(at)); !done && err == nil {
				err = s.pollAlarm(within)
			}
		}
	}
	if err != nil {
		s.alarm.Fails(at)
		return &AlarmError{At: at.Time(), Err: err}
	}
	return nil
}

// bookOnce records that an alarm is owed, sets it if the store assigns it to this process, and reports whether one is set then. Until the
// clock has confirmed an alarm, it stays owed.
func (s *Scheduler) bookOnce(ctx context.Context, at store.Millis) (done bool, err error) {
	mine := store.Booking{At: at, Tag: s.nonce, For: booking.PullWaits + booking.ConfirmIn}
	booked, err := s.store.Book(ctx, mine)
	if err != nil {
		return false, err
	}
	s.base.Observe(booked.Now)
	// guard: alarm-believed
	s.alarm.Confirmed(booked.Now, booked.By)
	if booked.Set != 0 {
		mine.At = booking.At(booked.Set, booked.Now)
		if s.alarm.Guarded.Load() != int64(mine.At) {
			err = s.ring(ctx, mine.At)
		}
		if err != nil {
			return false, err
		}
		s.alarm.Confirmed(booked.Now, mine.At)
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), booking.ConfirmIn)
		defer cancel()
		if err := s.store.Confirm(own, mine); err != nil { // it rings all the same, and another time too
			s.config.Logger.WarnContext(ctx, "an alarm is set, and the store does not know it", slog.Time("at", mine.At.Time()), slog.Any("err", err))
		}
	}
	return booked.By != 0 || booked.Set != 0 && mine.At <= booking.At(at, booked.Now), nil
}

// ring sets the external clock for a time of the store's clock. The external clock is assumed to agree with that of this process, from which
// the store's may differ by any amount. Rounded to whole seconds it rings early by less than one, which a pull waits for, or late by at most 100 ms.
func (s *Scheduler) ring(ctx context.Context, at store.Millis) error {
	const late = 100 // ms
	now := store.MillisOf(s.config.Clock.Now())
	there := (at - store.Millis(s.base.Offset.Load()) + late) / 1000 * 1000
	return s.config.Alarm.Set(ctx, max(there, booking.At(now, now)).Time())
}

// EarlyBy is how long it is until a time that the clock outside was given, as the time of a message is: by the clock of this process.
func (s *Scheduler) EarlyBy(at time.Time) time.Duration { return at.Sub(s.config.Clock.Now()) }

// pollAlarm waits before it asks the store again about another process' alarm.
func (s *Scheduler) pollAlarm(ctx context.Context) error {
	over := make(chan struct{})
	stop := s.config.Clock.AfterFunc(booking.Poll, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return booking.ErrSetElsewhere
	}
}

// alarmContext is the context for booking an alarm. The caller's may be done, as a pull ends with it.
func alarmContext(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, max(time.Until(end), booking.LastPull)) //nolint:forbidigo // the deadline of a context is by the machine's clock
	}
	// guard: alarm-own-time
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// madeDue books an alarm for what a call has made due. The call was carried out, even if the booking fails.
func (s *Scheduler) madeDue(ctx context.Context, due store.Millis) {
	if due == 0 || s.alarm.Defers(due) {
		return
	}
	err := s.recordOwed(ctx, due)
	if s.config.Alarm != nil {
		err = s.book(ctx, due, booking.WriterWaits)
	}
	if err != nil {
		s.config.Logger.ErrorContext(ctx, "could not book a wake-up: what has become due waits for the next call", slog.Any("err", err))
	}
}

// recordOwed records in the store what is due, for processes with a clock, if its hosts are called by alarms and this process has no clock. It returns an
// error if no alarm is booked for it.
func (s *Scheduler) recordOwed(ctx context.Context, due store.Millis) error {
	if s.config.Alarm != nil || !s.alarm.Asks(s.config.Clock.Now()) {
		return nil
	}
	within, cancel := alarmContext(ctx, booking.WriterWaits)
	defer cancel()
	booked, err := s.store.Book(within, store.Booking{At: (due + 999) / 1000 * 1000, Tag: s.nonce})
	if err != nil {
		return nil // whether anything has to be booked is not known
	}
	s.alarm.Heard(booked.Fleet, s.config.Clock.Now())
	s.alarm.Confirmed(booked.Now, booked.By)
	at := booking.At(due, booked.Now)
	if !booked.Fleet || booked.By != 0 {
		return nil
	}
	s.alarm.Fails(at)
	return &AlarmError{At: at.Time(), Err: booking.ErrNoClock}
}

// BookAlarm books for what is due next and for what other processes owe, as far as no alarm is booked yet. A process that lives on calls it when
// a [store.Waker] reports something, when it has failed, some time after the alarm should have rung, and periodically: then nothing waits for long
// that other processes could not book, or that a clock confirmed and never rang for. It returns when something is due next, zero for nothing; its
// error is an *[AlarmError].
func (s *Scheduler) BookAlarm(ctx context.Context) (due time.Time, err error) {
	if s.config.Alarm == nil {
		return due, nil
	}
	due, err = s.base.NextDue(ctx)
	if err != nil {
		return due, &AlarmError{Err: err}
	}
	if due.IsZero() || s.alarm.Defers(store.MillisOf(due)) {
		return due, nil
	}
	return due, s.book(ctx, store.MillisOf(due), booking.WriterWaits)
}

// explainAlarm adds that hosts are called by alarms and that none is booked for a task. It adds nothing if that is not known.
func (s *Scheduler) explainAlarm(ctx context.Context, e *inspect.Explanation, t *store.Stored) {
	if !slices.ContainsFunc(e.Reasons, func(b model.Because) bool {
		return b.Code == model.BecauseNotDue || b.Code == model.BecauseRetry || b.Code == model.BecauseWaiting
	}) {
		return
	}
	booked, err := s.store.Book(ctx, store.Booking{})
	if err != nil || !booked.Fleet || booked.Next != 0 && booked.Next <= booking.At(t.Due, booked.Now) {
		return
	}
	e.Because(model.BecauseAlarm, 0, "hosts are called by alarms here, and none is booked for it: it waits for the next call, unless a daemon runs; duly run-due --all -c FILE books one")
}

// BooksAlarms reports whether the process has an alarm.
func (s *Scheduler) BooksAlarms() bool { return s.config.Alarm != nil }

// AlarmBy reports whether this process knows of an alarm that is to come, no later than something that is due at a time of the store's clock.
func (s *Scheduler) AlarmBy(due time.Time) bool {
	now := s.base.StoreNow()
	return s.alarm.Covers(booking.At(store.MillisOf(due), now), now)
}
