package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// part begins the keys of the one partition that these tests have.
const part = "duly:{0}:"

// finish takes tasks of an agent from submit to their end, fifty at a time.
func finish(t *testing.T, st *redisstore.Store, agent, prefix string, n int, verb store.Verb) {
	t.Helper()
	for from := 0; from < n; from += store.MaxClaim {
		var subs []store.Submission
		for i := from; i < min(n, from+store.MaxClaim); i++ {
			subs = append(subs, sub(agent, fmt.Sprintf("%s%05d", prefix, i)))
		}
		placed, err := st.Submit(t.Context(), subs)
		require.NoError(t, err)
		require.True(t, placed[0].Created)
		c := claim(t, st, fmt.Sprint(agent, prefix, from), store.MaxClaim)
		require.Len(t, c.Tasks, len(subs))
		settle(t, st, verb, c.Tasks...)
	}
}

func recordsOf(t *testing.T, st *redisstore.Store, agent string) []string {
	t.Helper()
	page, err := st.List(t.Context(), store.List{Agent: agent, Limit: 100_000})
	require.NoError(t, err)
	var ids []string
	for _, s := range page.Tasks {
		ids = append(ids, s.ID)
	}
	return ids
}

// What a version without an index has left is kept, cut in the right order once the index is there, and goes by its age.
func TestHistoriesWithoutAnIndex(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Kept: 300})
	now := time.Now().UnixMilli()
	leave := func(agent string, n int, ended int64) {
		require.NoError(t, c.HSet(t.Context(), part+"finished", agent, "*").Err())
		for i := range n {
			verb := "c"
			if i%10 == 0 {
				verb = "f"
			}
			record := fmt.Sprintf("%s%013d", verb, ended+int64(i))
			require.NoError(t, c.HSet(t.Context(), part+"history:"+agent, fmt.Sprintf("old%05d", i), record).Err())
		}
	}
	leave("a", 400, now-3_600_000) // as many as that version had at most: 360 and 40
	finish(t, st, "a", "new", 1, store.VerbComplete)
	kept := recordsOf(t, st, "a")
	assert.Len(t, kept, 300+40, "the oldest of those that are too many are gone, those that failed counted apart")
	assert.Contains(t, kept, "old00000", "it failed")
	assert.NotContains(t, kept, "old00001")
	assert.Contains(t, kept, "new00000")
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(61), stats.Trimmed)

	leave("long", 1500, 1) // longer than is listed in one step, and long past its time
	finish(t, st, "long", "new", 1, store.VerbComplete)
	assert.Equal(t, []string{"new00000"}, recordsOf(t, st, "long"))
	for i := range 30 {
		st.Sweep()
		claim(t, st, fmt.Sprint("sweep", i), 1)
	}
	assert.Equal(t, int64(1), c.HLen(t.Context(), part+"history:long").Val(), "sweeps have found them")
	assert.Len(t, recordsOf(t, st, "a"), 300+40)
}

// The version before trims a history as it sees fit, and settles without the index: this one goes on.
func TestTheVersionBeforeSharesHistories(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Kept: 400})
	finish(t, st, "a", "1-", 400, store.VerbComplete)
	require.Equal(t, int64(400), c.LLen(t.Context(), part+"ends:a").Val())
	var trimmed []string
	for i := range 200 {
		trimmed = append(trimmed, fmt.Sprintf("1-%05d", i))
	}
	require.NoError(t, c.HDel(t.Context(), part+"history:a", trimmed...).Err())
	for i := range 50 {
		record := fmt.Sprintf("c%013d", time.Now().UnixMilli())
		require.NoError(t, c.HSet(t.Context(), part+"history:a", fmt.Sprint("other", i), record).Err())
	}
	finish(t, st, "a", "2-", 200, store.VerbComplete)
	kept := recordsOf(t, st, "a")
	assert.Contains(t, kept, "other0")
	assert.Contains(t, kept, "1-00399")
	assert.Len(t, kept, 200+50+200, "what is not in the index waits for its time")
	finish(t, st, "a", "3-", 400, store.VerbComplete)
	assert.Len(t, recordsOf(t, st, "a"), 400+50)
	assert.Equal(t, int64(400), c.LLen(t.Context(), part+"ends:a").Val())
}

// Whoever deletes what has finished, again and again, makes no list grow for ever.
func TestDeletedRecordsLeaveLittle(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Kept: 2})
	finish(t, st, "a", "keep", 2, store.VerbComplete)
	for i := range 3 {
		finish(t, st, "a", fmt.Sprint("x", i), 40, store.VerbFail)
	}
	for i := range 600 { // each leaves an entry without a record
		var deletions []store.Deletion
		finish(t, st, "a", fmt.Sprint("y", i), 2, store.VerbComplete)
		for k := range 2 {
			deletions = append(deletions, deletion(sub("a", fmt.Sprintf("y%d%05d", i, k))))
		}
		_, err := st.Delete(t.Context(), deletions)
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, c.LLen(t.Context(), part+"dead:a").Val(), int64(2))
	assert.LessOrEqual(t, c.LLen(t.Context(), part+"ends:a").Val(), int64(1002))
	n, err := c.HLen(t.Context(), part+"history:a").Result()
	require.NoError(t, err)
	assert.LessOrEqual(t, n, int64(4))
}

