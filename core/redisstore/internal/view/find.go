package view

// Find: pages of the tasks of all agents, merged from those of all partitions.

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// mostFound is how many tasks a step finds in a partition at most, and readAtOnce of how many agents tasks are read in a round trip.
const (
	mostFound  = 100
	readAtOnce = 16
)

// Find returns a page of the tasks of all agents at a place; see [store.Reader]. All partitions are asked at once for what comes next in
// them, and as much of it is read as the page takes.
func (s *View) Find(ctx context.Context, q store.Find) (store.Page, error) {
	q.Limit = max(q.Limit, 1)
	at, ok := parseFindMark(q.After, len(s.db.Parts))
	if !ok {
		return store.Page{}, ErrCursor
	}
	f := &finding{s: s, q: q, at: at, room: store.PageBytes, lines: make([]findLine, len(s.db.Parts))}
	ask := f.ask
	if q.Place == store.PlaceAwaiting {
		ask = f.askAwaiting
	}
	if err := ask(ctx); err != nil {
		return store.Page{}, err
	}
	return f.page, f.fill(ctx)
}

// findMark is where a page ends: after a task, or after an entry that had none.
type findMark struct {
	score     int64
	partition int
	member    string // of the set that the walk goes through
	inner     string // how far it has come with the tasks of the member; empty after all of them
}

// String is the mark as a cursor.
func (m findMark) String() string {
	return fmt.Sprintf("%d.%d.%s.%s", m.score, m.partition,
		base64.RawURLEncoding.EncodeToString([]byte(m.member)), base64.RawURLEncoding.EncodeToString([]byte(m.inner)))
}

// parseFindMark reads a cursor, which comes from a client: false if it is invalid. The empty one is the beginning.
func parseFindMark(cursor string, partitions int) (*findMark, bool) {
	if cursor == "" {
		return nil, true
	}
	parts := strings.Split(cursor, ".")
	if len(parts) != 4 {
		return nil, false
	}
	score, err := strconv.ParseInt(parts[0], 10, 64)
	at, err1 := strconv.Atoi(parts[1])
	member, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	inner, err3 := base64.RawURLEncoding.DecodeString(parts[3])
	const latest = 1 << 52 // scores are exact up to there
	ok := cmp.Or(err, err1, err2, err3) == nil && score >= 0 && score < latest && at >= 0 && at < partitions && len(member) > 0
	return &findMark{score: score, partition: at, member: string(member), inner: string(inner)}, ok
}

// found is a task as find.lua finds it; without an id those of an agent's queue.
type found struct {
	mark      findMark
	agent, id string
	lease     moment.Millis
	holder    string
}

// findLine is the answer of a partition.
type findLine struct {
	found []found
	end   findMark // how far it has looked
	over  bool     // nothing follows it
}

// finding is a page that is being made.
type finding struct {
	s     *View
	q     store.Find
	at    *findMark // where the page begins; nil for the beginning
	lines []findLine
	page  store.Page
	room  int // bytes
}

// ask has each partition find what comes next in it.
func (f *finding) ask(ctx context.Context) error {
	calls := make([]call.Call, len(f.s.db.Parts))
	for i := range calls {
		from, ties, member, again := f.begin(i)
		calls[i] = call.Call{Script: &f.s.db.Scripts.Find, Partition: i, Args: []any{
			string(f.q.Place), from, ties, member, int64(f.q.Since), min(f.q.Limit, mostFound), again,
		}}
	}
	replies, err := f.s.db.Run(ctx, "read", calls)
	if err != nil {
		return err
	}
	for i, reply := range replies {
		if f.lines[i], err = f.parse(i, reply); err != nil {
			return call.Wrap("read", err)
		}
		f.page.Now = max(f.page.Now, moment.Millis(layout.Number(reply[0])))
	}
	return nil
}

// begin is where a partition continues: after a score, when all, none or some of the entries with that score have been shown. again reports that the
// member is not finished.
func (f *finding) begin(partition int) (from any, ties, member string, again bool) {
	switch {
	case f.at == nil && f.down() && f.q.Until > 0:
		return int64(f.q.Until), "<", "", false
	case f.at == nil:
		return "", ">", "", false
	case f.at.partition == partition:
		return f.at.score, "=", f.at.member, f.at.inner != ""
	case f.at.partition > partition != f.down():
		return f.at.score, "<", "", false
	default:
		return f.at.score, ">", "", false
	}
}

// down reports whether the highest scores come first.
func (f *finding) down() bool { return f.q.Place == store.PlaceFailed }

// parse reads the answer of a partition.
func (f *finding) parse(partition int, reply []any) (findLine, error) {
	const head, fields = 4, 6
	if len(reply) < head || (len(reply)-head)%fields != 0 {
		return findLine{}, layout.ErrMalformed
	}
	end, err := layout.Millis(reply[2])
	if err != nil {
		return findLine{}, err
	}
	line := findLine{over: layout.Number(reply[1]) == 1, end: findMark{score: int64(end), partition: partition, member: layout.Text(reply[3])}}
	for e := range slices.Chunk(reply[head:], fields) {
		agent, err := layout.Decode(layout.Text(e[0]))
		if err != nil {
			return line, err
		}
		t := found{agent: agent, id: layout.Text(e[1]), holder: layout.Text(e[5]), mark: findMark{partition: partition, member: layout.Text(e[3])}}
		score, err := layout.Millis(e[2])
		if err != nil {
			return line, err
		}
		if t.mark.score = int64(score); f.q.Place == store.PlaceRunning {
			t.lease, t.mark.inner = score, agent+"\n"+t.id // a claim has tasks of several agents
		}
		if f.at == nil || f.compare(&t.mark, f.at) > 0 || t.id == "" {
			line.found = append(line.found, t)
		}
	}
	return line, nil
}

// compare orders marks as the walk goes.
func (f *finding) compare(a, b *findMark) int {
	n := cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.partition, b.partition), cmp.Compare(a.member, b.member))
	if f.down() {
		n = -n
	}
	return cmp.Or(n, cmp.Compare(a.inner, b.inner))
}
