package storetest

// Floods: how many tasks of a busy agent, and of a tenant with many agents, come before the task of another, counted in tasks, as a count is the same
// on any machine.

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
			_, err := b.store.Submit(t.Context(), []store.Submission{boundBy(q, task("flood", fmt.Sprintf("refused %d", i)))})
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

// tenantOf gives agents a tenant, by their profiles.
func tenantOf(b *bench, tenant string, agents ...string) {
	b.Helper()
	changes := make([]store.ProfileChange, len(agents))
	for i, agent := range agents {
		was, err := b.store.ProfileOf(b.Context(), agent)
		require.NoError(b, err)
		changes[i] = store.ProfileChange{Agent: agent, Was: was, Now: []byte("of " + tenant), Tenant: tenant}
	}
	effects, err := b.store.Profile(b.Context(), changes)
	require.NoError(b, err)
	for _, e := range effects {
		require.Equal(b, store.EffectDone, e.Code)
	}
}

// named are names of n agents.
func named(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return out
}

// eachHas submits tasks of agents, n for each.
func eachHas(b *bench, n int, agents ...string) {
	b.Helper()
	const most = 500 // in one call
	var tasks []store.Submission
	for _, agent := range agents {
		for i := range n {
			tasks = append(tasks, task(agent, fmt.Sprintf("%04d", i)))
		}
		if len(tasks) >= most {
			b.submit(tasks...)
			tasks = nil
		}
	}
	if len(tasks) > 0 {
		b.submit(tasks...)
	}
}

// taken claims and completes up to a number of tasks, and counts them by the first letter of their agents.
func taken(b *bench, r store.ClaimRequest) map[byte]int {
	b.Helper()
	c := b.claimWith(r)
	out := map[byte]int{}
	runs := make([]store.Settlement, len(c.Tasks))
	for i, t := range c.Tasks {
		runs[i] = complete(t)
		out[t.Agent[0]]++
	}
	if len(runs) > 0 {
		b.settle(runs...)
	}
	b.clock.Advance(time.Millisecond)
	return out
}

// testTenantFlood has one agent of a tenant beside many of another: with as many tasks as agents, and claims of each size. It waits for two claims at
// most, whether it has come with the others or later.
func testTenantFlood(t *testing.T, b *bench) {
	for limit, agents := range map[int]int{1: 1000, 10: 10_000, 100: 1000} {
		b.with(Options{})
		many := named("many", agents)
		for i := 0; i < len(many); i += 500 {
			tenantOf(b, "big", many[i:i+500]...)
		}
		tenantOf(b, "small", "quiet")
		eachHas(b, 1, many...)
		for round := range 3 {
			b.clock.Advance(time.Millisecond)
			b.submit(task("quiet", fmt.Sprint(round)))
			b.clock.Advance(time.Millisecond)
			waits := 0
			for taken(b, b.request(limit))['q'] == 0 {
				waits++
				require.LessOrEqual(t, waits, 2, "round %d, claims of %d", round, limit)
			}
		}
		want := limit
		if limit > 1 {
			want--
			b.submit(task("quiet", "last"))
			b.clock.Advance(time.Millisecond)
			assert.Equal(t, map[byte]int{'m': want, 'q': 1}, taken(b, b.request(limit)), "others get what it leaves")
		}
	}
}

// testTenantShares has tenants with agents of each size share claims equally.
func testTenantShares(t *testing.T, b *bench) {
	for name, has := range map[string][3][2]int{ // agents, and the tasks of each
		"tasks by themselves":            {{200, 1}, {40, 5}, {7, 30}},
		"queues":                         {{40, 40}, {1, 600}, {3, 300}},
		"tasks by themselves and queues": {{500, 1}, {1, 500}, {20, 25}},
	} {
		for _, limit := range []int{1, 3, 10, 50} {
			b.with(Options{})
			for i, letter := range []string{"a", "b", "c"} {
				agents := named(letter, has[i][0])
				if letter != "c" { // agents without a tenant share one turn
					tenantOf(b, "of "+letter, agents...)
				}
				eachHas(b, has[i][1], agents...)
			}
			b.clock.Advance(time.Millisecond)
			sum := map[byte]int{}
			for range max(1, 150/limit) {
				for letter, n := range taken(b, b.request(limit)) {
					sum[letter] += n
				}
			}
			for _, letter := range []byte("abc") {
				// The claims that go by age may be of one tenant alone.
				assert.InDelta(t, 50, sum[letter], 50.0/16+float64(limit)/3+2, "%s, claims of %d: %v", name, limit, sum)
			}
		}
	}
}

