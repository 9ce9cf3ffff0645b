package storetest

// Quotas: what is refused for an agent that has one, and what is counted for it.

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// quotaOf gives an agent the profile of a name with a quota, in place of another; nil for none.
func quotaOf(b *bench, agent, was, now string, q *store.Quota, recurring ...store.Stored) {
	b.Helper()
	c := store.ProfileChange{Agent: agent, Was: []byte(was), Now: []byte(now), Quota: q, Recurring: recurring}
	require.Equal(b, store.EffectDone, b.effect(b.store.Profile(b.Context(), []store.ProfileChange{c})).Code)
}

// boundBy is a task of a caller that a quota binds, and that was checked by it.
func boundBy(q *store.Quota, t store.Submission) store.Submission {
	t.Bound, t.Mark = true, q.Mark()
	return t
}

// recurs is a task that recurs.
func recurs(t store.Submission) store.Submission {
	t.Recurs = true
	return t
}

// refusedBy submits tasks that a part of a quota refuses, and returns the refusal.
func refusedBy(b *bench, part string, limit, used int, tasks ...store.Submission) *store.LimitError {
	b.Helper()
	_, err := b.store.Submit(b.Context(), tasks)
	var full *store.LimitError
	require.ErrorAs(b, err, &full)
	assert.Equal(b, store.LimitError{Agent: tasks[0].Agent, Quota: part, Limit: limit, Used: used, Until: full.Until}, *full)
	assert.NotEmpty(b, full.Error())
	return full
}

// usedOf is how much of the quota of an agent is used.
func usedOf(b *bench, agent string) store.QuotaUse {
	b.Helper()
	page, err := b.store.Profiles(b.Context(), store.PageOf{Agent: agent, Limit: 1})
	require.NoError(b, err)
	require.Len(b, page.Profiles, 1)
	require.NotNil(b, page.Profiles[0].Use)
	return *page.Profiles[0].Use
}

// testQuotaLive submits as many tasks as an agent may have, and more.
func testQuotaLive(t *testing.T, b *bench) {
	b.with(Options{})
	q := &store.Quota{Live: 3, Kinds: []string{"k"}}
	b.submit(task("a:b", "0"))
	quotaOf(b, "a:b", "", "one", q)
	b.submit(boundBy(q, task("a:b", "1")))
	refusedBy(b, "live", 3, 3, boundBy(q, task("a:b", "2")), boundBy(q, task("a:b", "3")))
	assert.Empty(t, b.status("a:b", "2"), "nothing of a refused call is stored")
	b.submit(boundBy(q, task("a:b", "2")))
	refusedBy(b, "live", 3, 3, boundBy(q, task("a:b", "3")))
	assert.Equal(t, []store.Submitted{{}}, b.submit(boundBy(q, task("a:b", "1"))), "what exists needs no room")
	replacing := boundBy(q, task("a:b", "1"))
	replacing.Conflict, replacing.Body, replacing.Version = store.ConflictReplace, []byte("new"), b.one("a:b", "1").Version
	assert.True(t, b.submit(replacing)[0].Replaced, "nor what replaces a task")
	_, c := b.start(boundBy(q, task("a:b", "at once")))
	require.ErrorAs(t, c.Err, new(*store.LimitError))
	b.submit(boundBy(q, task("c", "1")), task("a:b", "3"))
	assert.Equal(t, 4, usedOf(b, "a:b").Live, "a caller for all agents is not bound, but what it stores counts")
	b.settle(complete(b.claim(1).Tasks[0]))
	refusedBy(b, "live", 3, 3, boundBy(q, task("a:b", "4")))
	b.settle(complete(b.claim(1).Tasks[0]))
	b.submit(boundBy(q, task("a:b", "4")))
	quotaOf(b, "a:b", "one", "two", &store.Quota{Live: 1})
	refusedBy(b, "live", 1, 3, boundBy(&store.Quota{Live: 1}, task("a:b", "5")))
	quotaOf(b, "a:b", "two", "", nil)
	b.submit(boundBy(&store.Quota{}, task("a:b", "5")))
}

