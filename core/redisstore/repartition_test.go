package redisstore_test

// Repartition: what every read says stays the same, whatever the number of partitions.

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/core/storetest/equal"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// filler fills a store with some of everything.
type filler struct {
	*testing.T

	st     *redisstore.Store
	nonces int
}

// done1 requires that a call has not failed, and returns its answer.
func done1[A any](t *testing.T) func(A, error) A {
	t.Helper()
	return func(answer A, err error) A {
		t.Helper()
		require.NoError(t, err)
		return answer
	}
}

func (f *filler) submit(tasks ...store.Submission) {
	f.Helper()
	done1[[]store.Submitted](f.T)(f.st.Submit(f.Context(), tasks))
}

// claim claims from all partitions what is due.
func (f *filler) claim(change func(r *store.ClaimRequest)) []store.Claimed {
	f.Helper()
	var all []store.Claimed
	for p := range f.st.Partitions() {
		f.nonces++
		r := store.ClaimRequest{Partition: p, Nonce: fmt.Sprintf("%016d", f.nonces), Kinds: []string{"k", "other"}, Limit: 50, Lease: time.Hour}
		change(&r)
		for _, c := range done1[[]store.Claim](f.T)(f.st.Claim(f.Context(), []store.ClaimRequest{r})) {
			require.NoError(f, c.Err)
			all = append(all, c.Tasks...)
		}
	}
	return all
}

// end ends runs.
func (f *filler) end(runs []store.Claimed, how func(i int, s *store.Settlement)) {
	f.Helper()
	for some := range slices.Chunk(runs, 50) {
		var ends []store.Settlement
		for i := range some {
			tally := &store.RunStat{Kind: some[i].Kind, Schedule: store.ScheduleAt, Duration: time.Duration(i) * time.Millisecond, Lag: time.Second}
			s := store.Settlement{Run: some[i].Run, Kind: some[i].Kind, Verb: store.VerbComplete, Record: []byte("r"), Tally: tally}
			how(i, &s)
			ends = append(ends, s)
		}
		for _, s := range done1[[]store.Settled](f.T)(f.st.Settle(f.Context(), ends)) {
			require.NoError(f, s.Err)
		}
	}
}

func (*filler) all(r *store.ClaimRequest) { r.Limit = store.MaxClaim }

func (f *filler) hold(target store.Target, until time.Duration) {
	f.Helper()
	done1[[]store.Effect](f.T)(f.st.Hold(f.Context(), []store.Hold{{Target: target, Note: []byte("why"), Until: moment.When{After: until}}}))
}

// records gives an agent n finished tasks, every fifth of which has failed.
func (f *filler) records(agent string, n int) {
	f.Helper()
	for from := 0; from < n; from += 40 {
		for i := from; i < min(n, from+40); i++ {
			s := sub(agent, fmt.Sprintf("%s%d", "done", i))
			if i%7 == 0 {
				s.Group = "past"
			}
			f.submit(s)
		}
		f.end(f.claim(f.all), func(i int, s *store.Settlement) {
			if i%5 == 0 {
				s.Verb, s.Tally.Failed, s.Tally.Failure = store.VerbFail, true, fmt.Appendf(nil, "failure %d", from+i)
			}
			if i%11 == 0 {
				s.Record = bytes.Repeat([]byte("r"), 5000)
			}
		})
	}
}

// fill leaves something of each sort that is stored, and nothing that runs.
func fill(t *testing.T, st *redisstore.Store, long int) {
	t.Helper()
	f := &filler{T: t, st: st}
	for i, n := range []int{1, 3, long, 150} { // one, few, many; the last loses some to the limit
		if n <= long || long > 64 {
			f.records(fmt.Sprint("past", i), n)
		}
	}
	alone := 10
	if long <= 64 { // it is one of many
		alone = 4
	}
	f.live(alone)
	f.operated()
	// Some runs fail and wait again, with state; others end.
	f.end(f.claim(func(r *store.ClaimRequest) { r.Limit = 5; r.Kinds = r.Kinds[:1] }), func(i int, s *store.Settlement) {
		if i%2 == 0 {
			s.Verb, s.Due, s.State = store.VerbAgain, moment.When{After: time.Hour}, []byte("again")
		}
	})
	f.end(f.claim(func(r *store.ClaimRequest) { r.Serial, r.Limit = true, 2 }), func(int, *store.Settlement) {})
	f.claim(func(r *store.ClaimRequest) { r.Kinds, r.Limit = []string{"nothing"}, 10 }) // it parks
}

