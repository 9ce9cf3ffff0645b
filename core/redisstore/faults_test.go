package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func open(t *testing.T, c redisstore.Config) *redisstore.Store {
	t.Helper()
	st, err := redisstore.Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func sub(agent, id string) store.Submission {
	return store.Submission{Agent: agent, ID: id, Kind: "k", Level: store.LevelLow, Body: []byte("b")}
}

// deletion, replay and touching are requests about a task as it was submitted.
func deletion(s store.Submission) store.Deletion {
	return store.Deletion{Agent: s.Agent, ID: s.ID, Group: s.Group}
}

func replay(s store.Submission) store.Replay {
	return store.Replay{Agent: s.Agent, ID: s.ID, Kind: s.Kind, Group: s.Group, Key: s.Key, Level: s.Level, Body: s.Body, State: s.State}
}

func touching(s store.Submission) store.Touch {
	return store.Touch{Agent: s.Agent, ID: s.ID, Kind: s.Kind, Level: s.Level, Body: s.Body, Pulse: store.Pulse{Delay: time.Hour}}
}

func claim(t *testing.T, st store.Store, nonce string, limit int) store.Claim {
	t.Helper()
	return claimOf(t, st, 0, nonce, limit)
}

// claimOf claims from one partition.
func claimOf(t *testing.T, st store.Store, partition int, nonce string, limit int) store.Claim {
	t.Helper()
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{{Partition: partition, Nonce: fmt.Sprintf("%-16s", nonce), Kinds: []string{"k"}, Limit: limit, Lease: time.Minute}})
	require.NoError(t, err)
	return claims[0]
}

func settle(t *testing.T, st store.Store, verb store.Verb, tasks ...store.Claimed) {
	t.Helper()
	var runs []store.Settlement
	for _, task := range tasks {
		runs = append(runs, store.Settlement{Run: task.Run, Kind: task.Kind, Verb: verb, Record: []byte("r")})
	}
	out, err := st.Settle(t.Context(), runs)
	require.NoError(t, err)
	for _, s := range out {
		require.NoError(t, s.Err)
	}
}

// The answer of each script is lost, once and several times in a row: nothing happens twice and nothing is stranded.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, name := range []string{"submit", "claim", "settle", "extend", "read", "list"} {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s %d", name, times), func(t *testing.T) {
				t.Parallel()
				st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Prefix: fmt.Sprintf("%s%d:", name, times)})
				sees := newSpy()
				st.AddHook(sees)
				left := times
				sees.lose = func(script string) bool {
					if strings.TrimPrefix(script, "plain") != name || left == 0 {
						return false
					}
					left--
					return true
				}
				_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("a", "2"), sub("b", "1")})
				require.NoError(t, err)
				c := claim(t, st, "n", 10)
				require.Len(t, c.Tasks, 3)
				held, err := st.Extend(t.Context(), []store.Extension{{Fence: c.Fence, Lease: time.Minute}})
				require.NoError(t, err)
				assert.Equal(t, []store.Extended{{Held: true, Running: 3, Holder: "n       "}}, held)
				settle(t, st, store.VerbComplete, c.Tasks...)
				page, err := st.List(t.Context(), store.List{Agent: "a", Limit: 10})
				require.NoError(t, err)
				assert.Len(t, page.Tasks, 2)
				stats, err := st.Stats(t.Context())
				require.NoError(t, err)
				assert.Zero(t, left, "the answers were lost")
				assert.Equal(t, int64(3), stats.Submitted)
				assert.Equal(t, int64(3), stats.Completed)
				assert.Zero(t, stats.InProgress+stats.Waiting)
			})
		}
	}
}

func TestLostAnswersForGood(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	sees := newSpy()
	st.AddHook(sees)
	sees.lose = func(string) bool { return true }
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1")})
	require.Error(t, err)
	assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
	assert.ErrorContains(t, err, "submit: ")
	sees.lose = nil
	placed, err := st.Submit(t.Context(), []store.Submission{sub("a", "1")})
	require.NoError(t, err)
	assert.False(t, placed[0].Created, "it had been stored; submitting again is safe")
}

// Redis forgets its scripts, as it does on a restart and on a new replica.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 8})
	c := srv.Client(t)
	for i := range 50 {
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
		var subs []store.Submission
		for k := range 20 {
			subs = append(subs, sub(fmt.Sprintf("agent%d", k), fmt.Sprint(i)))
		}
		placed, err := st.Submit(t.Context(), subs) // a pipeline over partitions
		require.NoError(t, err)
		require.Len(t, placed, 20)
		_, err = st.Submit(t.Context(), []store.Submission{sub("one", fmt.Sprint(i))})
		require.NoError(t, err)
	}
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(50*21), stats.Submitted)
}

