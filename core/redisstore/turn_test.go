package redisstore_test

// Turns: settlements with claims behind them, and claims that have ended.

import (
	"fmt"
	"strconv"
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
