package examples_test

// The examples as users have them: copied out of the repository, into a module of their own.

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each example in Go compiles outside of the repository. verify is a program that is run by its path, and not copied.
func TestExamplesCompileWhereTheyAreCopiedTo(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles all that the examples import once more")
	}
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	programs, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	functions, err := filepath.Glob("*/api/*.go")
	require.NoError(t, err)
	programs = append(programs, functions...)
	folders := map[string]bool{}
	for _, file := range programs {
		folders[filepath.Dir(file)] = true
	}
	delete(folders, "verify")
	require.GreaterOrEqual(t, len(folders), 5)
	to := t.TempDir()
	for folder := range folders {
		files, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(to, folder), 0o755))
		for _, f := range files {
			if !f.IsDir() && !strings.HasSuffix(f.Name(), "_test.go") {
				copyTo(t, filepath.Join(folder, f.Name()), filepath.Join(to, folder, f.Name()), func(text string) string { return text })
			}
		}
	}
	// What it requires is what duly does, so that nothing is asked of the network.
	module := regexp.MustCompile(`(?m)^module (.*)$`)
	copyTo(t, filepath.Join(root, "go.mod"), filepath.Join(to, "go.mod"), func(text string) string {
		duly := module.FindStringSubmatch(text)[1]
		return module.ReplaceAllString(text, "module example.com/mine") + "\nrequire " + duly + " v0.0.0\n\nreplace " + duly + " => " + root + "\n"
	})
	copyTo(t, filepath.Join(root, "go.sum"), filepath.Join(to, "go.sum"), func(text string) string { return text })
	cmd := exec.Command("go", "list", "-export", "-mod=mod", "./...") // compiles, and links nothing
	cmd.Dir, cmd.Env = to, append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Len(t, strings.Fields(string(out)), len(folders), "%s", out)
}

// copyTo writes a changed copy of a file.
func copyTo(t *testing.T, from, to string, change func(text string) string) {
	t.Helper()
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, []byte(change(string(data))), 0o600))
}
