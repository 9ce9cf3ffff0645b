package redisstore_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// listen says that somebody listens, for a minute.
func listen(t *testing.T, st *redisstore.Store) (next string) {
	t.Helper()
	page, err := st.Follow(t.Context(), feed.Follow{Limit: 1, For: time.Minute})
	require.NoError(t, err)
	return page.Next
}

// ways are the calls whose answers say that somebody listens, each with what has to be there before.
var ways = []struct {
	name  string
	ready func(t *testing.T, st *redisstore.Store)
	call  func(t *testing.T, st *redisstore.Store)
}{
	{"a submit", nil, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		submitted(t, st, sub("a", "1"))
	}},
	{"a submit of a group", nil, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		grouped := sub("a", "1")
		grouped.Group = "g"
		submitted(t, st, grouped)
	}},
	{"a touch", nil, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		_, err := st.Touch(t.Context(), []store.Touch{touching(sub("a", "1"))})
		require.NoError(t, err)
	}},
	{"a start at once", nil, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		task := sub("a", "1")
		claims, err := st.Claim(t.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", st.Partitions()), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute, New: &task,
		}})
		require.NoError(t, err)
		require.Len(t, claims[0].Tasks, 1)
	}},
	{"a claim", func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		submitted(t, st, sub("a", "1"))
	}, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		require.Len(t, claimOf(t, st, store.PartitionOf("a", st.Partitions()), "n", 1).Tasks, 1)
	}},
	{"a claim where something is held", func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		submitted(t, st, sub("a", "1"))
		held(t, st, store.Target{Key: "other"})
	}, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		require.Len(t, claimOf(t, st, store.PartitionOf("a", st.Partitions()), "n", 1).Tasks, 1)
	}},
	{"a pause of a task", func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		submitted(t, st, sub("a", "1"))
	}, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		held(t, st, store.Target{Agent: "a", ID: "1"})
	}},
	{"a pause of everything", nil, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		held(t, st, store.Target{})
	}},
	{"an order to run", func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		later := sub("a", "1")
		later.Due.After = time.Hour
		submitted(t, st, later)
	}, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		_, err := st.RunNow(t.Context(), []store.RunNow{{Agent: "a", ID: "1"}})
		require.NoError(t, err)
	}},
	{"a deletion", func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		submitted(t, st, sub("a", "1"))
	}, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		_, err := st.Delete(t.Context(), []store.Deletion{deletion(sub("a", "1"))})
		require.NoError(t, err)
	}},
	{"a read", nil, func(t *testing.T, st *redisstore.Store) {
		t.Helper()
		_, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
		require.NoError(t, err)
	}},
}

func submitted(t *testing.T, st *redisstore.Store, tasks ...store.Submission) {
	t.Helper()
	_, err := st.Submit(t.Context(), tasks)
	require.NoError(t, err)
}

func held(t *testing.T, st *redisstore.Store, of store.Target) {
	t.Helper()
	_, err := st.Hold(t.Context(), []store.Hold{{Target: of}})
	require.NoError(t, err)
}

// A process learns from the answer to its own call that another one listens, in whatever partition the call is, on a server and on a cluster.
func TestAnswersTellWhoListens(t *testing.T) {
	t.Parallel()
	servers := map[string]*redistest.Server{"server": redistest.Start(t), "cluster": redistest.StartCluster(t)}
	for name, srv := range servers {
		for i, way := range ways {
			t.Run(name+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				config := redisstore.Config{URL: srv.URL, Prefix: fmt.Sprintf("w%d:", i), Partitions: 4}
				if name == "cluster" {
					config.URL, config.Options = "", &redis.UniversalOptions{Addrs: []string{srv.Addr}, IsClusterMode: true}
				}
				works, listens := open(t, config), open(t, config)
				if way.ready != nil {
					way.ready(t, works)
				}
				require.False(t, works.Listened())
				listen(t, listens)
				way.call(t, works)
				assert.True(t, works.Listened())
			})
		}
	}
}

// An end of a run tells it too, which may have begun long before.
func TestSettlementsTellWhoListens(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for i, task := range []store.Submission{sub("a", "1"), {Agent: "a", ID: "1", Kind: "k", Group: "g", Level: store.LevelLow}} {
		config := redisstore.Config{URL: srv.URL, Prefix: fmt.Sprintf("s%d:", i)}
		works, listens := open(t, config), open(t, config)
		submitted(t, works, task)
		claimed := claim(t, works, "n", 1).Tasks
		listen(t, listens)
		require.False(t, works.Listened())
		run := store.Settlement{Run: claimed[0].Run, Verb: store.VerbComplete, Kind: "k", Group: task.Group}
		_, err := works.Settle(t.Context(), []store.Settlement{run})
		require.NoError(t, err)
		assert.True(t, works.Listened(), "group %q", task.Group)
	}
}

