package redisstore

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
)

// What servers say when a user lacks a permission, as recorded: by a command, and by a command of a script.
func TestDeniedWordsOfAllServers(t *testing.T) {
	t.Parallel()
	for version, text := range map[string]string{
		"6.2 command": "NOPERM this user has no permissions to run the 'hscan' command or its subcommand",
		"6.2 script":  "ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -NOPERM this user has no permissions to run the 'hscan' command",
		"7.0 command": "NOPERM this user has no permissions to run the 'hscan' command",
		"7.0 script":  "ERR The user executing the script can't run this command or subcommand script: f_0, on @user_script:1.",
		"7.0 key":     "NOPERM this user has no permissions to access one of the keys used as arguments",
		"7.4 script":  "ERR ACL failure in script: User worker has no permissions to run the 'hscan' command script: f_0, on @user_script:1.",
		"8.0 script":  "ERR ACL failure in script: User default has no permissions to run the 'hscan' command script: f_0, on @user_script:1.",
		"8.0 key":     "ERR ACL failure in script: User worker has no permissions to access the 'x' key script: f_0, on @user_script:1.",
		"Valkey 8":    "ERR ACL failure in script: User worker has no permissions to run the 'hscan' command script: f_0, on @user_script:1.",
	} {
		assert.True(t, call.Denied(errors.New(text)), version)
		assert.ErrorContains(t, probeError("r", errors.New(text)), "the Redis user lacks a permission that duly needs", version)
	}
	assert.False(t, call.Denied(errors.New("ERR wrong number of arguments")))
}

// A Redis that stops to answer while the scripts are tried is one that cannot be reached: its scripts have not failed.
func TestAProbeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	err := probeError("redis://r:6379/0", call.Wrap("submit", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}))
	var away *UnreachableError
	require.ErrorAs(t, err, &away)
	assert.ErrorContains(t, err, "cannot reach Redis at redis://r:6379/0: ")
	assert.NotContains(t, err.Error(), "test run")
}
