package schedule

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write zones.gz")

// goZones is the database of zones that the Go installation brings.
func goZones(t *testing.T) map[string]string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this installation of Go brings no zones")
	}
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	zones := map[string]string{}
	for _, f := range r.File {
		if f.FileInfo().IsDir() {
			continue
		}
		in, err := f.Open()
		require.NoError(t, err)
		rules, err := io.ReadAll(in)
		require.NoError(t, errors.Join(err, in.Close()))
		zones[f.Name] = string(rules)
	}
	return zones
}

// pack writes zones.gz, rules that are alike beside one another, which makes it small.
func pack(t *testing.T, zones map[string]string) {
	t.Helper()
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		names[zones[name]] = append(names[zones[name]], name)
	}
	var head, bare strings.Builder
	var gaps []byte
	for _, rules := range slices.Sorted(maps.Keys(names)) {
		at, length := transitions(rules)
		fmt.Fprintf(&head, "%s %d\n", strings.Join(names[rules], ","), len(rules)-length)
		bare.WriteString(rules[:at] + rules[at+length:])
		before := int64(0)
		for times := []byte(rules[at : at+length]); len(times) > 0; times = times[8:] {
			now := int64(binary.BigEndian.Uint64(times))
			gaps = binary.AppendVarint(gaps, now-before)
			before = now
		}
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	w.Comment = runtime.Version()
	_, err = w.Write(append([]byte(head.String()+"\n"+bare.String()), gaps...))
	require.NoError(t, errors.Join(err, w.Close()))
	require.NoError(t, os.WriteFile("zones.gz", out.Bytes(), 0o600))
}

// zones.gz is what the Go that wrote it brings. A newer one may know more: then it is to be written anew.
func TestTheZonesArePacked(t *testing.T) {
	t.Parallel()
	want := goZones(t)
	if *update {
		pack(t, want)
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(packedZones))
	require.NoError(t, err)
	if version.Compare(runtime.Version(), r.Comment) < 0 {
		t.Skipf("zones.gz is of %s, which is newer", r.Comment)
	}
	got, err := zones()
	require.NoError(t, err)
	for name, rules := range want {
		assert.True(t, got[name] == rules, "the rules of %s have changed since %s: run make generate", name, r.Comment)
	}
	assert.Len(t, got, len(want))
}

// A machine without zones knows them all, and tells no other time than one that has them.
func TestAMachineWithoutZones(t *testing.T) {
	t.Parallel()
	known, err := zones()
	require.NoError(t, err)
	require.Greater(t, len(known), 500)
	for name := range known {
		location, err := packedZone(name)
		require.NoError(t, err, name)
		assert.Equal(t, name, location.String())
	}
	location, err := packedZone("America/New_York")
	require.NoError(t, err)
	assert.Equal(t, "2026-03-08 03:30 EDT", time.Date(2026, 3, 8, 7, 30, 0, 0, time.UTC).In(location).Format("2006-01-02 15:04 MST"))
	for _, name := range []string{"Mars/Olympus", "", "../etc/passwd", "Europe", "europe/Berlin "} {
		_, err = packedZone(name)
		assert.Error(t, err, name)
	}
}