// live submits tasks that wait: of agents with one, with few and with many, of all levels and sizes.
func (f *filler) live(alone int) {
	f.Helper()
	for i := range alone {
		f.submit(sub(fmt.Sprint("one", i), "task:1"))
	}
	several := func(agent string, n int, change func(i int, s *store.Submission)) {
		for i := range n {
			s := sub(agent, fmt.Sprint("t", i))
			change(i, &s)
			f.submit(s)
		}
	}
	for i := range 3 {
		several(fmt.Sprint("few{", i), 5, func(k int, s *store.Submission) { s.Group, s.Due.After = "g:1", time.Duration(k)*time.Minute })
	}
	several("many:1", 40, func(k int, s *store.Submission) { s.Due.After = time.Duration(k%3) * time.Hour })
	several("levels", 6, func(k int, s *store.Submission) { s.Level, s.Key = store.Level(1+k%3), "key" })
	several("large", 3, func(_ int, s *store.Submission) { s.Body, s.State = bytes.Repeat([]byte("x"), 9000), []byte("first") })
	several("unknown", 3, func(k int, s *store.Submission) { s.Kind = fmt.Sprint("unknown", k%2) })
	several("keyed", 3, func(_ int, s *store.Submission) { s.Key = "asleep" })
	several("held", 3, func(_ int, s *store.Submission) { s.Root = &breaker.Root{Agent: "root", ID: "r", Most: 3} }) // counts do not move
	several("paused", 3, func(int, *store.Submission) {})
	several("kind", 2, func(_ int, s *store.Submission) { s.Kind = "other" })
	for i := range 3 {
		s := sub(fmt.Sprint("active", i), "pulse")
		done1[[]store.Touched](f.T)(f.st.Touch(f.Context(), []store.Touch{touching(s)}))
	}
}

// operated holds, orders, cancels and deletes; what is held is parked.
func (f *filler) operated() {
	f.Helper()
	ctx := f.Context()
	f.hold(store.Target{Agent: "paused"}, time.Hour)
	f.hold(store.Target{Agent: "held", ID: "t1"}, 0)
	f.hold(store.Target{Key: "asleep"}, time.Hour)
	f.hold(store.Target{Kind: "other"}, 0)
	done1[[]store.Effect](f.T)(f.st.RunNow(ctx, []store.RunNow{{Agent: "paused", ID: "t2"}, {Agent: "active0", ID: "pulse"}}))
	runs := f.claim(func(r *store.ClaimRequest) { r.Kinds, r.Limit = nil, 100 }) // everything that is due is parked
	require.Empty(f, runs)
	runs = f.claim(func(r *store.ClaimRequest) { r.Agents, r.Kinds = []string{"active0"}, []string{"k"} })
	f.end(runs, func(_ int, s *store.Settlement) {
		s.Verb, s.Due, s.Floor = store.VerbRest, moment.When{After: time.Hour}, &store.Floor{Pulse: store.Pulse{Delay: time.Hour}}
	})
	found := done1[store.Found](f.T)(f.st.Get(ctx, store.Get{Agent: "few{1", IDs: []string{"t4"}}))
	effects := done1[[]store.Effect](f.T)(f.st.Cancel(ctx, []store.Cancellation{{
		Agent: "few{1", ID: "t4", Group: "g:1", Version: found.Tasks[0].Version, Record: []byte("cancelled"),
	}}))
	require.Equal(f, store.EffectDone, effects[0].Code)
	done1[[]store.Effect](f.T)(f.st.Delete(ctx, []store.Deletion{{Agent: "few{2", ID: "t4", Group: "g:1"}}))
	done1[[]store.Effect](f.T)(f.st.Profile(ctx, []store.ProfileChange{{Agent: "few{1", Now: []byte("p1")}, {Agent: "has no task", Now: []byte("p2")}}))
	// What was held is being put back.
	f.hold(store.Target{Agent: "one3"}, 0)
	f.claim(func(r *store.ClaimRequest) { r.Kinds = []string{"nothing"} })
	done1[[]store.Effect](f.T)(f.st.Unhold(ctx, []store.Target{{Agent: "one3"}}))
}