// When Redis is out of memory nothing new is taken, everything that runs is recorded, and that makes room.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1_000, 10_000} { // the full scripts see to large tasks, the plain ones to the others
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			fullMemory(t, size)
		})
	}
}

// fullMemory has 100 tasks with bodies of a size, half of which run when the memory is full.
func fullMemory(t *testing.T, size int) {
	t.Helper()
	srv := redistest.Start(t, "--maxmemory-policy", "noeviction")
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	c := srv.Client(t)
	big := sub("a", "")
	big.Body = []byte(strings.Repeat("x", size))
	for i := range 100 {
		big.Agent, big.ID = fmt.Sprintf("agent%d", i), fmt.Sprint(i)
		_, err := st.Submit(t.Context(), []store.Submission{big})
		require.NoError(t, err)
	}
	running := claim(t, st, "before", 50)
	require.Len(t, running.Tasks, 50)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())

	_, err := st.Submit(t.Context(), []store.Submission{sub("b", "1")})
	require.ErrorIs(t, err, store.ErrFull)
	assert.Equal(t, core.CodeStoreFull, core.CodeOf(err))
	_, err = st.Submit(t.Context(), []store.Submission{sub("b", "1"), sub("b", "2")})
	require.ErrorIs(t, err, store.ErrFull)
	held, err := st.Extend(t.Context(), []store.Extension{{Fence: running.Fence, Lease: time.Minute}})
	require.NoError(t, err)
	assert.Equal(t, []store.Extended{{Held: true, Running: 50, Holder: "before  "}}, held)
	settle(t, st, store.VerbComplete, running.Tasks[:40]...)
	settle(t, st, store.VerbAgain, running.Tasks[40:]...)
	// Even the work of a process that has died is taken back.
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{{Nonce: "dies-0123456789a", Kinds: []string{"k"}, Limit: 7, Lease: time.Millisecond}})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, 7)
	require.Eventually(t, func() bool {
		c := claim(t, st, "recovers", 0)
		return c.NextLease != 0 && c.NextLease < c.Now || c.NextDue != 0 && c.NextDue < c.Now
	}, time.Second, time.Millisecond)
	for {
		more := claim(t, st, fmt.Sprint(len(running.Tasks)), 50)
		if len(more.Tasks) == 0 {
			break
		}
		running.Tasks = append(running.Tasks, more.Tasks...)
		settle(t, st, store.VerbComplete, more.Tasks...)
	}
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(100), stats.Completed, "it drains")
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "100mb").Err())
	_, err = st.Submit(t.Context(), []store.Submission{sub("b", "1")})
	require.NoError(t, err)
}

// Redis is killed under load and started again: what was acknowledged is there, and the store goes on by itself. With
// everysec Redis itself may answer before it has written, while an earlier fsync of a busy disk is under way.
func TestRestart(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	acked := map[string]bool{}
	for i := range 5 {
		for k := range 40 {
			id := fmt.Sprintf("%d-%d", i, k)
			if _, err := st.Submit(t.Context(), []store.Submission{sub(fmt.Sprintf("agent%d", k), id)}); err == nil {
				acked[id] = true
			}
		}
		srv.Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := st.Submit(ctx, []store.Submission{sub("down", fmt.Sprint(i))})
		cancel()
		require.Error(t, err)
		srv.Restart(t)
	}
	found := map[string]bool{}
	for k := range 40 {
		page, err := st.List(t.Context(), store.List{Agent: fmt.Sprintf("agent%d", k), Limit: 1000})
		require.NoError(t, err)
		for _, task := range page.Tasks {
			found[task.ID] = true
		}
	}
	require.Len(t, acked, 200)
	for id := range acked {
		assert.True(t, found[id], "task %s was acknowledged and is gone", id)
	}
}

// A call ends with its context although Redis does not answer.
func TestContextsEndCalls(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	require.NoError(t, srv.Client(t).Do(t.Context(), "CLIENT", "PAUSE", 3000, "ALL").Err())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := st.Claim(ctx, []store.ClaimRequest{{Nonce: "0123456789abcdef", Limit: 1, Lease: time.Minute}})
	require.Error(t, err)
	assert.Less(t, time.Since(begun), time.Second)
}

