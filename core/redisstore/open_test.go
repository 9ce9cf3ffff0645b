package redisstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, c := range []struct {
		name   string
		config redisstore.Config
		field  string
		value  any
		want   string
	}{
		{"no URL", redisstore.Config{}, "URL", nil, "URL is required"},
		{"not a URL", redisstore.Config{URL: "127.0.0.1"}, "URL", nil, "URL must begin with redis://"},
		{"no host", redisstore.Config{URL: "redis+cluster://a,,b"}, "URL", nil, "URL has an empty host"},
		{"no database", redisstore.Config{URL: "redis://h/x"}, "URL", nil, "URL cannot be used: invalid database number"},
		{"no master", redisstore.Config{URL: "redis+sentinel://h"}, "URL", nil, "URL must name the master"},
		{"prefix", redisstore.Config{URL: srv.URL, Prefix: "a{b"}, "Prefix", "a{b", "Prefix must not contain braces"},
		{"partitions", redisstore.Config{URL: srv.URL, Partitions: 3}, "Partitions", 3, "Partitions must be a power of two"},
		{"retention", redisstore.Config{URL: srv.URL, Retention: time.Second}, "Retention", time.Second, "Retention must be at least 1m0s"},
		{"kept", redisstore.Config{URL: srv.URL, Kept: -1}, "Kept", -1, "Kept"},
		{"kept bytes", redisstore.Config{URL: srv.URL, KeptBytes: 1}, "KeptBytes", 1, "KeptBytes must be at least 1024"},
		{"tasks", redisstore.Config{URL: srv.URL, MaxTasks: -1}, "MaxTasks", -1, "MaxTasks"},
		{"bytes", redisstore.Config{URL: srv.URL, MaxBytes: 1}, "MaxBytes", 1, "MaxBytes must be at least 1024"},
		{"no TLS", redisstore.Config{URL: "redis://h", CAFile: "x"}, "CAFile", "x", "CAFile is for TLS: use rediss:// in the URL"},
		{"no such file", redisstore.Config{URL: "rediss://h", CAFile: "no-file"}, "CAFile", "no-file", "CAFile cannot be read: open no-file"},
		{"no key", redisstore.Config{URL: "rediss://h", CertFile: "x"}, "KeyFile", nil, "KeyFile is required beside a certificate"},
		{"no certificate", redisstore.Config{URL: "rediss://h", KeyFile: "x"}, "CertFile", nil, "CertFile is required beside a key"},
		{"neither", redisstore.Config{URL: "rediss://h", CertFile: "no-file", KeyFile: "x"}, "CertFile", "no-file", "CertFile no-file cannot be used with the key x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := redisstore.Open(t.Context(), c.config)
			require.ErrorContains(t, err, c.want)
			var wrong *store.ConfigError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, c.field, wrong.Field)
			assert.Equal(t, c.value, wrong.Value)
			require.EqualError(t, err, "redisstore: "+wrong.Error())
		})
	}
}

// A Redis that cannot be reached is told from a setting that makes no sense.
func TestOpenOfARedisThatIsAway(t *testing.T) {
	t.Parallel()
	_, err := redisstore.Open(t.Context(), redisstore.Config{URL: "redis://127.0.0.1:1"})
	var away *redisstore.UnreachableError
	require.ErrorAs(t, err, &away)
	assert.Equal(t, "redis://127.0.0.1:1/0", away.Name)
	require.ErrorContains(t, err, "cannot reach Redis at redis://127.0.0.1:1/0: ")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var unavailable *store.Error
	require.ErrorAs(t, err, &unavailable, "by its code it is a store that is unavailable")
}

func TestOpenHidesPasswords(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://user:hunter2@127.0.0.1:1", "redis://:hunter2@[::1", "redis://u:hunter2@h:port/x", "redis://:hunter2@127.0.0.1:1/0?bad=%zz"} {
		_, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestOpenRefusesEviction(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allkeys-lru", "allkeys-random"} {
		srv := redistest.Start(t, "--maxmemory-policy", policy)
		_, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
		require.ErrorContains(t, err, "maxmemory-policy "+policy)
		for _, todo := range []string{"noeviction", "parameter group", "gcloud redis instances update"} {
			require.ErrorContains(t, err, todo, "it says what to do")
		}
		open(t, redisstore.Config{URL: srv.URL, AllowEviction: true})
	}
}

