package filestore

// The verbs that change the store. Each is in the journal before it is answered.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// nothing is the answer of a verb that has none.
type nothing = struct{}

// turn are the arguments of Turn.
type turn struct {
	Runs     []store.Settlement
	Requests []store.ClaimRequest
}

// turned is its answer.
type turned struct {
	settled []store.Settled
	claims  []store.Claim
}

// answered is a verb whose method has its form already.
func answered[A, R any](name string, do func(m *memstore.Store, ctx context.Context, args A) (R, error)) *verb[A, R] {
	return journalled(name, func(ctx context.Context, m *memstore.Store, args A) (R, error) { return do(m, ctx, args) })
}

// silent is a verb whose method answers with an error alone.
func silent[A any](name string, do func(m *memstore.Store, ctx context.Context, args A) error) *verb[A, nothing] {
	return journalled(name, func(ctx context.Context, m *memstore.Store, args A) (nothing, error) {
		return nothing{}, do(m, ctx, args)
	})
}

// declaration is what Stamp is called with.
type declaration struct {
	Stamp string
	Of    []bound.BudgetTarget
}

// Names are stored: one that changes is another verb.
var (
	submits = answered("submit", (*memstore.Store).Submit)
	touches = answered("touch", (*memstore.Store).Touch)
	claims  = answered("claim", (*memstore.Store).Claim)
	settles = answered("settle", (*memstore.Store).Settle)
	turns   = journalled("turn", func(ctx context.Context, m *memstore.Store, t turn) (turned, error) {
		settled, claims, err := m.Turn(ctx, t.Runs, t.Requests)
		return turned{settled, claims}, err
	})
	extends  = answered("extend", (*memstore.Store).Extend)
	replays  = answered("replay", (*memstore.Store).Replay)
	runNows  = answered("run now", (*memstore.Store).RunNow)
	cancels  = answered("cancel", (*memstore.Store).Cancel)
	deletes  = answered("delete", (*memstore.Store).Delete)
	holds    = answered("hold", (*memstore.Store).Hold)
	unholds  = answered("unhold", (*memstore.Store).Unhold)
	profiles = answered("profile", (*memstore.Store).Profile)
	replans  = answered("replan", (*memstore.Store).Replan)
	forgets  = answered("forget", (*memstore.Store).Forget)
	limits   = answered("limit", (*memstore.Store).Limit)
	budgets  = answered("budget", (*memstore.Store).Budget)
	_        = silent("stamp", func(m *memstore.Store, ctx context.Context, stamp string) error { // of folders that an earlier version has written
		_, err := m.Stamp(ctx, stamp)
		return err
	})
	declares = answered("declare", func(m *memstore.Store, ctx context.Context, d declaration) (bool, error) {
		return m.Stamp(ctx, d.Stamp, d.Of...)
	})
	books    = answered("book", (*memstore.Store).Book)
	confirms = silent("confirm", (*memstore.Store).Confirm)
	signals  = answered("signal", (*memstore.Store).Signal)
	receives = answered("receive", (*memstore.Store).Receive)
	tallies  = silent("tally", (*memstore.Store).Tally)
	prints   = answered("print", (*memstore.Store).Print)
	orphans  = silent("orphan", func(m *memstore.Store, _ context.Context, _ nothing) error {
		memstore.StateOf(m).Orphan()
		return nil
	})
)

// Submit stores new tasks; see [store.Queue].
func (s *Store) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	for i := range tasks {
		if !tasks[i].Owed {
			if err := s.hasRoom("submit"); err != nil {
				return nil, err
			}
		}
	}
	return change(ctx, s, submits, tasks)
}

// Touch notes activity; see [store.Queue].
func (s *Store) Touch(ctx context.Context, t []store.Touch) ([]store.Touched, error) {
	if err := s.hasRoom("touch"); err != nil {
		return nil, err
	}
	return change(ctx, s, touches, t)
}

// Claim leases due tasks; see [store.Queue].
func (s *Store) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	for i := range requests {
		if requests[i].New != nil && !requests[i].New.Owed {
			if err := s.hasRoom("claim"); err != nil {
				return nil, err
			}
		}
	}
	return change(ctx, s, claims, requests)
}

// Settle ends runs; see [store.Queue].
func (s *Store) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	return change(ctx, s, settles, runs)
}

// Turn settles and claims; see [store.Queue].
func (s *Store) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	out, err := change(ctx, s, turns, turn{runs, requests})
	return out.settled, out.claims, err
}

// Extend moves the ends of leases; see [store.Queue].
func (s *Store) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	return change(ctx, s, extends, leases)
}

// Replay makes dead tasks live again; see [store.Operator].
func (s *Store) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	return change(ctx, s, replays, tasks)
}

// RunNow makes waiting tasks due now; see [store.Operator].
func (s *Store) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	return change(ctx, s, runNows, tasks)
}

// Cancel ends tasks; see [store.Operator].
func (s *Store) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	return change(ctx, s, cancels, tasks)
}

// Delete forgets tasks; see [store.Operator].
func (s *Store) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	return change(ctx, s, deletes, tasks)
}

// Hold lets no task of some targets be claimed; see [store.Operator].
func (s *Store) Hold(ctx context.Context, h []store.Hold) ([]store.Effect, error) {
	return change(ctx, s, holds, h)
}

// Unhold ends holds; see [store.Operator].
func (s *Store) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	return change(ctx, s, unholds, targets)
}

// Profile sets and deletes profiles; see [store.Tenants].
func (s *Store) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	return change(ctx, s, profiles, changes)
}

// Replan gives waiting tasks other due times; see [store.Tenants].
func (s *Store) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	return change(ctx, s, replans, tasks)
}

// Forget drops what is left of an agent; see [store.Tenants].
func (s *Store) Forget(ctx context.Context, r store.Remains) (string, error) {
	return change(ctx, s, forgets, r)
}

// Limit sets and lifts limits; see [store.Bounds].
func (s *Store) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	return change(ctx, s, limits, changes)
}

// Budget sets and lifts budgets; see [store.Bounds].
func (s *Store) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	return change(ctx, s, budgets, changes)
}

// Stamp notes that definitions are stored; see [store.Bounds].
func (s *Store) Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	return change(ctx, s, declares, declaration{stamp, of})
}

// Book asks for an alarm; see [store.Bookings].
func (s *Store) Book(ctx context.Context, b alarm.Booking) (alarm.Booked, error) {
	return change(ctx, s, books, b)
}

// Confirm notes that an alarm is set; see [store.Bookings].
func (s *Store) Confirm(ctx context.Context, b alarm.Booking) error {
	_, err := change(ctx, s, confirms, b)
	return err
}

// Signal resumes tasks that wait; see [store.Signals].
func (s *Store) Signal(ctx context.Context, all []store.Signal) ([]store.Signalled, error) {
	return change(ctx, s, signals, all)
}

// Receive notes a message; see [store.Messages].
func (s *Store) Receive(ctx context.Context, r message.Receipt) (message.Received, error) {
	return change(ctx, s, receives, r)
}

// Tally adds the counts of a process; see [window.Recent].
func (s *Store) Tally(ctx context.Context, t window.Tally) error {
	_, err := change(ctx, s, tallies, t)
	return err
}
