package storetest

// Replacing several tasks of one agent in one call.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// testReplaceSeveral replaces several tasks of an agent with few in one call: the first, which gets another level, gives the agent queues,
// and those that are replaced after it must not wait there as what they were.
func testReplaceSeveral(t *testing.T, b *bench) {
	for _, level := range []store.Level{store.LevelHigh, task("a", "1").Level} {
		b.with(Options{})
		b.submit(task("a", "1"), task("a", "2"), task("a", "3"))
		var all []store.Submission
		for _, id := range []string{"1", "2", "3"} {
			s := task("a", id)
			s.Conflict, s.Version = store.ConflictReplace, b.one("a", id).Version
			s.Due.After = time.Second
			all = append(all, s)
		}
		all[0].Level, all[1].Level, all[2].Level = store.LevelHigh, level, level
		b.submit(all...)
		b.audited()
		assert.Equal(t, b.now().Add(time.Second), b.agents(10)[0].Due)
		assert.Empty(t, names(b.claim(10)))
		b.clock.Advance(time.Second)
		c := b.claim(10)
		assert.ElementsMatch(t, []string{"a/1", "a/2", "a/3"}, names(c))
		assert.Empty(t, names(b.claim(10)))
		b.complete(c)
		b.audited()
		assert.Zero(t, b.stats().Waiting)
		assert.Empty(t, names(b.claim(10)))
	}
}
