package memstore

// Find: the tasks of all agents at a place, in the order in which Redis has them.

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Find returns a page of the tasks of all agents; see [store.Reader].
// Each page looks at all of them: an embedded store has few.
func (s *Store) Find(ctx context.Context, q store.Find) (store.Page, error) {
	after, ok := parseFinding(q.After)
	if !ok {
		return store.Page{}, &store.InvalidError{Field: "cursor", Reason: "is invalid: use the one that the previous page ended with, or none"}
	}
	return read(ctx, s, func(now moment.Millis) (store.Page, error) {
		page, room := store.Page{Now: now}, store.PageBytes
		for _, at := range s.findings(q, now) {
			if q.After != "" && at.compare(after, q.Place) <= 0 {
				continue
			}
			t := reading{s.parts[at.partition], now}.stored(at.agent, at.id)
			if q.Place == store.PlaceRunning {
				t.Lease, t.Holder = at.score, at.holder
			}
			t.Cursor = at.String()
			room -= len(t.Body) + len(t.State) + len(t.Record) + len(t.Order)
			if n := len(page.Tasks); n > 0 && (n >= q.Limit || room < 0) {
				page.Next = page.Tasks[n-1].Cursor
				break
			}
			page.Tasks = append(page.Tasks, t)
		}
		return page, nil
	})
}

// finding is a task at a place: by score, partition and member as in Redis, then by its place among those of the member.
type finding struct {
	score     moment.Millis
	partition int
	member    string
	due       moment.Millis // of a task in the queue of an agent, with seq
	seq       int64
	agent, id string
	holder    string
}

// findings are all tasks at a place, in order.
func (s *Store) findings(q store.Find, now moment.Millis) []finding {
	var all []finding
	for _, p := range s.parts {
		switch q.Place {
		case store.PlaceFailed:
			all = append(all, reading{p, now}.failures(q)...)
		case store.PlaceRunning:
			all = append(all, reading{p, now}.leased()...)
		case store.PlaceOverdue:
			all = append(all, reading{p, now}.overdue()...)
		case store.PlaceAwaiting:
			all = append(all, p.signals.awaiting(p.index)...)
		}
	}
	slices.SortFunc(all, func(a, b finding) int { return a.compare(b, q.Place) })
	return all
}

// failures are the dead letters that are kept.
func (p reading) failures(q store.Find) []finding {
	var all []finding
	for agent, h := range p.finished {
		for id, f := range h.records {
			_, dropped, kept := p.records(p.now).remembered(agent, id)
			if f.verb == store.VerbFail && kept && !dropped && p.task(agent, id) == nil && f.at >= q.Since && (q.Until == 0 || f.at < q.Until) {
				all = append(all, finding{score: f.at, partition: p.index, member: agent + ":" + id, agent: agent, id: id})
			}
		}
	}
	return all
}

// leased are the tasks that run.
func (p reading) leased() []finding {
	var all []finding
	for _, t := range p.leases.items {
		if t.claim == nil {
			continue
		}
		for _, run := range t.claim.runs {
			if run.task != nil && run.task.claim == t.claim {
				all = append(all, finding{
					score: t.end, partition: p.index, member: t.name(), agent: run.task.Agent, id: run.task.ID,
					holder: t.claim.nonce[:min(len(t.claim.nonce), store.NonceLen/2)],
				})
			}
		}
	}
	return all
}

// overdue are the tasks that are due and that a claim could take.
func (p reading) overdue() []finding {
	var all []finding
	for _, e := range p.agenda.items {
		if e.visit > p.now {
			continue
		}
		at := finding{score: e.visit, partition: p.index, member: e.name, agent: e.agent.name}
		if e.task != nil {
			at.id = e.task.ID
			all = append(all, at)
			continue
		}
		for _, q := range e.agent.levels {
			for _, t := range q.items {
				if t.due <= p.now {
					at.id, at.due, at.seq = t.ID, t.due, t.seq
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// compare orders findings as a walk goes through a place: the last dead letters come first.
func (f finding) compare(o finding, place store.Place) int {
	n := cmp.Or(cmp.Compare(f.score, o.score), cmp.Compare(f.partition, o.partition), cmp.Compare(f.member, o.member))
	if place == store.PlaceFailed {
		n = -n
	}
	return cmp.Or(n, cmp.Compare(f.due, o.due), cmp.Compare(f.seq, o.seq), cmp.Compare(f.agent, o.agent), cmp.Compare(f.id, o.id))
}

// String is the cursor of a page that continues after the finding.
func (f finding) String() string {
	names := base64.RawURLEncoding.EncodeToString([]byte(f.member + f.agent + f.id)) // a member has bytes that are no text
	return fmt.Sprintf("%d|%d|%d|%d|%d|%d|%s", f.score, f.partition, f.due, f.seq, len(f.member), len(f.agent), names)
}

// parseFinding reads a cursor, which comes from a client: false if it is invalid. The empty one is the beginning.
func parseFinding(cursor string) (finding, bool) {
	if cursor == "" {
		return finding{}, true
	}
	const fields = 7
	parts := strings.SplitN(cursor, "|", fields)
	if len(parts) != fields {
		return finding{}, false
	}
	var n [fields - 1]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil || n[i] < 0 {
			return finding{}, false
		}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[fields-1])
	if err != nil || n[4] > int64(len(text)) || n[5] > int64(len(text))-n[4] {
		return finding{}, false
	}
	return finding{
		score: moment.Millis(n[0]), partition: int(n[1]), due: moment.Millis(n[2]), seq: n[3],
		member: string(text[:n[4]]), agent: string(text[n[4] : n[4]+n[5]]), id: string(text[n[4]+n[5]:]),
	}, true
}
