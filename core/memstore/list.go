package memstore

// A walk through the tasks of an agent, a page at a time.

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The places that a walk through an agent's tasks visits, in this order.
// The letters come first in a cursor, in an order of their own: see places.
const (
	placeWaiting  = 'w'
	placeRunning  = 'r'
	placeParked   = 'p'
	placeFinished = 's'
)

// places gives the order of the letters.
var places = string([]byte{placeWaiting, placeRunning, placeParked, placeFinished})

// spot is where a task is in a walk: waiting ones by due time and then in the order of their submit, all others by id.
// It names a place and not a task, so that a walk can continue although the task has moved or gone.
type spot struct {
	place byte
	due   moment.Millis
	seq   int64
	id    string
}

// walk adds the next page of all tasks of an agent.
// Each page looks at all tasks of the agent: an embedded store has few, and the cursor stays simple.
func (p reading) walk(q store.List, page *store.Page) error {
	after, ok := parseSpot(q.After)
	if !ok {
		return &store.InvalidError{Field: "cursor", Reason: "is invalid: use the one that the previous page ended with, or none"}
	}
	room := store.PageBytes
	for _, at := range p.spots(q.Agent) {
		t := p.stored(q.Agent, at.id)
		// Everything up to the cursor has been shown, also tasks that have moved there since.
		if q.After != "" && at.compare(after) <= 0 || q.Statuses != nil && !slices.Contains(q.Statuses, t.Status) {
			continue
		}
		t.Cursor = at.String()
		t = shownAs(t, q.Brief)
		room -= len(t.Body) + len(t.State) + len(t.Record) + len(t.Order)
		// A page ends where it is full, by number or by bytes, but never without any task.
		if n := len(page.Tasks); n > 0 && (n >= q.Limit || room < 0) {
			page.Next = page.Tasks[n-1].Cursor
			return nil
		}
		// A limit of zero adds nothing.
		if q.Limit <= 0 {
			return nil
		}
		page.Tasks = append(page.Tasks, t)
	}
	return nil
}

// shownAs leaves out of a task the fields that a brief list does not show.
func shownAs(t store.Stored, brief bool) store.Stored {
	if brief {
		return store.Stored{Agent: t.Agent, ID: t.ID, Status: t.Status, Cursor: t.Cursor}
	}
	return t
}

// spots are where the tasks of an agent are, in the order of a walk.
// Finished tasks whose id is live again are left out: the live one is shown.
func (p reading) spots(name string) []spot {
	var all []spot
	a := p.agents[name]
	if a != nil {
		for id, t := range a.tasks {
			switch {
			case t.claim != nil:
				all = append(all, spot{place: placeRunning, id: id})
			case t.parked != "":
				all = append(all, spot{place: placeParked, id: id})
			default:
				all = append(all, spot{place: placeWaiting, due: t.due, seq: t.seq, id: id})
			}
		}
	}
	if h := p.finished[name]; h != nil {
		for id := range h.records {
			if _, dropped, ok := p.records(p.now).remembered(name, id); ok && !dropped && (a == nil || a.tasks[id] == nil) {
				all = append(all, spot{place: placeFinished, id: id})
			}
		}
	}
	slices.SortFunc(all, spot.compare)
	return all
}

// compare orders spots as a walk visits them; zero for the same one.
func (s spot) compare(o spot) int {
	return cmp.Or(
		cmp.Compare(strings.IndexByte(places, s.place), strings.IndexByte(places, o.place)),
		cmp.Compare(s.due, o.due), cmp.Compare(s.seq, o.seq), cmp.Compare(s.id, o.id),
	)
}

// String is the cursor of a page that continues after the spot.
func (s spot) String() string { return fmt.Sprintf("%c%d|%d|%s", s.place, s.due, s.seq, s.id) }

// parseSpot reads a cursor, which comes from a client: false if it is
// none. The empty one is the beginning.
func parseSpot(cursor string) (spot, bool) {
	if cursor == "" {
		return spot{}, true
	}
	parts := strings.SplitN(cursor[1:], "|", 3)
	if len(parts) != 3 || strings.IndexByte(places, cursor[0]) < 0 {
		return spot{}, false
	}
	due, err1 := strconv.ParseInt(parts[0], 10, 64)
	seq, err2 := strconv.ParseInt(parts[1], 10, 64)
	return spot{place: cursor[0], due: moment.Millis(due), seq: seq, id: parts[2]}, err1 == nil && err2 == nil
}
