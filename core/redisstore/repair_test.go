package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// damaged is a store of one partition whose keys can be edited, and whose time stands still until it is moved.
type damaged struct {
	t     *testing.T
	st    *redisstore.Store
	srv   *redistest.Server
	clock *storetest.Clock
	base  string
}

func newDamaged(t *testing.T, tasks ...store.Submission) *damaged {
	t.Helper()
	srv := redistest.Start(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1})
	if len(tasks) > 0 {
		_, err := st.Submit(t.Context(), tasks)
		require.NoError(t, err)
	}
	return &damaged{t, st, srv, clock, st.Prefix() + "{0}:"}
}

// newDamagedQueues is newDamaged with queues for whoever has two tasks, as in layout 1.
func newDamagedQueues(t *testing.T, tasks ...store.Submission) *damaged {
	t.Helper()
	r := newDamaged(t)
	r.st.Few(1)
	_, err := r.st.Submit(t.Context(), tasks)
	require.NoError(t, err)
	return r
}

func (r *damaged) do(args ...any) any {
	r.t.Helper()
	args[1] = r.base + args[1].(string)
	v, err := r.srv.Client(r.t).Do(r.t.Context(), args...).Result()
	require.NoError(r.t, err)
	return v
}

func (r *damaged) replace(agent, id string, after time.Duration) {
	r.t.Helper()
	page, err := r.st.Get(r.t.Context(), store.Get{Agent: agent, IDs: []string{id}})
	require.NoError(r.t, err)
	again := sub(agent, id)
	again.Body = []byte("new")
	again.Conflict, again.Version, again.Due.After = store.ConflictReplace, page.Tasks[0].Version, after
	placed, err := r.st.Submit(r.t.Context(), []store.Submission{again})
	require.NoError(r.t, err)
	require.True(r.t, placed[0].Replaced)
}

func done(r *damaged, tasks ...store.Claimed) {
	r.t.Helper()
	for _, task := range tasks {
		_, err := r.st.Settle(r.t.Context(), []store.Settlement{{Run: task.Run, Kind: task.Kind, Verb: store.VerbComplete, Record: []byte("r")}})
		require.NoError(r.t, err)
	}
}

// An agent that left its hash, and whose agenda entry a claim has taken away since, is looked at again.
func TestRepairWakesAnAgent(t *testing.T) {
	t.Parallel()
	r := newDamagedQueues(t, sub("b", "1"), sub("b", "2"))
	r.do("HDEL", "agents", "b")
	require.Empty(t, claim(t, r.st, "one", 5).Tasks) // takes the agent out of the agenda
	faults, _ := audited(t, r.st, true)
	require.NotEmpty(t, faults)
	left, _ := audited(t, r.st, false)
	assert.Empty(t, left, "repaired")
	assert.Len(t, claim(t, r.st, "two", 5).Tasks, 2)
}

// A task that was replaced while it ran comes back as what it was replaced by, at its time.
func TestRepairKeepsAnOrderToReplace(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"leases", "claims"} {
		r := newDamaged(t, sub("a", "1"))
		require.Len(t, claim(t, r.st, "one", 5).Tasks, 1)
		r.replace("a", "1", time.Hour)
		r.do("DEL", key)
		faults, _ := audited(t, r.st, true)
		require.Len(t, faults, 1)
		assert.Empty(t, claim(t, r.st, "two", 5).Tasks, "%s: it is not due for an hour", key)
	}
}

// The run of a lease that was lost loses its task: one run holds it, and what the other says changes nothing.
func TestRepairEndsTheRunOfALostLease(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"))
	old := claim(t, r.st, "one", 5).Tasks
	require.Len(t, old, 1)
	r.do("DEL", "leases")
	_, _ = audited(t, r.st, true)
	second := claim(t, r.st, "two", 5).Tasks
	require.Len(t, second, 1)
	out, err := r.st.Settle(t.Context(), []store.Settlement{{Run: old[0].Run, Verb: store.VerbAgain, Kind: "k"}})
	require.NoError(t, err)
	assert.ErrorIs(t, out[0].Err, store.ErrLeaseLost, "a stale run changes nothing")
	assert.Empty(t, claim(t, r.st, "three", 5).Tasks, "a third run, while the second is under way")
	left, _ := audited(t, r.st, false)
	assert.Empty(t, left)
	settle(t, r.st, store.VerbComplete, second...)
	stats, err := r.st.Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, stats.InProgress, "running")
}

