package core

// The alarm: one wake-up, booked with a clock outside, in place of a process that waits.

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Alarm is a clock outside that calls a host once at a time that it was told: a queue that delays messages, a scheduler of one-time
// calls. With one, a host that only lives while it is called needs no tick a minute: each pull books the next, and so does
// whatever makes something due earlier. The packages in adapters/alarm have some.
type Alarm interface {
	// Set has the host called at a time, which is a whole second and at most a week ahead: not before, and soon after it. The host then runs what is due, for all
	// agents that use the alarm. A time that was set stays set: no other call takes it back. The same time again may, but
	// need not, have the host called twice.
	Set(ctx context.Context, at time.Time) error
}

const (
	// alarmAhead is how soon an alarm may be: a clock outside that is told of a time that is over when it hears of it may refuse it.
	alarmAhead = time.Second
	// alarmFarthest is how far ahead an alarm may be, as clocks outside have bounds: QStash seven days, Cloud Tasks thirty. A call
	// that comes before something is due books the next.
	alarmFarthest = 6 * 24 * time.Hour
	// dueNow is the due time of what is due at once: an alarm is booked for no time that has passed.
	dueNow store.Millis = 1
	// writerWaits is how long a call that has made something due waits for its alarm, and pullWaits a pull: for the answer of the store, of the clock,
	// and of another process that is setting one. lastAlarm is what a pull has whose own time is over, and confirmIn what the store has to note
	// that the clock has it.
	writerWaits = 900 * time.Millisecond
	pullWaits   = 2 * time.Second
	lastAlarm   = 500 * time.Millisecond
	confirmIn   = 250 * time.Millisecond
	// alarmPoll is how often a process that waits for another one's booking asks, and fleetAsked how often one without a clock asks whether the hosts are
	// called by alarms.
	alarmPoll  = 50 * time.Millisecond
	fleetAsked = time.Minute
)

// errSetElsewhere and errNoClock say why nothing is booked.
var (
	errSetElsewhere = errors.New("another process was setting it, and has not said that the clock has it")
	errNoClock      = errors.New("this process has no clock outside: give it the alarm that the others have (alarm: of duly.yaml, Config.Alarm)")
)

// alarm is what this process knows of the alarms that are booked.
type alarm struct {
	turn chan struct{} // of the one that books: what the others want is booked with it

	guarded atomic.Int64 // when the last guard rings that a pull of this process has set

	mu     sync.Mutex
	known  store.Millis // one is confirmed for then, by whomever
	wanted store.Millis // by the earliest of those who wait for their turn
	owed   store.Millis // the earliest that this process has made due and not booked
	pulls  int          // that book an alarm when they end, for what has been made due until then too
	made   store.Millis // when the earliest of that is due
	living bool         // the process is there when something falls due: it books nothing
	fleet  bool         // the hosts of the store are called by alarms, as of asked
	asked  time.Time
}

// enter says that a pull is going to book.
func (a *alarm) enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pulls++
}

// leave says that it does so now, and returns when the earliest of what was made due meanwhile is due.
func (a *alarm) leave() store.Millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pulls--
	due := a.made
	a.made = 0
	return due
}

// defers leaves it to a pull under way to book for something that is due, if there is one.
func (a *alarm) defers(due store.Millis) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pulls > 0 {
		a.made = base.Earlier(a.made, due)
	}
	return a.pulls > 0
}

// covers reports whether an alarm is known that rings no later than a time.
func (a *alarm) covers(at, now store.Millis) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known == at || a.known < at && a.known > now.Add(store.SureAfter)
}

// begin waits for the turn to book: nobody else does until end.
func (a *alarm) begin(ctx context.Context, at store.Millis) error {
	a.mu.Lock()
	a.wanted = base.Earlier(a.wanted, at)
	a.mu.Unlock()
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *alarm) end() { <-a.turn }

// take is the earliest of a time and what those want who wait for their turn.
func (a *alarm) take(at store.Millis) store.Millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	at = base.Earlier(at, a.wanted)
	a.wanted = 0
	return at
}

// confirmed notes that the clock has an alarm; zero is none.
func (a *alarm) confirmed(now, at store.Millis) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known <= now.Add(store.SureAfter) || at != 0 && at < a.known {
		a.known = at
	}
	if a.known != 0 && a.known <= a.owed {
		a.owed = 0
	}
}

