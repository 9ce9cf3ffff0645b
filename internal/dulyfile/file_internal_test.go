package dulyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Every setting of a handler reaches core; none, never and at once are what they say.
func TestSettingsOfAHandler(t *testing.T) {
	t.Parallel()
	c, err := Parse(t.Context(), "duly.yaml", []byte(`
handlers:
  a: { log: {}, level: 2, slots: 2, timeout: 1s, lease: 2s, max_attempts: 3, backoff: 4s, max_backoff: 5s, pause_after_failures: 6, grace: 7s, spread: 8s,
       catch_up: 9, disabled: true,
       activity: { delay: 1s, mode: debounce, max_wait: 2s, min_interval: 3s, max_failures: 4, dimensions: 2, level: 1 } }
  b: { log: {}, pause_after_failures: 0, spread: 0s, timeout: 0s, backoff: 0s, grace: 0s, catch_up: 0, activity: { max_failures: 0, delay: 0s } }
  d: { exec: [sh], batch: 50, batch_wait: 200ms, batch_by: [agent, mem_cube_id] }
  e: { log: {}, expect: { tokens: 1200, usd: 0.02 } }
  c: { log: {}, pause_after_failures: , spread: , catch_up: , disabled: , grace: , activity: {} }
`), Defaults{})
	require.NoError(t, err)
	assert.Equal(t, map[string]core.KindConfig{
		"a": {
			Level: 2, Slots: 2, Timeout: time.Second, Lease: 2 * time.Second, MaxAttempts: 3, Backoff: 4 * time.Second, MaxBackoff: 5 * time.Second,
			PauseAfter: 6, Grace: 7 * time.Second, Spread: 8 * time.Second, CatchUp: 9, Disabled: true,
			Activity: &core.Activity{
				Delay: time.Second, Mode: model.ActivityDebounce, MaxWait: 2 * time.Second, MinInterval: 3 * time.Second,
				MaxFailures: 4, Dimensions: 2, Level: core.LevelHigh,
			},
		},
		"b": {
			PauseAfter: never, Spread: none, Timeout: none, Backoff: none, Grace: none, CatchUp: none,
			Activity: &core.Activity{MaxFailures: never},
		},
		"c": {Activity: &core.Activity{}},
		"e": {Expect: core.Usage{"tokens": 1200, "usd": 0.02}},
		"d": {Batch: 50, BatchWait: 200 * time.Millisecond, BatchBy: []string{"agent", "mem_cube_id"}},
	}, c.Settings().Kinds)
}

// Whatever a file holds, it is read or refused as the user's mistake, in one line that names the file.
func FuzzConfig(f *testing.F) {
	quickstart, err := os.ReadFile(filepath.Join("..", "..", "examples", "quickstart", "duly.yaml"))
	require.NoError(f, err)
	f.Add(quickstart)
	for _, text := range []string{
		"", "~", "a: &a [*a]", "handlers: &h { note: { log: {} } }\ntasks: *h", "<<: { redis: x }", "tasks: [{ agent: a, id: i, kind: k }]",
		"handlers: { n: { log: {} } }\ntasks: [{ agent: &x a, id: *x, kind: n, payload: { <<: { a: 1 }, b: !!binary aGk= } }]",
		"handlers: { n: { webhook: 'http://[::1]:80/', allow_private: yes, insecure: on, timeout: 1e9h } }", "? [a]\n: b", "redis: !!int x",
		"limits: [{ kind: &k a, each: agent, rate: 60/1m, burst: 0 }, { limit_key: 'x:*', each: key, concurrency: 1 }, *k]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Parse(t.Context(), "duly.yaml", data, Defaults{})
		if err == nil {
			return
		}
		known, ok := errors.AsType[*Error](err)
		require.True(t, ok, "%v", err)
		assert.True(t, strings.HasPrefix(known.Error(), "duly.yaml:"), known.Error())
		assert.NotContains(t, known.Error(), "\n")
	})
}

// Limits reach core; a burst of zero is none, and one that is left out core's default.
func TestLimitsOfTheFile(t *testing.T) {
	t.Parallel()
	c, err := Parse(t.Context(), "duly.yaml", []byte(`
limits:
  - { kind: digest, each: agent, concurrency: 2 }
  - { limit_key: "openai:*", each: key, concurrency: 5, rate: 60/1m, burst: 10 }
  - { limit_key: openai:slow, rate: 1/1h30m, burst: 0 }
  - { rate: 100/1s }
partitions: 1
`), Defaults{})
	require.NoError(t, err)
	require.NoError(t, c.Check())
	assert.Equal(t, []core.Limit{
		{About: core.LimitTarget{Kind: "digest", Each: core.EachAgent}, Concurrency: 2},
		{About: core.LimitTarget{Key: "openai:*", Each: core.EachKey}, Concurrency: 5, Rate: 60, Per: time.Minute, Burst: 10},
		{About: core.LimitTarget{Key: "openai:slow"}, Rate: 1, Per: 90 * time.Minute, Burst: none},
		{Rate: 100, Per: time.Second},
	}, c.Settings().Limits)
}

// Settings of the process reach core, and zero urgent slots are none.
func TestSettingsOfTheProcess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]core.Config{
		"name: worker-7\nconcurrency: 10\nurgent_slots: 3\nmax_abandoned: 4": {Name: "worker-7", Concurrency: 10, Urgent: 3, MaxAbandoned: 4},
		"urgent_slots: 0": {Urgent: none},
		"ahead: 50ms":     {Ahead: 50 * time.Millisecond},
		"ahead: 0s":       {Ahead: none},
		"urgent_slots:":   {},
	} {
		c, err := Parse(t.Context(), "duly.yaml", []byte(text), Defaults{})
		require.NoError(t, err, text)
		want.Kinds = map[string]core.KindConfig{}
		assert.Equal(t, want, c.Settings(), text)
	}
}
