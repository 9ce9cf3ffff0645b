package redisstore

// Copying: keys are read a page at a time, and written into the partitions that their agents are to have.

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Pages are small enough for Redis to serve others between two of them.
const (
	pageEntries = 500
	pageBytes   = 256 << 10 // approximate: the first page of a hash shows how large its entries are
	firstPage   = 16        // entries of it
	atATime     = 32        // keys that are read side by side
)

// stream reads one key of Redis to its end.
type stream struct {
	form byte // 'h' a hash, 'z' a sorted set, 'l' a list
	key  string
	// each is called for each entry: a field and its value, a member and its score, or an element of a list and nothing.
	each func(b batch, name, value string)

	cursor string // of a hash
	at     int    // in one of the others
	page   int    // entries of the next page of a hash
}

// ask is the command for the next page.
func (st *stream) ask() []any {
	switch st.form {
	case 'z':
		return []any{"ZRANGE", st.key, st.at, st.at + pageEntries - 1, "WITHSCORES"}
	case 'l':
		return []any{"LRANGE", st.key, st.at, st.at + pageEntries - 1}
	default:
		return []any{"HSCAN", st.key, cmp.Or(st.cursor, "0"), "COUNT", cmp.Or(st.page, firstPage)}
	}
}

// take handles a page. It reports whether it was the last.
func (st *stream) take(answer *redis.Cmd, b batch) (bool, error) {
	reply, err := answer.Slice()
	if err != nil {
		return false, call.Wrap(verbRepartition, err)
	}
	n := 0
	switch st.form {
	case 'z':
		for _, z := range layout.ScoresOf(answer) {
			st.each(b, z.Member, formatMillis(z.Score))
			n++
		}
	case 'l':
		for _, v := range reply {
			st.each(b, layout.Text(v), "")
			n++
		}
	default:
		return st.takeFields(reply, b)
	}
	st.at += n
	return n < pageEntries, nil
}

// takeFields handles a page of a hash, and sets how many entries the next one is to have.
func (st *stream) takeFields(reply []any, b batch) (bool, error) {
	if len(reply) != 2 {
		return false, call.Wrap(verbRepartition, layout.ErrMalformed)
	}
	fields, _ := reply[1].([]any)
	size := 0
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := layout.Text(fields[i]), layout.Text(fields[i+1])
		size += len(name) + len(value)
		st.each(b, name, value)
	}
	if len(fields) > 0 {
		st.page = min(max(pageBytes*len(fields)/2/max(size, 1), 1), pageEntries)
	}
	st.cursor = layout.Text(reply[0])
	return st.cursor == "0", nil
}

// batch gathers the writes: by command and key, their arguments.
type batch map[[2]string][]any

func (b batch) add(command, key string, args ...any) {
	at := [2]string{command, key}
	b[at] = append(b[at], args...)
}

