// Package sow puts faults into copies of duly, for programs that look whether somebody finds them. The tree itself stays unchanged: a
// fault is a file that go build is told to take in place of another.
package sow

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Fault is a piece of a file, and what is written there instead.
type Fault struct {
	Name string
	What string // what is wrong with it
	File string // from the root of the module; of a script, its file in scripts
	Old  string // occurs once in the file
	New  string
}

// Patched is the file with the fault. It fails if the file has changed so that the fault does not fit any more.
func (f *Fault) Patched(root string) (string, error) {
	text, err := f.original(root)
	if err != nil {
		return "", err
	}
	if n := strings.Count(text, f.Old); n != 1 {
		return "", fmt.Errorf("%s: its patch fits %s %d times, and has to fit once: write it anew", f.Name, f.File, n)
	}
	return strings.Replace(text, f.Old, f.New, 1), nil
}

// original is the file without the fault.
func (f *Fault) original(root string) (string, error) {
	if name := scriptOf(f.File); name != "" {
		return scriptText(root, name)
	}
	data, err := os.ReadFile(filepath.Join(root, f.File)) //nolint:gosec // of this module
	return string(data), err
}

// Overlay writes into a folder what go build and go test need to take the file with the fault in place of the other (-overlay), and
// returns its name.
func (f *Fault) Overlay(root, dir string) (string, error) {
	text, err := f.Patched(root)
	if err != nil {
		return "", err
	}
	file := f.File
	if name := scriptOf(file); name != "" {
		if text, err = pack(root, name, text); err != nil {
			return "", err
		}
		file = packed
	}
	copied := filepath.Join(dir, "patched")
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(filepath.Join(root, file))
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

// IsScript reports whether the fault is in a script, which only a store on Redis runs.
func (f *Fault) IsScript() bool { return scriptOf(f.File) != "" }