func TestOpenWarns(t *testing.T) {
	t.Parallel()
	warnings := func(config redisstore.Config) string {
		var log bytes.Buffer
		config.Logger = slog.New(slog.NewTextHandler(&log, nil))
		open(t, config)
		return log.String()
	}
	lasting := redistest.Start(t, "--appendonly", "yes")
	assert.Empty(t, warnings(redisstore.Config{URL: lasting.URL}))
	fleeting := redistest.Start(t)
	assert.Contains(t, warnings(redisstore.Config{URL: fleeting.URL}), "Redis has no persistence")
	evicting := redistest.Start(t, "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru")
	assert.Contains(t, warnings(redisstore.Config{URL: evicting.URL, AllowEviction: true}), "Redis may evict tasks")
}

// What a restart loses is told as far as it is known: nothing is promised of a server that does not say how it keeps tasks.
func TestOpenTellsWhatARestartLoses(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		args []string
		acl  string
		says string
	}{
		"append-only file": {args: []string{"--appendonly", "yes"}},
		"snapshots":        {args: []string{"--save", "3600 1"}, says: "Redis saves snapshots only"},
		"nothing":          {says: "Redis has no persistence"},
		"CONFIG refused":   {args: []string{"--save", "3600 1"}, acl: "-config", says: "does not report whether it saves snapshots"},
		"INFO refused":     {acl: "-info", says: "INFO is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, want.args...)
			if want.acl != "" {
				require.NoError(t, srv.Client(t).Do(t.Context(), "ACL", "SETUSER", "default", want.acl).Err())
			}
			var log bytes.Buffer
			open(t, redisstore.Config{URL: srv.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if want.says == "" {
				assert.Empty(t, log.String())
			} else {
				assert.Contains(t, log.String(), want.says)
			}
		})
	}
}

// Every node of a cluster is looked at: any of them that evicts drops tasks, a replica once it has taken over.
func TestOpenLooksAtEveryNode(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartThreeMasters(t)
	config := redisstore.Config{Options: &redis.UniversalOptions{Addrs: cluster.Addrs()[:1], IsClusterMode: true}}
	open(t, config)
	require.Eventually(t, func() bool { // a node lists a replica once it has followed a write, and any node may be asked
		for _, master := range cluster.Masters {
			_ = master.Client(t).Do(t.Context(), "PUBLISH", "x", "x").Err()
		}
		return !slices.ContainsFunc(slices.Concat(cluster.Masters, cluster.Replicas), func(asked *redistest.Server) bool {
			return slices.ContainsFunc(asked.Shards(t), func(s redistest.Shard) bool { return len(s.Addrs) != 2 })
		})
	}, 20*time.Second, 20*time.Millisecond)
	for _, node := range slices.Concat(cluster.Masters, cluster.Replicas) {
		c := node.Client(t)
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
		_, err := redisstore.Open(t.Context(), config)
		require.ErrorContains(t, err, "Redis at "+node.Addr+" has maxmemory-policy allkeys-lru")
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	}
	open(t, config)
	cluster.Replicas[2].Kill()
	var log bytes.Buffer
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	open(t, config)
	assert.Contains(t, log.String(), "cannot check a Redis server: it does not answer")
	assert.Contains(t, log.String(), cluster.Replicas[2].Addr)
}

func TestPartitionsAreSetOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	assert.Equal(t, 4, open(t, redisstore.Config{URL: srv.URL, Partitions: 4}).Partitions())
	assert.Equal(t, 4, open(t, redisstore.Config{URL: srv.URL}).Partitions(), "unset: as it was created")
	_, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Partitions: 8})
	require.ErrorContains(t, err, "was created with 4 partitions, not 8")
	assert.Equal(t, 1, open(t, redisstore.Config{URL: srv.URL, Prefix: "other:"}).Partitions())
	require.NoError(t, srv.Client(t).HSet(t.Context(), "duly:layout", "version", 3).Err())
	_, err = redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
	require.ErrorContains(t, err, `layout version "3", but this binary reads versions 1 to 2`)
	require.NoError(t, srv.Client(t).HSet(t.Context(), "duly:layout", "version", 1, "partitions", "x").Err())
	_, err = redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
	require.ErrorContains(t, err, "damaged")
}

