package core

// The alarm: one wake-up, booked with a clock outside, in place of a process that waits. A pull waits for what is due within a moment, and books for what follows.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/booking"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
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

const (
	// alarmLinger is how long a pull waits for what falls due next, rather than book an alarm for it; alarmEarly is the same for a pull that has found
	// nothing: the external clock may be ahead of the store's by so much. An alarm that rings before something is due would otherwise find nothing and
	// be lost. A call that says for when it was booked has another one booked if it is earlier.
	alarmLinger = 1500 * time.Millisecond
	alarmEarly  = 3500 * time.Millisecond
	// alarmBarren is how soon an alarm rings after a pull that has left due tasks without claiming any: they are for another process, or
	// in a partition that is away.
	alarmBarren = 30 * time.Second
)

// runBooked is run, and books the alarm for what follows.
func (p *pull) runBooked() (Report, error) {
	if p.alarm.By == nil {
		return p.run()
	}
	p.s.alarm.Enter()
	r, err := p.run()
	made := p.alarm.Leave()
	// guard: alarm-next
	due := base.Earlier(moment.Of(r.NextDueAt), made)
	switch now := p.s.base.StoreNow(); {
	case r.More && r.Agents > 0:
		due = base.Earlier(due, now)
	case r.More:
		due = now.Add(alarmBarren)
		if made > now {
			due = base.Earlier(due, made)
		}
	}
	var early time.Duration // how long before its time the alarm has called
	if !p.scope.AlarmAt.IsZero() {
		early = p.scope.AlarmAt.Sub(p.Begun)
	}
	failed := p.s.alarm.Book(p.ctx, due, booking.PullWaits)
	if failed == nil {
		failed = p.alarm.Rebook(p.ctx, due, early)
	}
	if failed != nil {
		err = errors.Join(err, failed) // the error of the pull is not hidden
	}
	r.AlarmAt = p.s.alarm.Next(p.s.base.StoreNow()).Time()
	return r, err
}

// awaitsDue waits for a task that falls due within a moment, and reports whether there is one: a host that is called for each second
// costs more than one that waits for it.
func (p *pull) awaitsDue() bool {
	// guard: lent-lingers
	if p.scope.loan != nil { // a worker waits as long as it says, and what it has ended waits with it
		return false
	}
	if p.alarm.By == nil || p.scope.Agents != nil || p.over() || p.left == 0 {
		return false
	}
	wait := alarmLinger
	if !p.claimed {
		wait = alarmEarly
	}
	news := p.outlook.Linger()
	next, now := p.outlook.Next(), p.s.base.StoreNow()
	if next <= now || next > now.Add(wait) {
		return false
	}
	lingerFor(p, next.Time().Sub(now.Time()), news)
	return !p.over()
}

// lingerFor waits for a while, until the pull may claim no more, or until a run ends, if there is news of that: one that frees a limit is followed by the next that waits for it.
func lingerFor(p *pull, d time.Duration, news <-chan struct{}) {
	if d <= 0 {
		return
	}
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