// testQuotaMark refuses what was checked by another quota than the agent has, or by none.
func testQuotaMark(t *testing.T, b *bench) {
	b.with(Options{})
	q, other := &store.Quota{Kinds: []string{"k"}}, &store.Quota{Kinds: []string{"k", "l"}}
	changed := func(tasks ...store.Submission) {
		t.Helper()
		_, err := b.store.Submit(t.Context(), tasks)
		require.ErrorIs(t, err, store.ErrChanged)
	}
	b.submit(boundBy(q, task("a", "1")))
	quotaOf(b, "a", "", "one", q)
	unchecked := task("a", "2")
	unchecked.Bound = true
	changed(unchecked)
	changed(boundBy(q, task("a", "3")), boundBy(other, task("a", "4")))
	changed(task("b", "1"), boundBy(other, task("a", "4")))
	_, c := b.start(unchecked)
	require.ErrorIs(t, c.Err, store.ErrChanged)
	b.submit(boundBy(q, task("a", "2")), task("b", "1"), task("a", "unbound"))
	quotaOf(b, "a", "one", "two", other)
	changed(boundBy(q, task("a", "5")))
	b.submit(boundBy(other, task("a", "5")))
	assert.Equal(t, []store.Submitted{{}}, b.submit(boundBy(q, task("a", "1"))), "what exists is not asked")
}

// testQuotaRecurring counts tasks that recur, through all that begins and ends them.
func testQuotaRecurring(t *testing.T, b *bench) {
	b.with(Options{})
	q := &store.Quota{Recurring: 3}
	b.submit(recurs(task("a", "old")), recurs(task("a", "gone")), recurs(task("a", "once")))
	old, gone, once := b.one("a", "old"), b.one("a", "gone"), b.one("a", "once")
	quotaOf(b, "a", "", "one", q)
	other := task("a", "once")
	other.Conflict, other.Version, other.Body = store.ConflictReplace, once.Version, []byte("other")
	assert.True(t, b.submit(other)[0].Replaced)
	assert.Zero(t, usedOf(b, "a").Recurring, "it does not see which of its tasks recur")
	effects, err := b.store.Delete(t.Context(), []store.Deletion{{Agent: "a", ID: "gone"}})
	require.NoError(t, err)
	require.Equal(t, store.EffectDone, effects[0].Code)
	quotaOf(b, "a", "", "one", q, old, gone, once)
	assert.Equal(t, 1, usedOf(b, "a").Recurring, "what has ended or changed meanwhile is not counted")
	b.submit(boundBy(q, recurs(task("a", "1"))), boundBy(q, task("a", "2")))
	refusedBy(b, "recurring", 3, 3, boundBy(q, recurs(task("a", "3"))), boundBy(q, recurs(task("a", "4"))))
	b.submit(boundBy(q, recurs(task("a", "3"))))
	assert.Equal(t, 3, usedOf(b, "a").Recurring)
	replace := func(id string, s store.Submission) store.Submission {
		s.Conflict, s.Body, s.Version = store.ConflictReplace, []byte("new"), b.one("a", id).Version
		return s
	}
	refusedBy(b, "recurring", 3, 3, replace("2", boundBy(q, recurs(task("a", "2")))))
	b.submit(replace("3", boundBy(q, recurs(task("a", "3")))))
	assert.Equal(t, 3, usedOf(b, "a").Recurring)
	b.submit(replace("3", boundBy(q, task("a", "3"))))
	assert.Equal(t, 2, usedOf(b, "a").Recurring)
	b.submit(replace("2", boundBy(q, recurs(task("a", "2")))))
	assert.Equal(t, 3, usedOf(b, "a").Recurring)

	b.submit(recurs(task("b", "beside")))
	for _, c := range b.claim(20).Tasks {
		end := complete(c)
		end.Recurs = true
		if c.ID == "2" {
			end.Verb = store.VerbFail
		}
		require.NoError(t, b.settle(end)[0].Err)
	}
	assert.Zero(t, usedOf(b, "a").Recurring, "what has ended")
	replay := store.Replay{Agent: "a", ID: "2", Kind: "k", Level: store.LevelLow, Body: []byte("new"), Recurs: true, Bound: true}
	replayed, err := b.store.Replay(t.Context(), []store.Replay{replay})
	require.NoError(t, err)
	require.Equal(t, store.EffectDone, replayed[0].Code)
	assert.Equal(t, 1, usedOf(b, "a").Recurring)
	cancelled, err := b.store.Cancel(t.Context(), []store.Cancellation{{Agent: "a", ID: "2", Version: b.one("a", "2").Version, Record: []byte("r")}})
	require.NoError(t, err)
	require.Equal(t, store.EffectDone, cancelled[0].Code)
	assert.Zero(t, usedOf(b, "a").Recurring)
	quotaOf(b, "a", "one", "two", &store.Quota{Live: 1})
	b.submit(recurs(task("a", "5")))
	assert.Zero(t, usedOf(b, "a").Recurring, "it is not bounded any more")
}

