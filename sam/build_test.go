package main_test

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program is for arm64, needs no C library, and is the same bytes whichever folder it was built in, by make or as `sam build` calls it.
func TestTheBuildIsReproducible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds for another machine, which takes a while at first")
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	makeIn(t, here, "-C", here, "build", "ARTIFACTS_DIR="+first)

	copied := filepath.Join(t.TempDir(), "elsewhere", "duly")
	copySource(t, filepath.Dir(here), copied)
	scratch := filepath.Join(t.TempDir(), "scratch") // sam copies the folder of the template, and calls the original Makefile
	require.NoError(t, os.CopyFS(scratch, os.DirFS(filepath.Join(copied, "sam"))))
	makeIn(t, scratch, "--makefile", filepath.Join(copied, "sam", "Makefile"), "build-DulyFunction", "ARTIFACTS_DIR="+second)

	a, err := os.ReadFile(filepath.Join(first, "bootstrap"))
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(second, "bootstrap"))
	require.NoError(t, err)
	assert.True(t, string(a) == string(b), "two folders gave two programs, of %d and %d bytes", len(a), len(b))
	t.Logf("bootstrap for arm64: %d bytes", len(a))
	assert.NotContains(t, string(a), here, "the program tells where it was built")

	f, err := elf.Open(filepath.Join(first, "bootstrap"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, f.Close()) }()
	assert.Equal(t, elf.EM_AARCH64, f.Machine)
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)
}

func makeIn(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append(args, "VERSION=test")...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// copySource copies the module's source, without its tests.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if first, _, _ := strings.Cut(name, string(filepath.Separator)); name != "." && first != "core" && first != "adapters" && first != "handlers" &&
				first != "sam" && first != "host" && first != "internal" || name == filepath.Join("sam", "build") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if strings.HasSuffix(name, "_test.go") || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	}))
}