func TestOneTaskSubmitsAreJoined(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	sees := newSpy()
	st.AddHook(sees)
	const callers, each = 64, 50
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				placed, err := st.Submit(t.Context(), []store.Submission{sub(fmt.Sprintf("agent%d", c), fmt.Sprint(i))})
				if assert.NoError(t, err) {
					assert.True(t, placed[0].Created)
				}
			}
		})
	}
	wg.Wait()
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(callers*each), stats.Submitted)
	calls := 0
	for _, args := range sees.cmds {
		if sees.script(args) == "submit" {
			calls++
		}
	}
	assert.Less(t, calls, callers*each/4, "%d calls for %d tasks", calls, callers*each)
}

// One caller who gives up does not take the others with it, and one bad task does not either.
func TestJoinedSubmitsAreIndependent(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, MaxTasks: 3})
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[core.Code]int{}
	for i := range 200 {
		wg.Go(func() {
			ctx := t.Context()
			if i%3 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithCancel(ctx)
				cancel()
			}
			_, err := st.Submit(ctx, []store.Submission{sub("a", fmt.Sprint(i))})
			mu.Lock()
			defer mu.Unlock()
			codes[core.CodeOf(err)]++
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, codes[""], 3)
	assert.Equal(t, 200, codes[""]+codes[core.CodeLimit]+codes[core.CodeUnavailable])
	assert.Positive(t, codes[core.CodeLimit])
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(3), stats.Waiting)
}

func TestALookCostsTwoCommands(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 64})
	s := sub("a", "1")
	s.Due.After = time.Hour
	_, err := st.Submit(t.Context(), []store.Submission{s})
	require.NoError(t, err)
	sees := newSpy()
	st.AddHook(sees)
	requests := make([]store.LookRequest, 64)
	for i := range requests {
		requests[i] = store.LookRequest{Partition: i, Kinds: []string{"k"}}
	}
	_, err = st.Look(t.Context(), requests)
	require.NoError(t, err)
	assert.Len(t, sees.cmds, 2)
}

// Nothing that is not finished may vanish by itself.
func TestLiveKeysHaveNoTTL(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	wholeLife(t, st)
	c := srv.Client(t)
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		assert.True(t, strings.HasPrefix(key, "duly:"), key)
		ttl, err := c.TTL(t.Context(), key).Result()
		require.NoError(t, err)
		if strings.Contains(key, ":group:") {
			continue // counts of tasks that have all ended
		}
		if base := key[strings.Index(key, "}:")+2:]; strings.HasPrefix(base, "signal:") || strings.HasPrefix(base, "sent:") || strings.HasPrefix(base, "recent:") || base == "receipts" || base == "received" || base == "watched" || base == "events" {
			continue // nobody waits for it, it says nothing of a task, or it would be refused anyway
		}
		if strings.HasPrefix(key, "duly:probed:") {
			continue // says nothing of a task, but that the scripts have been tried
		}
		assert.Equal(t, time.Duration(-1), ttl, key)
	}
}

// A partition that fails does not take along what others have claimed.
func TestOnePartitionFails(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	s, err := core.New(st, core.Config{Concurrency: 64})
	require.NoError(t, err)
	var ran atomic.Int64
	core.Handle(s, "k", func(context.Context, *core.Task[any]) error { ran.Add(1); return nil })
	agents := [2]string{}
	for i := 0; agents[0] == "" || agents[1] == ""; i++ {
		agents[store.PartitionOf(fmt.Sprint(i), 2)] = fmt.Sprint(i)
	}
	_, err = s.Submit(t.Context(), core.NewTask{Agent: agents[0], ID: "1", Kind: "k"}, core.NewTask{Agent: agents[1], ID: "1", Kind: "k"})
	require.NoError(t, err)
	c := srv.Client(t)
	leases := "duly:{" + redisstore.Tags(2)[1] + "}:leases"
	require.NoError(t, c.Set(t.Context(), leases, "x", 0).Err()) // as if a shard were broken
	report, err := s.RunDueTasks(t.Context(), agents[:])
	require.Error(t, err)
	assert.Equal(t, core.CodeUnavailable, core.CodeOf(err))
	assert.Equal(t, 1, report.Completed, "the healthy one works on")
	require.NoError(t, c.Del(t.Context(), leases).Err())
	require.Eventually(t, func() bool { // it is asked again after a moment
		report, err = s.RunDueTasks(t.Context(), agents[:])
		return err == nil
	}, 5*time.Second, 10*time.Millisecond)
	assert.Equal(t, 1, report.Completed)
	assert.Equal(t, int64(2), ran.Load())
}