// testQuotaSubmits has no minute with more submits than the quota allows.
func testQuotaSubmits(t *testing.T, b *bench) {
	b.with(Options{})
	q := &store.Quota{Submits: 4}
	quotaOf(b, "a", "", "one", q)
	var stored []time.Time
	n := 0
	for range 60 {
		b.clock.Advance(2500 * time.Millisecond)
		n++
		if _, err := b.store.Submit(t.Context(), []store.Submission{boundBy(q, task("a", fmt.Sprint(n)))}); err == nil {
			stored = append(stored, b.clock.Now())
		} else {
			require.ErrorAs(t, err, new(*store.LimitError))
		}
	}
	assert.GreaterOrEqual(t, len(stored), 8)
	for i := 4; i < len(stored); i++ {
		assert.Greater(t, stored[i].Sub(stored[i-4]), time.Minute, "no minute has more")
	}
	b.clock.Advance(time.Hour)
	b.submit(boundBy(q, task("a", "x1")), boundBy(q, task("a", "x2")), boundBy(q, task("a", "x3")))
	b.submit(boundBy(q, task("a", "x1")), task("a", "unbound"))
	full := refusedBy(b, "submits", 4, 4, boundBy(q, task("a", "x4")), boundBy(q, task("a", "x5")))
	b.submit(boundBy(q, task("a", "x4")))
	assert.Equal(t, 4, usedOf(b, "a").Submits)
	b.clock.Advance(full.Until.Sub(b.now()) - time.Millisecond)
	refusedBy(b, "submits", 4, 4, boundBy(q, task("a", "x5")))
	b.clock.Advance(time.Millisecond)
	b.submit(boundBy(q, task("a", "x5")))
	assert.Equal(t, 1, usedOf(b, "a").Submits)
}

// testQuotaBytes bounds the bytes of an agent's definitions, as those of any agent are counted.
func testQuotaBytes(t *testing.T, b *bench) {
	b.with(Options{})
	q := &store.Quota{Bytes: 64 << 10}
	quotaOf(b, "a", "", "one", q)
	large := func(id string, kib int) store.Submission {
		s := boundBy(q, task("a", id))
		s.Body = make([]byte, kib<<10)
		return s
	}
	b.submit(large("1", 40), large("small", 3))
	refusedBy(b, "bytes", 64<<10, 60<<10, large("2", 20), large("3", 20))
	b.submit(large("2", 20))
	refusedBy(b, "bytes", 64<<10, 60<<10, large("3", 5))
	assert.Equal(t, int64(60<<10), usedOf(b, "a").Bytes)
	b.submit(large("3", 4))
	replacing := large("1", 60)
	replacing.Conflict, replacing.Version, replacing.OldLen = store.ConflictReplace, b.one("a", "1").Version, 40<<10
	refusedBy(b, "bytes", 64<<10, 64<<10, replacing)
	replacing.Body = replacing.Body[:30<<10]
	assert.True(t, b.submit(replacing)[0].Replaced)
	b.complete(b.claim(10))
	b.submit(large("4", 64))
}