// What has ended longer ago than it is kept goes when tasks of its agent end, also without a sweep, and so does what is known
// of what was dropped.
func TestWhatIsOldGoesAsTasksEnd(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1, Retention: time.Hour, Kept: 300})
	base := st.Prefix() + "{0}:"
	finish(t, st, "a", "1-", 400, store.VerbComplete)
	clock.Advance(time.Minute)
	finish(t, st, "a", "2-", 1, store.VerbComplete)
	require.Equal(t, int64(100), c.ZCard(t.Context(), base+"gone").Val())
	clock.Advance(time.Hour)
	finish(t, st, "a", "3-", 500, store.VerbComplete)
	assert.Equal(t, int64(300), c.HLen(t.Context(), base+"history:a").Val())
	assert.Equal(t, int64(200), c.ZCard(t.Context(), base+"gone").Val(), "the first hundred are forgotten")
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(300), stats.Trimmed, "what is old is not dropped before its time")
	clock.Advance(time.Hour)
	st.Sweep()
	claim(t, st, "sweep", 1)
	st.Sweep()
	claim(t, st, "sweep2", 1)
	assert.Empty(t, keysLike(t, c, base, "history:", "ends:", "dead:", "stale", "gone", "finished", "failed"))
}

func keysLike(t *testing.T, c *redis.Client, base string, names ...string) []string {
	t.Helper()
	all, err := c.Keys(t.Context(), strings.NewReplacer("{", `\{`, "}", `\}`).Replace(base)+"*").Result()
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(key string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(key, base+name) })
	})
}

// A history that has become short has no index: one that is left would miss what comes.
func TestShortHistoriesHaveNoIndex(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	for _, swept := range []bool{false, true} {
		clock := storetest.NewClock()
		st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1, Retention: time.Hour})
		base := st.Prefix() + "{0}:"
		finish(t, st, "a", "1-", 150, store.VerbComplete)
		clock.Advance(30 * time.Minute)
		finish(t, st, "a", "2-", 5, store.VerbComplete)
		require.Equal(t, int64(155), c.LLen(t.Context(), base+"ends:a").Val())
		clock.Advance(30 * time.Minute)
		want := int64(5)
		if swept {
			st.Sweep()
			claim(t, st, "sweep", 1)
		} else {
			want = 85
			finish(t, st, "a", "3-", 80, store.VerbComplete) // takes the old ones along
		}
		assert.Equal(t, want, c.HLen(t.Context(), base+"history:a").Val())
		assert.Empty(t, keysLike(t, c, base, "ends:", "stale"))
		assert.Zero(t, c.HGet(t.Context(), base+"counters", "trimmed").Val())
	}
}

// How a task ended is known for a day, however long records are kept, and whatever has become of the others of its agent.
func TestDroppedIDsAreKnownForADay(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1, Kept: 1})
	base := st.Prefix() + "{0}:"
	finish(t, st, "a", "1-", 10, store.VerbComplete)
	require.Equal(t, int64(9), c.ZCard(t.Context(), base+"gone").Val())
	_, err := st.Delete(t.Context(), []store.Deletion{deletion(sub("a", "1-00009"))})
	require.NoError(t, err)
	clock.Advance(store.KnownFor - time.Millisecond)
	st.Sweep()
	claim(t, st, "sweep", 1)
	require.Empty(t, keysLike(t, c, base, "finished", "history:"))
	placed, err := st.Submit(t.Context(), []store.Submission{sub("a", "1-00000")})
	require.NoError(t, err)
	assert.False(t, placed[0].Created)
	clock.Advance(time.Millisecond)
	finish(t, st, "b", "2-", 6, store.VerbComplete)
	assert.Equal(t, int64(5), c.ZCard(t.Context(), base+"gone").Val(), "those of a are forgotten")
}

// What is old goes also when Redis is out of memory: that is when its room is needed.
func TestASweepMakesRoomInFullMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--maxmemory-policy", "noeviction")
	c := srv.Client(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1, Retention: time.Hour})
	finish(t, st, "a", "1-", 200, store.VerbComplete)
	clock.Advance(time.Hour)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	st.Sweep()
	claim(t, st, "sweep", 1)
	assert.Empty(t, keysLike(t, c, st.Prefix()+"{0}:", "history:", "ends:", "finished"))
}

// The index of dead letters has no entry more than there are dead letters, whichever way their records go.
func TestTheIndexOfDeadLettersForgets(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1, Retention: time.Hour, Kept: 300})
	base := st.Prefix() + "{0}:"
	index := func() int64 { return c.ZCard(t.Context(), base+"failed").Val() }
	finish(t, st, "one", "1-", 1, store.VerbFail)
	finish(t, st, "few", "1-", 3, store.VerbFail)
	finish(t, st, "many", "1-", 500, store.VerbFail)
	finish(t, st, "many", "2-", 10, store.VerbComplete)
	assert.Equal(t, int64(304), index(), "what had to make room is not in it")
	clock.Advance(time.Hour)
	finish(t, st, "one", "2-", 1, store.VerbComplete)
	assert.Equal(t, int64(303), index(), "in place of the only record")
	finish(t, st, "many", "3-", 400, store.VerbFail)
	assert.LessOrEqual(t, index(), int64(303))
	clock.Advance(2 * time.Hour)
	for i := range 10 {
		st.Sweep()
		claim(t, st, fmt.Sprint("sweep", i), 1)
	}
	assert.Zero(t, index())
	assert.Empty(t, keysLike(t, c, base, "finished", "failed"))
}
