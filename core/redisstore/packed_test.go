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
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/luapack"
)

var update = flag.Bool("update", false, "write scripts.json.gz instead of comparing it")

// needsLine is one in the header of a file, which names the parts that it is loaded behind.
var needsLine = regexp.MustCompile(`(?m)^-- (needs|needs to replace|then): (.+)$`)

// fileOf is a file of scripts/ as it is to be packed.
func fileOf(text string, shared map[string]string) redisstore.Source {
	s := redisstore.Source{Text: luapack.Bare(text, shared)}
	for line := range strings.SplitSeq(text, "\n") {
		if m := luapack.KeyLine.FindStringSubmatch(line); m != nil {
			s.Keys = append(s.Keys, m[2])
		}
	}
	for _, m := range needsLine.FindAllStringSubmatch(text, -1) {
		parts := strings.Fields(m[2])
		if m[2] == "layout alone" {
			parts = nil
		}
		switch m[1] {
		case "needs":
			s.Needs = parts
		case "then":
			s.Then = parts
		default:
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
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		texts[strings.TrimSuffix(filepath.Base(name), ".lua")] = string(text)
	}
	files, shared := map[string]redisstore.Source{}, luapack.Shared(texts)
	for name, text := range texts {
		files[name] = fileOf(text, shared)
	}
	if *update {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		require.NoError(t, err)
		require.NoError(t, errors.Join(json.NewEncoder(w).Encode(files), w.Close()))
		require.NoError(t, os.WriteFile("internal/script/scripts.json.gz", out.Bytes(), 0o600))
		require.NoError(t, os.WriteFile("internal/script/scripts.index", []byte(redisstore.IndexOf(files)), 0o600))
		return
	}
	assert.Equal(t, redisstore.IndexOf(files), redisstore.Index(), "run make generate")
	assert.Len(t, redisstore.Packed(), len(files), "a script came or went: run make generate")
	for name, want := range files {
		got := redisstore.Packed()[name]
		assert.True(t, got.Text == want.Text && slices.Equal(got.Keys, want.Keys) && slices.Equal(got.Needs, want.Needs) &&
			slices.Equal(got.Replace, want.Replace) && slices.Equal(got.Then, want.Then), "%s.lua has changed: run make generate", name)
	}
}

// A constant has one value wherever its name is written: no part defines that of another, no script that of a part, and nothing
// else is called so.
func TestConstantsHaveOneValue(t *testing.T) {
	t.Parallel()
	owner := map[string]string{}
	for name, file := range redisstore.Packed() {
		if len(file.Keys) > 0 {
			continue
		}
		for c := range luapack.Constants(redisstore.Part(name)) {
			assert.Empty(t, owner[c], "%s and %s define %s", owner[c], name, c)
			owner[c] = name
		}
	}
	for name, file := range redisstore.Packed() {
		for c := range luapack.Constants(redisstore.Part(name)) {
			assert.Contains(t, []string{"", name}, owner[c], "%s defines %s of a part", name, c)
		}
		own := ownNames(luapack.WithoutConstants(redisstore.Part(name)))
		for c := range owner {
			assert.False(t, own[c], "%s binds %s, which is a constant of %s", name, c, owner[c])
		}
		assert.NotRegexp(t, `(?m)^local [A-Z][A-Z_]+ = ('|-?\d)`, file.Text, "%s: a constant was not put in its places", name)
	}
}

// What the scripts and Go both know is the same in both.
func TestConstantsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"COMPLETED": letter(store.VerbComplete), "FAILED": letter(store.VerbFail), "CANCELLED": letter(store.VerbCancel),
		"AGAIN": letter(store.VerbAgain), "REST": letter(store.VerbRest), "RELEASE": letter(store.VerbRelease),
		"KNOWN": strconv.FormatInt(store.KnownFor.Milliseconds(), 10),
	} {
		assert.Equal(t, want, luapack.Constants(redisstore.Part("layout"))[name], name)
	}
}

func letter(v store.Verb) string { return "'" + string(v) + "'" }
