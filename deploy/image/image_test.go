package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unpack is the folder of a layout that a tarball has.
func unpack(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	folder := t.TempDir()
	for name, data := range filesOf(t, f) {
		to := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, data.data, 0o600))
	}
	return folder
}

// filesOf are the entries of a tarball.
func filesOf(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		data, err := io.ReadAll(tr)
		require.NoError(t, err)
		assert.Zero(t, h.Uid+h.Gid, h.Name)
		all[h.Name] = entry{h.Name, h.Mode, data}
	}
}

// build builds a small program, static unless it links a C library.
func build(t *testing.T, arch string) string {
	t.Helper()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	require.NoError(t, os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"duly\") }\n"), 0o600))
	program := filepath.Join(folder, "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "zoneinfo.zip")
}

func TestTheImage(t *testing.T) {
	t.Parallel()
	programs := []program{{"linux/amd64", build(t, "amd64")}, {"linux/arm64", build(t, "arm64")}}
	o := options{zones: goroot(t), version: "v1.2.3", to: filepath.Join(t.TempDir(), "a.tar"), programs: programs}
	require.NoError(t, o.write())
	again := o
	again.to = filepath.Join(t.TempDir(), "b.tar")
	require.NoError(t, again.write())
	a, err := os.ReadFile(o.to)
	require.NoError(t, err)
	b, err := os.ReadFile(again.to)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(a, b), "the same programs give the same bytes")

	folder := unpack(t, o.to)
	assert.FileExists(t, filepath.Join(folder, "oci-layout"), "which tools tell a layout by")
	index, err := layout.ImageIndexFromPath(folder)
	require.NoError(t, err)
	outer, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, outer.Manifests, 1)
	assert.Equal(t, "v1.2.3", outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	require.NoError(t, err)
	require.NoError(t, validate.Index(inner), "all digests, sizes and media types")
	list, err := inner.IndexManifest()
	require.NoError(t, err)
	require.Len(t, list.Manifests, 2)
	for i, d := range list.Manifests {
		assert.Equal(t, programs[i].platform, d.Platform.String())
		image, err := inner.Image(d.Digest)
		require.NoError(t, err)
		checkImage(t, image, programs[i])
	}
}

// checkImage looks at all that is in an image, and runs its program if this machine can.
func checkImage(t *testing.T, image v1.Image, p program) {
	t.Helper()
	config, err := image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, p.platform, config.OS+"/"+config.Architecture)
	assert.Equal(t, "65532:65532", config.Config.User, "never root, and a number, which Kubernetes can compare")
	assert.Equal(t, []string{"/usr/local/bin/duly"}, config.Config.Entrypoint)
	assert.Equal(t, "v1.2.3", config.Config.Labels["org.opencontainers.image.version"])
	r := mutate.Extract(image)
	defer func() { _ = r.Close() }()
	files := filesOf(t, r)
	want, err := os.ReadFile(p.file)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, files["usr/local/bin/duly"].data))
	assert.EqualValues(t, 0o755, files["usr/local/bin/duly"].mode)
	assert.EqualValues(t, 0o1777, files["tmp"].mode)
	roots := x509.NewCertPool()
	assert.True(t, roots.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].data))
	assert.Greater(t, bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].data, []byte("BEGIN CERTIFICATE")), 100)
	for _, zone := range []string{"Europe/Berlin", "Asia/Tokyo", "UTC"} {
		assert.True(t, bytes.HasPrefix(files["usr/share/zoneinfo/"+zone].data, []byte("TZif")), zone)
	}
	if p.platform != runtime.GOOS+"/"+runtime.GOARCH {
		return
	}
	program := filepath.Join(t.TempDir(), "duly")
	require.NoError(t, os.WriteFile(program, files["usr/local/bin/duly"].data, 0o700))
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "duly\n", string(out))
}

func TestAnImageThatCannotBe(t *testing.T) {
	t.Parallel()
	good := program{"linux/amd64", build(t, "amd64")}
	to := filepath.Join(t.TempDir(), "a.tar")
	dynamic := program{"linux/amd64", "/bin/sh"} // it needs a C library, on every machine that tests run on
	for want, o := range map[string]options{
		"-zones and -to are required":              {to: to, programs: []program{good}},
		"name a program":                           {zones: goroot(t), to: to},
		"no such file":                             {zones: goroot(t), to: to, programs: []program{{"linux/amd64", "/nowhere"}}},
		"is no program for Linux":                  {zones: goroot(t), to: to, programs: []program{{"linux/amd64", "main.go"}}},
		"is not static: build it with CGO_ENABLED": {zones: goroot(t), to: to, programs: []program{dynamic}},
		"open the zones":                           {zones: "/nowhere", to: to, programs: []program{good}},
	} {
		require.ErrorContains(t, o.write(), want)
		assert.NoFileExists(t, to)
	}
}
