package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A guard that no longer fits would be taken out of nothing.
func TestTheGuardsFit(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range guards {
		g := &guards[i]
		_, err := g.Patched("../..")
		require.NoError(t, err)
		assert.False(t, seen[g.Name], "%s is there twice", g.Name)
		seen[g.Name] = true
		assert.DirExists(t, "../../"+g.folder)
	}
}
