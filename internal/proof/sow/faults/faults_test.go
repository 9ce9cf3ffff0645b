package faults_test

// The faults: each is sown at one place, and is told from the others.

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow/faults"
)

// root is the folder of the module.
const root = "../../../.."

// all are the faults of both lists.
func all() []*sow.Fault {
	var list []*sow.Fault
	for i := range faults.Guards {
		list = append(list, &faults.Guards[i].Fault)
	}
	for i := range faults.Mutants {
		list = append(list, &faults.Mutants[i])
	}
	return list
}

func read(t *testing.T) *sow.Tree {
	t.Helper()
	tree, err := sow.Read(root)
	require.NoError(t, err)
	return tree
}

// A fault without an anchor would be sown nowhere, and an anchor without a fault says that something is tried which is not.
func TestFaultsAndAnchorsBelongTogether(t *testing.T) {
	t.Parallel()
	tree := read(t)
	unused := tree.Anchors()
	for _, f := range all() {
		_, err := tree.Patched(f)
		require.NoError(t, err)
		delete(unused, f.Anchor())
	}
	assert.Empty(t, unused, "anchors that no fault has: write one in internal/proof/sow/faults, or delete them")
}

func TestFaultsHaveNames(t *testing.T) {
	t.Parallel()
	guards, mutants := map[string]bool{}, map[string]bool{}
	for i := range faults.Guards {
		g := &faults.Guards[i]
		assert.False(t, guards[g.Name], "%s is there twice", g.Name)
		assert.DirExists(t, filepath.Join(root, g.Folder))
		guards[g.Name] = true
	}
	for i := range faults.Mutants {
		assert.False(t, mutants[faults.Mutants[i].Name], "%s is there twice", faults.Mutants[i].Name)
		mutants[faults.Mutants[i].Name] = true
	}
	assert.GreaterOrEqual(t, len(mutants), 20)
}

// Each fault that a row of the world names is sown, and none else is in the list of rows.
func TestTheFaultsAreThoseOfTheRows(t *testing.T) {
	t.Parallel()
	var named, sown []string
	for _, row := range world.Features() {
		named = slices.AppendSeq(named, maps.Keys(row.Faults))
	}
	for i := range faults.OfRows {
		sown = append(sown, faults.OfRows[i].Name)
	}
	assert.ElementsMatch(t, named, sown)
}

// What go build gets is the file with the fault in place of the other; the tree stays as it is.
func TestAnOverlayNamesTheFile(t *testing.T) {
	t.Parallel()
	dir, tree := t.TempDir(), read(t)
	for _, f := range all() {
		name, err := tree.Overlay(f, dir)
		require.NoError(t, err)
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var overlay struct{ Replace map[string]string }
		require.NoError(t, json.Unmarshal(data, &overlay))
		require.Len(t, overlay.Replace, 1)
		for file, copied := range overlay.Replace {
			assert.True(t, filepath.IsAbs(file))
			was, err := os.ReadFile(file)
			require.NoError(t, err)
			is, err := os.ReadFile(copied)
			require.NoError(t, err)
			assert.NotEqual(t, was, is, f.Name)
		}
	}
}
