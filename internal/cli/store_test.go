package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A Redis that is no plain one is named by its URL, and certificates by flags, the environment or the file.
func TestRedisByItsURL(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	master := redistest.StartTCP(t)
	sentinel := redistest.StartSentinel(t, master)
	secure, files := redistest.StartTLS(t, "--tls-auth-clients", "yes")
	submit := []string{"submit", "--agent", "ada", "--kind", "k", "--id", "i"}
	for _, url := range []string{"redis+cluster://" + cluster.Addr, "redis+sentinel://" + sentinel.Addr + "/mymaster"} {
		w := noRedis()
		w.ok(t, append(submit, "--redis", url)...)
		assert.Equal(t, "waiting", w.object(t, "status", "ada", "i", "--redis", url)["status"])
	}
	w := noRedis()
	w.ok(t, append(submit, "--redis", secure.URL, "--redis-ca", files.CA, "--redis-cert", files.ClientCert, "--redis-key", files.ClientKey)...)
	config := file(t, "redis: "+secure.URL+"\nredis_ca: "+files.CA+"\nredis_cert: "+files.ClientCert+"\nredis_key: "+files.ClientKey+"\n")
	w.ok(t, "status", "ada", "i", "-c", config)
	w.env = append(w.env, "DULY_REDIS_URL="+secure.URL, "DULY_REDIS_CA="+files.CA, "DULY_REDIS_CERT="+files.ClientCert, "DULY_REDIS_KEY="+files.ClientKey)
	w.ok(t, "status", "ada", "i")
	oneLine(t, noRedis().duly(t, "stats", "--redis", secure.URL), 1, "set CAFile (--redis-ca)")
	oneLine(t, noRedis().duly(t, "stats", "--redis", secure.URL, "--redis-ca", files.CA), 1, "it requires a client certificate")
	oneLine(t, noRedis().duly(t, "stats", "--redis", secure.URL, "--redis-cert", files.CA), 2, "--redis-key is required beside a certificate")
	oneLine(t, noRedis().duly(t, "stats", "--redis", "redis://h", "--redis-ca", files.CA), 2, "--redis-ca is for TLS: use rediss://")
}

func TestAWrongURLOfRedis(t *testing.T) {
	t.Parallel()
	w := noRedis()
	for url, want := range map[string]string{
		"redis+sentinel://h":     "the URL of Redis must name the master behind its sentinels",
		"redis://a,b":            "the URL of Redis names 2 servers",
		"http://u:hunter2@h":     "the URL of Redis must begin with redis://",
		"redis://u:hunter2#@h/0": "the URL of Redis",
		"redis+cluster://h/5":    "a cluster has only 0",
	} {
		r := w.duly(t, "stats", "--redis", url)
		oneLine(t, r, 2, want)
		assert.False(t, strings.Contains(r.stderr, "hunter2"), r.stderr)
	}
}
