package slots

// Grants: the slots that a pull may fill, and what fits into them.

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Share is how many tasks of the kinds that have a bound the i-th of n requests may take. Where there are fewer than
// requests, it is the turn of others each time: turn grows with each.
func (g *Grant) Share(i, n, turn int) map[string]int {
	if len(g.Room) == 0 {
		return nil
	}
	most := make(map[string]int, len(g.Room))
	for kind, room := range g.Room {
		most[kind] = room / n
		// The remainder goes around: with one slot and three partitions each has it every third time,
		// and none starves.
		if (i+turn)%n < room%n {
			most[kind]++
		}
	}
	return most
}

// Fit is for how many tasks, from the first on, a grant has slots.
func (g *Grant) Fit(tasks []store.Claimed) int {
	used := map[string]int{}
	for i := range min(g.N, len(tasks)) {
		room, bounded := g.Room[tasks[i].Kind]
		used[tasks[i].Kind]++
		if bounded && used[tasks[i].Kind] > room || g.Urgent && tasks[i].Level != store.LevelHigh {
			return i
		}
	}
	return min(g.N, len(tasks))
}

// Passing names the kinds that claims skip, so that a claim can continue where the last one like it stopped; empty if none.
func (g *Grant) Passing(leave []string) string {
	var b strings.Builder
	for _, kind := range leave {
		b.WriteString("-" + kind + "\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(g.Room)) {
		if g.Room[kind] == 0 {
			b.WriteString("=" + kind + "\n")
		}
	}
	return b.String()
}

// Grant are slots that a pull may fill with one call of claims. It gives back with Keep what it does not fill.
type Grant struct {
	N      int
	usual  int            // of lent slots: those that any task may fill
	Urgent bool           // with tasks of level 1 only
	Room   map[string]int // how many tasks of the kinds that have a bound
	// suspects is how many tasks of each sort whose last runs died with their process.
	suspects sorts
	News     uint64 // as of when it was made
	Err      error  // why there will be none
}
