package host_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/host"
)

// A file without hooks has none, and not something that answers for them; one whose secret is missing says so.
func TestHooksOfAFile(t *testing.T) {
	f, err := host.ReadFile(t.Context(), "duly.yaml", []byte("handlers: { note: { log: {} } }\n"))
	require.NoError(t, err)
	inbound, err := f.Hooks()
	require.NoError(t, err)
	assert.True(t, inbound == nil, "an interface with nothing in it would be served")
	f, err = host.ReadFile(t.Context(), "duly.yaml", []byte("hooks: { a: { github: { secret_env: A_HOOK_SECRET }, signal: { agent: b, key: k, payload: 1 } } }\n"))
	require.NoError(t, err)
	_, err = f.Hooks()
	require.ErrorContains(t, err, "duly.yaml:1: hooks.a: the environment variable A_HOOK_SECRET, named by secret_env, is not set or empty")
	t.Setenv("A_HOOK_SECRET", "It's a Secret to Everybody")
	inbound, err = f.Hooks()
	require.NoError(t, err)
	assert.NotNil(t, inbound)
}
