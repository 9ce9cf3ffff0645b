// Package whole reads everything that a store has of a sort, page by page to the last one.
package whole

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// EachPage reads pages until the last one: read is given where one begins, and returns where the next one does.
// The bound is far beyond any test's number of pages.
func EachPage(t *testing.T, read func(after string) (next string, err error)) {
	t.Helper()
	after := ""
	for range 10_000 {
		next, err := read(after)
		require.NoError(t, err)
		if after = next; after == "" {
			return
		}
	}
	require.Fail(t, "the pages have no end")
}

// EachTask reads all pages of a list.
func EachTask(t *testing.T, s store.Store, q store.List, add func(store.Page)) {
	t.Helper()
	EachPage(t, func(after string) (string, error) {
		q.After = after
		page, err := s.List(t.Context(), q)
		add(page)
		return page.Next, err
	})
}

// Agents are the agents of all pages, as they come.
func Agents(t *testing.T, s store.Store, limit int) []store.AgentStats {
	t.Helper()
	var out []store.AgentStats
	EachPage(t, func(after string) (string, error) {
		page, err := s.Agents(t.Context(), store.PageOf{After: after, Limit: limit})
		out = append(out, page.Agents...)
		return page.Next, err
	})
	return out
}

// Pauses are the holds of all pages, sorted by target, each once.
func Pauses(t *testing.T, s store.Store, limit int) []store.Held {
	t.Helper()
	var out []store.Held
	EachPage(t, func(after string) (string, error) {
		page, err := s.Holds(t.Context(), store.PageOf{After: after, Limit: limit})
		out = append(out, page.Holds...)
		return page.Next, err
	})
	order := func(a, b store.Held) int {
		return strings.Compare(fmt.Sprintf("%+v", a.Target), fmt.Sprintf("%+v", b.Target))
	}
	slices.SortFunc(out, order)
	return slices.CompactFunc(out, func(a, b store.Held) bool { return a.Target == b.Target })
}

// Profiles are the profiles of all pages, sorted by agent, each once.
func Profiles(t *testing.T, s store.Store, limit int) []store.Profiled {
	t.Helper()
	var out []store.Profiled
	EachPage(t, func(after string) (string, error) {
		page, err := s.Profiles(t.Context(), store.PageOf{After: after, Limit: limit})
		out = append(out, page.Profiles...)
		return page.Next, err
	})
	slices.SortFunc(out, func(a, b store.Profiled) int { return strings.Compare(a.Agent, b.Agent) })
	return slices.CompactFunc(out, func(a, b store.Profiled) bool { return a.Agent == b.Agent })
}

// Find reads all pages of a query, and returns what they have.
func Find(t *testing.T, s store.Store, q store.Find) []store.Stored {
	t.Helper()
	var all []store.Stored
	EachPage(t, func(after string) (string, error) {
		q.After = after
		page, err := s.Find(t.Context(), q)
		require.LessOrEqual(t, len(page.Tasks), q.Limit)
		all = append(all, page.Tasks...)
		return page.Next, err
	})
	return all
}

// Audit looks at all tasks of a store and returns how many there are. None may be where nothing finds it again.
// Each partition is audited to its end, with a bound on the pages: a cursor
// that runs in a circle is a fault too.
func Audit(t *testing.T, s store.Store) int {
	t.Helper()
	tasks := 0
	for p := range s.Partitions() {
		for cursor, n := "", 0; ; n++ {
			require.Less(t, n, 1000, "an audit that never ends")
			pages, err := s.Audit(t.Context(), []audit.Page{{Partition: p, Cursor: cursor}})
			require.NoError(t, err)
			found := pages[0]
			require.Empty(t, found.Faults)
			tasks += found.Tasks
			if cursor = found.Next; cursor == "" {
				break
			}
		}
	}
	return tasks
}