var commandCalls = regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`)

// commandsIn counts the commands that a server carries out meanwhile, those within scripts too.
func commandsIn(t *testing.T, c *redis.Client, do func()) map[string]int {
	t.Helper()
	require.NoError(t, c.ConfigResetStat(t.Context()).Err())
	do()
	info, err := c.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	counts := map[string]int{}
	for _, m := range commandCalls.FindAllStringSubmatch(info, -1) {
		counts[m[1]], err = strconv.Atoi(m[2])
		require.NoError(t, err)
	}
	delete(counts, "config|resetstat")
	delete(counts, "info")
	return counts
}

// Nobody who listens costs no command: what says whether somebody does is read with a command that reads something else. Where
// somebody listens to a process that has no events, as here, it costs none either.
func TestNobodyWhoListensCostsNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	for _, way := range append(ways[:3:3], ways[4:]...) { // a start at once that is told so looks at what is rare as well
		counts := [2]map[string]int{}
		for i := range counts {
			st := open(t, redisstore.Config{URL: srv.URL, Prefix: fmt.Sprintf("%s%d:", strings.ReplaceAll(way.name, " ", ""), i)})
			if way.ready != nil {
				way.ready(t, st)
			}
			if i == 1 {
				listen(t, st)
			}
			counts[i] = commandsIn(t, c, func() { way.call(t, st) })
			assert.Equal(t, i == 1, st.Listened(), way.name)
		}
		assert.Equal(t, counts[0], counts[1], way.name)
		assert.Zero(t, counts[0]["xadd"]+counts[0]["xrange"]+counts[0]["xrevrange"], way.name)
	}
	beside := regexp.MustCompile(`redis\.call\('(?:EXISTS|MGET)', [^)]+, base \.\. 'watched'\)`)
	for name := range redisstore.Packed() {
		text := redisstore.Part(name)
		assert.Equal(t, strings.Count(text, "'watched'"), len(beside.FindAllString(text, -1)), "%s reads watched by itself", name)
	}
}

// Once whoever listened is gone without a word, a process publishes once more, is told so, and does not again.
func TestPublishingEndsWithWhoeverListened(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL, Partitions: 2}
	works, listens := open(t, config), open(t, config)
	_, err := listens.Follow(t.Context(), feed.Follow{Limit: 1, For: 50 * time.Millisecond})
	require.NoError(t, err)
	c := srv.Client(t)
	keys := []string{"duly:{" + redisstore.Tags(2)[0] + "}:watched", "duly:{" + redisstore.Tags(2)[1] + "}:watched"}
	first, second := c.PTTL(t.Context(), keys[0]).Val(), c.PTTL(t.Context(), keys[1]).Val()
	assert.LessOrEqual(t, first, 50*time.Millisecond)
	assert.Greater(t, second, first, "who is told that somebody listens may publish")
	require.Eventually(t, func() bool { return c.Exists(t.Context(), keys...).Val() == 0 }, 10*time.Second, 5*time.Millisecond)
	works.Hear()
	listened, err := works.Publish(t.Context(), 0, [][]byte{[]byte("event")})
	require.NoError(t, err)
	assert.False(t, listened)
	assert.False(t, works.Listened())
	submitted(t, works, sub("a", "1"))
	assert.False(t, works.Listened())
	assert.Zero(t, c.Exists(t.Context(), "duly:{"+redisstore.Tags(2)[0]+"}:events").Val(), "nothing was kept")
}

// What is kept takes a bounded time and place: both go an hour after the last event.
func TestEventsGoByThemselves(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL})
	listen(t, st)
	c := srv.Client(t)
	begun := inScripts(t, c)
	for range 2 * feed.Kept / 1000 {
		events := make([][]byte, 1000)
		for i := range events {
			events[i] = bytes.Repeat([]byte("event"), 60)
		}
		_, err := st.Publish(t.Context(), 0, events)
		require.NoError(t, err)
	}
	took := inScripts(t, c) - begun
	key := "duly:{" + redisstore.Tags(1)[0] + "}:events"
	assert.Less(t, c.XLen(t.Context(), key).Val(), int64(feed.Kept+1000))
	assert.InDelta(t, feed.KeptFor.Seconds(), c.PTTL(t.Context(), key).Val().Seconds(), 60)
	begun = inScripts(t, c)
	for range 1000 {
		listen(t, st)
	}
	t.Logf("figure: %.1f us of Redis an event of 300 bytes, %.1f us a look of who listens, %d kB in all",
		took/2/feed.Kept, (inScripts(t, c)-begun)/1000, c.MemoryUsage(t.Context(), key, 0).Val()/1000)
	// An event stream that somebody has deleted begins again, and its numbers with it.
	from := listen(t, st)
	require.NoError(t, c.Del(t.Context(), key).Err())
	_, err := st.Publish(t.Context(), 0, [][]byte{[]byte("new")})
	require.NoError(t, err)
	var told []string
	for range 2 {
		page, err := st.Follow(t.Context(), feed.Follow{After: from, Limit: 10, For: time.Minute})
		require.NoError(t, err)
		for _, item := range page.Items {
			told = append(told, fmt.Sprint(item.Lost, string(item.Data)))
		}
		from = page.Next
	}
	assert.Equal(t, []string{"-1", "0new"}, told)
}

// Who listens again once the clock of Redis was set back gets what is published from then on, behind all that is kept.
func TestEventsAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1})
	from := listen(t, st)
	publish := func(text string) {
		t.Helper()
		listened, err := st.Publish(t.Context(), 0, [][]byte{[]byte(text)})
		require.NoError(t, err)
		require.True(t, listened)
	}
	publish("before")
	require.NoError(t, srv.Client(t).Del(t.Context(), st.Prefix()+"{"+redisstore.Tags(1)[0]+"}:watched").Err())
	clock.Advance(-time.Hour)
	listen(t, st)
	publish("after")
	page, err := st.Follow(t.Context(), feed.Follow{After: from, Limit: 10, For: time.Minute})
	require.NoError(t, err)
	var told []string
	for _, item := range page.Items {
		told = append(told, fmt.Sprint(item.Lost, string(item.Data)))
	}
	assert.Equal(t, []string{"0before", "-1", "0after"}, told)
}
