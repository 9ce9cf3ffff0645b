package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who duly is in the image: nobody in particular, and never root. Kubernetes compares numbers.
const user = 65532

// entry is a file or a folder of the image.
type entry struct {
	name string
	mode int64
	data []byte
}

// write writes the image.
func (o *options) write() error {
	if err := o.check(); err != nil {
		return err
	}
	base, err := baseFiles(o.zones)
	if err != nil {
		return err
	}
	common, err := layerOf(base)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range o.programs {
		image, err := o.image(p, common)
		if err != nil {
			return fmt.Errorf("%s: %w", p.platform, err)
		}
		platform, err := v1.ParsePlatform(p.platform)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	folder, err := os.MkdirTemp("", "duly-image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	// The layout's own index names one thing: the image for all platforms, by its version.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": o.version}},
	})
	if _, err := layout.Write(folder, named); err != nil {
		return err
	}
	return pack(folder, o.to)
}

// image is the image for one platform.
func (o *options) image(p program, common v1.Layer) (v1.Image, error) {
	data, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	if err := static(data); err != nil {
		return nil, err
	}
	own, err := layerOf([]entry{{"usr/local/bin/duly", 0o755, data}})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), common, own)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, _ = strings.Cut(p.platform, "/")
	file.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/usr/local/bin/duly"}, WorkingDir: "/",
		Env:          []string{"PATH=/usr/local/bin", "HOME=/tmp"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "duly", "org.opencontainers.image.version": o.version,
			"org.opencontainers.image.source":   "https://github.com/seed-6f6f2c11/duly",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, file)
}

// static refuses a program that needs a C library: the image has none.
func static(program []byte) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("is no program for Linux: %w", err)
	}
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
		return fmt.Errorf("is not static: build it with CGO_ENABLED=0 (%v %w)", libraries, err)
	}
	return nil
}

// baseFiles are what is the same on every platform: whom to trust, all time zones for the programs of handlers, and a user.
func baseFiles(zones string) ([]entry, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() { // Mozilla's, of the version in go.mod
		if root.Constraint == nil { // a file cannot say that a root is trusted for some certificates only
			if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	all := []entry{
		{"tmp/", 0o1777, nil},
		{"etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nduly:x:%d:%d:duly:/tmp:/sbin/nologin\n", user, user)},
		{"etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nduly:x:%d:\n", user)},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots.Bytes()},
	}
	z, err := zip.OpenReader(zones)
	if err != nil {
		return nil, fmt.Errorf("open the zones: %w", err)
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{"usr/share/zoneinfo/" + f.Name, 0o644, data})
	}
	return all, nil
}

// layerOf is a layer with these files, in an order and with times that never change.
func layerOf(entries []entry) (v1.Layer, error) {
	all := map[string]entry{}
	for _, e := range entries {
		all[e.name] = e
		for dir := path.Dir(strings.TrimSuffix(e.name, "/")); dir != "."; dir = path.Dir(dir) {
			all[dir+"/"] = entry{dir + "/", 0o755, nil}
		}
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		e := all[name]
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
		if strings.HasSuffix(name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// pack writes a folder as a tarball.
func pack(folder, to string) error {
	var names []string
	err := filepath.Walk(folder, func(file string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			names = append(names, file)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, file := range names {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(data)), ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}
