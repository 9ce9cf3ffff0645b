package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A store shares a client of its user's: its hooks see what the store does, and it stays open.
func TestNewOnAClientOfTheUsers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	options, err := redis.ParseURL(srv.URL)
	require.NoError(t, err)
	options.MaxRetries, options.ContextTimeoutEnabled = -1, true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	sees := newSpy()
	client.AddHook(sees)
	st, err := redisstore.New(t.Context(), client, redisstore.Config{Partitions: 2})
	require.NoError(t, err)
	_, err = st.Submit(t.Context(), []store.Submission{sub("a", "1")})
	require.NoError(t, err)
	found, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
	require.NoError(t, err)
	assert.Equal(t, store.StatusWaiting, found.Tasks[0].Status)
	assert.NotEmpty(t, sees.cmds)
	require.NoError(t, st.Close())
	require.NoError(t, client.Ping(t.Context()).Err(), "the client is its user's")

	cluster := redistest.StartMasters(t, 1)
	nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = nodes.Close() })
	_, err = redisstore.New(t.Context(), nodes, redisstore.Config{})
	require.NoError(t, err)
}

func TestNewRefusesAClientThatItCannotRelyOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client redis.UniversalClient
		config redisstore.Config
		says   string
	}{
		"no context":   {redis.NewClient(&redis.Options{}), redisstore.Config{}, "ContextTimeoutEnabled: true"},
		"retries":      {redis.NewClient(&redis.Options{ContextTimeoutEnabled: true}), redisstore.Config{}, "MaxRetries: -1, not 3 retries"},
		"a ring":       {redis.NewRing(&redis.RingOptions{}), redisstore.Config{}, "must be a *redis.Client or a *redis.ClusterClient, not *redis.Ring"},
		"a URL":        {reliable(), redisstore.Config{URL: "redis://127.0.0.1:1/0"}, "URL and Options"},
		"TLS files":    {reliable(), redisstore.Config{CAFile: "ca.pem"}, "leave them empty"},
		"partitions":   {reliable(), redisstore.Config{Partitions: 3}, "must be a power of two"},
		"nobody there": {reliable(), redisstore.Config{}, "cannot reach"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() { _ = c.client.Close() }()
			_, err := redisstore.New(t.Context(), c.client, c.config)
			require.ErrorContains(t, err, c.says)
			if name != "nobody there" {
				require.ErrorAs(t, err, new(*store.ConfigError))
			}
		})
	}
}

// reliable is a client that a store can rely on, of a Redis that does not exist.
func reliable() redis.UniversalClient {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Second,
	})
}