// After a repair the counters say what is.
func TestRepairCountsWhatRuns(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"leases", "claims"} {
		r := newDamaged(t, sub("a", "1"))
		require.Len(t, claim(t, r.st, "one", 5).Tasks, 1)
		r.do("DEL", key)
		_, _ = audited(t, r.st, true)
		done(r, claim(t, r.st, "two", 5).Tasks...)
		stats, err := r.st.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, stats.InProgress, "%s: nothing runs", key)
		assert.Equal(t, "0", fmt.Sprint(r.do("HGET", "kinds", "rk")), "%s: no run of the kind", key)
	}
}

// What is put back is parked no more, whatever the counts of what is parked say.
func TestRepairLeavesNothingParkedAsWell(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"))
	foreign := func(nonce string) {
		_, err := r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", nonce), Kinds: []string{"x"}, Limit: 5, Lease: time.Minute}})
		require.NoError(t, err)
	}
	foreign("parks")
	r.do("DEL", "parked")
	faults, _ := audited(t, r.st, true)
	require.Len(t, faults, 1)
	left, _ := audited(t, r.st, false)
	require.Empty(t, left)
	runs := claim(t, r.st, "one", 5).Tasks
	require.Len(t, runs, 1, "it runs")
	_, err := r.st.Submit(t.Context(), []store.Submission{sub("z", "9")})
	require.NoError(t, err)
	foreign("again") // parks z/9
	for _, task := range claim(t, r.st, "two", 5).Tasks {
		assert.NotEqual(t, "a", task.Agent, "a second run while the first holds the lease")
	}
}

// When the claims are lost, with as many ended ones as are remembered, every call goes on.
func TestCallsGoOnWithoutTheClaims(t *testing.T) {
	t.Parallel()
	r := newDamaged(t)
	var many []store.Submission
	for i := range 1005 {
		many = append(many, sub(fmt.Sprintf("a%d", i), "1"))
	}
	for len(many) > 0 {
		n := min(500, len(many))
		_, err := r.st.Submit(t.Context(), many[:n])
		require.NoError(t, err)
		many = many[n:]
	}
	for i := range 1005 {
		settle(t, r.st, store.VerbComplete, claim(t, r.st, fmt.Sprint("n", i), 1).Tasks...)
	}
	_, err := r.st.Submit(t.Context(), []store.Submission{sub("b", "1")})
	require.NoError(t, err)
	require.Len(t, claim(t, r.st, "dead", 5).Tasks, 1)
	r.do("DEL", "claims")
	faults, _ := audited(t, r.st, true)
	require.Len(t, faults, 1)
	tasks := claim(t, r.st, "again", 5).Tasks
	require.Len(t, tasks, 1)
	out, err := r.st.Settle(t.Context(), []store.Settlement{{Run: tasks[0].Run, Kind: "k", Verb: store.VerbComplete, Record: []byte("r")}})
	if assert.NoError(t, err) {
		assert.NoError(t, out[0].Err)
	}
	_, err = r.st.Submit(t.Context(), []store.Submission{sub("c", "1")})
	require.NoError(t, err)
	_, err = r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "brief"), Kinds: []string{"k"}, Limit: 5, Lease: time.Millisecond}})
	require.NoError(t, err)
	r.clock.Advance(10 * time.Millisecond)
	_, err = r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "last"), Kinds: []string{"k"}, Limit: 5, Lease: time.Minute}})
	assert.NoError(t, err)
	left, _ := audited(t, r.st, false)
	assert.Empty(t, left, "what the claim took back is lost")
}

// A task that is to run though it is held does so after a repair too.
func TestRepairKeepsAnOrderToRun(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"))
	hold(t, r.st, store.Target{Agent: "a"}, moment.When{})
	_, err := r.st.RunNow(t.Context(), []store.RunNow{{Agent: "a", ID: "1"}})
	require.NoError(t, err)
	require.Len(t, claim(t, r.st, "one", 5).Tasks, 1)
	r.do("DEL", "leases")
	_, _ = audited(t, r.st, true)
	assert.Len(t, claim(t, r.st, "two", 5).Tasks, 1, "as after a crash")
}

