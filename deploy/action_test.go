package deploy_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// program stands for duly in the releases of these tests: it prints what it is called with.
const program = "#!/bin/sh\nprintf '<%s>' \"$@\"\n"

// release is an archive of a release.
func release(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	require.NoError(t, files.WriteHeader(&tar.Header{Name: "duly", Mode: 0o755, Size: int64(len(program))}))
	_, err := files.Write([]byte(program))
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}

// runner is a job of GitHub with a host of releases: 1.2.3 is the last one, and 0.0.1 has another archive than it says.
type runner struct {
	dir string
	env []string
}

func newRunner(t *testing.T) *runner {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	archive := release(t)
	name := func(version string) string {
		return fmt.Sprintf("duly_%s_%s_%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest":
			http.Redirect(w, r, "/tag/v1.2.3", http.StatusFound)
		case "/tag/v1.2.3":
		case "/download/v1.2.3/" + name("1.2.3"), "/download/v0.0.1/" + name("0.0.1"):
			_, _ = w.Write(archive)
		case "/download/v1.2.3/checksums.txt":
			_, _ = fmt.Fprintf(w, "%x  other\n%x  %s\n", sha256.Sum256(nil), sha256.Sum256(archive), name("1.2.3"))
		case "/download/v0.0.1/checksums.txt":
			_, _ = fmt.Fprintf(w, "%x  %s\n", sha256.Sum256(nil), name("0.0.1"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	action, err := filepath.Abs("action")
	require.NoError(t, err)
	return &runner{dir, []string{
		"PATH=" + os.Getenv("PATH"), "RUNNER_TEMP=" + dir, "GITHUB_PATH=" + filepath.Join(dir, "path"), "GITHUB_ACTION_PATH=" + action, "DULY_RELEASES=" + server.URL,
	}}
}

// run runs a step, with further variables.
func (r *runner) run(t *testing.T, step string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step)
	cmd.Dir, cmd.Env = t.TempDir(), append(append([]string(nil), r.env...), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// steps are the scripts of the action, by the names of its steps.
func steps(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("action/action.yml")
	require.NoError(t, err)
	var action struct {
		Inputs map[string]struct{ Description string }
		Runs   struct {
			Using string
			Steps []struct {
				Name, Shell, Run string
				Env              map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(data, &action))
	assert.Equal(t, "composite", action.Runs.Using)
	out := map[string]string{}
	for _, step := range action.Runs.Steps {
		assert.Equal(t, "bash", step.Shell)
		assert.NotContains(t, step.Run, "${{", "an input is no part of a script")
		for _, value := range step.Env {
			input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
			assert.Contains(t, action.Inputs, input)
		}
		out[step.Name] = step.Run
	}
	return out
}

// The action installs the release that it is told to into a fresh folder, or the last one, and runs a command whose words are words.
func TestTheActionInstallsARelease(t *testing.T) {
	t.Parallel()
	all := steps(t)
	for version, folder := range map[string]string{"": "duly-1.2.3", "v1.2.3": "duly-1.2.3"} {
		r := newRunner(t)
		out, err := r.run(t, all["Install duly"], "DULY_VERSION="+version)
		require.NoError(t, err, out)
		assert.Equal(t, "<version>", out)
		path, err := os.ReadFile(filepath.Join(r.dir, "path"))
		require.NoError(t, err)
		installed := strings.TrimSpace(string(path))
		assert.Equal(t, filepath.Join(r.dir, folder), installed)
		r.env[0] = "PATH=" + installed + ":" + os.Getenv("PATH")
		out, err = r.run(t, all["Run duly"], `DULY_RUN=submit --payload '{"text":"two words"}' ; $(touch harm) `)
		require.NoError(t, err, out)
		assert.Equal(t, `<submit><--payload><{"text":"two words"}><;><$(touch><harm)>`, out)
	}
}

// An archive that is not the release's, and what is no version, is refused, and nothing is put into the path.
func TestTheActionRefuses(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	for version, want := range map[string]string{
		"0.0.1": "its checksum differs", "7.0.0": "version 7.0.0 has no duly_7.0.0", "../x": `"../x" is no version`, "latest": `"latest" is no version`,
	} {
		out, err := r.run(t, steps(t)["Install duly"], "DULY_VERSION="+version)
		require.Error(t, err, version)
		assert.Contains(t, out, "::error::duly: ")
		assert.Contains(t, out, want)
		assert.NoFileExists(t, filepath.Join(r.dir, "path"))
	}
}
