package house_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// builds has what is built for several tests.
var builds string

// All tests here read the repository from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "duly-house")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builds = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// built is the program, linked when a test first asks for it: most of a link is the same for each.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(builds, "duly")
	out, err := exec.Command("go", "build", "-o", path, "./cmd/duly").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// theProgram is the path of the program.
func theProgram(t *testing.T) string {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	return path
}