// An agent whose count is too low would be forgotten while it has tasks.
func TestAnAgentThatIsCountedWrongly(t *testing.T) {
	t.Parallel()
	r := newDamagedQueues(t, sub("b", "1"), sub("b", "2"), sub("b", "3"))
	r.do("HSET", "agents", "b", "M41")
	faults, _ := audited(t, r.st, true)
	assert.NotEmpty(t, faults, "three tasks, and it says one")
	settle(t, r.st, store.VerbComplete, claim(t, r.st, "one", 1).Tasks...)
	left, _ := audited(t, r.st, false)
	assert.Empty(t, left, "two tasks have become lost")
}

// Tasks that are lost with all that they were cannot be put back, but are told.
func TestTasksThatAreGoneAreTold(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"tasks", "agents"} {
		r := newDamaged(t, sub("a", "1"), sub("b", "1"), sub("b", "2"))
		if key == "agents" {
			r.do("HDEL", "agents", "a")
		} else {
			r.do("DEL", "tasks")
		}
		faults, n := audited(t, r.st, false)
		assert.NotEmpty(t, faults, "%s: %d of 3 tasks are left, and nothing is said", key, n)
	}
}

// A task that runs and waits as well runs once.
func TestATaskThatRunsAndWaits(t *testing.T) {
	t.Parallel()
	r := newDamagedQueues(t, sub("b", "1"), sub("b", "2"))
	q, err := r.srv.Client(t).ZRangeWithScores(t.Context(), r.base+"queue:3:b", 0, 0).Result()
	require.NoError(t, err)
	one := claim(t, r.st, "one", 1).Tasks
	r.do("ZADD", "queue:3:b", q[0].Score, q[0].Member)
	r.do("ZADD", "agenda", q[0].Score, "b")
	faults, _ := audited(t, r.st, true)
	assert.NotEmpty(t, faults)
	for _, task := range claim(t, r.st, "two", 5).Tasks {
		assert.NotEqual(t, one[0].ID, task.ID, "it runs twice")
	}
}

// An agent that is there as an older copy has each task once.
func TestRepairCountsATaskOnce(t *testing.T) {
	t.Parallel()
	r := newDamagedQueues(t, sub("b", "1"))
	before := r.do("HGET", "agents", "b")
	_, err := r.st.Submit(t.Context(), []store.Submission{sub("b", "2")})
	require.NoError(t, err)
	r.do("HSET", "agents", "b", before) // an older copy of one hash was restored
	_, _ = audited(t, r.st, true)
	assert.Equal(t, "M42", r.do("HGET", "agents", "b"))
	settle(t, r.st, store.VerbComplete, claim(t, r.st, "one", 5).Tasks...)
	assert.Nil(t, func() any {
		v, _ := r.srv.Client(t).HGet(t.Context(), r.base+"agents", "b").Result()
		if v == "" {
			return nil
		}
		return v
	}(), "it has no tasks")
}

// A count of what is parked, where nothing is, makes nobody claim for ever.
func TestACountOfNothingParked(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"))
	_, err := r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "x"), Kinds: []string{"x"}, Limit: 5, Lease: time.Minute}})
	require.NoError(t, err)
	r.do("DEL", "parked:k")
	_, _ = audited(t, r.st, true)
	settle(t, r.st, store.VerbComplete, claim(t, r.st, "one", 5).Tasks...)
	left, _ := audited(t, r.st, true)
	t.Log(left)
	for i := range 3 {
		claims, err := r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", fmt.Sprint("y", i)), Kinds: []string{"k"}, Limit: 5, Lease: time.Minute}})
		require.NoError(t, err)
		looked, err := r.st.Look(t.Context(), []store.LookRequest{{Kinds: []string{"k"}}})
		require.NoError(t, err)
		assert.Zero(t, looked[0].NextDue, "nothing is due: a daemon would claim for ever (claim says %d)", claims[0].NextDue)
	}
	stats, _ := r.st.Stats(t.Context())
	assert.Zero(t, stats.Parked)
}

