package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// hostReport is the JSON of doctor --host.
type hostReport struct {
	Checks []struct{ Check, Severity, Message, Hint string }
	Host   struct {
		Name      string
		Commands  int     `json:"commands_per_idle_tick"`
		TickMS    float64 `json:"idle_tick_ms"`
		PerSecond float64 `json:"commands_per_second"`
		Memory    int64   `json:"memory_bytes"`
		Dollars   float64 `json:"dollars_per_month"`
		Items     []struct {
			Name    string
			Dollars float64
		}
	}
}

// Each host has the provider's own remedy for what is found, and a price from what the server does.
func TestDoctorOfAHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redis = redistest.StartTCP(t)
	redis := []string{"--redis", w.redis.URL}
	doctor := func(args ...string) result {
		return w.duly(t, append(append([]string{"doctor"}, args...), redis...)...)
	}
	w.ok(t, append([]string{"submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h"}, redis...)...)
	require.NoError(t, w.redis.Client(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	for host, words := range map[string]map[string]string{
		"elasticache": {"eviction": "modify-cache-parameter-group", "persistence": "Multi-AZ", "tls": "--transit-encryption-enabled", "acl": "create-user"},
		"lambda":      {"eviction": "CONFIG SET is forbidden on ElastiCache", "persistence": "MemoryDB", "tls": "rediss://", "acl": "user group"},
		"gcf":         {"eviction": "--redis-config maxmemory-policy=noeviction", "persistence": "--persistence-mode rdb", "tls": "--redis-ca", "acl": "--enable-auth"},
		"cloudrun":    {"eviction": "--update-redis-config maxmemory-policy=noeviction", "persistence": "rdb", "tls": "6378", "acl": "one user"},
		"upstash":     {"eviction": "switch Eviction off", "persistence": "", "tls": "rediss://", "acl": "ACL SETUSER"},
	} {
		r := doctor("--host", host, "--json")
		assert.Equal(t, 1, r.code, "a server that drops tasks")
		var report hostReport
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &report), r.stdout)
		status := map[string]string{}
		for _, c := range report.Checks {
			status[c.Check] = c.Severity
			if word, looked := words[c.Check]; looked {
				assert.Contains(t, c.Hint, word, "%s: %s", host, c.Check)
			}
		}
		assert.Equal(t, "failed", status["eviction"], host)
		assert.Equal(t, map[bool]string{true: "ok", false: "failed"}[host == "upstash"], status["persistence"], host)
		for _, name := range []string{"tick", "cost", "cluster", "clock"} {
			assert.Equal(t, "ok", status[name], "%s: %s", host, name)
		}
		assert.Equal(t, host, report.Host.Name)
		assert.Equal(t, 2, report.Host.Commands, "an idle tick on one server")
		assert.Positive(t, report.Host.TickMS)
		assert.Positive(t, report.Host.Memory)
		assert.Zero(t, report.Host.Dollars, "a server that was started just now says nothing of a month")
		assert.Empty(t, report.Host.Items)
	}
	require.NoError(t, w.redis.Client(t).ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err())
	out := doctor("--host", "elasticache").stdout
	assert.Regexp(t, `(?m)^warning +eviction +.* has maxmemory-policy volatile-lru: finished tasks may be forgotten early, live ones are safe$`, out)
	assert.Regexp(t, `(?m)^ok +tick +one that finds nothing sends 2 commands and takes `, out)
	assert.Regexp(t, `(?m)^ok +cost +not worked out: Redis was started \d+s ago, which says nothing of a month; ask again 1h0m0s after its start$`, out)
	require.NoError(t, w.redis.Client(t).ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	require.NoError(t, w.redis.Client(t).ConfigSet(t.Context(), "appendonly", "yes").Err())
	out = doctor("--host", "cloudrun").stdout
	assert.Regexp(t, `(?m)^ok +eviction +maxmemory-policy is noeviction$`, out)
	assert.Regexp(t, `(?m)^ok +persistence +an append-only file`, out)
	oneLine(t, doctor("--host", "moon"), 2, `doctor does not know "moon"`, "cloudrun, elasticache, gcf, lambda, upstash")
}
