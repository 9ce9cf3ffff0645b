package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// Calls of several goroutines that are joined in one script replace a task once: the second has to look again.
func TestJoinedReplace(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("b", "1")})
	require.NoError(t, err)
	_, err = st.Claim(t.Context(), []store.ClaimRequest{{Nonce: "parks-0123456789", Kinds: []string{"none"}, Limit: 7, Lease: time.Minute}})
	require.NoError(t, err)
	page, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
	require.NoError(t, err)
	require.True(t, page.Tasks[0].Parked)

	again := sub("a", "1") // the same but for its due time, as when a call is sent twice
	again.Conflict, again.Version, again.Due.After = store.ConflictReplace, page.Tasks[0].Version, time.Hour
	kept, failing := sub("a", "1"), sub("a", "1")
	failing.Conflict = store.ConflictFail
	placed, errs, err := st.SubmitEach(t.Context(), []store.Submission{kept, again, again, failing, sub("c", "1")})
	require.NoError(t, err)
	assert.True(t, placed[1].Replaced)
	assert.NoError(t, errs[1])
	assert.ErrorIs(t, errs[2], store.ErrChanged)
	assert.Equal(t, core.CodeConflict, core.CodeOf(errs[3]))
	assert.Equal(t, [3]bool{false, false, true}, [3]bool{placed[0].Created, placed[2].Replaced, placed[4].Created})
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, [2]int64{1, 3}, [2]int64{stats.Parked, stats.Waiting}, "b is parked still")
}

func TestCursorOfAgents(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	for _, cursor := range []string{"x", "0", ".", "0.", ".0", "2.0", "-1.0", "0.-1", "0.x", "0.1.2", "99999999999999999999.0"} {
		_, err := st.Agents(t.Context(), store.PageOf{After: cursor, Limit: 1})
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err), cursor)
	}
	_, err := st.Agents(t.Context(), store.PageOf{After: "1.0", Limit: 1})
	assert.NoError(t, err)
}

// A cursor that no page ended with is refused before Redis is asked, and one that is made up reads nothing of others.
func TestCursorOfTasks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("a", "2"), sub("b", "3"), sub("b", "4")})
	require.NoError(t, err)
	_, err = st.Claim(t.Context(), []store.ClaimRequest{{Nonce: "sixteen bytes, n", Kinds: []string{"other"}, Limit: 10, Lease: time.Second}})
	require.NoError(t, err)
	for _, cursor := range []string{
		"x", "1", "w", "w1", "w1|", "w-1|1", "w1|2|3", "r", "p", "p0|0||0||0|", "p5|0||0||0|", "p2|0||0|0|", "p2|99999999999999999999||0||0|",
		"p2|0||99999999999999999999||0|", "f", "f0|", "f99999999999999999999||", "f0|99999999999999999999|", "f-1||",
	} {
		_, err := st.List(t.Context(), store.List{Agent: "a", After: cursor, Limit: 1})
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err), cursor)
	}
	for _, cursor := range []string{
		"w0|0", "w999999999999999|9999999999999999", "rx", "p1|0||0||0|", "p2|0||0||4|kind", "p2|7|9|18446744073709551615|3|9999|kind", "p4|1||0||1|k",
		"f0||", "f18446744073709551615|3|", "f1|1|id", "f0|7|x",
	} {
		page, err := st.List(t.Context(), store.List{Agent: "a", After: cursor, Limit: 10})
		require.NoError(t, err, cursor)
		for _, s := range page.Tasks {
			assert.Contains(t, []string{"1", "2"}, s.ID, cursor)
		}
	}
}

// Redis keeps no more failures of a kind than are shown.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Prefix: "p:"})
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1")})
	require.NoError(t, err)
	for i := range count.KeptFailures + 5 {
		c := claim(t, st, fmt.Sprint(i), 1)
		require.Len(t, c.Tasks, 1)
		_, err := st.Settle(t.Context(), []store.Settlement{{
			Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbAgain, Tally: &store.RunStat{Kind: "k", Failed: true},
		}})
		require.NoError(t, err)
	}
	c := srv.Client(t)
	keys, err := c.Keys(t.Context(), "p:*failures:k").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	assert.Equal(t, int64(count.KeptFailures), c.LLen(t.Context(), keys[0]).Val())
}