// No step of a repair is long, however many tasks there are.
func TestRepairHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	r := newDamaged(t)
	const agents, each = 5000, 3
	var some []store.Submission
	for i := range agents {
		for k := range each {
			some = append(some, sub(fmt.Sprintf("agent-%d", i), fmt.Sprint(k)))
		}
		if len(some) >= 900 || i == agents-1 {
			_, err := r.st.Submit(t.Context(), some)
			require.NoError(t, err)
			some = nil
		}
	}
	r.do("DEL", "agents")
	late := lateWhile(func() {
		faults, _ := audited(t, r.st, true)
		assert.NotEmpty(t, faults)
		left, n := audited(t, r.st, false)
		assert.Zero(t, len(left))
		assert.Equal(t, agents*(each-1), n, "the first task of each was in its agent's value")
	})
	slow, err := r.srv.Client(t).SlowLogGet(t.Context(), 50).Result()
	require.NoError(t, err)
	for _, s := range slow {
		assert.Less(t, s.Duration, 200*time.Millisecond+100*late, "a step of tens of milliseconds is interrupted many times where others keep the machine busy")
	}
}

// A hold that ends by itself does, though its end was lost.
func TestRepairKeepsTheEndOfAHold(t *testing.T) {
	t.Parallel()
	for _, scope := range []store.Target{{Agent: "a"}, {Agent: "a", ID: "1"}} {
		r := newDamaged(t, sub("a", "1"))
		hold(t, r.st, scope, moment.When{After: 400 * time.Millisecond})
		require.Empty(t, claim(t, r.st, "parks", 5).Tasks)
		r.do("DEL", "leases")
		faults, _ := audited(t, r.st, true)
		require.Len(t, faults, 1)
		require.Empty(t, claim(t, r.st, "parks again", 5).Tasks, "the hold lasts still")
		r.clock.Advance(500 * time.Millisecond)
		n := 0
		for i := range 3 {
			n += len(claim(t, r.st, fmt.Sprint("after", i), 5).Tasks)
		}
		assert.Equal(t, 1, n, "the hold is over, and it was repaired")
	}
}

// A lease that was lost counts as a crash: its task is a suspect.
func TestRepairCountsCrashes(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"))
	for i := range 4 {
		tasks := claim(t, r.st, fmt.Sprint(i), 5).Tasks
		require.Len(t, tasks, 1)
		assert.Equal(t, i, tasks[0].Crashes)
		r.do("DEL", "leases")
		_, _ = audited(t, r.st, true)
	}
}

// A count of what is parked, where nothing is, fails no claim.
func TestClaimsGoOnWithoutTheParked(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"), sub("b", "1"))
	_, err := r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "x"), Kinds: []string{"x"}, Limit: 5, Lease: time.Minute}})
	require.NoError(t, err)
	r.do("DEL", "parked:k")
	_, _ = audited(t, r.st, true)
	left, _ := audited(t, r.st, false)
	t.Log("the audit after the repair finds:", left)
	_, err = r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "y"), Kinds: []string{"k"}, Limit: 5, Lease: time.Minute}})
	assert.NoError(t, err)
	s, err := core.New(r.st, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
	_, err = s.RunDue(t.Context(), core.Scope{})
	assert.NoError(t, err)
}

// A count that is too high would keep an agent, and fill its limit, for ever.
func TestRepairCountsAnAgentDown(t *testing.T) {
	t.Parallel()
	r := newDamagedQueues(t, sub("b", "1"), sub("b", "2"))
	r.do("HSET", "agents", "b", "M49", "nobody", "M43")
	_, _ = audited(t, r.st, true)
	assert.Equal(t, "M42", r.do("HGET", "agents", "b"))
	left, err := r.srv.Client(t).HExists(t.Context(), r.base+"agents", "nobody").Result()
	require.NoError(t, err)
	assert.False(t, left)
	settle(t, r.st, store.VerbComplete, claim(t, r.st, "all", 5).Tasks...)
	left, err = r.srv.Client(t).HExists(t.Context(), r.base+"agents", "b").Result()
	require.NoError(t, err)
	assert.False(t, left, "it has no tasks any more")
}

