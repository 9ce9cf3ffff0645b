package storetest

// The limit on the bytes of an agent.

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// heavy is a task with a body of some KiB.
// What a body weighs is counted in whole KiB, from 4 on.
func heavy(agent, id string, kib int) store.Submission {
	s := task(agent, id)
	s.Body = make([]byte, kib<<10)
	return s
}

// tooHeavy demands that a submit is refused, as an agent would have too many bytes.
func (b *desk) tooHeavy(tasks ...store.Submission) {
	b.Helper()
	_, err := b.store.Submit(b.Context(), tasks)
	b.isTooHeavy(err)
}

// isTooHeavy demands that an error is about the bytes of agent a.
func (b *sight) isTooHeavy(err error) {
	b.Helper()
	var limit *store.LimitError
	require.ErrorAs(b, err, &limit)
	assert.Equal(b, store.LimitError{Agent: "a", Limit: 100 << 10, Bytes: true}, *limit)
}

// testMaxBytes fills an agent up to its limit: a submit beyond it is refused as a
// whole, and small tasks weigh nothing.
func testMaxBytes(t *testing.T, b *bench) {
	b.with(Options{MaxBytes: 100 << 10, Partitions: 4})
	b.tooHeavy(heavy("a", "huge", 101))
	b.submit(heavy("a", "1", 60))
	b.tooHeavy(heavy("a", "2", 41))
	b.tooHeavy(heavy("a", "2", 20), heavy("a", "3", 21))
	b.tooHeavy(heavy("b", "1", 90), heavy("a", "2", 41), heavy("c", "1", 90)) // over several partitions
	assert.Empty(t, b.status("a", "2"), "all or nothing")
	assert.Empty(t, b.status("b", "1"))
	b.submit(heavy("a", "2", 40), heavy("b", "1", 100))
	b.submit(heavy("a", "1", 60)) // it already exists
	// Twenty tasks of 3 KiB would be 60 KiB, if they counted.
	for i := range 20 {
		b.submit(heavy("a", fmt.Sprint("small", i), 3))
	}
	b.tooHeavy(heavy("a", "3", 4))
	// Touch has the same limit as Submit.
	_, err := b.store.Touch(b.Context(), []store.Touch{given.Touching(heavy("a", "4", 50), store.Pulse{})})
	b.isTooHeavy(err)
}

// testMaxBytesGo takes bytes away in every way there is: replaced by less, completed,
// failed and deleted. What goes makes room.
func testMaxBytesGo(t *testing.T, b *bench) {
	b.with(Options{MaxBytes: 100 << 10})
	replace := func(id string, kib int) store.Submission {
		s := heavy("a", id, kib)
		s.Conflict, s.Version = store.ConflictReplace, b.read("a", id)[0].Version
		return s
	}
	b.submit(heavy("a", "stays", 30), task("a", "small"))
	// Several rounds, so that a count that is off by a little in each becomes a refusal.
	for i := range 5 {
		id := fmt.Sprint(i)
		b.submit(heavy("a", id, 60))
		b.tooHeavy(heavy("a", "more", 20))
		b.tooHeavy(replace(id, 71))
		b.submit(replace(id, 70))
		b.tooHeavy(heavy("a", "more", 5))
		b.submit(replace(id, 3))
		b.submit(replace("small", 70))
		b.tooHeavy(replace(id, 5))
		b.submit(replace("small", 1), heavy("a", "more", 66))
		switch i % 3 {
		case 0, 1:
			verb := []store.Verb{store.VerbComplete, store.VerbFail}[i%2]
			c := b.claim(50)
			// All other tasks go back, so that only those of this round end.
			for _, claimed := range c.Tasks {
				s := store.Settlement{Run: claimed.Run, Verb: store.VerbAgain}
				if claimed.ID == "more" || claimed.ID == id {
					s.Verb = verb
				}
				require.NoError(t, b.settle(s)[0].Err)
			}
			require.Equal(t, store.EffectDone, b.drop("more"))
		default:
			require.Equal(t, store.EffectDone, b.drop("more"))
			require.Equal(t, store.EffectDone, b.drop(id))
		}
		b.submit(heavy("a", "fits", 70))
		b.tooHeavy(heavy("a", "over", 5))
		require.Equal(t, store.EffectDone, b.drop("fits"))
	}
	require.Equal(t, store.EffectDone, b.drop("stays"))
	require.Equal(t, store.EffectDone, b.drop("small"))
	// Nothing is left: an agent may have its whole limit again.
	b.submit(heavy("a", "all", 100))
}
