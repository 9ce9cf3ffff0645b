package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = "# Promises\n\n| # | promise | shown by |\n|---|---|---|\n" +
	"| 1 | Nothing is lost, whatever happens to any of the processes that have it. | `TestKeeps`, `TestSuite/history is capped` |\n" +
	"| 2 | Never early. | `TestNever` |\n"

func TestReadPromises(t *testing.T) {
	t.Parallel()
	all, err := readPromises(document)
	require.NoError(t, err)
	assert.Equal(t, []promise{
		{"1", "Nothing is lost, whatever happens to any of the processes that have it.", []string{"TestKeeps", "TestSuite/history is capped"}},
		{"2", "Never early.", []string{"TestNever"}},
	}, all)
	_, err = readPromises("| 3 | Fast. | measured by hand |\n")
	require.ErrorContains(t, err, "promise 3 names no test")
	_, err = readPromises("# Promises\n")
	require.ErrorContains(t, err, "no promise was found")
}

func TestLocate(t *testing.T) {
	t.Parallel()
	test := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package x\n\nfunc " + name + "(t *testing.T) {\n}\n")}
	}
	at, err := locate(fstest.MapFS{
		"a/a_test.go": test("TestSuite"), "a/b_test.go": test("TestKeeps"), "b/b_test.go": test("TestSuite"),
		"b/b.go": test("TestNo"), "own/go.mod": {}, "own/x/x_test.go": test("TestNo"), "a/testdata/x_test.go": test("TestNo"),
		".git/x_test.go": test("TestNo"), "root_test.go": test("TestRoot"),
	})
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{"TestSuite": {"a", "b"}, "TestKeeps": {"a"}, "TestRoot": {"."}}, at)
	promises, err := readPromises(document)
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{
		"a": {"TestKeeps", "TestSuite/history is capped"}, "b": {"TestSuite/history is capped"},
	}, byPackage(promises, at))
	assert.Equal(t, "^TestSuite$/^history is capped$|^TestKeeps$", pattern([]string{"TestSuite/history is capped", "TestKeeps"}))
}

// module is a module with the document and tests in the package p.
func module(t *testing.T, tests string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "docs/guarantees.md": document,
		"p/p_test.go": "package p\n\nimport \"testing\"\n\n" + tests,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return root
}

const passing = `
func TestKeeps(t *testing.T) { t.Log("figure: 7 kills"); t.Run("part", func(t *testing.T) { t.Log("figure: 8 kills") }) }
func TestSuite(t *testing.T) {
	t.Run("history is capped", func(t *testing.T) {})
	t.Run("other", func(t *testing.T) { t.Error("not asked for") })
}
func TestOther(t *testing.T) { t.Error("not asked for") }
`

func TestShow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tests   string
		fine          bool
		want, problem string
	}{
		{"all is well", passing + "func TestNever(t *testing.T) {}\n", true, `(?m)^2 +Never early\. +TestNever +p +ok *$`, "p: 3 tests\n"},
		{"skipped", passing + "func TestNever(t *testing.T) { t.Skip() }\n", true, `(?m)^2 .* skipped *$`, ""},
		{"fails", passing + "func TestNever(t *testing.T) { t.Error(\"too early\") }\n", false, `(?m)^2 .* FAIL *$`, "too early"},
		{"is not there", passing, false, `(?m)^2 .* not found *$`, ""},
		{"does not compile", passing + "func TestNever(t *testing.T) { nonsense() }\n", false, `(?m)^2 .* FAIL *$`, "undefined: nonsense"},
		{"ends the process", passing + "func TestNever(t *testing.T) { panic(\"boom\") }\n", false, `(?m)^2 .* FAIL *$`, "boom"},
		{"a part is not there", strings.Replace(passing, "is capped", "was capped", 1) + "func TestNever(t *testing.T) {}\n", false, `history is capped +p +not found`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out, problems bytes.Buffer
			fine, err := show(t.Context(), module(t, c.tests), goTest, &out, &problems)
			require.NoError(t, err)
			assert.Equal(t, c.fine, fine, out.String())
			assert.Regexp(t, c.want, out.String())
			assert.Contains(t, problems.String(), c.problem)
			assert.NotContains(t, out.String()+problems.String(), "not asked for")
			if c.fine {
				assert.Regexp(t, `(?m)^1 +Nothing is lost, whatever happens to any of the \.\.\. +TestKeeps +p +ok +8 kills$`, out.String())
				assert.Regexp(t, `(?m)^ +TestSuite/history is capped +p +ok *$`, out.String())
			}
		})
	}
}

func TestShowSaysWhatItCannotRun(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, string, string, string) (io.Reader, error) { return nil, errors.New("no go here") }
	_, err := show(t.Context(), module(t, passing), broken, io.Discard, io.Discard)
	require.ErrorContains(t, err, "go test ./p: no go here")
	_, err = show(t.Context(), t.TempDir(), goTest, io.Discard, io.Discard)
	require.ErrorIs(t, err, os.ErrNotExist)
}
