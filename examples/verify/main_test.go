package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// folder is where the program is built, once.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "duly-verify")
	if err != nil {
		panic(err)
	}
	folder = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "duly")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/duly").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// tried runs the kit on a file of handlers.
func tried(t *testing.T, args ...string) (passed bool, stdout string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "duly.yaml")
	program, err := built()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(`lease: 1s
handlers:
  fine: { exec: ["true"] }
  kills: { exec: [sh, -c, "kill -9 $PPID; sleep 1"] }
`), 0o600))
	var out, errs bytes.Buffer
	args = append([]string{"--file", file, "--duly", program, "--redis", redistest.Start(t).URL}, args...)
	passed, err = run(t.Context(), args, &out, &errs)
	require.NoError(t, err, errs.String())
	t.Log(out.String())
	return passed, out.String()
}

// A file whose handler is right passes, though duly run-due is killed.
func TestAFilePasses(t *testing.T) {
	t.Parallel()
	passed, out := tried(t, "--kind", "fine", "--tasks", "20", "--kills", "2", "--seed", "5")
	assert.True(t, passed)
	assert.Regexp(t, "(?m)^ran once: 20 of 20\n\\z", out)
	assert.Regexp(t, `seed +5\n`, out)
}

// A handler that takes its process down before the end is stored does not pass, and the report names the tasks.
func TestAHandlerThatEndsItsProcessDoesNotPass(t *testing.T) {
	t.Parallel()
	passed, out := tried(t, "--kind", "kills", "--tasks", "2", "--kills", "0", "--timeout", "3s", "--json")
	assert.False(t, passed)
	var report struct {
		Once, Tasks int
		Never       []struct{ ID, Why string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	assert.Equal(t, 2, report.Tasks)
	assert.Zero(t, report.Once)
	require.Len(t, report.Never, 2)
	assert.Contains(t, report.Never[0].Why, "crashes of its process")
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"name either --bootstrap or --file": {"--kind", "k"},
		"--kind is required":                {"--file", "duly.yaml"},
		"--payload must be JSON":            {"--file", "duly.yaml", "--kind", "k", "--payload", "{"},
	} {
		_, err := run(t.Context(), args, &bytes.Buffer{}, &bytes.Buffer{})
		assert.ErrorContains(t, err, want)
	}
}
