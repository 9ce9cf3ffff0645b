package deploy_test

// The packages of a release: built by the tool that goreleaser builds them with, out of what .goreleaser.yaml says, and installed into a fresh folder.

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// nfpm builds packages.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.48.0"

// packages builds the packages of a release into a folder, from a program that has just been compiled.
func packages(t *testing.T) (folder string, formats []string) {
	t.Helper()
	data, err := os.ReadFile("../.goreleaser.yaml")
	require.NoError(t, err)
	var release struct {
		Nfpms []map[string]any
	}
	require.NoError(t, yaml.Unmarshal(data, &release))
	require.Len(t, release.Nfpms, 1)
	config := release.Nfpms[0]
	folder = t.TempDir()
	program := filepath.Join(folder, "duly")
	run(t, "..", "go", "build", "-trimpath", "-tags", "quickstart", "-ldflags", "-s -w -X main.version=v9.8.7", "-o", program, "./cmd/duly")
	for _, format := range config["formats"].([]any) {
		formats = append(formats, format.(string))
	}
	config["contents"] = append(config["contents"].([]any), map[string]any{"src": program, "dst": filepath.Join(config["bindir"].(string), "duly"), "file_info": map[string]any{"mode": 0o755}})
	config["name"], config["arch"], config["version"] = config["package_name"], runtime.GOARCH, "9.8.7"
	for _, ours := range []string{"id", "package_name", "formats", "file_name_template", "bindir"} { // goreleaser's own
		delete(config, ours)
	}
	text, err := json.Marshal(config) // which is YAML
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nfpm.yaml"), text, 0o600))
	tool := exec.CommandContext(t.Context(), "go", "run", nfpm, "--version")
	if out, err := tool.CombinedOutput(); err != nil {
		t.Skipf("nfpm cannot be had: %s", out)
	}
	for _, format := range formats {
		run(t, "..", "go", "run", nfpm, "package", "--config", filepath.Join(folder, "nfpm.yaml"), "--packager", format, "--target", folder)
	}
	return folder, formats
}

// run runs a command in a folder.
func run(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
	return string(out)
}

// What a package installs is the program, which says the version of the release, and a daemon that runs by the unit's command and the file of the package.
func TestThePackagesAreInstalled(t *testing.T) {
	t.Parallel()
	folder, formats := packages(t)
	assert.Equal(t, []string{"deb", "rpm"}, formats)
	rpms, err := filepath.Glob(filepath.Join(folder, "*.rpm"))
	require.NoError(t, err)
	require.Len(t, rpms, 1, "it is built; only rpm itself could install it, which is not on every machine")
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("there is no dpkg-deb to install the other package")
	}
	debs, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	require.NoError(t, err)
	require.Len(t, debs, 1)
	root := filepath.Join(folder, "root")
	run(t, ".", "dpkg-deb", "-x", debs[0], root)
	control := run(t, ".", "dpkg-deb", "-f", debs[0])
	for _, want := range []string{"Package: duly", "Version: 9.8.7", "Architecture: " + runtime.GOARCH} {
		assert.Contains(t, control, want)
	}
	program := filepath.Join(root, "usr/bin/duly")
	assert.Contains(t, run(t, ".", program, "version"), "v9.8.7")
	secret, err := os.Stat(filepath.Join(root, "etc/duly/environment"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), secret.Mode().Perm())
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/duly.service"))
	require.NoError(t, err)
	assert.Contains(t, string(unit), "EnvironmentFile=/etc/duly/environment")
	daemon(t, root, program)
}

// daemon starts what the unit starts, with the folders of the package in the place of those of the machine, and stops it.
func daemon(t *testing.T, root, program string) {
	t.Helper()
	conf, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/duly.service.d/package.conf"))
	require.NoError(t, err)
	file, err := os.ReadFile(filepath.Join(root, "etc/duly/duly.yaml"))
	require.NoError(t, err)
	here := filepath.Join(root, "duly.yaml")
	require.NoError(t, os.WriteFile(here, []byte(strings.ReplaceAll(string(file), "/var/lib/duly", root)), 0o600))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, line, found := strings.Cut(string(conf), "\nExecStart=/usr/bin/duly ")
	require.True(t, found)
	args := strings.Fields(strings.NewReplacer("/etc/duly/duly.yaml", here, "127.0.0.1:8080", address).Replace(strings.TrimSpace(line)))
	cmd := exec.CommandContext(t.Context(), program, args...)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	assert.Eventually(t, func() bool {
		r, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		defer func() { _ = r.Body.Close() }()
		return r.StatusCode == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
}