// fails notes that there is no alarm for a time.
func (a *alarm) fails(at store.Millis) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owed = base.Earlier(a.owed, at)
}

// lacks reports whether no alarm could be booked for something that this process has made due.
func (a *alarm) lacks(due store.Millis) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := (due + 999) / 1000 * 1000
	return due != 0 && a.owed != 0 && (a.known == 0 || a.known > max(at, a.owed))
}

// next is when the alarm rings that is known to be booked; zero for none.
func (a *alarm) next(now store.Millis) store.Millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known <= now {
		return 0
	}
	return a.known
}

// alarmAt is when an alarm rings for something that is due.
func alarmAt(due, now store.Millis) store.Millis {
	return (min(max(due, now.Add(alarmAhead)), now.Add(alarmFarthest)) + 999) / 1000 * 1000
}

// book books an alarm for something that is due, and waits for it so long at most; zero is nothing.
func (s *Scheduler) book(ctx context.Context, due store.Millis, patience time.Duration) error {
	if s.config.Alarm == nil || due == 0 {
		return nil
	}
	within, cancel := alarmContext(ctx, patience)
	defer cancel()
	// A process that has heard nothing of the store yet may be wrong about the time by any amount.
	now, err := s.base.AskedNow(within)
	if err != nil {
		return &AlarmError{At: due.Time(), Err: err}
	}
	at := alarmAt(due, now)
	if s.alarm.covers(at, now) {
		return nil
	}
	if err = s.alarm.begin(within, at); err == nil {
		defer s.alarm.end()
		for done := s.alarm.covers(at, now); !done && err == nil; {
			if done, err = s.bookOnce(within, s.alarm.take(at)); !done && err == nil {
				err = s.pollAlarm(within)
			}
		}
	}
	if err != nil {
		s.alarm.fails(at)
		return &AlarmError{At: at.Time(), Err: err}
	}
	return nil
}

// bookOnce owes an alarm, sets what the store says is this process' to set, and reports whether there is one then. What the clock has not confirmed is not
// known: it stays owed.
func (s *Scheduler) bookOnce(ctx context.Context, at store.Millis) (done bool, err error) {
	mine := store.Booking{At: at, Tag: s.nonce, For: pullWaits + confirmIn}
	booked, err := s.store.Book(ctx, mine)
	if err != nil {
		return false, err
	}
	s.base.Observe(booked.Now)
	s.alarm.confirmed(booked.Now, booked.By)
	if booked.Set != 0 {
		mine.At = alarmAt(booked.Set, booked.Now)
		if s.alarm.guarded.Load() != int64(mine.At) {
			err = s.ring(ctx, mine.At)
		}
		if err != nil {
			return false, err
		}
		s.alarm.confirmed(booked.Now, mine.At)
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmIn)
		defer cancel()
		if err := s.store.Confirm(own, mine); err != nil { // it rings all the same, and another time too
			s.config.Logger.WarnContext(ctx, "an alarm is set, and the store does not know it", slog.Time("at", mine.At.Time()), slog.Any("err", err))
		}
	}
	return booked.By != 0 || booked.Set != 0 && mine.At <= alarmAt(at, booked.Now), nil
}

// ring has the clock outside ring at a time of the store's clock: the one outside is taken to agree with that of this process, from which the
// store's may be as far as it likes. In whole seconds of that it rings early by less than one, which a pull waits for, rather than late.
func (s *Scheduler) ring(ctx context.Context, at store.Millis) error {
	const late = 100 // ms
	now := store.MillisOf(s.config.Clock.Now())
	there := (at - store.Millis(s.base.Offset.Load()) + late) / 1000 * 1000
	return s.config.Alarm.Set(ctx, max(there, alarmAt(now, now)).Time())
}

// EarlyBy is how long it is until a time that the clock outside was given, as the time of a message is: by the clock of this process.
func (s *Scheduler) EarlyBy(at time.Time) time.Duration { return at.Sub(s.config.Clock.Now()) }

// pollAlarm waits before the store is asked again what has become of another process' alarm.
func (s *Scheduler) pollAlarm(ctx context.Context) error {
	over := make(chan struct{})
	stop := s.config.Clock.AfterFunc(alarmPoll, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return errSetElsewhere
	}
}

