package redisstore_test

// Turns: settlements with claims behind them, and claims that have ended.

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A settlement leaves it to the claim behind it to say when the partition is due next. If that claim is lost on its way, what is due again is
// known all the same, and no sooner than it is or was.
func TestASettlementWhoseClaimIsLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	for _, later := range []time.Duration{0, time.Hour} { // of another task, so that it is known as the next one, or none
		for _, by := range []time.Duration{time.Second, 2 * time.Hour} {
			st := open(t, redisstore.Config{URL: srv.URL, Prefix: fmt.Sprintf("s%d-%d:", later, by)})
			hint := func() int64 {
				ms, err := strconv.ParseInt(c.Get(t.Context(), st.Prefix()+"{0}:due").Val(), 10, 64)
				require.NoError(t, err)
				return ms
			}
			submitted(t, st, sub("a", "1"))
			if later > 0 {
				other := sub("b", "1")
				other.Due = moment.When{After: later}
				submitted(t, st, other)
			}
			ran := claim(t, st, "n1", 1)
			require.Len(t, ran.Tasks, 1)
			before := hint()
			run := store.Settlement{Run: ran.Tasks[0].Run, Kind: "k", Verb: store.VerbAgain, Due: moment.When{After: by}, Quiet: true}
			require.NoError(t, st.SettleInFrontOf(t.Context(), []store.Settlement{run}, []store.ClaimRequest{{}}))
			score := c.ZScore(t.Context(), st.Prefix()+"{0}:agenda", "a").Val()
			assert.Equal(t, min(before, int64(score)), hint(), "another task in %s, again in %s", later, by)

			assert.Empty(t, claim(t, st, "n2", 1).Tasks)
			due := int64(score)
			if later > 0 {
				due = min(due, int64(c.ZScore(t.Context(), st.Prefix()+"{0}:agenda", "b").Val()))
			}
			assert.Equal(t, due, hint(), "the next claim says it")
		}
	}
}

// A claim that takes tasks ahead of their time says when the partition is due next, whatever it has left.
func TestAClaimAheadTellsWhatIsNext(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	for name, of := range map[string]struct {
		dues  []time.Duration
		taken int
		held  string // an agent
	}{
		"nothing":                {[]time.Duration{0, 3 * time.Second}, 2, ""},
		"what comes later":       {[]time.Duration{0, 3 * time.Second, time.Hour}, 2, ""},
		"what is held":           {[]time.Duration{0, 3 * time.Second, 4 * time.Second, time.Hour}, 2, "agent-1"},
		"the last that it saw":   {[]time.Duration{0, 3 * time.Second, 4 * time.Second, 5 * time.Second}, 4, ""},
		"more than it has seen":  {[]time.Duration{0, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second, time.Hour}, 5, ""},
		"more than it could get": {[]time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3 * time.Second}, 10, ""},
	} {
		prefix := strings.ReplaceAll(name, " ", "") + ":"
		st := open(t, redisstore.Config{URL: srv.URL, Prefix: prefix})
		for i, due := range of.dues {
			task := sub(fmt.Sprint("agent-", i), "1")
			task.Due = moment.When{After: due}
			submitted(t, st, task)
		}
		if of.held != "" {
			hold(t, st, store.Target{Agent: of.held}, moment.When{})
		}
		request := store.ClaimRequest{
			Nonce: fmt.Sprintf("%016d", 1), Kinds: []string{"k"}, Limit: 10, Lease: time.Minute, Ahead: 20 * time.Second, AheadMost: 10, AheadLease: time.Minute,
		}
		claims, err := st.Claim(t.Context(), []store.ClaimRequest{request})
		require.NoError(t, err)
		require.Len(t, claims[0].Tasks, of.taken, name)
		next := c.ZRangeWithScores(t.Context(), prefix+"{0}:leases", 0, 0).Val()
		if first := c.ZRangeWithScores(t.Context(), prefix+"{0}:agenda", 0, 0).Val(); len(first) > 0 && first[0].Score < next[0].Score {
			next = first
		}
		assert.Equal(t, fmt.Sprintf("%.0f", next[0].Score), c.Get(t.Context(), prefix+"{0}:due").Val(), name)
	}
}

// Of claims that have ended the last ones are kept, so that a settlement that is sent twice has its answer. The others leave nothing behind.
func TestEndedClaimsAreForgotten(t *testing.T) {
	t.Parallel()
	const kept, slack, runs = 1000, 50, 1200
	srv := redistest.Start(t)
	c := srv.Client(t)
	for _, way := range []string{"plain", "full"} {
		st := open(t, redisstore.Config{URL: srv.URL, Prefix: way + ":"})
		task := sub("a", "1")
		if way == "full" {
			task.Group = "g"
		}
		submitted(t, st, task)
		var last []store.Settlement
		for i := range runs {
			request := store.ClaimRequest{Nonce: fmt.Sprintf("%016d", i), Kinds: []string{"k"}, Limit: 1, Lease: time.Minute}
			settled, claims, err := st.Turn(t.Context(), last, []store.ClaimRequest{request})
			require.NoError(t, err)
			if len(last) > 0 {
				require.NoError(t, settled[0].Err)
			}
			require.Len(t, claims[0].Tasks, 1)
			last = []store.Settlement{{Run: claims[0].Tasks[0].Run, Kind: "k", Group: task.Group, Verb: store.VerbAgain}}
		}
		ended := c.LLen(t.Context(), way+":{0}:ended").Val()
		assert.GreaterOrEqual(t, ended, int64(kept), way)
		assert.LessOrEqual(t, ended, int64(kept+slack), way)
		assert.Equal(t, 2*ended+3, c.HLen(t.Context(), way+":{0}:claims").Val(), "%s: marks and nonce of each, and of the one that runs its task, too", way)
	}
}
