package cli_test

// The command kinds.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Kinds of the file, of the store and of limits are listed together.
func TestKindsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "no kinds\n", w.ok(t, "kinds"))
	w.ok(t, "submit", "--agent", "a", "--kind", "stored")
	w.ok(t, "limit", "set", "--kind", "bounded", "--each", "agent", "--concurrency", "2")
	w.ok(t, "pause", "--kind", "stored", "--reason", "too hot")
	config := file(t, "handlers: { x: { exec: [sh], timeout: 5m, batch: 50, batch_wait: 200ms }, old: { exec: [sh], disabled: true } }")
	list := w.ok(t, "kinds", "-c", config)
	assert.Regexp(t, `(?m)^KIND +LEVEL +LIVE +RUNNING +PROCESSES +TIMEOUT +BATCH +LIMITS +STATE$`, list)
	assert.Regexp(t, `(?m)^stored +- +1 +0 +0 +- +- +- +paused: too hot$`, list)
	assert.Regexp(t, `(?m)^bounded +- +0 +0 +0 +- +- +2 at once each agent +-$`, list)
	assert.Regexp(t, `(?m)^x +3 +0 +0 +0 +5m0s +50 within 200ms +- +-$`, list)
	assert.Regexp(t, `(?m)^old .*disabled$`, list)
	all := w.objects(t, "kinds", "kinds", "-c", config)
	require.Len(t, all, 4)
	assert.Equal(t, "too hot", all[2]["pause"].(map[string]any)["reason"])
}
