// Package booking records what a process knows of the alarms that are booked with an external clock.
package booking

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// How far ahead alarms are, and how long callers wait for their booking.
const (
	// Ahead is how soon an alarm may be: an external clock may refuse a time that is over when the request arrives.
	Ahead = time.Second
	// Farthest is how far ahead an alarm may be, as external clocks have bounds: QStash seven days, Cloud Tasks thirty. A call
	// that comes before something is due books the next.
	Farthest = 6 * 24 * time.Hour
	// DueNow is the due time of what is due at once: no alarm is booked for a time that has passed.
	DueNow moment.Millis = 1
	// WriterWaits is how long a call that has made something due waits for its alarm, and PullWaits a pull: for the answer of the store, of the clock,
	// and of another process that is setting one. LastPull is the time for a pull whose own time is over, and ConfirmIn the time for the store to
	// record that the clock has it.
	WriterWaits = 900 * time.Millisecond
	PullWaits   = 2 * time.Second
	LastPull    = 500 * time.Millisecond
	ConfirmIn   = 250 * time.Millisecond
	// Poll is how often a process that waits for another one's booking asks, and fleetAsked how often one without a clock asks whether the hosts are
	// called by alarms.
	Poll       = 50 * time.Millisecond
	fleetAsked = time.Minute
)

// ErrSetElsewhere and ErrNoClock say why nothing is booked.
var (
	ErrSetElsewhere = errors.New("another process was setting it, and has not said that the clock has it")
	ErrNoClock      = errors.New("this process has no clock outside: give it the alarm that the others have (alarm: of duly.yaml, Config.Alarm)")
)

// State is what this process knows of the alarms that are booked.
type State struct {
	Turn chan struct{} // held by the caller that books, also what waiting callers want

	Guarded atomic.Int64 // when the last guard rings that a pull of this process has set

	mu     sync.Mutex
	known  moment.Millis // an alarm is confirmed for then, by any process
	wanted moment.Millis // the earliest time that waiting callers want
	owed   moment.Millis // the earliest that this process has made due and not booked
	pulls  int           // that book an alarm when they end, for what has been made due until then too
	made   moment.Millis // when the earliest of that is due
	living bool          // the process runs when something falls due: it books nothing
	fleet  bool          // the hosts of the store are called by alarms, as of asked
	asked  time.Time
}

// Enter records that a pull is going to book.
func (a *State) Enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pulls++
}

// Leave records that the pull books now, and returns when the earliest of what was made due meanwhile is due.
func (a *State) Leave() moment.Millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pulls--
	due := a.made
	a.made = 0
	return due
}

// Defers leaves it to a pull under way, if there is one, to book for something that is due.
func (a *State) Defers(due moment.Millis) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pulls > 0 {
		a.made = base.Earlier(a.made, due)
	}
	return a.pulls > 0
}

// Covers reports whether an alarm is known that rings no later than a time.
func (a *State) Covers(at, now moment.Millis) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known == at || a.known < at && a.known > now.Add(alarm.SureAfter)
}

// Begin waits for the turn to book: no other caller books until End.
func (a *State) Begin(ctx context.Context, at moment.Millis) error {
	a.mu.Lock()
	a.wanted = base.Earlier(a.wanted, at)
	a.mu.Unlock()
	select {
	case a.Turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// End gives the turn back.
func (a *State) End() { <-a.Turn }

// Take is the earliest of a time and what the callers that wait for their turn want. A time that has nearly come is left to them: an alarm for it may have
// rung, and would serve nothing that is due later.
func (a *State) Take(at, now moment.Millis) moment.Millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	// guard: alarm-for-others
	if a.wanted > now.Add(2*alarm.SureAfter) {
		at = base.Earlier(at, a.wanted)
	}
	a.wanted = 0
	return at
}

// Confirmed records that the clock has an alarm; zero is none.
func (a *State) Confirmed(now, at moment.Millis) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known <= now.Add(alarm.SureAfter) || at != 0 && at < a.known {
		a.known = at
	}
	if a.known != 0 && a.known <= a.owed {
		a.owed = 0
	}
}

// Fails records that there is no alarm for a time.
func (a *State) Fails(at moment.Millis) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owed = base.Earlier(a.owed, at)
}

// Lacks reports whether no alarm could be booked for something that this process has made due.
func (a *State) Lacks(due moment.Millis) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := (due + 999) / 1000 * 1000
	return due != 0 && a.owed != 0 && (a.known == 0 || a.known > max(at, a.owed))
}

// Next is when the alarm that is known to be booked rings; zero for none.
func (a *State) Next(now moment.Millis) moment.Millis {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known <= now {
		return 0
	}
	return a.known
}

// At is when the alarm for something that is due rings.
func At(due, now moment.Millis) moment.Millis {
	return (min(max(due, now.Add(Ahead)), now.Add(Farthest)) + 999) / 1000 * 1000
}

// Asks reports whether a process without a clock has to notify the store of what it makes due.
func (a *State) Asks(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.living && (a.fleet || a.asked.IsZero() || now.Sub(a.asked) >= fleetAsked)
}

// Heard records whether the hosts of the store are called by alarms.
func (a *State) Heard(fleet bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fleet, a.asked = fleet, now
}

// Lives records that the process runs when something falls due.
func (a *State) Lives() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.living = true
}
