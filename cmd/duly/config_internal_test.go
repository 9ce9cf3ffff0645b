package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a file holds, it is read or refused as the user's mistake, in one line that names the file.
func FuzzConfig(f *testing.F) {
	quickstart, err := os.ReadFile(filepath.Join("..", "..", "examples", "quickstart", "duly.yaml"))
	require.NoError(f, err)
	f.Add(quickstart)
	for _, text := range []string{
		"", "~", "a: &a [*a]", "handlers: &h { note: { log: {} } }\ntasks: *h", "<<: { redis: x }", "tasks: [{ agent: a, id: i, kind: k }]",
		"handlers: { n: { log: {} } }\ntasks: [{ agent: &x a, id: *x, kind: n, payload: { <<: { a: 1 }, b: !!binary aGk= } }]",
		"handlers: { n: { webhook: 'http://[::1]:80/', allow_private: yes, insecure: on, timeout: 1e9h } }", "? [a]\n: b", "redis: !!int x",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &config{}
		root, err := parseYAML("duly.yaml", data)
		if err == nil {
			err = c.read(root)
		}
		if err == nil {
			err = c.tryTasks(t.Context())
		}
		if err == nil {
			return
		}
		known, ok := errors.AsType[*failure](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, exitUsage, known.code)
		line := plain(known.Error())
		assert.True(t, strings.HasPrefix(line, ": duly.yaml:"), line)
		assert.NotContains(t, line, "\n")
	})
}
