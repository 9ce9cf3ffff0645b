package attack_test

// Hostile names: what a tenant may call itself and its tasks in order to be taken for another one.

import (
	"math/rand/v2"
	"strings"
)

// victims are the agents that are not to be touched. Their names are as awkward as those of who attacks them.
var victims = []string{"bob", "a:b", "b", "{0}:bob", "*", "n", "b%6Fb", "bób", strings.Repeat("b", 256)}

// marker is in every payload, state and record of a victim. No answer to an attacker may have it.
const marker = "only-for-bob"

// marks are what the layout of a store is made of: places, separators, escapes and scopes.
var marks = []string{
	":", "{", "}", "|", "%", "*", "?", "[", "]", "\\", "/", "..", ".", "_", "-", "@", "@t", "'", "\"", "$", "#", ",", ";", " ", "\u202e",
	"%3A", "%3a", "%25", "%", "%2", "S", "M", "r", "n", "x", "h", "q", "0", "1", "a:", "t:", "k:", "s:", "@a:", "@t:", "ends:", "dead:", "scan:",
	"queue:1:", "history:", "group:", "parked:", "agents", "tasks", "state", "claims", "leases", "holds", "orders", "duly:{0}:", "clock", "live",
	"nil", "false", "-0", "1e9", "é", "e\u0301", "\u0430", "\u200b", "\ufeff", "\U0001f600",
}

// names makes n hostile names, none of which is a victim's: its parts, pieces of the layout, spellings and look-alikes.
func names(random *rand.Rand, n int) []string {
	taken := map[string]bool{"": true}
	for _, v := range victims {
		taken[v] = true
	}
	all := []string{
		"a", "a:", ":a", "a:b:", ":a:b", "a%3Ab", "a%3ab", "bob:", ":bob", "bob%", "bob%00", "BOB", "Bob", "bоb", "bo\u0301b", "b\u00f3b ", "b%C3%B3b", "{0}", "{0}:",
		"b%256Fb", "b%6fb", "%62", "%2A", "**", "b*", "?", "[b]", "N", "r", "nn", "@", "@b", "\\b", "b\\", "bob\u200b", "bob.", "b|b",
		strings.Repeat("b", 255), strings.Repeat("b", 255) + "c", strings.Repeat(":", 256), strings.Repeat("%", 256),
	}
	for _, one := range all {
		taken[one] = true
	}
	for len(all) < n {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			if random.IntN(3) == 0 {
				b.WriteString(victims[random.IntN(len(victims)-1)])
			} else {
				b.WriteString(marks[random.IntN(len(marks))])
			}
		}
		if name := b.String(); len(name) <= 256 && !taken[name] {
			taken[name] = true
			all = append(all, name)
		}
	}
	return all
}