// leastPrivilege is the ACL of docs/guarantees.md.
const leastPrivilege = "on >secret resetkeys ~duly:* resetchannels &duly:* -@all " +
	"+ping +hello +auth +select +info +time +eval +evalsha +subscribe +unsubscribe +publish " +
	"+get +set +mget +del +unlink +exists +persist +pexpire " +
	"+hget +hset +hsetnx +hdel +hmget +hgetall +hincrby +hlen +hkeys +hexists +hscan " +
	"+zadd +zrem +zcard +zrange +zrangebyscore +zscore +zmscore +zrank +zscan +lpush +rpop +ltrim +lrange +xadd +xrange +xrevrange"

func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	srv := redistest.StartTCP(t)
	c := srv.Client(t)
	setUser := func(rules string) {
		args := []any{"ACL", "SETUSER", "duly", "reset"}
		for r := range strings.FieldsSeq(rules) {
			args = append(args, r)
		}
		require.NoError(t, c.Do(t.Context(), args...).Err())
	}
	config := redisstore.Config{URL: strings.Replace(srv.URL, "redis://", "redis://duly:secret@", 1), Partitions: 2}
	setUser(leastPrivilege)
	st := open(t, config)
	wholeLife(t, st)
	ctx, cancel := context.WithCancel(t.Context())
	wakeups, err := st.Wakeups(ctx)
	require.NoError(t, err)
	cancel()
	for range wakeups {
	}
	// All but RPOP, which a partition needs after its thousandth claim.
	for _, needed := range []string{"hincrby", "zmscore", "pexpire", "publish", "hscan", "lpush", "ltrim", "lrange", "zrank", "info"} {
		setUser(leastPrivilege + " -" + needed)
		_, err := redisstore.Open(t.Context(), config)
		if needed == "info" {
			require.NoError(t, err, "without INFO it warns only")
			continue
		}
		require.ErrorContains(t, err, "the Redis user lacks a permission that duly needs", needed)
	}
	setUser(leastPrivilege + " resetkeys ~other:*")
	_, err = redisstore.Open(t.Context(), config)
	require.Error(t, err)
}

func TestTags(t *testing.T) {
	t.Parallel()
	srv := redistest.StartCluster(t)
	c := srv.Client(t)
	for n := 1; n <= 256; n *= 2 {
		for i, tag := range redisstore.Tags(n) {
			slot, err := c.ClusterKeySlot(t.Context(), "duly:{"+tag+"}:agenda").Result()
			require.NoError(t, err)
			require.Equal(t, i, int(slot)*n/16384, "partition %d of %d has its slot in its part", i, n)
		}
	}
	assert.Equal(t, []string{"0.1", "1.43", "2", "3.1", "4.42", "5.1", "6.1", "7.42"}, redisstore.Tags(8), "they must never change")
}

// The store repeats a call whose answer was lost itself, with the same nonce; the client must not do it behind its back.
func TestTheClientDoesNotRetry(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL + "?max_retries=5"})
	assert.Zero(t, st.ClientRetries())
}

func TestClusterOptions(t *testing.T) {
	t.Parallel()
	srv := redistest.StartCluster(t)
	st := open(t, redisstore.Config{Options: &redis.UniversalOptions{Addrs: []string{srv.Addr}, IsClusterMode: true}})
	_, err := st.Submit(t.Context(), []store.Submission{sub("a", "1"), sub("b", "2"), sub("c", "3")})
	require.NoError(t, err)
	requests := make([]store.ClaimRequest, st.Partitions())
	for i := range requests {
		requests[i] = store.ClaimRequest{Partition: i, Kinds: []string{"k"}}
	}
	claims, err := st.Claim(t.Context(), requests)
	require.NoError(t, err)
	due := 0
	for _, c := range claims {
		if c.NextDue != 0 && c.NextDue <= c.Now {
			due++
		}
	}
	assert.Positive(t, due)
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{"a", "a:b", "%", "}x", "\xff", "日本", "a%3Ab", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		name := redisstore.Encode(id)
		require.NotRegexp(t, `[^A-Za-z0-9._%-]`, name)
		back, err := redisstore.Decode(name)
		require.NoError(t, err)
		require.Equal(t, id, back)
		if got, err := redisstore.Decode(id); err == nil && !strings.Contains(id, "%") {
			require.Equal(t, id, got)
		}
	})
}
