package dulytest

// The scheduler that runs what is due when the test says so.

import (
	"testing"

	"github.com/seed-6f6f2c11/duly/core"
)

// Scheduler is a [core.Scheduler] with its own store and its own clock. Handlers are registered with the embedded one:
//
//	core.Handle(s.Scheduler, "digest", WriteDigest)
type Scheduler struct {
	*core.Scheduler

	Clock *Clock // decides what is due
	Store *Store // has the tasks
}

// New makes a scheduler with an empty store. It fails the test if config makes no sense, or has a Clock: this one has its own.
func New(tb testing.TB, config core.Config) *Scheduler {
	tb.Helper()
	if config.Clock != nil {
		tb.Fatalf("dulytest: New: Config.Clock must be nil, not a %T: the scheduler has a clock of its own", config.Clock)
		return nil
	}
	clock := newClock()
	config.Clock = clock
	st := newStore(tb, clock)
	s, err := core.New(st, config)
	if err != nil {
		tb.Fatalf("dulytest: New: %v", err)
		return nil
	}
	return &Scheduler{Scheduler: s, Clock: clock, Store: st}
}

// RunDue runs what is due, of all agents, and returns when all of it has ended. It fails the test if the store or a handler
// fails. A test that expects a failure calls the embedded one, s.Scheduler.RunDue, and looks at its error.
func (s *Scheduler) RunDue(tb testing.TB) core.Report {
	tb.Helper()
	report, err := s.Scheduler.RunDue(tb.Context(), core.Scope{})
	if err != nil {
		tb.Fatalf("dulytest: RunDue: %v", err)
	}
	return report
}
