// Package spy is a store for tests that need to count, delay or fail the calls of another one. It brings no test framework along, so
// that packages for users may build on it.
package spy

import (
	"context"
	"errors"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/message"
)

// Store is a store that counts the calls of another one, and can hold them up or fail them. It is for tests that would otherwise write a
// store of their own. The zero value of its fields lets every call through.
type Store struct {
	store.Store

	// Before is called before each call with its verb, the method's name. Its error is that of the call, which is not made.
	Before func(ctx context.Context, verb string) error
	// After is called after each call that was made. answer is what the verb returns: what it points to may be changed. Its
	// error is that of the call, as if the answer had been lost.
	After func(ctx context.Context, verb string, answer any) error

	mu    sync.Mutex
	calls map[string]int
	turns int
}

// Calls is how often some verbs were called; of all of them if none is named. Calls that Before has failed count too.
func (s *Store) Calls(verbs ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, verb := range verbs {
		n += s.calls[verb]
	}
	if len(verbs) == 0 {
		for _, calls := range s.calls {
			n += calls
		}
	}
	return n
}

// through counts a call and makes it, unless Before fails it.
func through[A any](ctx context.Context, s *Store, verb string, call func() (A, error)) (A, error) {
	s.mu.Lock()
	if s.calls == nil {
		s.calls = map[string]int{}
	}
	s.calls[verb]++
	s.mu.Unlock()
	if s.Before != nil {
		if err := s.Before(ctx, verb); err != nil {
			var none A
			return none, err
		}
	}
	answer, err := call()
	if s.After != nil {
		if lost := s.After(ctx, verb, answer); lost != nil {
			var none A
			return none, lost
		}
	}
	return answer, err
}

// Submit calls the store's, as all verbs here do.
func (s *Store) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	return through(ctx, s, "Submit", func() ([]store.Submitted, error) { return s.Store.Submit(ctx, tasks) })
}

// Touch calls the store's.
func (s *Store) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	return through(ctx, s, "Touch", func() ([]store.Touched, error) { return s.Store.Touch(ctx, touches) })
}

// Look calls the store's.
func (s *Store) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	return through(ctx, s, "Look", func() ([]store.Look, error) { return s.Store.Look(ctx, requests) })
}

// Claim calls the store's.
func (s *Store) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	return through(ctx, s, "Claim", func() ([]store.Claim, error) { return s.Store.Claim(ctx, requests) })
}

// Settle calls the store's.
func (s *Store) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	return through(ctx, s, "Settle", func() ([]store.Settled, error) { return s.Store.Settle(ctx, runs) })
}

// Turn counts itself, and is made of its halves: whatever a test does to Settle and Claim it does to them here too.
func (s *Store) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	s.mu.Lock()
	s.turns++
	s.mu.Unlock()
	return store.InTurn(ctx, s, runs, requests)
}

// Turns is how often Turn was called. Its halves count as calls of Settle and Claim.
func (s *Store) Turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

// Extend calls the store's.
func (s *Store) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	return through(ctx, s, "Extend", func() ([]store.Extended, error) { return s.Store.Extend(ctx, leases) })
}

// Replay calls the store's.
func (s *Store) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	return through(ctx, s, "Replay", func() ([]store.Effect, error) { return s.Store.Replay(ctx, tasks) })
}

// RunNow calls the store's.
func (s *Store) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	return through(ctx, s, "RunNow", func() ([]store.Effect, error) { return s.Store.RunNow(ctx, tasks) })
}

// Cancel calls the store's.
func (s *Store) Cancel(ctx context.Context, tasks []store.Cancellation) ([]store.Effect, error) {
	return through(ctx, s, "Cancel", func() ([]store.Effect, error) { return s.Store.Cancel(ctx, tasks) })
}

// Delete calls the store's.
func (s *Store) Delete(ctx context.Context, tasks []store.Deletion) ([]store.Effect, error) {
	return through(ctx, s, "Delete", func() ([]store.Effect, error) { return s.Store.Delete(ctx, tasks) })
}

// Hold calls the store's.
func (s *Store) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	return through(ctx, s, "Hold", func() ([]store.Effect, error) { return s.Store.Hold(ctx, holds) })
}

// Profile calls the store's.
func (s *Store) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	return through(ctx, s, "Profile", func() ([]store.Effect, error) { return s.Store.Profile(ctx, changes) })
}

// Replan calls the store's.
func (s *Store) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	return through(ctx, s, "Replan", func() ([]store.Effect, error) { return s.Store.Replan(ctx, tasks) })
}

// Forget calls the store's.
func (s *Store) Forget(ctx context.Context, r store.Remains) (string, error) {
	return through(ctx, s, "Forget", func() (string, error) { return s.Store.Forget(ctx, r) })
}

// ProfileOf calls the store's.
func (s *Store) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	return through(ctx, s, "ProfileOf", func() ([]byte, error) { return s.Store.ProfileOf(ctx, agent) })
}

// Profiles calls the store's.
func (s *Store) Profiles(ctx context.Context, page store.PageOf) (store.ProfilePage, error) {
	return through(ctx, s, "Profiles", func() (store.ProfilePage, error) { return s.Store.Profiles(ctx, page) })
}

// Limit calls the store's.
func (s *Store) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	return through(ctx, s, "Limit", func() ([]store.Effect, error) { return s.Store.Limit(ctx, changes) })
}

