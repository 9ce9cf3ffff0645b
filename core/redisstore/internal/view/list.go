// Package view reads what a store on Redis has, and changes nothing.
package view

// List and Group: a walk through the tasks of an agent, a page at a time, with a cursor that outlives changes.

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// View reads what a store has.
type View struct {
	db        call.DB
	retention time.Duration // how long finished tasks are remembered
	ahead     *atomic.Int64 // the server's clock minus ours, ms, as of its last answer
}

// New is that of a database whose partitions are known.
func New(db *call.DB, retention time.Duration) View {
	return View{db: *db, retention: retention, ahead: new(atomic.Int64)}
}

// mostListed is how many tasks one step of a walk lists at most.
// A list looks only at ids and places; reading the bodies is another step, with bounds of its own.
const mostListed = 250

// marks are the places at which a walk can continue, as list.lua writes them (see its
// header), with the cursors of scans, which Redis refuses if they are too large. A cursor
// comes from a client and is checked in full: a script would fail on a malformed one with an
// error that looks like a fault of the store.
var marks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:w\d{1,15}\|\d{1,16}|r.+|` +
		`p[1-4]\|(\d{1,20})\|(\d{0,20})\|(\d{1,20})\|(\d{0,20})\|\d{1,4}\|.*|` +
		`f(\d{1,20})\|(\d{0,20})\|.*)$`)
})

// isMark reports whether a walk can continue after a cursor.
// The empty cursor is the first page.
func isMark(cursor string) bool {
	parts := marks().FindStringSubmatch(cursor)
	if parts == nil {
		return cursor == ""
	}
	// The pattern bounds the digits, and this the value: twenty digits may be more than 64 bits.
	return !slices.ContainsFunc(parts[1:], func(scan string) bool {
		_, err := strconv.ParseUint(cmp.Or(scan, "0"), 10, 64)
		return err != nil
	})
}

// List returns a page of an agent's tasks; see [store.Reader]. The steps of the list return which tasks come next, others read them; each step
// is bounded, and the page ends where it is full.
func (s *View) List(ctx context.Context, q store.List) (store.Page, error) {
	if !isMark(q.After) {
		return store.Page{}, ErrCursor
	}
	w := walking{s: s, q: q, room: store.PageBytes, at: q.After}
	for {
		listed, err := w.list(ctx)
		if err == nil {
			err = w.take(ctx, listed)
		}
		if err != nil {
			return store.Page{}, err
		}
		if w.full || w.at == "" || len(w.page.Tasks) >= q.Limit {
			w.page.Next = w.at
			return w.page, nil
		}
	}
}

// ErrCursor is a mistake of the client, and reported as such: with
// another cursor, or none, the list works.
var ErrCursor = &store.InvalidError{Field: "cursor", Reason: "is invalid: use the one that the previous page ended with, or none"}

// walking is a page that is being made.
// It is filled by several steps until it is full, or until there is nothing more.
type walking struct {
	s    *View
	q    store.List
	page store.Page
	at   string // the mark to continue after; empty at the end
	room int    // bytes that the page has room for
	full bool
}

// listed is a task as a walk finds it.
type listed struct {
	id, place, mark string
}

// list is the next step: some tasks. It sets where the walk continues after them.
// It lists no more than the page has room for, so that nothing is listed twice and thrown away.
func (w *walking) list(ctx context.Context) ([]listed, error) {
	const head, fields = 3, 3
	// A step lists what the page still lacks, and no more than is good for Redis.
	most := max(min(w.q.Limit-len(w.page.Tasks), mostListed), 0)
	replies, err := w.s.db.Run(ctx, "read", []call.Call{{Script: &w.s.db.Scripts.List, Partition: w.s.db.PartitionOf(w.q.Agent), Args: []any{
		layout.Encode(w.q.Agent), w.s.retention.Milliseconds(), "", most, wanted(w.q.Statuses), w.at,
	}}})
	if err != nil {
		return nil, err
	}
	reply := replies[0]
	if len(reply) < head || len(reply)%fields != head%fields {
		return nil, call.Wrap("read", layout.ErrMalformed)
	}
	w.page.Now = moment.Millis(layout.Number(reply[0]))
	// Set before the tasks are read: if they fit, this is where the next page begins.
	w.at = layout.Text(reply[2])
	var out []listed
	for f := range slices.Chunk(reply[head:], fields) {
		out = append(out, listed{id: layout.Text(f[0]), place: layout.Text(f[1]), mark: layout.Text(f[2])})
	}
	return out, nil
}

// Group returns how many tasks of a group there are; see [store.Reader].
// The counts are kept up to date by the scripts, so this costs the same
// for a group of one and of a million.
func (s *View) Group(ctx context.Context, agent, group string) (store.GroupCounts, error) {
	replies, err := s.db.Run(ctx, "read", []call.Call{{Script: &s.db.Scripts.List, Partition: s.db.PartitionOf(agent), Args: []any{
		// list.lua with a group and no limit counts and lists nothing.
		layout.Encode(agent), s.retention.Milliseconds(), layout.GroupKey(agent, group), 0, "", "",
	}}})
	if err != nil {
		return store.GroupCounts{}, err
	}
	if len(replies[0]) < 2 {
		return store.GroupCounts{}, call.Wrap("read", layout.ErrMalformed)
	}
	counts, ok := replies[0][1].([]any)
	// No such group: zero of everything, as for one whose tasks have been deleted.
	if !ok || len(counts) != 4 {
		return store.GroupCounts{}, nil
	}
	return store.GroupCounts{
		Live: layout.Number(counts[0]), Completed: layout.Number(counts[1]), Failed: layout.Number(counts[2]), Cancelled: layout.Number(counts[3]),
	}, nil
}

// wanted are the letters of the statuses that list.lua is to look for.
// Nil means all of them.
func wanted(statuses []store.Status) string {
	var letters strings.Builder
	for _, place := range []string{"w", "r", "c", "f", "x"} {
		if statuses == nil || store.Among(statusOf(place), statuses) {
			letters.WriteString(place)
		}
	}
	return letters.String()
}

// take adds the listed tasks to the page, as far as they fit.
// It stops where the page has enough bytes, and remembers the task after which the next page begins.
func (w *walking) take(ctx context.Context, all []listed) error {
	// A brief list needs no bodies, so the first step is enough.
	if w.q.Brief {
		for _, l := range all {
			w.page.Tasks = append(w.page.Tasks, store.Stored{Agent: w.q.Agent, ID: l.id, Status: statusOf(l.place), Cursor: l.mark})
		}
		return nil
	}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	for done := 0; done < len(all); {
		// The first task of a page is taken however large it is, or a page could be empty for ever.
		how := reading{room: w.room, first: len(w.page.Tasks) == 0}
		_, tasks, size, err := w.s.read(ctx, w.q.Agent, ids[done:min(len(ids), done+mostRead)], how)
		if err != nil {
			return err
		}
		for i := range tasks {
			w.add(&tasks[i], all[done+i])
		}
		// A step may return fewer tasks than requested, when they fill the room.
		done, w.room = done+len(tasks), w.room-size
		if w.full = len(tasks) == 0 || w.room <= 0; w.full {
			w.end(all, done)
			return nil
		}
	}
	return nil
}

// end makes the page end after some of the listed tasks.
// Every task has a mark of its own, so a page can end after any of them.
func (w *walking) end(all []listed, done int) {
	switch {
	case done == len(all): // where the list ends
	case done > 0:
		w.at = all[done-1].mark
	default:
		w.at = w.page.Tasks[len(w.page.Tasks)-1].Cursor
	}
}

// add puts a task on the page. It may have changed since it was listed: a task that is gone is left out, and so is one that has finished and
// will be listed among the finished ones.
func (w *walking) add(t *store.Stored, l listed) {
	was := statusOf(l.place)
	if t.Status == "" || t.Dropped || w.q.Statuses != nil && !store.Among(t.Status, w.q.Statuses) || t.Status.Finished() && !was.Finished() {
		return
	}
	t.Cursor = l.mark
	w.page.Tasks = append(w.page.Tasks, *t)
}