// alarmContext is what an alarm is booked with. That of the caller may be done, as a pull ends with it.
func alarmContext(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, max(time.Until(end), lastAlarm)) //nolint:forbidigo // the deadline of a context is by the machine's clock
	}
	return context.WithTimeout(context.WithoutCancel(ctx), patience)
}

// madeDue books an alarm for what a call has made due. The call was carried out, whatever becomes of that.
func (s *Scheduler) madeDue(ctx context.Context, due store.Millis) {
	if due == 0 || s.alarm.defers(due) {
		return
	}
	err := s.owe(ctx, due)
	if s.config.Alarm != nil {
		err = s.book(ctx, due, writerWaits)
	}
	if err != nil {
		s.config.Logger.ErrorContext(ctx, "could not book a wake-up: what has become due waits for the next call", slog.Any("err", err))
	}
}

// owe tells the store of what is due, for processes with a clock, if its hosts are called by alarms and this process has no clock. It returns an
// error if no alarm is booked for it.
func (s *Scheduler) owe(ctx context.Context, due store.Millis) error {
	if s.config.Alarm != nil || !s.alarm.asks(s.config.Clock.Now()) {
		return nil
	}
	within, cancel := alarmContext(ctx, writerWaits)
	defer cancel()
	booked, err := s.store.Book(within, store.Booking{At: (due + 999) / 1000 * 1000, Tag: s.nonce})
	if err != nil {
		return nil // whether there is anything to say is not known
	}
	s.alarm.heard(booked.Fleet, s.config.Clock.Now())
	s.alarm.confirmed(booked.Now, booked.By)
	at := alarmAt(due, booked.Now)
	if !booked.Fleet || booked.By != 0 {
		return nil
	}
	s.alarm.fails(at)
	return &AlarmError{At: at.Time(), Err: errNoClock}
}

// asks reports whether a process without a clock has to tell the store of what it makes due.
func (a *alarm) asks(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.living && (a.fleet || a.asked.IsZero() || now.Sub(a.asked) >= fleetAsked)
}

// heard notes whether the hosts of the store are called by alarms.
func (a *alarm) heard(fleet bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fleet, a.asked = fleet, now
}

// lives notes that the process is there when something falls due.
func (a *alarm) lives() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.living = true
}

// BookAlarm books for what is due next and for what other processes owe, as far as no alarm is booked yet. A process that lives on calls it when a [store.Waker]
// tells of something, when it has failed, some time after the alarm should have rung, and now and then: then nothing waits for long that others could not book,
// or that a clock has confirmed and never rung for. It returns when something is due next, zero for nothing; its error is an *[AlarmError].
func (s *Scheduler) BookAlarm(ctx context.Context) (due time.Time, err error) {
	if s.config.Alarm == nil {
		return due, nil
	}
	due, err = s.base.NextDue(ctx)
	if err != nil {
		return due, &AlarmError{Err: err}
	}
	if due.IsZero() || s.alarm.defers(store.MillisOf(due)) {
		return due, nil
	}
	return due, s.book(ctx, store.MillisOf(due), writerWaits)
}

// explainAlarm says that hosts are called by alarms and none of them for a task. What is not known is not said.
func (s *Scheduler) explainAlarm(ctx context.Context, e *inspect.Explanation, t *store.Stored) {
	if !slices.ContainsFunc(e.Reasons, func(b model.Because) bool {
		return b.Code == model.BecauseNotDue || b.Code == model.BecauseRetry || b.Code == model.BecauseWaiting
	}) {
		return
	}
	booked, err := s.store.Book(ctx, store.Booking{})
	if err != nil || !booked.Fleet || booked.Next != 0 && booked.Next <= alarmAt(t.Due, booked.Now) {
		return
	}
	e.Because(model.BecauseAlarm, 0, "hosts are called by alarms here, and none is booked for it: it waits for the next call, unless a daemon runs; duly run-due --all -c FILE books one")
}

// BooksAlarms reports whether the process has an alarm.
func (s *Scheduler) BooksAlarms() bool { return s.config.Alarm != nil }

// AlarmBy reports whether this process knows of an alarm that is to come, no later than something that is due at a time of the store's clock.
func (s *Scheduler) AlarmBy(due time.Time) bool {
	now := s.base.StoreNow()
	return s.alarm.covers(alarmAt(store.MillisOf(due), now), now)
}
