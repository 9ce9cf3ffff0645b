package booking

// How an alarm is booked: it is owed from when the store records it until the clock has confirmed it.

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Clock is what core.Alarm says.
type Clock interface {
	Set(ctx context.Context, at time.Time) error
}

// Booker books the alarms of a process. Its exported fields are set before it is used.
type Booker struct {
	State

	Base  *base.Base
	Alarm Clock // nil if this process has none
}

// Book books an alarm for something that is due, and waits for it so long at most; zero is nothing.
func (b *Booker) Book(ctx context.Context, due moment.Millis, patience time.Duration) error {
	if b.Alarm == nil || due == 0 {
		return nil
	}
	within, cancel := contextOf(ctx, patience)
	defer cancel()
	// A process that has not yet had an answer from the store may be wrong about the time by any amount.
	now, err := b.Base.AskedNow(within)
	if err != nil {
		return &model.AlarmError{At: due.Time(), Err: err}
	}
	at := At(due, now)
	if b.Covers(at, now) {
		return nil
	}
	if err = b.Begin(within, at); err == nil {
		defer b.End()
		for done := b.Covers(at, now); !done && err == nil; {
			if done, err = b.bookOnce(within, b.Take(at, b.Base.StoreNow())); !done && err == nil {
				err = b.poll(within)
			}
		}
	}
	if err != nil {
		b.Fails(at)
		return &model.AlarmError{At: at.Time(), Err: err}
	}
	return nil
}

// bookOnce records that an alarm is owed, sets it if the store assigns it to this process, and reports whether one is set then. Until the
// clock has confirmed an alarm, it stays owed.
func (b *Booker) bookOnce(ctx context.Context, at moment.Millis) (done bool, err error) {
	mine := alarm.Booking{At: at, Tag: b.Base.Tag, For: PullWaits + ConfirmIn}
	booked, err := b.Base.Store.Book(ctx, mine)
	if err != nil {
		return false, err
	}
	b.Base.Observe(booked.Now)
	// guard: alarm-believed
	b.Confirmed(booked.Now, booked.By)
	if booked.Set != 0 {
		mine.At = At(booked.Set, booked.Now)
		if b.Guarded.Load() != int64(mine.At) {
			err = b.ring(ctx, mine.At)
		}
		if err != nil {
			return false, err
		}
		b.Confirmed(booked.Now, mine.At)
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConfirmIn)
		defer cancel()
		if err := b.Base.Store.Confirm(own, mine); err != nil { // it rings all the same, and another time too
			b.Base.Config.Logger.WarnContext(ctx, "an alarm is set, and the store does not know it", slog.Time("at", mine.At.Time()), slog.Any("err", err))
		}
	}
	return booked.By != 0 || booked.Set != 0 && mine.At <= At(at, booked.Now), nil
}

// ring sets the external clock for a time of the store's clock. The external clock is assumed to agree with that of this process, from which
// the store's may differ by any amount. Rounded to whole seconds it rings early by less than one, which a pull waits for, or late by at most 100 ms.
func (b *Booker) ring(ctx context.Context, at moment.Millis) error {
	const late = 100 // ms
	now := moment.Of(b.Base.Config.Clock.Now())
	there := (at - moment.Millis(b.Base.Offset.Load()) + late) / 1000 * 1000
	return b.Alarm.Set(ctx, max(there, At(now, now)).Time())
}

// poll waits before it asks the store again about another process' alarm.
func (b *Booker) poll(ctx context.Context) error {
	over := make(chan struct{})
	stop := b.Base.Config.Clock.AfterFunc(Poll, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ErrSetElsewhere
	}
}

// contextOf is the context for booking an alarm. The caller's may be done, as a pull ends with it.
func contextOf(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, max(time.Until(end), LastPull)) //nolint:forbidigo // the deadline of a context is by the machine's clock
	}
	// guard: alarm-own-time
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// MadeDue books an alarm for what a call has made due. The call was carried out, even if the booking fails.
func (b *Booker) MadeDue(ctx context.Context, due moment.Millis) {
	if due == 0 || b.Defers(due) {
		return
	}
	err := b.recordOwed(ctx, due)
	if b.Alarm != nil {
		err = b.Book(ctx, due, WriterWaits)
	}
	if err != nil {
		b.Base.Config.Logger.ErrorContext(ctx, "could not book a wake-up: what has become due waits for the next call", slog.Any("err", err))
	}
}

// recordOwed records in the store what is due, for processes with a clock, if its hosts are called by alarms and this process has no clock. It returns an
// error if no alarm is booked for it.
func (b *Booker) recordOwed(ctx context.Context, due moment.Millis) error {
	if b.Alarm != nil || !b.Asks(b.Base.Config.Clock.Now()) {
		return nil
	}
	within, cancel := contextOf(ctx, WriterWaits)
	defer cancel()
	booked, err := b.Base.Store.Book(within, alarm.Booking{At: (due + 999) / 1000 * 1000, Tag: b.Base.Tag})
	if err != nil {
		return nil // whether anything has to be booked is not known
	}
	b.Heard(booked.Fleet, b.Base.Config.Clock.Now())
	b.Confirmed(booked.Now, booked.By)
	at := At(due, booked.Now)
	if !booked.Fleet || booked.By != 0 {
		return nil
	}
	b.Fails(at)
	return &model.AlarmError{At: at.Time(), Err: ErrNoClock}
}

// By reports whether this process knows of an alarm that is to come, no later than something that is due at a time of the store's clock.
func (b *Booker) By(due time.Time) bool {
	now := b.Base.StoreNow()
	return b.Covers(At(moment.Of(due), now), now)
}

// BookNext books for what is due next and for what other processes owe, as far as no alarm is booked yet. It returns when something is due next; zero for nothing.
func (b *Booker) BookNext(ctx context.Context) (due time.Time, err error) {
	if b.Alarm == nil {
		return due, nil
	}
	due, err = b.Base.NextDue(ctx)
	if err != nil {
		return due, &model.AlarmError{Err: err}
	}
	if due.IsZero() || b.Defers(moment.Of(due)) {
		return due, nil
	}
	return due, b.Book(ctx, moment.Of(due), WriterWaits)
}

// Lacking reports whether hosts are called by alarms and none is booked for something that is due. If that is not known it reports false.
func (b *Booker) Lacking(ctx context.Context, due moment.Millis) bool {
	booked, err := b.Base.Store.Book(ctx, alarm.Booking{})
	return err == nil && booked.Fleet && (booked.Next == 0 || booked.Next > At(due, booked.Now))
}
