package redisstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestAClusterByItsURL(t *testing.T) {
	t.Parallel()
	srv := redistest.StartCluster(t)
	st := open(t, redisstore.Config{URL: "redis+cluster://" + srv.Addr + ",127.0.0.1:1", Partitions: 2})
	wholeLife(t, st)
	assert.Equal(t, "redis+cluster://"+srv.Addr+",127.0.0.1:1", st.Name())
}

func TestSentinelByItsURL(t *testing.T) {
	t.Parallel()
	master := redistest.StartTCP(t, "--requirepass", "secret")
	master.Password = "secret"
	sentinel := redistest.StartSentinel(t, master, "sentinel auth-pass mymaster secret", "requirepass other")
	st := open(t, redisstore.Config{URL: "redis+sentinel://:secret@" + sentinel.Addr + ",127.0.0.1:1/mymaster/2?sentinel_password=other", Partitions: 2})
	wholeLife(t, st)
	assert.Equal(t, "redis+sentinel://"+sentinel.Addr+",127.0.0.1:1/mymaster/2", st.Name())
	keys, err := master.Client(t).Do(t.Context(), "INFO", "keyspace").Text()
	require.NoError(t, err)
	assert.Contains(t, keys, "db2:", "it is in the database that the URL names")
	_, err = redisstore.Open(t.Context(), redisstore.Config{URL: "redis+sentinel://:secret@" + sentinel.Addr + "/other?sentinel_password=other"})
	require.ErrorContains(t, err, "no sentinel answered with the address of that master")
	_, err = redisstore.Open(t.Context(), redisstore.Config{URL: "redis+sentinel://:hunter2@" + sentinel.Addr + "/mymaster?sentinel_password=hunter3"})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter")
}

func TestTLSByItsURL(t *testing.T) {
	t.Parallel()
	srv, files := redistest.StartTLS(t, "--tls-auth-clients", "yes")
	config := redisstore.Config{URL: srv.URL, CAFile: files.CA, CertFile: files.ClientCert, KeyFile: files.ClientKey, Partitions: 2}
	wholeLife(t, open(t, config))
	stranger := config
	stranger.CertFile, stranger.KeyFile = "", ""
	_, err := redisstore.Open(t.Context(), stranger)
	require.ErrorContains(t, err, "it requires a client certificate: set CertFile and KeyFile (--redis-cert, --redis-key)")
	unknown := config
	unknown.CAFile = ""
	_, err = redisstore.Open(t.Context(), unknown)
	require.ErrorContains(t, err, "set CAFile (--redis-ca) to the authority's certificate")
	_, err = redisstore.Open(t.Context(), redisstore.Config{URL: strings.Replace(srv.URL, "rediss", "redis", 1)})
	require.ErrorContains(t, err, "if it speaks TLS, use rediss://")
	plain := redistest.StartTCP(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = redisstore.Open(ctx, redisstore.Config{URL: strings.Replace(plain.URL, "redis", "rediss", 1)})
	require.ErrorContains(t, err, "does it speak TLS at this port? If not, use redis://")
	cluster, files := redistest.StartTLS(t, "--cluster-enabled", "yes", "--tls-cluster", "yes")
	redistest.FormCluster(t, cluster)
	wholeLife(t, open(t, redisstore.Config{URL: "rediss+cluster://" + cluster.Addr, CAFile: files.CA, Partitions: 2}))
}

func TestCertificatesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for want, c := range map[string]redisstore.Config{
		"CAFile is for TLS: use rediss://":                            {URL: "redis://h:1", CAFile: empty},
		"KeyFile is required beside a certificate":                    {URL: "rediss://h:1", CertFile: empty},
		"CAFile cannot be read: open /nowhere/ca.pem":                 {URL: "rediss://h:1", CAFile: "/nowhere/ca.pem"},
		"contains no certificate in PEM":                              {URL: "rediss://h:1", CAFile: empty},
		"CertFile " + empty + " cannot be used with the key " + empty: {URL: "rediss://h:1", CertFile: empty, KeyFile: empty},
	} {
		_, err := redisstore.Open(t.Context(), c)
		assert.ErrorContains(t, err, want)
	}
}

// What is wrong with the way to a Redis is told with what to do, and without the password.
func TestAWrongWayToRedisIsTold(t *testing.T) {
	t.Parallel()
	open := redistest.StartTCP(t)
	locked := redistest.StartTCP(t, "--requirepass", "secret")
	node := redistest.StartCluster(t)
	for _, c := range []struct{ url, want string }{
		{"redis://:hunter2@" + locked.Addr, "it rejects the user or the password: check both in the URL"},
		{"redis://" + locked.Addr, "it requires a password: add it to the URL"},
		{"redis://u:hunter2@" + open.Addr, "it rejects the user or the password: check both in the URL"},
		{"redis://" + open.Addr + "/99", "the database does not exist: use a lower number"},
		{"redis://" + node.Addr, "it is a node of a cluster: use redis+cluster://"},
		{"redis://" + node.Addr + "/3", "it is a node of a cluster, which has no numbered databases"},
		{"redis+cluster://" + open.Addr, "it is not a cluster: use redis:// or rediss://"},
		{"redis+sentinel://" + open.Addr + "/mymaster", "no sentinel answered with the address of that master"},
		{"redis+cluster://h:1/3", "URL names the database 3, and a cluster has only 0"},
		{"redis+sentinel://h:1", "URL must name the master behind its sentinels"},
		{"redis+sentinel://h:1/m/x", "URL cannot be used: invalid database number"},
		{"redis://h:1,i:2", "URL names 2 servers: use redis+cluster://"},
		{"redis+cluster://h:1,", "URL has an empty host"},
		{"http://h:1", "URL must begin with redis://, rediss:// (TLS) or unix://"},
		{"redis+magic://h:1", "URL must begin with"},
		{"127.0.0.1:6379", "URL must begin with"},
		{"redis://u:hunter2@x@h:1/0", ""},
		{"redis://u:hunter2/x@h:1/0", ""},
		{"redis+cluster://u:hunter2#@h:1", ""},
		{"redis+sentinel://u:hunter2@h:1/m?sentinel_password=hunter2%zz", "badly escaped"},
	} {
		_, err := redisstore.Open(t.Context(), redisstore.Config{URL: c.url})
		require.ErrorContains(t, err, c.want, c.url)
		assert.NotContains(t, err.Error(), "hunter2", c.url)
	}
}

// A client that knows nothing of clusters would meet MOVED at one task and not at another.
func TestANodeOfAClusterIsTold(t *testing.T) {
	t.Parallel()
	a, b := redistest.StartTwoNodes(t)
	for _, srv := range []*redistest.Server{a, b} {
		_, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
		require.ErrorContains(t, err, "it is a node of a cluster: use redis+cluster://")
	}
	wholeLife(t, open(t, redisstore.Config{URL: "redis+cluster://" + b.Addr, Partitions: 2}))
}

// With a volatile policy only finished records, which have a time to live, can be dropped: that is a warning.
func TestAVolatilePolicyIsAWarning(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--appendonly", "yes", "--maxmemory-policy", "volatile-lru")
	var log bytes.Buffer
	open(t, redisstore.Config{URL: srv.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, part := range []string{"may drop the records of finished tasks early", "volatile-lru", "noeviction", "parameter group", "Memorystore"} {
		assert.Contains(t, log.String(), part)
	}
}