// view is all that can be read of a store, but for what names partitions.
type view struct {
	Agents []store.AgentStats
	Holds  []store.Held
	Tasks  map[string][]store.Stored
	Groups map[string]store.GroupCounts
	Stats  count.Stats

	Profiles map[string]string
}

var viewedGroups = []string{"g", "g:1", "h:1", "past"}

// viewOf reads all of a store; agents are those that have no live task.
func viewOf(t *testing.T, st store.Store, agents ...string) view {
	t.Helper()
	v := view{Tasks: map[string][]store.Stored{}, Groups: map[string]store.GroupCounts{}, Profiles: map[string]string{}}
	ctx := t.Context()
	for after, first := "", true; first || after != ""; first = false {
		page, err := st.Agents(ctx, store.PageOf{After: after, Limit: 100})
		require.NoError(t, err)
		v.Agents, after = append(v.Agents, page.Agents...), page.Next
	}
	for after, first := "", true; first || after != ""; first = false {
		page, err := st.Holds(ctx, store.PageOf{After: after, Limit: 100})
		require.NoError(t, err)
		v.Holds, after = append(v.Holds, page.Holds...), page.Next
	}
	for after, first := "", true; first || after != ""; first = false {
		page, err := st.Profiles(ctx, store.PageOf{After: after, Limit: 100})
		require.NoError(t, err)
		for _, p := range page.Profiles {
			v.Profiles[p.Agent] = string(p.Profile)
		}
		after = page.Next
	}
	slices.SortFunc(v.Agents, func(a, b store.AgentStats) int { return strings.Compare(a.Agent, b.Agent) })
	slices.SortFunc(v.Holds, func(a, b store.Held) int { return strings.Compare(a.Target.String(), b.Target.String()) })
	for _, a := range v.Agents {
		agents = append(agents, a.Agent)
	}
	for _, agent := range agents {
		v.Tasks[agent] = tasksOf(t, st, agent)
		for _, group := range viewedGroups {
			counts, err := st.Group(ctx, agent, group)
			require.NoError(t, err)
			v.Groups[agent+" "+group] = counts
		}
	}
	var err error
	v.Stats, err = st.Stats(ctx)
	require.NoError(t, err)
	v.Stats.Now, v.Stats.Partitions = 0, 0
	return v
}

