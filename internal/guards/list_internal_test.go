package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/sow"
)

// root is the folder of the module.
const root = "../.."

// A guard that no longer fits would be taken out of nothing.
func TestTheGuardsFit(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	tree, err := sow.Read(root)
	require.NoError(t, err)
	for i := range guards {
		g := &guards[i]
		_, err := tree.Patched(&g.Fault)
		require.NoError(t, err)
		assert.False(t, seen[g.Name], "%s is there twice", g.Name)
		seen[g.Name] = true
		assert.DirExists(t, root+"/"+g.folder)
	}
}
