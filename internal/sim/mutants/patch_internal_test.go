package main

// The patches: each fits the file that it is for, and is told from the others.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/sim/world"
	"github.com/seed-6f6f2c11/duly/internal/sow"
)

// root is the folder of the module.
const root = "../../.."

// A patch that no longer fits would try nothing.
func TestThePatchesFit(t *testing.T) {
	t.Parallel()
	assert.GreaterOrEqual(t, len(mutants), 20)
	seen := map[string]bool{}
	tree, err := sow.Read(root)
	require.NoError(t, err)
	for i := range mutants {
		m := &mutants[i]
		_, err := tree.Patched(m)
		require.NoError(t, err)
		assert.False(t, seen[m.Name], "%s is there twice", m.Name)
		seen[m.Name] = true
	}
	_, err = tree.Patched(&sow.Fault{Name: "none"})
	assert.ErrorContains(t, err, `none: no source has the anchor "none"`)
}

// Each fault that a row of the world names is sown, and none else is in the list of rows.
func TestTheFaultsAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	var named, sown []string
	for _, row := range world.Features() {
		for fault := range row.Faults {
			named = append(named, fault)
		}
	}
	for i := range ofRows {
		sown = append(sown, ofRows[i].Name)
	}
	assert.ElementsMatch(t, named, sown)
}

// What go build gets is the file with the fault in place of the other; the tree stays as it is.
func TestAnOverlayNamesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, err := sow.Read(root)
	require.NoError(t, err)
	for i := range mutants {
		name, err := tree.Overlay(&mutants[i], dir)
		require.NoError(t, err)
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var overlay struct{ Replace map[string]string }
		require.NoError(t, json.Unmarshal(data, &overlay))
		require.Len(t, overlay.Replace, 1)
		for file, copied := range overlay.Replace {
			assert.True(t, filepath.IsAbs(file))
			assert.FileExists(t, file)
			assert.FileExists(t, copied)
		}
	}
}

// The document gets a row for each mutant, between its marks.
func TestTheTableIsWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "proof.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+tableBegins+"\nold\n"+tableEnds+"\nafter\n"), 0o600))
	all := []found{{&sow.Fault{What: "A fault."}, "a.go", "7", "never-early"}, {Fault: &sow.Fault{What: "Another."}, file: "b.go"}}
	require.NoError(t, writeTable(file, all))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), "| A fault. | `a.go` | 7 | `never-early` |\n| Another. | `b.go` | survived |  |\n"+tableEnds+"\nafter\n")
	assert.NotContains(t, string(text), "old")
}