// tasksOf are all tasks of an agent, explained, by id.
func tasksOf(t *testing.T, st store.Store, agent string) []store.Stored {
	t.Helper()
	var ids []string
	for after, first := "", true; first || after != ""; first = false {
		page, err := st.List(t.Context(), store.List{Agent: agent, After: after, Limit: 100, Brief: true})
		require.NoError(t, err)
		for _, task := range page.Tasks {
			ids = append(ids, task.ID)
		}
		after = page.Next
	}
	if slices.Contains(pastAgents, agent) { // some of whose records were dropped
		for i := range 150 {
			ids = append(ids, fmt.Sprint("done", i))
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var all []store.Stored
	for some := range slices.Chunk(ids, 100) {
		for len(some) > 0 {
			found, err := st.Get(t.Context(), store.Get{Agent: agent, IDs: some, Explain: true})
			require.NoError(t, err)
			require.NotEmpty(t, found.Tasks)
			all, some = append(all, found.Tasks...), some[len(found.Tasks):]
		}
	}
	all = slices.DeleteFunc(all, func(s store.Stored) bool { return s.Status == "" })
	for i := range all {
		all[i].Ahead, all[i].Cursor = 0, "" // of the partition
		for k := range all[i].Holds {
			if h := &all[i].Holds[k]; h.Target.Agent == "" { // in each partition it began at a time of its own
				h.Since, h.Until = 0, min(h.Until, 1)
			}
		}
	}
	return all
}

// requireSame demands that two views say the same; a failure shows where they differ first.
func requireSame(t *testing.T, before, after view, partitions int) {
	t.Helper()
	require.Equal(t, before.Agents, after.Agents, "with %d partitions", partitions)
	require.Equal(t, before.Holds, after.Holds, "with %d partitions", partitions)
	require.Equal(t, before.Groups, after.Groups, "with %d partitions", partitions)
	require.Equal(t, before.Stats, after.Stats, "with %d partitions", partitions)
	require.Equal(t, before.Profiles, after.Profiles, "with %d partitions", partitions)
	for agent := range before.Tasks {
		require.Len(t, after.Tasks[agent], len(before.Tasks[agent]), "agent %s with %d partitions", agent, partitions)
		for i, task := range before.Tasks[agent] {
			require.Equal(t, task, after.Tasks[agent][i], "with %d partitions", partitions)
		}
	}
}

var pastAgents = []string{"past0", "past1", "past2", "past3"}

// runsToItsEnd ends all holds, makes every task due, and runs all of them.
func runsToItsEnd(t *testing.T, st *redisstore.Store, kinds ...string) {
	t.Helper()
	f := &filler{T: t, st: st, nonces: 1 << 20}
	ctx := t.Context()
	for _, h := range viewOf(t, st).Holds {
		done1[[]store.Effect](t)(st.Unhold(ctx, []store.Target{h.Target}))
	}
	live := viewOf(t, st)
	n := 0
	for agent, tasks := range live.Tasks {
		for _, task := range tasks {
			if task.Status == store.StatusWaiting {
				n++
				done1[[]store.Effect](t)(st.RunNow(ctx, []store.RunNow{{Agent: agent, ID: task.ID}}))
			}
		}
	}
	ran := 0
	for idle := 0; idle < 3; {
		runs := f.claim(func(r *store.ClaimRequest) { r.Kinds, r.Limit = kinds, store.MaxClaim })
		if idle++; len(runs) > 0 {
			ran, idle = ran+len(runs), 0
		}
		f.end(runs, func(_ int, s *store.Settlement) {
			for _, run := range runs {
				if run.Cancelled && run.Run == s.Run {
					s.Verb = store.VerbCancel
				}
			}
		})
	}
	assert.Equal(t, n, ran)
	stats, err := st.Stats(ctx)
	require.NoError(t, err)
	assert.Zero(t, stats.Agents+stats.Waiting+stats.InProgress+stats.Resting, "%+v", stats.Counters)
	assertSound(t, st)
}

// assertSound demands an audit without a fault in all partitions.
func assertSound(t *testing.T, st store.Store) {
	t.Helper()
	for p := range st.Partitions() {
		for cursor, first := "", true; first || cursor != ""; first = false {
			pages := done1[[]audit.Result](t)(st.Audit(t.Context(), []audit.Page{{Partition: p, Cursor: cursor}}))
			assert.Empty(t, pages[0].Faults, "partition %d", p)
			cursor = pages[0].Next
		}
	}
}

var everyKind = []string{"k", "other", "unknown0", "unknown1"}

// moves takes a filled store through some numbers of partitions.
func moves(t *testing.T, config redisstore.Config, numbers ...int) {
	t.Helper()
	config.Partitions, config.Kept = numbers[0], 100
	st := open(t, config)
	fill(t, st, 70)
	config.Partitions = 0
	before := viewOf(t, st, pastAgents...)
	require.NotZero(t, before.Stats.Trimmed, "some ids are known whose records are gone")
	for _, to := range numbers[1:] {
		would, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: to, DryRun: true})
		require.NoError(t, err)
		var last [2]int64
		moved, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: to, Progress: func(done, total int64) {
			assert.GreaterOrEqual(t, done, last[0])
			last = [2]int64{done, total}
		}})
		require.NoError(t, err)
		assert.Equal(t, last[0], last[1], "all is copied")
		assert.Equal(t, would, moved)
		assert.Equal(t, before.Stats.Agents, moved.Agents)
		assert.Equal(t, before.Stats.Waiting+before.Stats.Resting, moved.Tasks)
		assert.GreaterOrEqual(t, moved.Records, int64(150))
		after := open(t, config)
		require.Equal(t, to, after.Partitions())
		requireSame(t, before, viewOf(t, after, pastAgents...), to)
		assertSound(t, after)
		st = after
	}
	runsToItsEnd(t, st, everyKind...)
}

func TestRepartitionChangesNothingElse(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, numbers := range [][]int{{8, 1, 8, 16}, {1, 8}, {2, 4, 1}} {
		t.Run(fmt.Sprint(numbers), func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("p*%d?", numbers[0])
			moves(t, redisstore.Config{URL: srv.URL, Prefix: prefix}, numbers...)
			for _, key := range done1[[]string](t)(srv.Client(t).Keys(t.Context(), `p\*`+fmt.Sprint(numbers[0])+"*").Result()) {
				assert.NotContains(t, key, "moving:", "no copy is left")
				tag := regexp.MustCompile(`{(\d[\d.]*)}`).FindStringSubmatch(key)
				if tag != nil && !slices.Contains(redisstore.Tags(numbers[len(numbers)-1]), tag[1]) {
					assert.Contains(t, key, "}:mover", "nothing is left of other partitions")
				}
			}
		})
	}
}

