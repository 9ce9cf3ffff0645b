package storetest

// The counters of kinds.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// counts demands how many tasks of kind k are live, and how many of them run.
// Both counters of the kind and those of the store have to agree.
func (b *sight) counts(live, running int64, why string) {
	b.Helper()
	k := b.kind("k")
	assert.Equal(b, [2]int64{live, running}, [2]int64{k.Live, k.Running}, why)
	st := b.stats()
	assert.Equal(b, [2]int64{live - running, running}, [2]int64{st.Waiting, st.InProgress}, why)
}

// testKindsLive takes tasks through every step of their lives: the counts of their
// kind follow, also when a call is repeated.
func testKindsLive(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("a", "2"), task("b", "1"))
	b.submit(task("b", "1"))
	b.counts(3, 0, "submit")
	r := b.request(10)
	c := b.claimWith(r)
	b.claimWith(r)
	b.counts(3, 3, "claim, also when it is repeated")
	for i, verb := range []store.Verb{store.VerbAgain, store.VerbRelease, store.VerbRest} {
		s := again(c.Tasks[i], 0)
		s.Verb = verb
		b.ended(s)
		b.ended(s)
		b.counts(3, int64(2-i), "goes on: "+string(verb))
	}
	c = b.claim(10)
	for i, verb := range []store.Verb{store.VerbComplete, store.VerbCancel, store.VerbFail} {
		s := store.Settlement{Run: c.Tasks[i].Run, Kind: "k", Verb: verb}
		b.ended(s)
		b.ended(s)
		b.counts(int64(2-i), int64(2-i), "ends: "+string(verb))
	}
	// A replay counts once, however often it is asked for.
	failed := c.Tasks[2]
	again := []store.Replay{given.Replay(task(failed.Agent, failed.ID))}
	b.effect(b.store.Replay(b.Context(), again))
	b.counts(1, 0, "replay")
	b.effect(b.store.Replay(b.Context(), again))
	b.counts(1, 0, "it is live already")
	b.claim(10)
	b.clock.Advance(lease)
	require.Equal(t, 1, b.claim(1).Recovered)
	b.counts(1, 1, "recovered and claimed")
	b.hold(store.Target{Kind: "k"}, moment.When{})
	b.clock.Advance(lease)
	require.Equal(t, 1, b.claim(1).Recovered)
	b.counts(1, 0, "recovered and parked")
	assert.Zero(t, b.kind("k").Runs, "no run was tallied")
}

// testKindsOf has kinds with names that could be mistaken for counters; they come
// sorted, and added up over partitions.
func testKindsOf(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	var subs []store.Submission
	for i := range 20 {
		s := task(fmt.Sprint("agent", i), "1")
		s.Kind = []string{"z", "a", "b:c", "l"}[i%4]
		subs = append(subs, s)
	}
	b.submit(subs...)
	b.touch(pulse("agent0", "2"))
	var got []string
	for _, k := range b.stats().Kinds {
		got = append(got, fmt.Sprint(k.Kind, " ", k.Live))
	}
	assert.Equal(t, []string{"a 5", "b:c 5", "k 1", "l 5", "z 5"}, got, "by name, of all partitions")
}

// tallied runs a task once and settles it with a tally.
// It settles twice, as a repeated settlement must not count again.
func (b *bench) tallied(tally store.RunStat) {
	b.Helper()
	c := b.claim(1)
	require.Len(b, c.Tasks, 1)
	s := again(c.Tasks[0], 0)
	tally.Kind, s.Tally = "k", &tally
	b.ended(s)
	b.ended(s)
}

// testKindsRuns tallies runs of all sorts: numbers, durations, lags and failures.
func testKindsRuns(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	b.tallied(store.RunStat{Schedule: store.ScheduleEvery, Duration: 3 * time.Second, Lag: 5 * time.Millisecond})
	k := b.kind("k")
	assert.Equal(t, [2]time.Duration{3 * time.Second, 3 * time.Second}, [2]time.Duration{k.Shortest, k.Longest})
	b.tallied(store.RunStat{Schedule: store.ScheduleCron, Duration: time.Second, Lag: 7 * time.Millisecond})
	b.tallied(store.RunStat{Schedule: store.ScheduleActivity, Duration: 2 * time.Second, Failed: true, Failure: []byte("no")})
	b.tallied(store.RunStat{Schedule: store.ScheduleAt, Duration: 2 * time.Second})
	// Parts of a millisecond are dropped, in both stores.
	b.tallied(store.RunStat{Duration: 1500*time.Millisecond + 700*time.Microsecond, Lag: time.Hour})
	want := count.KindStats{
		KindCounters: count.KindCounters{
			Kind: "k", Live: 1, Runs: 5, Failures: 1, Duration: 9500 * time.Millisecond, Shortest: time.Second, Longest: 3 * time.Second,
			Lag: time.Hour + 12*time.Millisecond, LongestLag: time.Hour, At: 2, Every: 1, Cron: 1, Activity: 1,
		},
		Failed: []count.Failure{{At: b.now(), Note: []byte("no")}},
	}
	k = b.kind("k")
	assert.Equal(t, want, k, "a settle that is sent twice counts once")
	assert.Equal(t, 1900*time.Millisecond, k.Average())

	// A run that lost its lease was counted by whoever ran it next.
	c := b.claim(1)
	b.clock.Advance(lease)
	b.claim(1)
	late := again(c.Tasks[0], 0)
	late.Tally = &store.RunStat{Kind: "k", Failed: true}
	assert.ErrorIs(t, b.settle(late)[0].Err, store.ErrLeaseLost)
	want.Running = 1
	assert.Equal(t, want, b.kind("k"), "a run that lost its lease counts for nothing")
}

// testKindsFailures has more failures than are kept: the newest stay, in order.
func testKindsFailures(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	for i := range count.KeptFailures + 5 {
		b.clock.Advance(time.Second)
		b.tallied(store.RunStat{Failed: true, Failure: fmt.Append(nil, i)})
		b.tallied(store.RunStat{Duration: time.Second})
	}
	k := b.kind("k")
	assert.Equal(t, [2]int64{50, 25}, [2]int64{k.Runs, k.Failures})
	require.Len(t, k.Failed, count.KeptFailures)
	for i, f := range k.Failed {
		assert.Equal(t, count.Failure{At: b.now().Add(-time.Duration(i) * time.Second), Note: fmt.Append(nil, count.KeptFailures+4-i)}, f, "newest first")
	}
}

// testKindsTogether has failures in two partitions: they are merged by time.
func testKindsTogether(t *testing.T, b *bench) {
	b.with(Options{Partitions: 2})
	agents := map[int]string{}
	for i := 0; len(agents) < 2; i++ {
		agent := fmt.Sprint("agent", i)
		agents[store.PartitionOf(agent, 2)] = agent
	}
	b.submit(task(agents[0], "1"), task(agents[1], "1"))
	for i := range 2 {
		b.clock.Advance(time.Second)
		r := b.request(1)
		r.Partition = i
		s := again(b.claimWith(r).Tasks[0], 0)
		s.Tally = &store.RunStat{Kind: "k", Failed: true, Duration: time.Duration(3-i) * time.Second, Failure: fmt.Append(nil, i)}
		b.ended(s)
	}
	k := b.kind("k")
	assert.Equal(t, [3]time.Duration{5 * time.Second, 2 * time.Second, 3 * time.Second}, [3]time.Duration{k.Duration, k.Shortest, k.Longest})
	assert.Equal(t, [2]string{"1", "0"}, [2]string{string(k.Failed[0].Note), string(k.Failed[1].Note)})
}
