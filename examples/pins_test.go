package examples_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The functions framework asks for a reflect2 of 2018 and json-iterator 1.1.10, which crash when they encode a map on today's
// Go (docs/decisions/0021). These are the first versions that do not; go.mod must not fall below them, here or where it is deployed.
var pins = map[string]string{"github.com/modern-go/reflect2": "v1.0.2", "github.com/json-iterator/go": "v1.1.12"}

// mapMain encodes a map by json-iterator, as the versions before crash at.
const mapMain = `package main

import (
	"fmt"

	jsoniter "github.com/json-iterator/go"
)

func main() {
	text, err := jsoniter.MarshalToString(map[string]any{"task": map[string]int{"n": 1}})
	fmt.Println(text, err)
}
`

func TestModulesThatCrashAreNotUsed(t *testing.T) {
	t.Parallel()
	stage, err := staged()
	require.NoError(t, err)
	for name, root := range map[string]string{"the module": "..", "the staged folder": stage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for path, least := range pins {
				cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-json", path)
				cmd.Dir = root
				out, err := cmd.Output()
				require.NoError(t, err, path)
				var module struct {
					Version string
					Replace *struct{ Version string }
				}
				require.NoError(t, json.Unmarshal(out, &module))
				if module.Replace != nil {
					module.Version = module.Replace.Version
				}
				assert.True(t, atLeast(module.Version, least), "%s is %s, and must be %s at least", path, module.Version, least)
			}
			assert.Equal(t, `{"task":{"n":1}} <nil>`, runOver(t, root, mapMain))
		})
	}
}

// runOver runs a program as if it stood in a module, which lacks it: no line of go.mod has to name what it imports.
func runOver(t *testing.T, root, program string) string {
	t.Helper()
	root, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(root, "internal", "pinned", "main.go"): filepath.Join(dir, "main.go"),
	}})
	require.NoError(t, err)
	for name, text := range map[string]string{"main.go": program, "overlay.json": string(overlay)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-overlay", filepath.Join(dir, "overlay.json"), "./internal/pinned")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func TestVersionsAreCompared(t *testing.T) {
	t.Parallel()
	assert.True(t, atLeast("v1.0.2", "v1.0.2"))
	assert.True(t, atLeast("v1.1.0", "v1.0.2"))
	assert.True(t, atLeast("v1.10.0", "v1.9.9"))
	assert.False(t, atLeast("v1.1.10", "v1.1.12"))
	assert.False(t, atLeast("v0.0.0-20180701023420-4b7aa43c6742", "v1.0.2"))
	assert.False(t, atLeast("v1.0.2-0.20180701023420-4b7aa43c6742", "v1.0.2"), "what comes before a version is not it")
	assert.False(t, atLeast("", "v1.0.2"))
}

// atLeast compares two versions of modules; one that is no release counts as less than the release that it leads to.
func atLeast(version, least string) bool {
	release, before, _ := strings.Cut(version, "-")
	have, want := strings.Split(strings.TrimPrefix(release, "v"), "."), strings.Split(strings.TrimPrefix(least, "v"), ".")
	for i := range want {
		if i >= len(have) {
			return false
		}
		a, err := strconv.Atoi(have[i])
		b, _ := strconv.Atoi(want[i])
		if err != nil || a != b {
			return err == nil && a > b
		}
	}
	return before == ""
}
