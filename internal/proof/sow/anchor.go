package sow

// Anchors: comments in the sources that name the statement behind them, so that faults find it wherever it moves to.

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// anchor is a line with nothing but an anchor, in Go or in Lua.
var anchor = regexp.MustCompile(`^\s*(?://|--) guard: ([a-z0-9-]+)$`)

// Tree is the sources of a module, as far as they have anchors.
type Tree struct {
	root    string
	files   map[string][]string // lines, by path from the root
	anchors map[string]place
}

// place is a line with an anchor.
type place struct {
	file string
	line int
}

// Read reads the sources below a folder, tests left out. It fails if two anchors have one name.
func Read(root string) (*Tree, error) {
	t := &Tree{root: root, files: map[string][]string{}, anchors: map[string]place{}}
	return t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".lua") && (!strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go")):
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return t.read(filepath.ToSlash(name))
	})
}

// read notes the anchors of a file.
func (t *Tree) read(file string) error {
	data, err := os.ReadFile(filepath.Join(t.root, file)) //nolint:gosec // of this module
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	for i, line := range lines {
		m := anchor.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		if other, known := t.anchors[m[1]]; known {
			return fmt.Errorf("%s and %s both have the anchor %q", other.file, file, m[1])
		}
		t.anchors[m[1]], t.files[file] = place{file, i}, lines
	}
	return nil
}

// Anchors are the names of all anchors, each with its file.
func (t *Tree) Anchors() map[string]string {
	files := map[string]string{}
	for name, at := range t.anchors {
		files[name] = at.file
	}
	return files
}

// File is where the anchor of a fault is; empty if there is none.
func (t *Tree) File(f *Fault) string { return t.anchors[f.Anchor()].file }

// Patched is the file with a fault, as it is in the tree: a script is not packed yet.
func (t *Tree) Patched(f *Fault) (string, error) {
	at, known := t.anchors[f.Anchor()]
	if !known {
		return "", fmt.Errorf("%s: no source has the anchor %q: write it in front of the statement that keeps this", f.Name, f.Anchor())
	}
	lines := t.files[at.file]
	from := at.line + 1
	for from < len(lines) && isComment(lines[from]) {
		from++
	}
	to := end(lines, from)
	s := statement{text: strings.Join(lines[from:to], ""), lua: strings.HasSuffix(at.file, ".lua")}
	text, err := f.Change(s)
	if err != nil {
		return "", fmt.Errorf("%s, at the anchor %q of %s: %w", f.Name, f.Anchor(), at.file, err)
	}
	return strings.Join(lines[:from], "") + text + strings.Join(lines[to:], ""), nil
}

// isComment reports whether a line has nothing but a comment.
func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "--")
}

// closing is the begin of a line that ends, or goes on with, a statement that is indented as much.
var closing = regexp.MustCompile(`^\s*([})\]]|(end|else|elseif|until)\b)`)

// end is the line behind the statement that begins at a line. Its extent follows from the indentation, which formatters keep.
func end(lines []string, from int) int {
	depth, to := indent(lines[from]), from+1
	branch := strings.HasPrefix(strings.TrimSpace(lines[from]), "case ") || strings.HasPrefix(strings.TrimSpace(lines[from]), "default:")
	for {
		next := to
		for next < len(lines) && (strings.TrimSpace(lines[next]) == "" || indent(lines[next]) > depth) {
			next++
		}
		if next == len(lines) || next == to || branch || indent(lines[next]) != depth || !closing.MatchString(lines[next]) {
			for next > to && strings.TrimSpace(lines[next-1]) == "" {
				next--
			}
			return next
		}
		to = next + 1
	}
}

// indent is how far a line is indented.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
