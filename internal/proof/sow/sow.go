// Package sow puts faults into copies of duly, for programs that look whether something finds them. The tree itself stays unchanged: a
// fault is a file that go build is told to take in place of another. Where it goes is marked in the sources, by a comment such as
// "// guard: fence" in front of a statement.
package sow

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Fault is a statement of the sources, and what is done to it.
type Fault struct {
	Name   string
	What   string // what is wrong with it
	At     string // the anchor, if it is not called as the fault is: several faults may have one
	Change Change
}

// Anchor is the name of the anchor of a fault.
func (f *Fault) Anchor() string { return cmp.Or(f.At, f.Name) }

// Overlay writes into a folder what go build and go test need to take the file with the fault in place of the other (-overlay), and
// returns its name.
func (t *Tree) Overlay(f *Fault, dir string) (string, error) {
	text, err := t.Patched(f)
	if err != nil {
		return "", err
	}
	file := t.File(f)
	if t.IsScript(f) {
		if text, err = t.pack(file, text); err != nil {
			return "", err
		}
		file = packed
	}
	copied := filepath.Join(dir, "patched")
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(filepath.Join(t.root, file))
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: copied}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, data, 0o600)
}

// IsScript reports whether a fault is in a script, which only a store on Redis runs.
func (t *Tree) IsScript(f *Fault) bool { return strings.HasSuffix(t.File(f), ".lua") }