func TestRepartitionOfACluster(t *testing.T) {
	t.Parallel()
	one := redistest.StartCluster(t)
	moves(t, redisstore.Config{Options: &redis.UniversalOptions{Addrs: []string{one.Addr}, IsClusterMode: true}}, 8, 1, 16)
	three := redistest.StartMasters(t, 3)
	moves(t, redisstore.Config{Options: &redis.UniversalOptions{Addrs: three.Addrs(), IsClusterMode: true}}, 8, 2, 16)
}

// Numbers whose partitions share a tag are told apart: both have keys of the same names.
func TestRepartitionBetweenNumbersWithTheSameTags(t *testing.T) {
	t.Parallel()
	shared := 0
	for _, tag := range redisstore.Tags(8) {
		if slices.Contains(redisstore.Tags(4), tag) {
			shared++
		}
	}
	require.NotZero(t, shared)
	srv := redistest.Start(t)
	moves(t, redisstore.Config{URL: srv.URL}, 4, 8, 4)
}

// What random calls have made moves too, and runs to its end.
func TestRepartitionOfRandomStores(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	seeds := uint64(12)
	if race.Enabled {
		seeds = 6 // each of the options
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock()
			o := storetest.Options{Partitions: []int{1, 2, 8}[seed%3], Retention: 20 * 365 * 24 * time.Hour, Kept: []int{0, 4}[seed%2]}
			mem := memstore.New(memstore.Config{Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, Clock: clock})
			held := still(t, redisstore.Config{URL: srv.URL}, clock, false, o)
			equal.Stores(t, clock, mem, held, equal.Random(seed, 3000))
			c := srv.Client(t)
			for _, tag := range redisstore.Tags(o.Partitions) { // from now on time passes
				require.NoError(t, c.Del(t.Context(), held.Prefix()+"{"+tag+"}:time").Err())
			}
			config := redisstore.Config{URL: srv.URL, Prefix: held.Prefix(), Retention: o.Retention, Kept: o.Kept}
			st := open(t, config)
			f := &filler{T: t, st: st, nonces: 1 << 10}
			for range 50 { // leases and holds that have ended
				f.claim(func(r *store.ClaimRequest) { r.Limit, r.Kinds = 0, nil })
			}
			agents := []string{"a", "b", "c", "d", "e{}", "f:g"}
			unlimited(t, c, st, agents)
			before := viewOf(t, st, agents...)
			for _, to := range []int{4, 1, 16} {
				if to == st.Partitions() {
					continue
				}
				_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: to})
				require.NoError(t, err)
				st = open(t, config)
				requireSame(t, before, viewOf(t, st, agents...), to)
			}
			runsToItsEnd(t, st, "k0", "k1", "k2")
		})
	}
}

// unlimited lifts all limits of a store, takes those that wait for one out of their lines, and deletes those that wait for signals.
func unlimited(t *testing.T, c *redis.Client, st *redisstore.Store, agents []string) {
	t.Helper()
	for _, l := range done1[[]bound.LimitUse](t)(st.Limits(t.Context())) {
		_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: l.Limit, Lift: true}})
		require.NoError(t, err)
	}
	for _, b := range done1[[]bound.BudgetUse](t)(st.Budgets(t.Context())) {
		_, err := st.Budget(t.Context(), []bound.BudgetChange{{Budget: b.Budget, Lift: true}})
		require.NoError(t, err)
	}
	for _, tag := range redisstore.Tags(st.Partitions()) { // tasks that wait for signals are not moved
		for _, ref := range c.HKeys(t.Context(), st.Prefix()+"{"+tag+"}:awaits").Val() {
			agent, id, _ := strings.Cut(ref, ":")
			_, err := st.Delete(t.Context(), []store.Deletion{{Agent: done1[string](t)(redisstore.Decode(agent)), ID: id}})
			require.NoError(t, err)
		}
	}
	for _, agent := range agents {
		for _, listed := range done1[store.Page](t)(st.List(t.Context(), store.List{Agent: agent, Limit: 1000, Brief: true})).Tasks {
			found := done1[store.Found](t)(st.Get(t.Context(), store.Get{Agent: agent, IDs: []string{listed.ID}, Explain: true}))
			if line := found.Tasks[0].Line; line.Limit.Waiting > 0 || line.Budget != nil {
				_, err := st.RunNow(t.Context(), []store.RunNow{{Agent: agent, ID: listed.ID}})
				require.NoError(t, err)
			}
		}
	}
}

