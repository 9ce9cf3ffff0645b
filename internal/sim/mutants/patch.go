package main

// How a patch is put in front of a file, and how the table of the document is written.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is a fault: a piece of a file, and what stands there instead.
type mutant struct {
	name string
	what string // what is wrong with it
	file string
	old  string // occurs once in the file
	new  string
}

// patched is the file of a mutant with its fault.
func (m *mutant) patched(root string) (string, error) {
	text, err := m.original(root)
	if err != nil {
		return "", err
	}
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("%s: its patch fits %s %d times, and has to fit once: write it anew", m.name, m.file, n)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

// original is the file without the fault.
func (m *mutant) original(root string) (string, error) {
	if name := scriptOf(m.file); name != "" {
		return scriptText(root, name)
	}
	data, err := os.ReadFile(filepath.Join(root, m.file))
	return string(data), err
}

// overlay writes what go build needs to take the file with the fault in place of the other, and returns its name.
func (m *mutant) overlay(root, dir string) (string, error) {
	text, err := m.patched(root)
	if err != nil {
		return "", err
	}
	file := m.file
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

// The marks between which the document has the table.
const (
	tableBegins = "<!-- mutants: written by make mutants -->\n"
	tableEnds   = "<!-- end of mutants -->\n"
)

// writeTable writes the table of the document.
func writeTable(file string, all []found) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(data), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has not the marks of the table", file)
	}
	var b strings.Builder
	b.WriteString("| sown fault | where | found by seed | invariant |\n|---|---|---|---|\n")
	for _, f := range all {
		seed, invariant := f.seed, "`"+f.invariant+"`"
		if seed == "" {
			seed, invariant = "survived", ""
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", f.what, f.file, seed, invariant)
	}
	return os.WriteFile(file, []byte(before+tableBegins+b.String()+tableEnds+after), 0o644)
}