// testQuotaOthers asks the quota for tasks that a touch or a replay makes.
func testQuotaOthers(t *testing.T, b *bench) {
	b.with(Options{})
	q := &store.Quota{Live: 1, Submits: 3}
	b.submit(task("a", "dead"))
	end := complete(b.claim(1).Tasks[0])
	end.Verb = store.VerbFail
	require.NoError(t, b.settle(end)[0].Err)
	quotaOf(b, "a", "", "one", q)
	touch := func(id, mark string) error {
		_, err := b.store.Touch(t.Context(), []store.Touch{{
			Agent: "a", ID: id, Kind: "k", Level: store.LevelLow, Body: []byte("b"), Pulse: store.Pulse{Delay: time.Minute}, Bound: true, Mark: mark,
		}})
		return err
	}
	require.ErrorIs(t, touch("user", ""), store.ErrChanged)
	require.NoError(t, touch("user", q.Mark()))
	require.NoError(t, touch("user", ""), "it exists")
	assert.Equal(t, store.QuotaUse{Live: 1, Submits: 1}, usedOf(b, "a"))
	var full *store.LimitError
	require.ErrorAs(t, touch("other", q.Mark()), &full)
	assert.Equal(t, "live", full.Quota)
	replay := store.Replay{Agent: "a", ID: "dead", Kind: "k", Level: store.LevelLow, Body: []byte("b"), Bound: true}
	effects, err := b.store.Replay(t.Context(), []store.Replay{replay})
	require.NoError(t, err)
	require.ErrorAs(t, effects[0].Refused, &full)
	assert.Equal(t, store.LimitError{Agent: "a", Quota: "live", Limit: 1, Used: 1}, *full)
	assert.Equal(t, store.StatusFailed, b.status("a", "dead"))
	replay.Bound = false
	effects, err = b.store.Replay(t.Context(), []store.Replay{replay})
	require.NoError(t, err)
	assert.Equal(t, store.EffectDone, effects[0].Code)
	assert.Equal(t, store.QuotaUse{Live: 2, Submits: 1}, usedOf(b, "a"))
}

// testQuotaRace submits from many sides at once at the bound: never one too many.
func testQuotaRace(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	q := &store.Quota{Live: 40, Recurring: 17}
	quotaOf(b, "a", "", "one", q)
	var stored, recurring atomic.Int64
	var wg sync.WaitGroup
	for side := range 8 {
		wg.Go(func() {
			for i := range 20 {
				tasks := []store.Submission{boundBy(q, task("a", fmt.Sprintf("%d-%d", side, i)))}
				if i%2 == 0 {
					tasks[0].Recurs = true
				}
				if i%5 == 0 { // over several partitions
					tasks = append(tasks, task(fmt.Sprintf("other %d", side), fmt.Sprint(i)))
				}
				_, err := b.store.Submit(b.Context(), tasks)
				switch {
				case err == nil && tasks[0].Recurs:
					recurring.Add(1)
					stored.Add(1)
				case err == nil:
					stored.Add(1)
				case !errors.As(err, new(*store.LimitError)):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	use := usedOf(b, "a")
	assert.Equal(t, 40, use.Live)
	assert.LessOrEqual(t, use.Recurring, 17)
	assert.Equal(t, int(stored.Load()), use.Live, "what was answered is what is stored")
	assert.Equal(t, int(recurring.Load()), use.Recurring)
}
