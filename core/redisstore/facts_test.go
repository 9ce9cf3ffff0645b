package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A tick that finds nothing is one look: two commands on one server, and one for each partition in a cluster.
func TestAnIdleTickIsMeasured(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--save", "3600 1")
	for url, want := range map[string]int{srv.URL: 2, "redis+cluster://" + redistest.StartCluster(t).Addr: 9} {
		tick, err := redisstore.IdleTick(t.Context(), redisstore.Config{URL: url})
		require.NoError(t, err)
		assert.Equal(t, want, tick.Commands)
		assert.Positive(t, tick.Took)
	}
	_, err := redisstore.IdleTick(t.Context(), redisstore.Config{URL: "redis://127.0.0.1:1"})
	require.ErrorContains(t, err, "cannot reach Redis")
}

func TestFacts(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--save", "3600 1", "--maxmemory-policy", "volatile-ttl")
	st := open(t, redisstore.Config{URL: srv.URL})
	facts, err := st.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, facts, 1)
	f := facts[0]
	assert.Equal(t, "volatile-ttl", f.Eviction)
	assert.Equal(t, "no", f.AppendOnly)
	assert.Equal(t, "3600 1", f.Save)
	assert.True(t, f.SaveKnown)
	assert.NotEmpty(t, f.Version)
	assert.Positive(t, f.Memory)
	assert.Positive(t, f.Commands)
	assert.Less(t, f.Up, time.Hour)
	assert.False(t, st.Secure())
	assert.Equal(t, "default", st.User())
	cluster := redistest.StartThreeMasters(t)
	facts, err = open(t, redisstore.Config{URL: "redis+cluster://" + cluster.Masters[0].Addr}).Facts(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(facts), 3, "every node that may have tasks")
	srv.Kill()
	_, err = st.Facts(t.Context())
	require.Error(t, err)
}
