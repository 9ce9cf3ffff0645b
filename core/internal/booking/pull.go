package booking

// What a pull does about alarms: it guards its work, books while its runs take long, and for what follows.

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// alarmRunning is how long a pull that claims no more waits for its runs before it books the alarm without them: for what falls due while
// they run, and for the end of their leases, should this process die.
const alarmRunning = time.Second

// Outlook is what a pull knows of its partitions: Next is when something is due next.
type Outlook interface{ Next() moment.Millis }

// Pull is a pull that books an alarm when it ends.
type Pull struct {
	By *Booker // nil if it books none, as those of a process that lives on

	left    atomic.Bool // it no longer books for tasks that others make due
	guarded bool        // an alarm is set in case this process dies
}

// Leave has the pull book for itself, and returns when the earliest alarm that others have left to it is due.
func (p *Pull) Leave() moment.Millis {
	if p.left.Swap(true) {
		return 0
	}
	return p.By.Leave()
}

// WhileRunning books an alarm if the runs of a pull that has claimed some and claims no more take long, until it is stopped.
func (p *Pull) WhileRunning(ctx context.Context, claimed bool, o Outlook) (stop func()) {
	// guard: alarm-running
	if p.By == nil || !claimed {
		return func() {}
	}
	done := make(chan struct{})
	stopTimer := p.By.Base.Config.Clock.AfterFunc(alarmRunning, func() {
		defer close(done)
		made := p.Leave()
		p.By.MadeDue(ctx, base.Earlier(o.Next(), made))
	})
	return func() {
		if !stopTimer() {
			<-done
		}
	}
}

// Guard has the host called again soon, before the pull claims anything: should this process die, no other has booked what follows. It is not
// stored, as it replaces no other alarm.
func (p *Pull) Guard(ctx context.Context) {
	// guard: alarm-guard
	if p.By == nil || p.guarded {
		return
	}
	p.guarded = true
	now := p.By.Base.StoreNow()
	at := At(now, now) // also if one is booked for then: it may be the one that has called, a little early
	own, cancel := contextOf(ctx, WriterWaits)
	defer cancel()
	err := p.By.ring(own, at)
	if err == nil {
		p.By.Guarded.Store(int64(at))
	} else {
		p.By.Base.Config.Logger.WarnContext(ctx, "could not book a wake-up for the case that this process dies", slog.Any("err", err))
	}
}

// Rebook sets the alarm again that has called long before its time: the store takes it for one that is to come. It is set for so much later as it was
// early.
func (p *Pull) Rebook(ctx context.Context, due moment.Millis, early time.Duration) error {
	if early <= alarm.SureAfter || due == 0 {
		return nil
	}
	ctx, cancel := contextOf(ctx, PullWaits)
	defer cancel()
	at := At(due, p.By.Base.StoreNow())
	if err := p.By.ring(ctx, at.Add(early)); err != nil {
		return &model.AlarmError{At: at.Time(), Err: err}
	}
	return nil
}