// testTenantTurns has what comes back into the agenda in front of others, and an agent of another tenant meanwhile, get the turns of their tenants.
func testTenantTurns(t *testing.T, b *bench) {
	b.with(Options{})
	many := named("many", 300)
	tenantOf(b, "big", many...)
	tenantOf(b, "small", "quiet")
	b.submit(task("quiet", "lost"))
	b.clock.Advance(time.Millisecond)
	require.Len(t, b.claim(1).Tasks, 1)
	eachHas(b, 1, many...)
	for range 3 {
		b.clock.Advance(time.Millisecond)
		assert.Equal(t, map[byte]int{'m': 10}, taken(b, b.request(10)))
	}
	b.clock.Advance(lease) // the process of the quiet agent has died
	b.claim(0)
	assert.Equal(t, map[byte]int{'m': 9, 'q': 1}, taken(b, b.request(10)), "its task is there again, due since before the others")

	tenantOf(b, "third", many[290:]...)
	assert.Equal(t, map[byte]int{'m': 10}, taken(b, b.request(10)))
	c := b.claim(10)
	third := 0
	for _, run := range c.Tasks {
		if run.Agent >= many[290] {
			third++
		}
	}
	assert.Equal(t, 5, third, "their tasks wait in the line of their new tenant")

	named := b.request(10)
	named.Agents = many[280:290]
	held := map[string]bool{}
	for _, c := range []store.Claim{b.claimWith(named), b.claim(50), b.claim(50)} { // their places in the lines are still there
		for _, run := range c.Tasks {
			assert.False(t, held[run.Agent], "%s runs twice", run.Agent)
			held[run.Agent] = true
		}
	}
	require.Len(t, held, 110)
	b.clock.Advance(lease)
	for range 100 {
		taken(b, b.request(10))
	}
	assert.Zero(t, b.stats().Waiting, "all have come to their turn")
}

// testTenantsOfPicky has what a picky claim may take reached, although agents with many tasks that it leaves have all turns.
func testTenantsOfPicky(t *testing.T, b *bench) {
	b.with(Options{})
	tenantOf(b, "big", "a", "z")
	tenantOf(b, "small", "b")
	eachHas(b, 100, "a", "b")
	b.clock.Advance(time.Millisecond)
	other := task("z", "1")
	other.Kind = "other"
	b.submit(other)
	b.clock.Advance(time.Millisecond)
	r := b.request(2)
	r.Kinds, r.Leave = []string{"other"}, []string{"k"}
	for range 4 {
		c := b.claimWith(r)
		if len(c.Tasks) == 1 {
			assert.Equal(t, "z", c.Tasks[0].Agent)
			return
		}
		require.NotZero(t, c.Passed, "it goes on by age")
		r.Nonce, r.After, r.AfterName = b.request(1).Nonce, c.Passed, c.PassedName
	}
	assert.Fail(t, "it was not reached")
}

// testTenantsOfUrgent has claims that find nothing for themselves take the turn of no tenant: those of urgent tasks alone, and those that leave what is due.
func testTenantsOfUrgent(t *testing.T, b *bench) {
	b.with(Options{})
	many := named("many", 50)
	tenantOf(b, "big", many...)
	tenantOf(b, "small", "quiet")
	eachHas(b, 1, many...)
	eachHas(b, 20, "quiet")
	b.clock.Advance(time.Millisecond)
	for i := range 20 {
		want := map[byte]int{'m': 1}
		if i%2 == 1 {
			want = map[byte]int{'q': 1}
		}
		assert.Equal(t, want, taken(b, b.request(1)), "claim %d", i)
		urgent := b.request(1)
		urgent.Urgent = true
		assert.Empty(t, taken(b, urgent))
		leaving := b.request(1)
		leaving.Kinds, leaving.Leave = []string{"other"}, []string{"k"}
		assert.Empty(t, taken(b, leaving))
	}
	first := task("many00000", "urgent")
	first.Level = store.LevelHigh
	b.submit(first)
	b.clock.Advance(time.Millisecond)
	urgent := b.request(1)
	urgent.Urgent = true
	for range 60 {
		c := b.claimWith(urgent)
		if len(c.Tasks) == 1 {
			b.settle(complete(c.Tasks[0]))
			assert.Equal(t, map[byte]int{'m': 1}, taken(b, b.request(1)), "it has taken no turn")
			return
		}
		urgent.Nonce, urgent.After, urgent.AfterName = b.request(1).Nonce, c.Passed, c.PassedName
	}
	assert.Fail(t, "the urgent task was not reached")
}
