package equal

// Walks through tasks and agents.

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// list compares walks through all of an agent's tasks: the pages, and the order of most places, are the store's business.
// What a walk returns is compared by id.
func (d *driver) list(q store.List) {
	q.Brief = d.pick(4) == 0
	if d.pick(3) == 0 {
		q.Statuses = statuses[d.pick(len(statuses)):]
	}
	require.Equal(d, d.walk(d.a, q), d.walk(d.b, q), "walk")
}

// find compares walks through the tasks of all agents at a place: the order of what comes there together is a store's business.
func (d *driver) find() {
	q := store.Find{Place: places[d.pick(len(places))], Limit: 1 + d.pick(50)}
	if d.pick(4) == 0 {
		q.Since = moment.Millis(d.clock.Now().UnixMilli()) - moment.Millis(d.pick(100_000))
	}
	ra, rb := d.findAll(d.a, q), d.findAll(d.b, q)
	require.Equal(d, refs(ra), refs(rb), "find %c", q.Place)
	require.Equal(d, ra, rb, "find %c", q.Place)
}

// refs are the agents and ids of tasks.
func refs(tasks []store.Stored) []string {
	var all []string
	for i := range tasks {
		all = append(all, tasks[i].Agent+"/"+tasks[i].ID)
	}
	return all
}

// places are all places.
var places = []store.Place{store.PlaceFailed, store.PlaceRunning, store.PlaceOverdue, store.PlaceAwaiting}

// findAll is what all pages of a place have, by agent and id.
func (d *driver) findAll(s store.Store, q store.Find) []store.Stored {
	d.Helper()
	all := whole.Find(d.T, s, q)
	if q.Place == store.PlaceFailed {
		require.True(d, slices.IsSortedFunc(all, func(a, b store.Stored) int { return cmp.Compare(b.Finished, a.Finished) }), "the last ones come first")
	}
	for i := range all {
		shorten(&all[i])
		all[i].Version, all[i].Cursor = "", ""
	}
	slices.SortFunc(all, func(a, b store.Stored) int {
		return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(a.ID, b.ID))
	})
	return all
}

// get compares tasks read by id.
func (d *driver) get(q store.Get) {
	ra, ea := d.a.Get(d.Context(), q)
	rb, eb := d.b.Get(d.Context(), q)
	for i := range ra.Tasks {
		// How a store makes versions, and the numbers of its fences, are its own business.
		shorten(&ra.Tasks[i])
		ra.Tasks[i].Version, ra.Tasks[i].Fence = "", min(ra.Tasks[i].Fence, 1)
	}
	for i := range rb.Tasks {
		shorten(&rb.Tasks[i])
		rb.Tasks[i].Version, rb.Tasks[i].Fence = "", min(rb.Tasks[i].Fence, 1)
	}
	d.same("get", ea, eb, ra, rb)
}

// group compares the counts of a group.
func (d *driver) group(agent, group string) {
	ra, ea := d.a.Group(d.Context(), agent, group)
	rb, eb := d.b.Group(d.Context(), agent, group)
	d.same("group", ea, eb, ra, rb)
}

// shorten puts hashes in place of a large record or body, so that people can read where answers differ.
// A test that fails would otherwise print megabytes.
func shorten(t *store.Stored) {
	for _, data := range []*[]byte{&t.Record, &t.Body} {
		if len(*data) > 100 {
			*data = fmt.Appendf(nil, "%d bytes, %x", len(*data), sha256.Sum256(*data))
		}
	}
}

// A status filter is the list from one of these on, which makes every length of filter.
var statuses = []store.Status{
	store.StatusCompleted, store.StatusWaiting, store.StatusFailed, store.StatusInProgress, store.StatusCancelled,
}

// walk reads all pages, makes sure that they come in the order that is promised, and returns what they have by id.
func (d *driver) walk(s store.Store, q store.List) store.Page {
	d.Helper()
	var all store.Page
	whole.EachTask(d.T, s, q, func(page store.Page) {
		require.LessOrEqual(d, len(page.Tasks), q.Limit)
		require.True(d, len(page.Tasks) > 0 || page.Next == "", "only the last page may be empty")
		all.Now, all.Tasks = page.Now, append(all.Tasks, page.Tasks...)
	})
	// Live tasks come before finished ones: this much order is promised.
	over := slices.IndexFunc(all.Tasks, func(t store.Stored) bool { return t.Status.Finished() })
	if over >= 0 {
		rest := all.Tasks[over:]
		require.False(d, slices.ContainsFunc(rest, func(t store.Stored) bool { return !t.Status.Finished() }), "what has finished comes last")
	}
	for i := range all.Tasks {
		shorten(&all.Tasks[i])
		all.Tasks[i].Version, all.Tasks[i].Cursor = "", ""
	}
	slices.SortFunc(all.Tasks, func(a, b store.Stored) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// refusal is what sort of error a store refuses a call with, as its text may differ.
// The empty case is an error that no caller tells apart from others.
func refusal(err error) string {
	for sort, is := range map[string]bool{
		"limit": errors.As(err, new(*store.LimitError)), "conflict": errors.As(err, new(*store.ConflictError)),
		"invalid": errors.As(err, new(*store.InvalidError)), "changed": errors.Is(err, store.ErrChanged), "full": errors.Is(err, store.ErrFull),
	} {
		if is {
			return sort
		}
	}
	return "other"
}
