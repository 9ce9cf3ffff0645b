package storetest

// Floods: how many tasks of a busy agent come before the task of another, counted in tasks, as a count is the same on any machine.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// mostAhead is how many tasks of one agent come before those of others that wait behind them: so many of an agent are in the agenda by
// themselves. An agent with more has one place there, and takes turns.
const mostAhead = 32

// testFlood has a quiet agent beside one that floods: with as many tasks as just have places of their own, with one more, with several
// times as many, and with as many as an agent may have. The flood goes on, as each of its tasks that ends is followed by a new one.
func testFlood(t *testing.T, b *bench) {
	for _, n := range []int{mostAhead, mostAhead + 1, 5 * mostAhead, 10_000} {
		for _, limit := range []int{1, 10} {
			b.with(Options{})
			f := &flood{bench: b, why: fmt.Sprintf("a flood of %d, claimed by up to %d", n, limit)}
			f.goOn(n)
			for round := range 3 {
				b.clock.Advance(time.Millisecond)
				b.submit(task("quiet", fmt.Sprint(round)))
				b.clock.Advance(time.Millisecond)
				assert.LessOrEqual(t, f.untilQuiet(limit), mostAhead, f.why)
			}
		}
	}
}

// testManyGrow has many agents grow at once, in one call, out of what each has in the agenda by itself.
func testManyGrow(t *testing.T, b *bench) {
	b.with(Options{})
	const agents = 1000
	for round := range mostAhead + 2 {
		tasks := make([]store.Submission, agents)
		for i := range tasks {
			tasks[i] = task(fmt.Sprint("a", i), fmt.Sprint(round))
		}
		_, err := b.store.Submit(t.Context(), tasks)
		require.NoError(t, err, "round %d", round)
	}
	page, err := b.store.List(t.Context(), store.List{Agent: "a7", Limit: 100})
	require.NoError(t, err)
	assert.Len(t, page.Tasks, mostAhead+2)
	assert.EqualValues(t, agents*(mostAhead+2), b.stats().Waiting)
}

// testQuotaFlood has a quiet agent beside one with a quota whose own callers flood, and go on at the wall: others wait as long as behind any flood, and
// the wall is where it was.
func testQuotaFlood(t *testing.T, b *bench) {
	b.with(Options{})
	q := &store.Quota{Live: 5 * mostAhead}
	quotaOf(b, "flood", "", "one", q)
	f := &flood{bench: b, why: "a flood at its quota", quota: q}
	f.goOn(q.Live)
	for round := range 3 {
		for i := range 200 {
			_, err := b.store.Submit(t.Context(), []store.Submission{bound(q, task("flood", fmt.Sprintf("refused %d", i)))})
			require.ErrorAs(t, err, new(*store.LimitError))
		}
		b.clock.Advance(time.Millisecond)
		b.submit(task("quiet", fmt.Sprint(round)))
		b.clock.Advance(time.Millisecond)
		assert.LessOrEqual(t, f.untilQuiet(10), mostAhead, f.why)
		assert.Equal(t, q.Live, usedOf(b, "flood").Live)
	}
}

// flood is an agent that floods, with what is said if it keeps another waiting for too long.
type flood struct {
	*bench

	why  string
	last int // number of its last task
	// quota is that of the agent, which bounds who floods; nil for none.
	quota *store.Quota
}

// goOn submits more of the flood.
func (f *flood) goOn(n int) {
	f.Helper()
	const most = 500 // in one call
	tasks := make([]store.Submission, n)
	for i := range tasks {
		f.last++
		tasks[i] = task("flood", fmt.Sprintf("%06d", f.last))
		tasks[i].Bound, tasks[i].Mark = f.quota != nil, f.quota.Mark()
	}
	for batch := range slices.Chunk(tasks, most) {
		f.submit(batch...)
	}
}

// untilQuiet claims and completes until the quiet agent had its turn, and returns how many tasks of the flood came before it.
func (f *flood) untilQuiet(limit int) int {
	f.Helper()
	ahead := 0
	for ahead <= 2*mostAhead {
		c := f.claim(limit)
		require.NotEmpty(f, c.Tasks, f.why)
		runs := make([]store.Settlement, len(c.Tasks))
		had, more := -1, len(c.Tasks)
		for i, t := range c.Tasks {
			runs[i] = complete(t)
			if t.Agent == "quiet" {
				had, more = i, more-1
			}
		}
		f.settle(runs...)
		f.goOn(more)
		if had >= 0 {
			return ahead + had
		}
		ahead += len(c.Tasks)
		f.clock.Advance(time.Millisecond)
	}
	return ahead
}
