package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
)

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
