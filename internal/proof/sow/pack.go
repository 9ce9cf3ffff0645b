package sow

// How a patched script gets into the binary: the packed scripts, as the store embeds them, with the fault in one of them.

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-6f6f2c11/duly/internal/luapack"
)

// packed is where the scripts are packed.
const packed = "core/redisstore/internal/script/scripts.json.gz"

// scripts are the packed scripts, by name, each with what else is kept of it.
func (t *Tree) scripts() (map[string]map[string]any, error) {
	data, err := os.ReadFile(filepath.Join(t.root, packed))
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var all map[string]map[string]any
	return all, json.NewDecoder(r).Decode(&all)
}

// pack packs all scripts, one file of them with another text.
func (t *Tree) pack(file, text string) (string, error) {
	all, err := t.scripts()
	if err != nil {
		return "", err
	}
	texts := map[string]string{}
	for name := range all {
		data, err := os.ReadFile(filepath.Join(t.root, path.Dir(file), name+".lua")) //nolint:gosec // of this module
		if err != nil {
			return "", err
		}
		texts[name] = string(data)
	}
	name := strings.TrimSuffix(path.Base(file), ".lua")
	if all[name] == nil {
		return "", fmt.Errorf("%s has no script %q", packed, name)
	}
	texts[name] = text
	all[name]["text"] = luapack.Bare(text, luapack.Shared(texts))
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	err = errors.Join(json.NewEncoder(w).Encode(all), w.Close())
	return out.String(), err
}
