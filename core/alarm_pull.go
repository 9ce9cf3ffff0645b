package core

// What a pull does about alarms: it guards its work, waits for what is due within a moment, and books for what follows.

import (
	"errors"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/booking"
	"github.com/seed-6f6f2c11/duly/core/store"
)

const (
	// alarmLinger is how long a pull waits for what falls due next, rather than book an alarm for it; alarmEarly is the same for a pull that has found
	// nothing: the external clock may be ahead of the store's by so much. An alarm that rings before something is due would otherwise find nothing and
	// be lost. A call that says for when it was booked has another one booked if it is earlier.
	alarmLinger = 1500 * time.Millisecond
	alarmEarly  = 3500 * time.Millisecond
	// alarmRunning is how long a pull that claims no more waits for its runs before it books the alarm without them: for what falls due while
	// they run, and for the end of their leases, should this process die.
	alarmRunning = time.Second
	// alarmBarren is how soon an alarm rings after a pull that has left due tasks without claiming any: they are for another process, or
	// in a partition that is away.
	alarmBarren = 30 * time.Second
)

// books reports whether a pull books an alarm when it ends: pulls of a series are of a process that lives on.
func (p *pull) books() bool { return p.s.config.Alarm != nil && p.scope.Series == nil }

// runBooked is run, and books the alarm for what follows.
func (p *pull) runBooked() (Report, error) {
	if !p.books() {
		return p.run()
	}
	p.s.alarm.Enter()
	r, err := p.run()
	made := p.leaveAlarm()
	// guard: alarm-next
	due := base.Earlier(store.MillisOf(r.NextDueAt), made)
	switch now := p.s.base.StoreNow(); {
	case r.More && r.Agents > 0:
		due = base.Earlier(due, now)
	case r.More:
		due = now.Add(alarmBarren)
		if made > now {
			due = base.Earlier(due, made)
		}
	}
	failed := p.s.book(p.ctx, due, booking.PullWaits)
	if failed == nil {
		failed = p.rebook(due)
	}
	if failed != nil {
		err = errors.Join(err, failed) // the error of the pull is not hidden
	}
	r.AlarmAt = p.s.alarm.Next(p.s.base.StoreNow()).Time()
	return r, err
}

// leaveAlarm has the pull book for itself, and returns when the earliest alarm that others have left to it is due.
func (p *pull) leaveAlarm() store.Millis {
	if p.leftAlarm.Swap(true) {
		return 0
	}
	return p.s.alarm.Leave()
}

// awaitsDue waits for a task that falls due within a moment, and reports whether there is one: a host that is called for each second
// costs more than one that waits for it.
func (p *pull) awaitsDue() bool {
	// guard: lent-lingers
	if p.scope.loan != nil { // a worker waits as long as it says, and what it has ended waits with it
		return false
	}
	if !p.books() || p.scope.Agents != nil || p.over() || p.left == 0 {
		return false
	}
	wait := alarmLinger
	if !p.claimed {
		wait = alarmEarly
	}
	news := p.outlook.linger()
	next, now := p.outlook.next(), p.s.base.StoreNow()
	if next <= now || next > now.Add(wait) {
		return false
	}
	lingerFor(p, next.Time().Sub(now.Time()), news)
	return !p.over()
}

// linger is closed when a run ends; it is now if one has since the pull has looked what is ready.
func (o *outlook) linger() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	news := make(chan struct{})
	if o.lingers = news; o.roused {
		close(news)
		o.lingers = nil
	}
	return news
}

// rouse ends the wait of a pull that lingers, as a run has ended, which may have made something due, or room for it.
func (o *outlook) rouse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.roused = true
	if o.lingers != nil {
		close(o.lingers)
		o.lingers = nil
	}
}

// lingerFor waits for a while, or until a run ends: one that frees a limit is followed by the next that waits for it.
func lingerFor(p *pull, d time.Duration, news <-chan struct{}) {
	timer := make(chan struct{})
	stop := p.s.config.Clock.AfterFunc(d, func() { close(timer) })
	defer stop()
	select {
	case <-timer:
	// guard: linger
	case <-news:
	case <-p.claiming.Done():
	}
}

// bookWhileRunning books an alarm if the runs of a pull that claims no more take long, until it is stopped.
func (p *pull) bookWhileRunning() (stop func()) {
	// guard: alarm-running
	if !p.books() || !p.claimed {
		return func() {}
	}
	done := make(chan struct{})
	stopTimer := p.s.config.Clock.AfterFunc(alarmRunning, func() {
		defer close(done)
		made := p.leaveAlarm()
		p.s.madeDue(p.ctx, base.Earlier(p.outlook.next(), made))
	})
	return func() {
		if !stopTimer() {
			<-done
		}
	}
}

// guard has the host called again soon, before the pull claims anything: should this process die, no other has booked what follows. It is not
// stored, as it replaces no other alarm.
func (p *pull) guard() {
	// guard: alarm-guard
	if !p.books() || p.guarded {
		return
	}
	p.guarded = true
	now := p.s.base.StoreNow()
	at := booking.At(now, now) // also if one is booked for then: it may be the one that has called, a little early
	ctx, cancel := alarmContext(p.ctx, booking.WriterWaits)
	defer cancel()
	err := p.s.ring(ctx, at)
	if err == nil {
		p.s.alarm.Guarded.Store(int64(at))
	} else {
		p.s.config.Logger.WarnContext(p.ctx, "could not book a wake-up for the case that this process dies", slog.Any("err", err))
	}
}

// rebook sets the alarm again that has called long before its time: the store takes it for one that is to come. It is set for so much later as it was
// early.
func (p *pull) rebook(due store.Millis) error {
	early := p.scope.AlarmAt.Sub(p.begun)
	if p.scope.AlarmAt.IsZero() || early <= store.SureAfter || due == 0 {
		return nil
	}
	ctx, cancel := alarmContext(p.ctx, booking.PullWaits)
	defer cancel()
	at := booking.At(due, p.s.base.StoreNow())
	if err := p.s.ring(ctx, at.Add(early)); err != nil {
		return &AlarmError{At: at.Time(), Err: err}
	}
	return nil
}