// What has lost its place in a queue is not earlier than its agent was to be looked at.
func TestRepairIsNotEarlierThanTheAgenda(t *testing.T) {
	t.Parallel()
	one, two := sub("b", "1"), sub("b", "2")
	one.Due.After, two.Due.After = time.Hour, 2*time.Hour
	r := newDamagedQueues(t, one, two)
	r.do("DEL", "queue:3:b")
	faults, _ := audited(t, r.st, true)
	require.Len(t, faults, 2)
	assert.Empty(t, claim(t, r.st, "early", 5).Tasks)
	page, err := r.st.Get(t.Context(), store.Get{Agent: "b", IDs: []string{"1", "2"}})
	require.NoError(t, err)
	for _, task := range page.Tasks {
		assert.Greater(t, task.Due, page.Now.Add(59*time.Minute))
	}
}

// A claim that finds nothing where something is counted as parked mends the count, so that nobody claims for ever.
func TestAClaimMendsACountOfNothingParked(t *testing.T) {
	t.Parallel()
	r := newDamaged(t, sub("a", "1"))
	_, err := r.st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "x"), Kinds: []string{"x"}, Limit: 5, Lease: time.Minute}})
	require.NoError(t, err)
	r.do("DEL", "parked:k")
	assert.Empty(t, claim(t, r.st, "n", 5).Tasks)
	looked, err := r.st.Look(t.Context(), []store.LookRequest{{Kinds: []string{"k"}}})
	require.NoError(t, err)
	assert.Zero(t, looked[0].NextDue)
}

// A repair whose answers are lost is sent again: what it had put back by then stays, once.
func TestARepairIsRepeated(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Prefix: "p:"}) // the spy knows scripts by their real text
	r := &damaged{t: t, st: st, srv: srv, base: "p:{0}:"}
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("b", "1"), sub("b", "2")})
	require.NoError(t, err)
	r.do("DEL", "agenda")
	r.do("DEL", "queue:3:b")
	sees := newSpy()
	r.st.AddHook(sees)
	lost := 0
	sees.lose = func(script string) bool {
		if script == "audit" && lost < 3 {
			lost++
			return true
		}
		return false
	}
	_, n := audited(t, r.st, true)
	assert.Equal(t, 3, n)
	assert.Equal(t, 3, lost)
	tasks := claim(t, r.st, "one", 10).Tasks
	assert.Len(t, tasks, 3)
	assert.Empty(t, claim(t, r.st, "two", 10).Tasks, "each runs once")
	settle(t, r.st, store.VerbComplete, tasks...)
	left, n := audited(t, r.st, false)
	assert.Empty(t, left)
	assert.Zero(t, n)
}

// An agent with few tasks is put right too: each damage is told once, repaired, and all of its tasks run.
func TestAnAgentWithFewTasksIsRepaired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(r *damaged, value string)
		faults int
		runs   int
	}{
		"a count that is too low":          {func(r *damaged, v string) { r.do("HSET", "agents", "b", v[:2]+"\x01"+v[3:]) }, 1, 3},
		"a count that is too high":         {func(r *damaged, v string) { r.do("HSET", "agents", "b", v[:2]+"\x09"+v[3:]) }, 1, 3},
		"a task that it does not name":     {func(r *damaged, v string) { r.do("HSET", "agents", "b", v[:2]+"\x02"+v[3:len(v)-10]) }, 1, 3},
		"a task out of the agenda":         {func(r *damaged, _ string) { r.do("ZREMRANGEBYRANK", "agenda", 2, 2) }, 1, 3},
		"the first task out of the agenda": {func(r *damaged, _ string) { r.do("ZREM", "agenda", "b") }, 1, 3},
		"a task that is gone":              {func(r *damaged, _ string) { r.do("HDEL", "tasks", "b:2") }, 3, 2},
		"an agent that is gone":            {func(r *damaged, _ string) { r.do("HDEL", "agents", "b") }, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newDamaged(t, sub("b", "1"), sub("b", "2"), sub("b", "3"))
			value, ok := r.do("HGET", "agents", "b").(string)
			require.True(t, ok)
			require.Equal(t, "F3\x03", value[:3])
			c.damage(r, value)
			faults, _ := audited(t, r.st, true)
			assert.Len(t, faults, c.faults, "%v", faults)
			_, _ = audited(t, r.st, true)
			runs := claim(t, r.st, "all", 5).Tasks
			assert.Len(t, runs, c.runs)
			settle(t, r.st, store.VerbComplete, runs...)
			left, _ := audited(t, r.st, false)
			assert.Empty(t, left)
		})
	}
}