// write writes a batch in one round trip. Each part may be repeated: only lists would then be too long, which count notices.
func write(ctx context.Context, db *call.DB, b batch) error {
	if len(b) == 0 {
		return nil
	}
	pipe := db.Client.Pipeline()
	for at, args := range b {
		pipe.Do(ctx, append([]any{at[0], at[1]}, args...)...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return call.Wrap(verbRepartition, err)
	}
	return nil
}

// pour reads streams to their ends and writes what they make, some of them side by side. Streams that a page has led to come first, so
// that little waits at any time.
func (m *copier) pour(ctx context.Context, streams ...*stream) error {
	for len(streams) > 0 {
		some := streams[:min(len(streams), atATime)]
		rest, err := m.pages(ctx, some)
		if err != nil {
			return err
		}
		streams = append(append(m.found, rest...), streams[len(some):]...)
		m.found = nil
		if m.progress != nil {
			m.progress(min(m.done, m.total), m.total)
		}
	}
	return nil
}

// pages reads a page of each stream and writes what they make. It returns those that have more.
func (m *copier) pages(ctx context.Context, some []*stream) ([]*stream, error) {
	pipe := m.old.db.Client.Pipeline()
	pages := make([]*redis.Cmd, len(some))
	for i, st := range some {
		pages[i] = pipe.Do(ctx, st.ask()...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, call.Wrap(verbRepartition, err)
	}
	b, rest := batch{}, []*stream(nil)
	for i, st := range some {
		last, err := st.take(pages[i], b)
		if err != nil {
			return nil, err
		}
		if !last {
			rest = append(rest, st)
		}
	}
	return rest, write(ctx, &m.old.db, b)
}

// home is the base of the copies that an agent belongs to, by its name in keys.
func (m *copier) home(name string) string {
	agent, err := layout.Decode(name)
	if err != nil {
		agent = name // not ours: the audit of the copy reports it
	}
	return m.copies.db.Parts[store.PartitionOf(agent, len(m.copies.db.Parts))].Base
}

// agentOf is the agent in front of an id, as most keys name a task; '@' may be in front of it.
func agentOf(ref string) string {
	agent, _, _ := strings.Cut(strings.TrimPrefix(ref, "@"), ":")
	return agent
}

// whole copies a key of one agent.
func (m *copier) whole(from layout.Partition, form byte, name, agent string) *stream {
	to := m.home(agent) + name
	st := &stream{form: form, key: from.Key(name)}
	switch form {
	case 'z':
		st.each = func(b batch, member, score string) { b.add("ZADD", to, score, member) }
	case 'l':
		st.each = func(b batch, v, _ string) { b.add("RPUSH", to, v) }
	default:
		st.each = func(b batch, field, value string) { b.add("HSET", to, field, value) }
	}
	return st
}

// split copies a key of many agents; also, if not nil, is called for each entry.
func (m *copier) split(from layout.Partition, form byte, name string, of func(entry string) string, also func(agent, entry, value string)) *stream {
	st := &stream{form: form, key: from.Key(name)}
	st.each = func(b batch, entry, value string) {
		agent := of(entry)
		if form == 'z' {
			b.add("ZADD", m.home(agent)+name, value, entry)
		} else {
			b.add("HSET", m.home(agent)+name, entry, value)
		}
		if also != nil {
			also(agent, entry, value)
		}
	}
	return st
}

// ofBudgets are the streams of the use of profiles' budgets; budgets of all agents were lifted.
func (m *copier) ofBudgets(p layout.Partition) []*stream {
	var out []*stream
	for name, form := range map[string]byte{"spent": 'h', "periods": 'z'} {
		st := m.split(p, form, name, func(bucket string) string { return bucket[strings.LastIndexByte(bucket, '|')+1:] }, nil)
		each := st.each
		st.each = func(b batch, bucket, value string) {
			if bounds.OfOne(bucket) {
				each(b, bucket, value)
			}
		}
		out = append(out, st)
	}
	return out
}

// copyPartitions copies all that belongs to agents, and what is parked and held. The first partition comes last: where copies
// disagree on a hold of all of them, its own is the one that is shown.
func (m *copier) copyPartitions(ctx context.Context) error {
	m.holds, m.parked = map[string]string{}, map[string]map[string]int64{}
	for _, p := range slices.Backward(m.old.db.Parts) {
		m.bays = map[string]bool{}
		if err := m.pour(ctx, slices.Concat(m.ofAgents(p), m.ofHolds(p), m.ofBudgets(p))...); err != nil {
			return err
		}
	}
	if err := m.copyGroups(ctx); err != nil {
		return err
	}
	if err := m.pour(ctx, m.first('h', "receipts"), m.first('z', "received")); err != nil {
		return err
	}
	return m.writeShared(ctx)
}

// first copies a key of the first partition that belongs to no agent.
func (m *copier) first(form byte, name string) *stream {
	to, command := m.copies.db.Parts[0].Base+name, map[byte]string{'h': "HSET", 'z': "ZADD"}[form]
	st := &stream{form: form, key: m.old.db.Parts[0].Key(name)}
	st.each = func(b batch, entry, value string) {
		if form == 'z' {
			entry, value = value, entry
		}
		b.add(command, to, entry, value)
	}
	return st
}

// ofAgents are the streams of agents and their tasks.
func (m *copier) ofAgents(p layout.Partition) []*stream {
	byName := func(agent string) string { return agent }
	byList := func(line string) string { return line[strings.LastIndexByte(line, ':')+1:] } // of 'ends:' A, 'dead:' A, and A
	return []*stream{
		m.split(p, 'h', "agents", byName, func(agent, _, value string) { m.agent(p, agent, value) }),
		m.split(p, 'h', "tasks", agentOf, func(string, string, string) { m.done++ }),
		m.split(p, 'z', "agenda", agentOf, nil),
		m.split(p, 'h', "state", agentOf, nil),
		m.split(p, 'h', "orders", agentOf, nil),
		m.split(p, 'h', "suspects", agentOf, nil),
		m.split(p, 'h', "pulse", agentOf, nil),
		m.split(p, 'h', "groups", agentOf, nil),
		m.split(p, 'h', "bytes", byList, nil),
		m.split(p, 'h', "stale", byList, nil),
		m.split(p, 'z', "failed", agentOf, nil),
		m.split(p, 'z', "gone", agentOf, nil),
		m.split(p, 'h', "profiles", byName, nil),
		m.split(p, 'h', "bounds", byName, nil),
		m.split(p, 'h', "tenants", byName, nil),
		m.split(p, 'h', "quotas", byName, func(agent, _, _ string) {
			m.found = append(m.found, m.whole(p, 'h', "recurs:"+agent, agent))
		}),
		m.split(p, 'h', "paced", byName, nil),
		m.split(p, 'h', "finished", byName, func(agent, _, value string) { m.history(p, agent, value) }),
	}
}

// agent follows an agent to its queues, and counts its tasks there.
func (m *copier) agent(p layout.Partition, agent, value string) {
	m.done++
	switch {
	case strings.HasPrefix(value, "M"):
		for _, level := range []string{"1", "2", "3"} {
			m.found = append(m.found, m.whole(p, 'z', "queue:"+level+":"+agent, agent))
		}
	case strings.HasPrefix(value, "S"), len(value) > 4 && value[3:5] != "\x00\x00":
		m.done++
	}
}

// history follows an agent to its records, if these are in a hash of their own.
func (m *copier) history(p layout.Partition, agent, value string) {
	if value != "*" {
		m.done++
		return
	}
	records := m.whole(p, 'h', "history:"+agent, agent)
	put := records.each
	records.each = func(b batch, id, record string) {
		m.done++
		put(b, id, record)
	}
	m.found = append(m.found, records, m.whole(p, 'l', "ends:"+agent, agent), m.whole(p, 'l', "dead:"+agent, agent))
}
