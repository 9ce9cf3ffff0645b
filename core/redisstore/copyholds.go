package redisstore

// Copying held and parked tasks, and the groups: some of them are in every partition.

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
)

// ofHolds are the streams of held and parked tasks.
func (m *copier) ofHolds(p layout.Partition) []*stream {
	return []*stream{
		{form: 'h', key: p.Key("holds"), each: func(b batch, scope, value string) { m.hold(b, p, scope, value) }},
		{form: 'z', key: p.Key("open"), each: func(b batch, scope, since string) {
			for _, base := range m.homes(scope) {
				b.add("ZADD", base+"open", since, scope)
			}
			m.bay(p, "@"+scope)
		}},
		{form: 'h', key: p.Key("parked"), each: func(_ batch, kind, _ string) {
			if kind == "@" { // how many are held: the holds record where they are
				m.bay(p, "@t")
			} else {
				m.bay(p, kind)
			}
		}},
	}
}

// homes are the bases of the copies that a scope is about: that of its agent, or all.
func (m *copier) homes(scope string) []string {
	if agent, of := heldAgent(scope); of {
		return []string{m.home(agent)}
	}
	all := make([]string, len(m.copies.db.Parts))
	for i, p := range m.copies.db.Parts {
		all[i] = p.Base
	}
	return all
}

// heldAgent is the agent that a scope is about, if it is about one: those of kinds, of keys and of everything are not.
func heldAgent(scope string) (agent string, of bool) {
	if rest, is := strings.CutPrefix(scope, "a:"); is {
		return rest, true
	}
	rest, is := strings.CutPrefix(scope, "t:")
	return agentOf(rest), is
}

// hold copies a hold, with its end; one of every partition is written when all have been read.
func (m *copier) hold(b batch, p layout.Partition, scope, value string) {
	if agent, of := heldAgent(scope); of {
		putHold(b, m.home(agent), scope, value)
	} else {
		m.holds[scope] = value
	}
	if !strings.HasPrefix(scope, "t:") {
		m.bay(p, "@"+scope)
	}
}

// putHold writes a hold, and its end among the leases if it has one: that is where claims look for it.
func putHold(b batch, base, scope, value string) {
	b.add("HSET", base+"holds", scope, value)
	if len(value) >= timeLen {
		if till, err := strconv.ParseInt(value[:timeLen], 10, 64); err == nil && till > 0 {
			b.add("ZADD", base+"leases", till, "@"+scope)
		}
	}
}

// timeLen is the length of a time in ms as records have it.
const timeLen = 13

// bay follows a place to the tasks that are parked there, and counts them. A place may be named twice.
func (m *copier) bay(p layout.Partition, name string) {
	if m.bays[name] {
		return
	}
	m.bays[name] = true
	field := name
	if strings.HasPrefix(name, "@") {
		field = "@"
	}
	m.found = append(m.found, m.split(p, 'z', "parked:"+name, agentOf, func(agent, _, _ string) {
		base := m.home(agent)
		if m.parked[base] == nil {
			m.parked[base] = map[string]int64{}
		}
		m.parked[base][field]++
	}))
}

// writeShared writes the holds of all partitions, and how much is parked in each.
func (m *copier) writeShared(ctx context.Context) error {
	b := batch{}
	for base, kinds := range m.parked {
		for kind, n := range kinds {
			b.add("HSET", base+"parked", kind, n)
		}
	}
	n := 0
	for scope, value := range m.holds {
		for _, base := range m.homes(scope) {
			putHold(b, base, scope, value)
		}
		if n++; n%pageEntries == 0 {
			if err := write(ctx, &m.old.db, b); err != nil {
				return err
			}
			b = batch{}
		}
	}
	return write(ctx, &m.old.db, b)
}

// copyGroups copies the counts of groups, with the time that those have left which are over. Nothing names all of them, so
// it looks for them.
func (m *copier) copyGroups(ctx context.Context) error {
	return m.scan(ctx, func(found map[string][]string) error {
		for _, p := range m.old.db.Parts {
			streams, err := m.groupsAmong(p, found[p.Base])
			if err != nil {
				return err
			}
			if err := m.pour(ctx, streams...); err != nil {
				return err
			}
			if err := m.keepTTL(ctx, p, found[p.Base]); err != nil {
				return err
			}
		}
		return nil
	})
}

// groupsAmong are the streams of those keys that are groups. It refuses a key that this version does not know.
func (m *copier) groupsAmong(p layout.Partition, names []string) ([]*stream, error) {
	var streams []*stream
	for _, name := range names {
		if err := known(p, name); err != nil {
			return nil, err
		}
		if group, is := strings.CutPrefix(name, "group:"); is {
			streams = append(streams, m.whole(p, 'h', name, agentOf(group)))
		}
	}
	return streams, nil
}

// keepTTL gives the copies of groups the time to live that these have.
func (m *copier) keepTTL(ctx context.Context, p layout.Partition, names []string) error {
	pipe, left := m.old.db.Client.Pipeline(), map[string]*redis.Cmd{}
	for _, name := range names {
		if group, is := strings.CutPrefix(name, "group:"); is {
			left[m.home(agentOf(group))+name] = pipe.Do(ctx, "PTTL", p.Key(name))
		}
	}
	if len(left) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return call.Wrap(verbRepartition, err)
	}
	b := batch{}
	for key, ttl := range left {
		switch ms, err := ttl.Int64(); {
		case err != nil:
			return call.Wrap(verbRepartition, err)
		case ms == -1: // for ever
		default: // one that has ended meanwhile takes its copy along
			b.add("PEXPIRE", key, max(ms, 1))
		}
	}
	return write(ctx, &m.old.db, b)
}
