package main

// How a patched script gets into the binary: the packed scripts, as the store embeds them, with the fault in one of them. Scripts are
// packed without comments and with the values of constants in the places of their names, and so are the patches.

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// packed is where the scripts are packed.
const packed = "core/redisstore/scripts.json.gz"

// scripts are the packed scripts, by name, each with what else is kept of it.
func scripts(root string) (map[string]map[string]any, error) {
	data, err := os.ReadFile(filepath.Join(root, packed))
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

// scriptOf is the name of the script in a file; empty if it is none.
func scriptOf(file string) string {
	name, isScript := strings.CutSuffix(filepath.Base(file), ".lua")
	if !isScript {
		return ""
	}
	return name
}

// scriptText is the text of a script as it is packed.
func scriptText(root, name string) (string, error) {
	all, err := scripts(root)
	if err != nil {
		return "", err
	}
	text, ok := all[name]["text"].(string)
	if !ok {
		return "", fmt.Errorf("%s has no script %q", packed, name)
	}
	return text, nil
}

// pack packs all scripts, one of them with another text.
func pack(root, name, text string) (string, error) {
	all, err := scripts(root)
	if err != nil {
		return "", err
	}
	all[name]["text"] = text
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(all); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}