// Budget calls the store's.
func (s *Store) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	return through(ctx, s, "Budget", func() ([]store.Effect, error) { return s.Store.Budget(ctx, changes) })
}

// Budgets calls the store's.
func (s *Store) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	return through(ctx, s, "Budgets", func() ([]bound.BudgetUse, error) { return s.Store.Budgets(ctx) })
}

// Stamp calls the store's.
func (s *Store) Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error) {
	return through(ctx, s, "Stamp", func() (bool, error) { return s.Store.Stamp(ctx, stamp, of...) })
}

// Stamped calls the store's.
func (s *Store) Stamped(ctx context.Context, partition int, stamp string) (bool, error) {
	return through(ctx, s, "Stamped", func() (bool, error) { return s.Store.Stamped(ctx, partition, stamp) })
}

// Limits calls the store's.
func (s *Store) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	return through(ctx, s, "Limits", func() ([]bound.LimitUse, error) { return s.Store.Limits(ctx) })
}

// Receive calls the store's.
func (s *Store) Receive(ctx context.Context, r message.Receipt) (message.Received, error) {
	return through(ctx, s, "Receive", func() (message.Received, error) { return s.Store.Receive(ctx, r) })
}

// Unhold calls the store's.
func (s *Store) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	return through(ctx, s, "Unhold", func() ([]store.Effect, error) { return s.Store.Unhold(ctx, targets) })
}

// Audit calls the store's.
func (s *Store) Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error) {
	return through(ctx, s, "Audit", func() ([]audit.Result, error) { return s.Store.Audit(ctx, pages) })
}

// Get calls the store's.
func (s *Store) Get(ctx context.Context, query store.Get) (store.Found, error) {
	return through(ctx, s, "Get", func() (store.Found, error) { return s.Store.Get(ctx, query) })
}

// List calls the store's.
func (s *Store) List(ctx context.Context, query store.List) (store.Page, error) {
	return through(ctx, s, "List", func() (store.Page, error) { return s.Store.List(ctx, query) })
}

// Find calls the store's.
func (s *Store) Find(ctx context.Context, query store.Find) (store.Page, error) {
	return through(ctx, s, "Find", func() (store.Page, error) { return s.Store.Find(ctx, query) })
}

// Group calls the store's.
func (s *Store) Group(ctx context.Context, agent, group string) (store.GroupCounts, error) {
	return through(ctx, s, "Group", func() (store.GroupCounts, error) { return s.Store.Group(ctx, agent, group) })
}

// Agents calls the store's.
func (s *Store) Agents(ctx context.Context, page store.PageOf) (store.AgentPage, error) {
	return through(ctx, s, "Agents", func() (store.AgentPage, error) { return s.Store.Agents(ctx, page) })
}

// Holds calls the store's.
func (s *Store) Holds(ctx context.Context, page store.PageOf) (store.HoldPage, error) {
	return through(ctx, s, "Holds", func() (store.HoldPage, error) { return s.Store.Holds(ctx, page) })
}

// Stats calls the store's.
func (s *Store) Stats(ctx context.Context) (count.Stats, error) {
	return through(ctx, s, "Stats", func() (count.Stats, error) { return s.Store.Stats(ctx) })
}

// Book calls the store's.
func (s *Store) Book(ctx context.Context, b alarm.Booking) (alarm.Booked, error) {
	return through(ctx, s, "Book", func() (alarm.Booked, error) { return s.Store.Book(ctx, b) })
}

// Confirm calls the store's.
func (s *Store) Confirm(ctx context.Context, b alarm.Booking) error {
	_, err := through(ctx, s, "Confirm", func() (struct{}, error) { return struct{}{}, s.Store.Confirm(ctx, b) })
	return err
}

// Signal calls the store's.
func (s *Store) Signal(ctx context.Context, signals []store.Signal) ([]store.Signalled, error) {
	return through(ctx, s, "Signal", func() ([]store.Signalled, error) { return s.Store.Signal(ctx, signals) })
}

// Heard calls the store's.
func (s *Store) Heard(ctx context.Context, waits []store.Wait) ([]*store.Told, error) {
	return through(ctx, s, "Heard", func() ([]*store.Told, error) { return s.Store.Heard(ctx, waits) })
}

// The verbs of a feed.Feed pass through, uncounted: processes call them for whoever listens, beside what a test looks at. One that has none
// keeps nothing.

// Listened passes through.
func (s *Store) Listened() bool {
	f, ok := s.Store.(feed.Feed)
	return ok && f.Listened()
}

// Publish passes through.
func (s *Store) Publish(ctx context.Context, lost int, events [][]byte) (bool, error) {
	f, ok := s.Store.(feed.Feed)
	if !ok {
		return false, nil
	}
	return f.Publish(ctx, lost, events)
}

// Follow passes through.
func (s *Store) Follow(ctx context.Context, q feed.Follow) (feed.Page, error) {
	f, ok := s.Store.(feed.Feed)
	if !ok {
		return feed.Page{}, &store.Error{Verb: "follow", Err: errors.New("the store keeps no events")}
	}
	return f.Follow(ctx, q)
}

// FeedSecret passes through.
func (s *Store) FeedSecret(ctx context.Context) ([]byte, error) {
	f, ok := s.Store.(feed.Feed)
	if !ok {
		return nil, &store.Error{Verb: "follow", Err: errors.New("the store keeps no events")}
	}
	return f.FeedSecret(ctx)
}
