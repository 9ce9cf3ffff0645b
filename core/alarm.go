package core

// The alarm: one wake-up, booked with a clock outside, in place of a process that waits.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

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

// AlarmError says that a pull has done its work, and that nobody is going to call for the next: no alarm could be booked. Whoever called
// should call again.
type AlarmError struct {
	At  time.Time // when it should ring
	Err error
}

// Error names the time.
func (e *AlarmError) Error() string {
	return fmt.Sprintf("book the alarm of %s: %v", e.At.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap is why.
func (e *AlarmError) Unwrap() error { return e.Err }

const (
	// alarmAhead is how soon an alarm may be: a clock outside that is told of a time that is over when it hears of it may refuse it.
	alarmAhead = time.Second
	// alarmFarthest is how far ahead an alarm may be, as clocks outside have bounds: QStash seven days, Cloud Tasks thirty. A call
	// that comes before something is due books the next.
	alarmFarthest = 6 * 24 * time.Hour
	// alarmLinger is how long a pull waits for what falls due next, rather than to book an alarm for it. It also bounds how much earlier
	// than the store's clock the one outside may be: an alarm that rings before something is due would else find nothing, and be
	// gone.
	alarmLinger = 1500 * time.Millisecond
	// alarmRunning is how long a pull that claims no more waits for its runs until it books the alarm without them: for what falls due while
	// they run, and for the end of their leases, should this process die.
	alarmRunning = time.Second
	// alarmBarren is how soon an alarm is after a pull that has left what is due, but has got nothing: it is for another one, or
	// for a partition that is away.
	alarmBarren = 30 * time.Second
	// dueNow is the due time of what is due at once: an alarm is booked for no time that has passed.
	dueNow store.Millis = 1
	// longestAlarm bounds one call of the clock, and lastAlarm is what a call gets whose own time is over.
	longestAlarm = 5 * time.Second
	lastAlarm    = 500 * time.Millisecond
)

// alarm is what this process knows of the alarm that is booked.
type alarm struct {
	mu    sync.Mutex
	known store.Millis // one is booked for then, by whomever
	pulls int          // that book an alarm when they end, for what has been made due until then too
	made  store.Millis // when the earliest of that is due
	count int          // of bookings
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
		a.made = earlier(a.made, due)
	}
	return a.pulls > 0
}

// needs reports whether an alarm is not known to be booked until a time, and makes a tag for it.
func (a *alarm) needs(at, now store.Millis) (tag int, needed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	return a.count, a.known <= now || a.known > at
}

// knows notes when the next alarm rings; zero: never.
func (a *alarm) knows(at store.Millis) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = at
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

// book books an alarm for something that is due; zero is nothing.
func (s *Scheduler) book(ctx context.Context, due store.Millis) error {
	if s.config.Alarm == nil || due == 0 {
		return nil
	}
	ctx, cancel := alarmContext(ctx)
	defer cancel()
	// A process that has heard nothing of the store yet may be wrong about the time by any amount.
	now, err := s.askedNow(ctx)
	if err != nil {
		return &AlarmError{At: due.Time(), Err: err}
	}
	at := min(max(due, now.Add(alarmAhead)), now.Add(alarmFarthest))
	at = (at + 999) / 1000 * 1000
	n, needed := s.alarm.needs(at, now)
	if !needed {
		return nil
	}
	wanted := store.Booking{At: at, Tag: s.nonce + "-" + strconv.Itoa(n)}
	booked, err := s.store.Book(ctx, wanted)
	if err != nil {
		return &AlarmError{At: at.Time(), Err: err}
	}
	s.alarm.knows(booked.At)
	if booked != wanted {
		return nil
	}
	if err = s.config.Alarm.Set(ctx, at.Time()); err == nil {
		return nil
	}
	s.alarm.knows(0)
	// The next to need one has to try again. If that fails too, it is a tick that finds out.
	if err2 := s.store.Unbook(ctx, wanted); err2 != nil {
		s.config.Logger.WarnContext(ctx, "an alarm that could not be set stays booked", slog.Time("at", at.Time()), slog.Any("err", err2))
	}
	return &AlarmError{At: at.Time(), Err: err}
}

// alarmContext is what an alarm is booked with. That of the caller may be done, as a pull ends with it.
func alarmContext(ctx context.Context) (context.Context, context.CancelFunc) {
	longest := longestAlarm
	if end, ok := ctx.Deadline(); ok {
		longest = min(longest, max(time.Until(end), lastAlarm)) //nolint:forbidigo // the deadline of a context is by the machine's clock
	}
	return context.WithTimeout(context.WithoutCancel(ctx), longest)
}

// madeDue books an alarm for what a call has made due. The call was carried out, whatever becomes of that.
func (s *Scheduler) madeDue(ctx context.Context, due store.Millis) {
	if due == 0 || s.alarm.defers(due) {
		return
	}
	if err := s.book(ctx, due); err != nil {
		s.config.Logger.ErrorContext(ctx, "nobody is going to be called for what was made due, until the next pull", slog.Any("err", err))
	}
}

// books reports whether a pull books an alarm when it ends: pulls of a series are of a process that lives on.
func (p *pull) books() bool { return p.s.config.Alarm != nil && p.scope.Series == nil }

// runBooked is run, and books the alarm for what follows.
func (p *pull) runBooked() (Report, error) {
	if !p.books() {
		return p.run()
	}
	p.s.alarm.enter()
	r, err := p.run()
	made := p.leaveAlarm()
	due := earlier(store.MillisOf(r.NextDueAt), made)
	switch now := p.s.storeNow(); {
	case r.More && r.Agents > 0:
		due = earlier(due, now)
	case r.More:
		due = now.Add(alarmBarren)
		if made > now {
			due = earlier(due, made)
		}
	}
	if failed := p.s.book(p.ctx, due); failed != nil {
		err = errors.Join(err, failed) // that of the pull is not hidden
	}
	r.AlarmAt = p.s.alarm.next(p.s.storeNow()).Time()
	return r, err
}

// leaveAlarm has the pull book for itself, and returns when the earliest of what others have left to it is due.
func (p *pull) leaveAlarm() store.Millis {
	if p.leftAlarm.Swap(true) {
		return 0
	}
	return p.s.alarm.leave()
}

// awaitsDue waits for what falls due within a moment, and reports whether there is such a thing: a host that is called for each second
// costs more than one that waits for it.
func (p *pull) awaitsDue() bool {
	if !p.books() || p.scope.Agents != nil || p.over() || p.left == 0 {
		return false
	}
	next, now := p.outlook.next(), p.s.storeNow()
	if next <= now || next > now.Add(alarmLinger) {
		return false
	}
	p.pauseFor(next.Time().Sub(now.Time()))
	return !p.over()
}

// bookWhileRunning books an alarm if the runs of a pull that claims no more take long, until it is stopped.
func (p *pull) bookWhileRunning() (stop func()) {
	if !p.books() || !p.claimed {
		return func() {}
	}
	done := make(chan struct{})
	stopTimer := p.s.config.Clock.AfterFunc(alarmRunning, func() {
		defer close(done)
		made := p.leaveAlarm()
		p.s.madeDue(p.ctx, earlier(p.outlook.next(), made))
	})
	return func() {
		if !stopTimer() {
			<-done
		}
	}
}
