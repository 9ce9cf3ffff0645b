package redisstore

// Placing: the keys that a repartition drops and renames. Each step is a script that does nothing once a later attempt has begun.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
)

// scanPage is about how many keys one step of a scan looks at, and mostChanged how many one script drops or renames.
const (
	scanPage    = 1000
	mostChanged = 100
)

// change runs the script of a repartition on keys of each partition, by their names; several times where they are many.
func change(ctx context.Context, db *call.DB, state *moving, what string, names [][]string) error {
	var calls []call.Call
	for i, all := range names {
		for some := range slices.Chunk(all, mostChanged) {
			args := []any{state.Attempt, what, copyOf(state.Copy)}
			for _, name := range some {
				args = append(args, name)
			}
			calls = append(calls, call.Call{Script: &db.Scripts.Repartition, Partition: i, Args: args})
		}
	}
	replies, err := db.Run(ctx, verbRepartition, calls)
	if err != nil {
		return err
	}
	for _, reply := range replies {
		if len(reply) != 2 || layout.Number(reply[1]) != 1 {
			return errOvertaken
		}
	}
	return nil
}

// take takes all slots for an attempt.
func (m *mover) take(ctx context.Context) error {
	names := make([][]string, len(m.slots.db.Parts))
	for i := range names {
		names[i] = []string{call.Nothing}
	}
	return change(ctx, &m.slots.db, m.state, "take", names)
}

// scan looks through all keys of the partitions that are and that will be: a page of names, by the base of their partition.
// In a cluster the nodes are looked through one by one, each page of any of them alone. A key may come twice.
func (m *copier) scan(ctx context.Context, page func(found map[string][]string) error) error {
	var mu sync.Mutex
	through := func(ctx context.Context, node redis.UniversalClient) error {
		for cursor := "0"; ; {
			reply, err := node.Do(ctx, "SCAN", cursor, "MATCH", quoted(m.old.config.Prefix)+"{*}:*", "COUNT", scanPage).Slice()
			if err != nil {
				return call.Wrap(verbRepartition, err)
			}
			if len(reply) != 2 {
				return call.Wrap(verbRepartition, layout.ErrMalformed)
			}
			keys, _ := reply[1].([]any)
			mu.Lock()
			err = page(m.byBase(keys))
			mu.Unlock()
			if cursor = layout.Text(reply[0]); err != nil || cursor == "0" {
				return err
			}
		}
	}
	if c := m.old.db.Cluster; c != nil {
		return c.Client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return through(ctx, node) })
	}
	return through(ctx, m.old.db.Client)
}

// quoted is a prefix as a pattern that only it fits.
func quoted(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(prefix)
}

// byBase sorts keys by their partitions, and leaves out those of probes and of others.
func (m *copier) byBase(keys []any) map[string][]string {
	found := map[string][]string{}
	for _, p := range m.slots.db.Parts {
		found[p.Base] = nil
	}
	for _, key := range keys {
		name := layout.Text(key)
		end := strings.Index(name, "}:") + len("}:")
		base := name[:end]
		if _, ours := found[base]; ours && name[end:] != "mover" {
			found[base] = append(found[base], name[end:])
		}
	}
	return found
}

// dropAll drops all keys whose names are chosen. It looks until it finds none: keys of a slot that moves may be overlooked.
func (m *mover) dropAll(ctx context.Context, chosen func(name string) bool) error {
	return m.untilNone(ctx, "drop", func(name string) (string, bool) { return name, chosen(name) })
}

// dropCopies drops the copies of all attempts.
func (m *mover) dropCopies(ctx context.Context) error {
	return m.dropAll(ctx, func(name string) bool { return strings.HasPrefix(name, anyCopy) })
}

// placeAll gives the copies their names. Keys that the audit of the copies has left belong to none: they expire by themselves.
func (m *mover) placeAll(ctx context.Context) error {
	return m.untilNone(ctx, "place", func(name string) (string, bool) { return strings.CutPrefix(name, copyOf(m.state.Copy)) })
}

// untilNone changes the keys that are chosen, by the names that are returned for them.
func (m *mover) untilNone(ctx context.Context, what string, chosen func(name string) (string, bool)) error {
	for more := true; more; {
		more = false
		err := m.scan(ctx, func(found map[string][]string) error {
			names, some := m.choose(found, chosen)
			if !some {
				return nil
			}
			more = true
			return change(ctx, &m.slots.db, m.state, what, names)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// choose are the names among those of each slot that are chosen.
func (m *mover) choose(found map[string][]string, chosen func(name string) (string, bool)) (names [][]string, some bool) {
	names = make([][]string, len(m.slots.db.Parts))
	for i, p := range m.slots.db.Parts {
		for _, name := range found[p.Base] {
			if of, is := chosen(name); is {
				names[i], some = append(names[i], of), true
			}
		}
	}
	return names, some
}

// trial tries the rarer commands on a key of its own: a user who lacks one is refused before anything is closed.
func (m *mover) trial(ctx context.Context) error {
	key := m.old.probePartition(newNonce()).Key("trial")
	for _, command := range [][]any{
		{"RPUSH", key, ""},
		{"PEXPIRE", key, undoIn.Milliseconds()},
		{"PTTL", key},
		{"LLEN", key},
		{"RENAME", key, key + "."},
		{"UNLINK", key + "."},
		{"SCAN", 0, "MATCH", quoted(m.old.config.Prefix) + "*", "COUNT", 1},
	} {
		switch err := m.old.db.Client.Do(ctx, command...).Err(); {
		case err != nil && call.Denied(err):
			return fmt.Errorf("the Redis user lacks a permission that duly repartition needs: %w; see docs/redis.md", err)
		case err != nil:
			return call.Wrap(verbRepartition, err)
		}
	}
	return nil
}

// Names of the keys that a partition has, with and without a part after a colon. Keys that a later version has added would be lost.
var (
	knownNames = namesIn("agents tasks agenda state claims leases serial ended finished failed stale bytes gone orders holds open parked pulse suspects notices " +
		"kinds groups counters answers processes mover due limits bounds granted permits uses flight rates lined lines profiles quotas paced periods spent usual reserved reserves charged learned alarms owed awaits " +
		"receipts received events watched seal tenants lanes visits laned urgent")
	knownLines = namesIn("queue ends dead history parked failures group recount moving line asks spawned awaits signal sent recent recurs output printed lane")
)

func namesIn(list string) map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		names[name] = true
	}
	return names
}

// known refuses a key that this version knows nothing of.
func known(p layout.Partition, name string) error {
	line, _, is := strings.Cut(name, ":")
	if is && knownLines[line] || !is && knownNames[line] {
		return nil
	}
	return fmt.Errorf("the key %q is none that this version of duly makes: if a later version has made it, use that one; otherwise delete it",
		p.Key(name))
}
