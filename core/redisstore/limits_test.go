package redisstore_test

// Limits beside what else a store has: plain scripts, and a move to other partitions.

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A store with limits, or with tasks that still wait for one that was lifted, keeps its one partition.
func TestRepartitionRefusesLimits(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL}
	st := open(t, config)
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("b", "1")})
	require.NoError(t, err)
	about := bound.LimitTarget{Kind: "k"}
	set := func(lift bool) {
		_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: about, Concurrency: 1}, Lift: lift}})
		require.NoError(t, err)
	}
	refused := func(why string) {
		_, err := redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 2})
		require.ErrorContains(t, err, why)
	}
	set(false)
	settle(t, st, store.VerbComplete, claim(t, st, "1", 10).Tasks...)
	refused("limits and budgets that are set: 1 (duly limit list and duly budget list show them)")
	set(true)
	refused("tasks that still wait in line for a limit: 1")
	settle(t, st, store.VerbComplete, claim(t, st, "2", 10).Tasks...)
	_, err = redisstore.Repartition(t.Context(), config, redisstore.Repartitioning{To: 2})
	require.NoError(t, err)
}

// What waits in line costs the claims of others nothing: they make no more commands beside 20,000 waiting tasks than beside one.
func TestALongLineCostsOthersNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL})
	_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Key: "slow"}, Concurrency: 1}}})
	require.NoError(t, err)
	commands := func(waiting int) int {
		for from := 0; from < waiting; from += 500 {
			var subs []store.Submission
			for i := from; i < min(waiting, from+500); i++ {
				s := sub(fmt.Sprint("behind", i%7, "-", waiting), fmt.Sprint(i))
				s.Key = "slow"
				subs = append(subs, s)
			}
			_, err := st.Submit(t.Context(), subs)
			require.NoError(t, err)
		}
		for i := 0; ; i++ {
			if c := claim(t, st, fmt.Sprint("park", waiting, "-", i), store.MaxClaim); c.Parked == 0 && len(c.Tasks) == 0 {
				break
			}
		}
		for i := range 32 { // after odd answers the full script is sent for a while: both are counted behind it
			claim(t, st, fmt.Sprint("calm", waiting, "-", i), store.MaxClaim)
		}
		_, err := st.Submit(t.Context(), []store.Submission{sub(fmt.Sprint("other", waiting), "1")}) // each has no history
		require.NoError(t, err)
		before := redistest.Commands(t, srv.Client(t))
		c := claim(t, st, fmt.Sprint("other", waiting), store.MaxClaim)
		require.Len(t, c.Tasks, 1)
		settle(t, st, store.VerbComplete, c.Tasks...)
		return redistest.Commands(t, srv.Client(t)) - before
	}
	few, many := commands(2), commands(20_000)
	t.Logf("figure: %d commands beside one that waits, %d beside 20,000", few, many)
	assert.InDelta(t, few, many, 2)
	use, err := st.Limits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(1), use[0].Running)
	assert.Equal(t, int64(20_001), use[0].Waiting)
}
