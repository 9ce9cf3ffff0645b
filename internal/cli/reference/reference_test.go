package reference_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli"
	"github.com/seed-6f6f2c11/duly/internal/cli/reference"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

var update = flag.Bool("update", false, "write the pages instead of comparing them")

const pages = "../../../docs/reference"

// Each page is what the code says now.
func TestThePagesFollowFromTheCode(t *testing.T) {
	t.Parallel()
	api, err := os.ReadFile("../../../adapters/http/openapi.json")
	require.NoError(t, err)
	http, err := reference.Calls(api)
	require.NoError(t, err)
	codes, err := reference.Codes("../../../core/errors.go", "../../../adapters/internal/problem/problem.go")
	require.NoError(t, err)
	events, err := reference.Events("../../../core/event.go")
	require.NoError(t, err)
	file, err := reference.File(dulyfile.Schema())
	require.NoError(t, err)
	for name, text := range map[string]string{"file.md": file, "cli.md": reference.Commands(cli.Commands()), "http.md": http, "errors.md": codes, "events.md": events} {
		file := filepath.Join(pages, name)
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			continue
		}
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(kept), text, "%s: make reference writes it", file)
	}
	for line := range strings.Lines(codes) {
		assert.NotRegexp(t, `\| +\|`, line, "each code says what it means and what to do")
	}
	for line := range strings.Lines(events) {
		assert.NotRegexp(t, `\| +\|`, line, "each event says what has happened")
	}
}

// Each variable that a program of duly reads, or gives to programs, is on the page of the environment, and each of the page is one.
func TestTheEnvironmentIsDescribed(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`"(DULY_[A-Z][A-Z0-9_]*)[="]`)
	read := map[string]bool{}
	for _, dir := range []string{"core", "adapters", "handlers", "internal/cli", "internal/dulyfile", "sam", "examples/cloud-run", "examples/cloud-function", "cmd"} {
		err := filepath.WalkDir("../../../"+dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
				read[m[1]] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	page, err := os.ReadFile(filepath.Join(pages, "environment.md"))
	require.NoError(t, err)
	described := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(DULY_[A-Z0-9_]+)").FindAllStringSubmatch(string(page), -1) {
		described[m[1]] = true
	}
	for name := range read {
		if !strings.HasPrefix(name, "DULY_TEST_") {
			assert.True(t, described[name], "docs/reference/environment.md does not have %s", name)
		}
	}
	for name := range described {
		assert.True(t, read[name], "nothing reads or sets %s", name)
	}
	assert.Greater(t, len(described), 40)
}
