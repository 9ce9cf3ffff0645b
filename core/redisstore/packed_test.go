package redisstore_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

var update = flag.Bool("update", false, "write scripts.json.gz instead of comparing it")

// comment is one at the end of a line; in front of a quote it may be no comment.
var comment = regexp.MustCompile(`(^|\s+)-- ?[^'"]*$`)

// bare is a script without comments and indentation: neither the program nor Redis needs them.
func bare(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		code := strings.TrimSpace(line)
		if strings.HasPrefix(code, "--") {
			continue
		}
		if code = comment.ReplaceAllString(code, ""); code != "" {
			b.WriteString(code + "\n")
		}
	}
	return b.String()
}

// needsLine is one in the header of a file, which names the parts that it is loaded behind.
var needsLine = regexp.MustCompile(`(?m)^-- needs( to replace)?: (.+)$`)

// fileOf is a file of scripts/ as it is to be packed.
func fileOf(text string) redisstore.Source {
	s := redisstore.Source{Text: bare(text)}
	for line := range strings.SplitSeq(text, "\n") {
		if m := keyLine.FindStringSubmatch(line); m != nil {
			s.Keys = append(s.Keys, m[2])
		}
	}
	for _, m := range needsLine.FindAllStringSubmatch(text, -1) {
		parts := strings.Fields(m[2])
		if m[2] == "layout alone" {
			parts = nil
		}
		if m[1] == "" {
			s.Needs = parts
		} else {
			s.Replace = parts
		}
	}
	return s
}

// The scripts that run are those of the folder.
func TestTheScriptsArePacked(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("scripts/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	files := map[string]redisstore.Source{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		files[strings.TrimSuffix(filepath.Base(name), ".lua")] = fileOf(string(text))
	}
	if *update {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		require.NoError(t, errors.Join(json.NewEncoder(w).Encode(files), w.Close()))
		require.NoError(t, os.WriteFile("scripts.json.gz", out.Bytes(), 0o600))
		return
	}
	assert.Len(t, redisstore.Packed(), len(files), "a script came or went: run make scripts")
	for name, want := range files {
		got := redisstore.Packed()[name]
		assert.True(t, got.Text == want.Text && slices.Equal(got.Keys, want.Keys) && slices.Equal(got.Needs, want.Needs) &&
			slices.Equal(got.Replace, want.Replace), "%s.lua has changed: run make scripts", name)
	}
}
