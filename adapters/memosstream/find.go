package memosstream

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Streams: how they are found, joined and left, and the entries that other consumers left in them.

// Bounds of one look for streams: it costs a Redis with a hundred thousand keys some thirty milliseconds of its time, and one with more
// is searched over several looks.
const (
	mostScans = 100
	scanCount = 1000
)

// How long an entry was left alone before another consumer of MemOS may take it: MemOS's own bounds, by label.
const (
	idleUsually = time.Hour
	idlePrefAdd = 10 * time.Minute
)

// look searches a part of the key space for streams, or all of it if it is small, and joins those that are new.
func (i *Intake) look(ctx context.Context) error {
	match := escape.Replace(i.config.Prefix) + ":*"
	var names []string
	for range mostScans {
		keys, next, err := i.client.ScanType(ctx, i.cursor, match, scanCount, "stream").Result()
		if err != nil {
			return err
		}
		for _, name := range keys {
			if i.streams[name] == nil {
				names = append(names, name)
			}
		}
		if i.cursor = next; next == 0 {
			break
		}
	}
	for first := 0; first < len(names); first += mostStreams {
		if err := i.join(ctx, names[first:min(first+mostStreams, len(names))]); err != nil {
			return err
		}
	}
	return nil
}

// escape makes a prefix mean itself in a pattern.
var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// join makes sure that streams have the group, and forgets those that do not exist. It never makes a stream: MemOS deletes the idle
// ones.
func (i *Intake) join(ctx context.Context, names []string) error {
	made := make([]*redis.StatusCmd, len(names))
	_, _ = i.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each has its own error
		for n, name := range names {
			made[n] = p.XGroupCreate(ctx, name, group, "0")
		}
		return nil
	})
	for n, name := range names {
		one := made[n].Err()
		switch {
		case one == nil, redis.HasErrorPrefix(one, "BUSYGROUP"):
			// What it was sent before, in this process or another, may be pending.
			if i.streams[name] == nil {
				i.streams[name] = &stream{owes: true}
			}
			i.labels.Store(labelOf(name), true)
		// go-redis' HasErrorPrefix ignores ERR.
		case strings.HasPrefix(one.Error(), "ERR "), redis.HasErrorPrefix(one, "WRONGTYPE"):
			delete(i.streams, name)
		default:
			return one
		}
	}
	i.found.Store(int64(len(i.streams)))
	return nil
}

// claim takes over, a page of each stream, what consumers of MemOS were sent and have neither acknowledged nor touched for as long as
// MemOS itself would wait.
func (i *Intake) claim(ctx context.Context) error {
	for name := range i.streams {
		for start := "0-0"; start != ""; {
			var err error
			if start, err = i.claimPage(ctx, name, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimPage takes over a page of a stream, and returns where the next one begins; empty at the end.
func (i *Intake) claimPage(ctx context.Context, name, start string) (string, error) {
	idle := idleUsually
	if labelOf(name) == "pref_add" {
		idle = idlePrefAdd
	}
	entries, next, err := i.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: name, Group: group, Consumer: consumer, MinIdle: idle, Start: start, Count: mostEntries,
	}).Result()
	switch {
	case err != nil && (redis.HasErrorPrefix(err, "NOGROUP") || redis.HasErrorPrefix(err, "WRONGTYPE")):
		return "", nil // the next read finds out
	case err != nil:
		return "", err
	case next == "0-0":
		next = ""
	}
	return next, i.take(ctx, name, entries)
}
