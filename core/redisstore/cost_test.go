package redisstore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

var scriptTime = regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+),`)

// inScripts is how long Redis has worked on scripts so far, in microseconds.
func inScripts(t *testing.T, c *redis.Client) float64 {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	m := scriptTime.FindStringSubmatch(info)
	require.NotNil(t, m)
	usec, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return usec
}

// A settle costs no more for an agent with thousands of finished tasks than for one with a few. Once it has as many as are kept,
// each settle takes an old record away as well.
func TestASettleCostsTheSameWithALongHistory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	kept := []int{10, redisstore.DefaultKept / 2, redisstore.DefaultKept}
	for _, n := range kept[1:] {
		finish(t, st, fmt.Sprint("agent", n), "before", n, store.VerbComplete)
	}
	var figure []string
	for _, batch := range []int{1, store.MaxClaim} {
		best := map[int]float64{}
		for round := range 12 {
			for _, n := range kept {
				agent := fmt.Sprint("agent", n)
				if n == kept[0] { // it has to stay one with a few
					agent = fmt.Sprint("short", batch, "-", round)
					finish(t, st, agent, "before", n, store.VerbComplete)
				}
				took := settleTime(t, st, c, agent, fmt.Sprint("x", batch, "-", round, "-"), batch)
				if round == 0 || took < best[n] {
					best[n] = took
				}
			}
		}
		for _, n := range kept[1:] {
			assert.Less(t, best[n], 3*best[kept[0]], "%d kept, settled in batches of %d", n, batch)
		}
		figure = append(figure, fmt.Sprintf("%.1f / %.1f / %.1f us a task with %d / %d / %d kept, settled %d at once",
			best[kept[0]], best[kept[1]], best[kept[2]], kept[0], kept[1], kept[2], batch))
	}
	t.Log("figure: " + strings.Join(figure, "; "))
	stats, err := st.Stats(t.Context())
	require.NoError(t, err)
	assert.Positive(t, stats.Trimmed)
}

// settleTime is what Redis takes to settle a task of an agent, when so many are settled at once.
func settleTime(t *testing.T, st *redisstore.Store, c *redis.Client, agent, prefix string, batch int) float64 {
	t.Helper()
	var subs []store.Submission
	for i := range store.MaxClaim {
		subs = append(subs, sub(agent, fmt.Sprintf("%s%05d", prefix, i)))
	}
	_, err := st.Submit(t.Context(), subs)
	require.NoError(t, err)
	tasks := claim(t, st, agent+prefix, store.MaxClaim).Tasks
	require.Len(t, tasks, store.MaxClaim)
	before := inScripts(t, c)
	for i := 0; i < len(tasks); i += batch {
		settle(t, st, store.VerbComplete, tasks[i:i+batch]...)
	}
	return (inScripts(t, c) - before) / store.MaxClaim
}
