package attack_test

// All of a private Redis, entry by entry, and whose each entry is.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// dump reads all keys of a Redis.
type dump struct{ client *redis.Client }

// all is each field, member and list, by its place: the key, and behind a line break the field or member.
func (d *dump) all(t *testing.T) map[string]string {
	t.Helper()
	ctx, all := t.Context(), map[string]string{}
	keys, err := d.client.Keys(ctx, "*").Result() // of a server that the test started itself
	require.NoError(t, err)
	for _, key := range keys {
		kind, err := d.client.Type(ctx, key).Result()
		require.NoError(t, err)
		switch kind {
		case "hash":
			fields, err := d.client.HGetAll(ctx, key).Result()
			require.NoError(t, err)
			for field, value := range fields {
				all[key+"\n"+field] = value
			}
		case "zset":
			members, err := d.client.ZRangeWithScores(ctx, key, 0, -1).Result()
			require.NoError(t, err)
			for _, m := range members {
				all[key+"\n"+fmt.Sprint(m.Member)] = fmt.Sprint(m.Score)
			}
		case "list":
			entries, err := d.client.LRange(ctx, key, 0, -1).Result()
			require.NoError(t, err)
			all[key] = fmt.Sprintf("%q", entries)
		default:
			value, err := d.client.Get(ctx, key).Result()
			require.NoError(t, err)
			all[key] = value
		}
	}
	return all
}

// base begins each key of the one partition.
const base = "duly:{0}:"

// common are the places that all agents of a partition share, and that say nothing of any: its clock and counters, those of kinds, what
// is due first, the claims that ended last, and the answers to the last calls of each process.
var common = []string{"counters", "kinds", "due", "ended", "answers", "failures:" + kindOf, "parked\n" + kindOf, "parked\n@"}

// shared reports whether a place is nobody's.
func shared(place string) bool {
	rest, ours := strings.CutPrefix(place, base)
	if !ours {
		return true // the settings of the store
	}
	for _, one := range common {
		if rest == one || strings.HasPrefix(rest, one+"\n") && !strings.Contains(one, "\n") {
			return true
		}
	}
	return false
}

// belongs reports whether a place is that of an agent, by its encoded name: a key of its own, or a field or member that begins with it
// behind the mark of its place.
func belongs(place, agent string) bool {
	key, field, _ := strings.Cut(strings.TrimPrefix(place, base), "\n")
	for _, own := range []string{"queue:1:", "queue:2:", "queue:3:", "history:", "ends:", "dead:"} {
		if rest, ok := strings.CutPrefix(key, own); ok {
			return rest == agent // its fields and members are ids
		}
	}
	prefixes := []string{""}
	switch {
	case key == "holds" || key == "open" || key == "leases":
		prefixes = []string{"a:", "t:", "@a:", "@t:"}
	case key == "orders" || key == "groups":
		prefixes = []string{"", "@"}
	case key == "bytes" || key == "stale":
		prefixes = []string{"", "ends:", "dead:", "scan:"}
	case strings.HasPrefix(key, "group:"):
		field, prefixes = strings.TrimPrefix(key, "group:"), []string{""}
	case key == "claims":
		return false // what it has of tasks is in the values
	}
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(field, prefix); ok && (rest == agent || strings.HasPrefix(rest, agent+":")) {
			return true
		}
	}
	return false
}

// encoded is a name as the layout has it: every byte but letters, digits and "._-" as an escape.
func encoded(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
