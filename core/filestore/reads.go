package filestore

// The verbs that change nothing that lasts: reads, and what ends with the process.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// Look returns when partitions are due; see [store.Queue].
func (s *Store) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	return look(ctx, s, "look", (*memstore.Store).Look, requests)
}

// Audit looks at pages of live tasks; see [store.Operator].
func (s *Store) Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error) {
	return look(ctx, s, "control", (*memstore.Store).Audit, pages)
}

// Get returns tasks; see [store.Reader].
func (s *Store) Get(ctx context.Context, q store.Get) (store.Found, error) {
	return look(ctx, s, "read", (*memstore.Store).Get, q)
}

// List returns a page of an agent's tasks; see [store.Reader].
func (s *Store) List(ctx context.Context, q store.List) (store.Page, error) {
	return look(ctx, s, "read", (*memstore.Store).List, q)
}

// Find returns a page of the tasks of all agents; see [store.Reader].
func (s *Store) Find(ctx context.Context, q store.Find) (store.Page, error) {
	return look(ctx, s, "read", (*memstore.Store).Find, q)
}

// Group counts the tasks of a group; see [store.Reader].
func (s *Store) Group(ctx context.Context, agent, group string) (store.GroupCounts, error) {
	return look(ctx, s, "read", func(m *memstore.Store, ctx context.Context, agent string) (store.GroupCounts, error) {
		return m.Group(ctx, agent, group)
	}, agent)
}

// Agents returns a page of agents; see [store.Reader].
func (s *Store) Agents(ctx context.Context, page store.PageOf) (store.AgentPage, error) {
	return look(ctx, s, "read", (*memstore.Store).Agents, page)
}

// Holds returns a page of holds; see [store.Reader].
func (s *Store) Holds(ctx context.Context, page store.PageOf) (store.HoldPage, error) {
	return look(ctx, s, "read", (*memstore.Store).Holds, page)
}

// Stats are the counters; see [store.Reader].
func (s *Store) Stats(ctx context.Context) (count.Stats, error) {
	return ask(ctx, s, "read", (*memstore.Store).Stats)
}

// ProfileOf is the profile of an agent; see [store.Tenants].
func (s *Store) ProfileOf(ctx context.Context, agent string) ([]byte, error) {
	return look(ctx, s, "read", (*memstore.Store).ProfileOf, agent)
}

// Profiles returns a page of the agents with profiles; see [store.Tenants].
func (s *Store) Profiles(ctx context.Context, page store.PageOf) (store.ProfilePage, error) {
	return look(ctx, s, "read", (*memstore.Store).Profiles, page)
}

// Limits are the limits in force; see [store.Bounds].
func (s *Store) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	return ask(ctx, s, "read", (*memstore.Store).Limits)
}

// Budgets are the budgets in force; see [store.Bounds].
func (s *Store) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	return ask(ctx, s, "read", (*memstore.Store).Budgets)
}

// Stamped reports whether a partition has a stamp; see [store.Bounds].
func (s *Store) Stamped(ctx context.Context, partition int, stamp string) (bool, error) {
	return look(ctx, s, "read", func(m *memstore.Store, ctx context.Context, stamp string) (bool, error) {
		return m.Stamped(ctx, partition, stamp)
	}, stamp)
}

// Heard returns what tasks have received; see [store.Signals].
func (s *Store) Heard(ctx context.Context, waits []store.Wait) ([]*store.Told, error) {
	return look(ctx, s, "read", (*memstore.Store).Heard, waits)
}

// windowed is the answer of Window and of Slots.
type windowed[T any] struct {
	found []T
	now   moment.Millis
}

// Window returns the counters of the last slots; see [window.Recent].
func (s *Store) Window(ctx context.Context, slots int) ([]window.Kind, moment.Millis, error) {
	out, err := look(ctx, s, "read", func(m *memstore.Store, ctx context.Context, slots int) (w windowed[window.Kind], err error) {
		w.found, w.now, err = m.Window(ctx, slots)
		return w, err
	}, slots)
	return out.found, out.now, err
}

// Slots returns the counters of each of the last slots; see [window.Recent].
func (s *Store) Slots(ctx context.Context, each time.Duration, slots int) ([]window.Slot, moment.Millis, error) {
	out, err := look(ctx, s, "read", func(m *memstore.Store, ctx context.Context, slots int) (w windowed[window.Slot], err error) {
		w.found, w.now, err = m.Slots(ctx, each, slots)
		return w, err
	}, slots)
	return out.found, out.now, err
}

// Listened reports whether the feed has subscribers; see [feed.Feed].
func (s *Store) Listened() bool { return s.memory().Listened() }

// Publish keeps events while this process lives; see [feed.Feed].
func (s *Store) Publish(ctx context.Context, lost int, events [][]byte) (bool, error) {
	return look(ctx, s, "publish", func(m *memstore.Store, ctx context.Context, events [][]byte) (bool, error) {
		return m.Publish(ctx, lost, events)
	}, events)
}

// Follow returns the published events; see [feed.Feed].
func (s *Store) Follow(ctx context.Context, f feed.Follow) (feed.Page, error) {
	return look(ctx, s, "follow", (*memstore.Store).Follow, f)
}

// FeedSecret was made with the folder; see [feed.Feed].
func (s *Store) FeedSecret(ctx context.Context) ([]byte, error) {
	return ask(ctx, s, "follow", (*memstore.Store).FeedSecret)
}

// Announce keeps the report of this process while it lives; see [store.Presence].
func (s *Store) Announce(ctx context.Context, tag string, info []byte, ttl time.Duration) (others int, err error) {
	return look(ctx, s, "presence", func(m *memstore.Store, ctx context.Context, tag string) (int, error) {
		return m.Announce(ctx, tag, info, ttl)
	}, tag)
}

// Processes returns the reports; see [store.Presence].
func (s *Store) Processes(ctx context.Context) (map[string][]byte, error) {
	return ask(ctx, s, "presence", (*memstore.Store).Processes)
}

// Wakeups subscribes; see [store.Waker].
func (s *Store) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	return s.memory().Wakeups(ctx)
}
