package sow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
)

// sown is what a change makes of a statement in the middle of a file.
func sown(t *testing.T, file, statement string, change sow.Change) (string, error) {
	t.Helper()
	root, comment := t.TempDir(), "//"
	if strings.HasSuffix(file, ".lua") {
		comment = "--"
	}
	before, after := "before()\n", "after()\n"
	text := before + comment + " guard: here\n" + comment + " why\n" + statement + after
	require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
	tree, err := sow.Read(root)
	require.NoError(t, err)
	f := &sow.Fault{Name: "f", At: "here", Change: change}
	assert.Equal(t, file, tree.File(f))
	patched, err := tree.Patched(f)
	if err != nil {
		return "", err
	}
	head := before + comment + " guard: here\n" + comment + " why\n"
	require.True(t, strings.HasPrefix(patched, head) && strings.HasSuffix(patched, after), patched)
	return strings.TrimSuffix(strings.TrimPrefix(patched, head), after), nil
}

func TestChanges(t *testing.T) {
	t.Parallel()
	const block = "if a := b(\";\"); a || c && d { // why\n\te()\n} else {\n\tf()\n}\n"
	for name, c := range map[string]struct {
		file, statement string
		change          sow.Change
		want            string
	}{
		"a call is dropped":           {"a.go", "e()\n", sow.Drop, "if false {\ne()\n}\n"},
		"a block is dropped":          {"a.go", block, sow.Drop, "if false {\n" + block + "}\n"},
		"an element is dropped":       {"a.go", "A: b,\n", sow.Drop, ""},
		"a line of Lua is dropped":    {"a.lua", "if a then return b end\n", sow.Drop, ""},
		"a block of Lua is dropped":   {"a.lua", "for a in b do\n  c()\nend\n", sow.Drop, ""},
		"a call is repeated":          {"a.go", "a.b++\n", sow.Twice, strings.Repeat("a.b++\n", 2)},
		"an if is always true":        {"a.go", block, sow.Always, strings.Replace(block, "a || c && d", "true || (a || c && d)", 1)},
		"a case is never true":        {"a.go", "case a: // why\n\tb()\n", sow.Never, "case false && (a): // why\n\tb()\n"},
		"an else-if is never true":    {"a.lua", "elseif a == b then\n  c()\n", sow.Never, "elseif false and (a == b) then\n  c()\n"},
		"a return is never true":      {"a.go", "return a == b // why\n", sow.Never, "return false && (a == b) // why\n"},
		"what is assigned is true":    {"a.go", "a := b != c\n", sow.Always, "a := true || (b != c)\n"},
		"a condition is negated":      {"a.lua", "if not a then return end -- why\n", sow.Negate, "if not (not a) then return end -- why\n"},
		"a condition asks for more":   {"a.go", block, sow.And("g"), strings.Replace(block, "a || c && d", "(a || c && d) && (g)", 1)},
		"a condition asks for less":   {"a.lua", "if a then\n  b()\nend\n", sow.Or("c"), "if (a) or (c) then\n  b()\nend\n"},
		"a term of an or is left out": {"a.go", block, sow.Without(2), strings.Replace(block, "a || c && d", "a || (false && (c && d))", 1)},
		"terms of an and":             {"a.lua", "return a and (b and c) and d\n", sow.Without(1, 2), "return (true or (a)) and (true or ((b and c))) and d\n"},
		"a text is swapped":           {"a.go", "if a > b {\n\tc(d > e)\n}\n", sow.Swap(">", ">="), "if a >= b {\n\tc(d > e)\n}\n"},
		"something comes before":      {"a.go", "a()\n", sow.Before("b()"), "b()\na()\n"},
		"something comes after":       {"a.go", "for a {\n\tb()\n}\n", sow.After("c()"), "for a {\n\tb()\n}\nc()\n"},
		"something comes inside":      {"a.lua", "if a then\n  b()\nend\n", sow.Inside("c()"), "if a then\nc()\n  b()\nend\n"},
		"something comes instead":     {"a.go", "a()\n", sow.Instead("b()"), "b()\n"},
		"two changes":                 {"a.go", "a > b\n", sow.Both(sow.Swap(">", "<"), sow.After("c()")), "a < b\nc()\n"},
	} {
		got, err := sown(t, c.file, c.statement, c.change)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
}

// A fault that does not fit says so, and is not sown at half.
func TestChangesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		statement string
		change    sow.Change
	}{
		"the statement has no condition":        {"a()\n", sow.Never},
		"a declaration cannot be dropped":       {"a := b\n", sow.Drop},
		`"a && b" has 2 terms`:                  {"return a && b\n", sow.Without(3)},
		`the statement has "x" 0 times`:         {"a()\n", sow.Swap("x", "y")},
		`the statement has "a" 2 times`:         {"a(a)\n", sow.Swap("a", "y")},
		`the statement has "a" 2 times, and ha`: {"if a(a) {\n}\n", sow.Both(sow.Swap("a", "y"), sow.Drop)},
	} {
		_, err := sown(t, "a.go", c.statement, c.change)
		assert.ErrorContains(t, err, says)
	}
	root := t.TempDir()
	tree, err := sow.Read(root)
	require.NoError(t, err)
	_, err = tree.Patched(&sow.Fault{Name: "f", Change: sow.Drop})
	require.ErrorContains(t, err, `f: no source has the anchor "f"`)
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("// guard: a\na()\n// guard: a\nb()\n"), 0o600))
	_, err = sow.Read(root)
	require.ErrorContains(t, err, `both have the anchor "a"`)
}