// A repartition knows every key that the layout describes: it would refuse a store that has another.
func TestRepartitionKnowsTheLayout(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for line := range strings.SplitSeq(redisstore.Part("layout"), "\n") {
		if strings.HasPrefix(line, "--   live = ") { // a value, as is the next
			continue
		}
		if m := regexp.MustCompile(`^--   ([a-z]+)(:?)`).FindStringSubmatch(line); m != nil {
			names[m[1]+m[2]] = true
		}
	}
	require.Greater(t, len(names), 20)
	for name := range maps.Keys(names) {
		assert.True(t, redisstore.KnownKey(name), name)
	}
	for _, name := range []string{"history:a", "counters", "parked:@t"} {
		assert.True(t, redisstore.KnownKey(name), name)
	}
	assert.False(t, redisstore.KnownKey("later"))
}

// The quota of an agent, and what is counted for it, moves with the agent.
func TestRepartitionKeepsQuotas(t *testing.T) {
	t.Parallel()
	config := redisstore.Config{URL: redistest.Start(t).URL, Partitions: 2}
	st := open(t, config)
	config.Partitions = 0
	quota := store.Quota{Recurring: 1, Submits: 2}
	for i := range 10 {
		agent := fmt.Sprint("agent", i)
		done1[[]store.Effect](t)(st.Profile(t.Context(), []store.ProfileChange{{Agent: agent, Now: []byte("p"), Quota: &quota}}))
		first := sub(agent, "1")
		first.Recurs, first.Bound, first.Mark = true, true, quota.Mark()
		done1[[]store.Submitted](t)(st.Submit(t.Context(), []store.Submission{first}))
	}
	_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 8})
	require.NoError(t, err)
	moved := open(t, config)
	for i := range 10 {
		second := sub(fmt.Sprint("agent", i), "2")
		second.Bound, second.Mark, second.Recurs = true, quota.Mark(), true
		_, err = moved.Submit(t.Context(), []store.Submission{second})
		var full *store.LimitError
		require.ErrorAs(t, err, &full)
		assert.Equal(t, "recurring", full.Quota)
		second.Recurs = false
		done1[[]store.Submitted](t)(moved.Submit(t.Context(), []store.Submission{second}))
		second.ID = "3"
		_, err = moved.Submit(t.Context(), []store.Submission{second})
		require.ErrorAs(t, err, &full)
		assert.Equal(t, "submits", full.Quota)
	}
}

// What the profile of an agent bounds, and what its budgets have used, moves with the agent.
func TestRepartitionKeepsBudgetsOfProfiles(t *testing.T) {
	t.Parallel()
	config := redisstore.Config{URL: redistest.Start(t).URL, Partitions: 2}
	st := open(t, config)
	config.Partitions = 0
	of := bound.LimitTarget{Agent: "agent0"}
	_, err := st.Profile(t.Context(), []store.ProfileChange{{
		Agent: "agent0", Now: []byte("p"), Limits: []bound.Limit{{About: of, Concurrency: 5}},
		Budgets: []bound.Budget{{
			About:  bound.BudgetTarget{LimitTarget: of, Unit: bound.UnitRuns, Per: bound.PerMonth},
			Amount: bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}},
		}},
	}})
	require.NoError(t, err)
	claim := func(st store.Store, nonce string) store.Claim {
		return claimOf(t, st, store.PartitionOf("agent0", st.Partitions()), nonce, 10)
	}
	done1[[]store.Submitted](t)(st.Submit(t.Context(), []store.Submission{sub("agent0", "1")}))
	first := claim(st, "first")
	require.Len(t, first.Tasks, 1)
	settle(t, st, store.VerbComplete, first.Tasks...)

	_, err = redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 8})
	require.NoError(t, err)
	moved := open(t, config)
	done1[[]store.Submitted](t)(moved.Submit(t.Context(), []store.Submission{sub("agent0", "2")}))
	assert.Empty(t, claim(moved, "second").Tasks, "its budget is used up")
}