// A sweep that meets a damaged record does not take along the claim that it came with.
func TestSweepMeetsDamage(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	c := srv.Client(t)
	require.NoError(t, c.HSet(t.Context(), "duly:{0}:finished", "bad", "x", "worse", "").Err())
	st.Sweep()
	claim(t, st, "first", 1)
	assert.Zero(t, c.HLen(t.Context(), "duly:{0}:finished").Val(), "what is not a record of ours goes")
	require.NoError(t, c.Set(t.Context(), "duly:{0}:history:list", "x", 0).Err())
	require.NoError(t, c.HSet(t.Context(), "duly:{0}:finished", "list", "*").Err())
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1")})
	require.NoError(t, err)
	st.Sweep()
	assert.Len(t, claim(t, st, "n", 1).Tasks, 1)
}

// What somebody else wrote over our records does not stop the work of others.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	var subs []store.Submission
	for i := range 20 {
		subs = append(subs, sub(fmt.Sprintf("one%02d", i), "1"), sub(fmt.Sprintf("two%02d", i), "1"), sub(fmt.Sprintf("two%02d", i), "2"))
	}
	_, err := st.Submit(t.Context(), subs)
	require.NoError(t, err)
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{{Nonce: "dies-0123456789a", Kinds: []string{"k"}, Agents: []string{"one19"}, Limit: 1, Lease: time.Millisecond}})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, 1)
	c := srv.Client(t)
	agents := "duly:{0}:agents"
	require.NoError(t, c.HSet(t.Context(), agents, "one00", "S", "one01", "", "one02", "Sxxxxxxx3\xff\xffid", "one03", "?", "two00", "M", "two01", "M9x").Err())
	require.NoError(t, c.HDel(t.Context(), agents, "one04").Err())
	require.NoError(t, c.HSet(t.Context(), "duly:{0}:tasks", "two02:2", "x", "two03:2", "").Err())
	require.NoError(t, c.HDel(t.Context(), "duly:{0}:tasks", "two04:2").Err())
	require.NoError(t, c.HSet(t.Context(), "duly:{0}:claims", fmt.Sprintf("%dr", claims[0].Fence), "\xc1").Err())
	done := 0
	for i := range 20 {
		got := claim(t, st, fmt.Sprint(i), 50)
		settle(t, st, store.VerbComplete, got.Tasks...)
		done += len(got.Tasks)
	}
	assert.Equal(t, (20-5-1)+2*(20-2)-3, done, "all that is whole")
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(5+2+3+1), stats.Malformed, "and what is not is counted")
	_, err = st.Submit(t.Context(), []store.Submission{sub("one00", "new"), sub("two00", "new"), sub("one03", "new")})
	require.NoError(t, err)
	assert.Len(t, claim(t, st, "new", 50).Tasks, 3, "their agents can go on")
}

// The counters of a kind can be anything: its runs end, and are counted anew.
func TestDamagedCounters(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for i, damage := range []string{"zzz", "\xc0", "", "\x93\x01\x02\x03", "\x9b\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a\xa1a"} {
		st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Prefix: fmt.Sprintf("counters%d:", i)})
		_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1")})
		require.NoError(t, err)
		key := fmt.Sprintf("counters%d:{0}:kinds", i)
		require.NoError(t, srv.Client(t).HSet(t.Context(), key, "sk", damage, "lother", "x", "?", "?").Err())
		_, err = st.Stats(t.Context())
		require.NoError(t, err)
		c := claim(t, st, "n", 10)
		require.Len(t, c.Tasks, 1)
		out, err := st.Settle(t.Context(), []store.Settlement{{
			Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbComplete, Record: []byte("r"), Tally: &store.RunStat{Kind: "k", Duration: time.Second},
		}})
		require.NoError(t, err)
		require.NoError(t, out[0].Err)
		stats, err := st.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, stats.Malformed)
		require.Len(t, stats.Kinds, 2)
		assert.EqualValues(t, 1, stats.Kinds[0].Runs, "of k; the other is named other")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Retention: time.Minute})
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("b", "1"), sub("b", "2")})
	require.NoError(t, err)
	settle(t, st, store.VerbComplete, claim(t, st, "1", 10).Tasks...)
	c := srv.Client(t)
	long := redisstore.Config{URL: srv.URL, Partitions: 1}
	require.NoError(t, c.HSet(t.Context(), "duly:{0}:finished", "a", "\x00\x011c0000000000001old").Err())
	require.NoError(t, c.HSet(t.Context(), "duly:{0}:history:b", "1", "c0000000000001old", "2", "c0000000000001old").Err())
	st = open(t, long)
	st.Sweep()
	claim(t, st, "2", 10)
	n, err := c.Exists(t.Context(), "duly:{0}:finished", "duly:{0}:history:b").Result()
	require.NoError(t, err)
	assert.Zero(t, n, "a claim takes what is too old along")
}

var _ redis.Hook = (*spy)(nil)
