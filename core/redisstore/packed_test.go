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

// The scripts that run are those of the folder.
func TestTheScriptsArePacked(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scripts/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[strings.TrimSuffix(filepath.Base(file), ".lua")] = bare(string(text))
	}
	if *update {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		require.NoError(t, errors.Join(json.NewEncoder(w).Encode(texts), w.Close()))
		require.NoError(t, os.WriteFile("scripts.json.gz", out.Bytes(), 0o600))
		return
	}
	assert.Len(t, redisstore.Packed(), len(texts), "a script came or went: run make scripts")
	for name, text := range texts {
		assert.True(t, redisstore.Packed()[name] == text, "%s.lua has changed: run make scripts", name)
	}
}
