package world_test

// The register: what stands in it, and that the document shows all of it.

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
)

var update = flag.Bool("update", false, "write the table of docs/proof.md instead of comparing it")

// The document with the table, and the marks between which it stands.
const (
	document    = "../../../../docs/proof.md"
	tableBegins = "<!-- invariants: written by make generate -->\n"
	tableEnds   = "<!-- end of invariants -->\n"
)

func TestTheRegister(t *testing.T) {
	t.Parallel()
	all := world.Register()
	assert.GreaterOrEqual(t, len(all), 80)
	seen := map[string]bool{}
	for _, i := range all {
		assert.False(t, seen[i.Name], "%s stands in it twice", i.Name)
		seen[i.Name] = true
		assert.True(t, strings.HasSuffix(i.Sentence, "."), i.Name)
		assert.NotEmpty(t, i.Promise, i.Name)
	}
}

// docs/proof.md has each invariant with its sentence.
func TestTheDocumentHasTheRegister(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), tableBegins)
	require.True(t, ok, "%s has no place for the table", document)
	table, after, ok := strings.Cut(rest, tableEnds)
	require.True(t, ok, "%s has no end of the table", document)
	var want strings.Builder
	want.WriteString("| invariant | promise | sentence |\n|---|---|---|\n")
	for _, i := range world.Register() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", i.Name, i.Promise, i.Sentence)
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+tableBegins+want.String()+tableEnds+after), 0o600))
		return
	}
	assert.Equal(t, want.String(), table, "the register has changed: run make generate")
}
