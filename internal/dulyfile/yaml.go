package dulyfile

// YAML with places: each value knows its line and its path.

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is a value in the file, with what it takes to name it in an error: "duly.yaml:12: handlers.note.timeout".
// It is copied freely: it has no state.
type place struct {
	file string
	path string
	node *yaml.Node
}

// parseYAML reads one YAML document; name is the name of its file.
// More than one document is refused, as only the first would count.
func parseYAML(name string, data []byte) (place, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return place{}, syntax(name, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return place{}, &Error{File: name, Err: errors.New("contains more than one YAML document")}
	}
	if len(doc.Content) == 0 { // an empty file
		doc.Content = []*yaml.Node{{Kind: yaml.MappingNode, Line: 1}}
	}
	return place{file: name, node: doc.Content[0]}, nil
}

// yamlLine takes apart the errors of the library, which have the line in their text.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax is the error of a file that is no YAML.
func syntax(name string, err error) error {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(cmp.Or(m[1], "1")) // it does not count the first line
		return &Error{File: name, Line: line, Err: fmt.Errorf("is not YAML: %s", m[2])}
	}
	return &Error{File: name, Err: err}
}

// fail is the error of a value.
func (p place) fail(format string, args ...any) error {
	return &Error{File: p.file, Line: p.node.Line, Path: p.path, Err: fmt.Errorf(format, args...)}
}

// value is the node that an alias refers to, or the node itself.
// An alias has the line of its anchor, which is where the mistake is.
func (p place) value() *yaml.Node {
	if p.node.Kind == yaml.AliasNode {
		return p.node.Alias
	}
	return p.node
}

// empty reports whether nothing is given: the value is missing or null.
func (p place) empty() bool { return p.node == nil || p.value().Tag == "!!null" }

// under is a part of the value.
func (p place) under(name string, node *yaml.Node) place {
	switch {
	case p.path == "":
	case strings.HasPrefix(name, "["):
		name = p.path + name
	default:
		name = p.path + "." + name
	}
	return place{file: p.file, path: name, node: node}
}

// entry is one key of a mapping and its value.
type entry struct {
	key   string
	at    place // of the key
	value place
}

// entries are the keys of a mapping, in order.
// A key that is given twice is refused, as YAML demands.
func (p place) entries() ([]entry, error) {
	if p.empty() {
		return nil, nil
	}
	n := p.value()
	if n.Kind != yaml.MappingNode {
		return nil, p.fail("must be an object (key: value)")
	}
	var all []entry
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		at := p.under(key.Value, key)
		if slices.ContainsFunc(all, func(e entry) bool { return e.key == key.Value }) {
			return nil, at.fail("is given twice")
		}
		all = append(all, entry{key: key.Value, at: at, value: p.under(key.Value, n.Content[i+1])})
	}
	return all, nil
}

// reader reads the value of one key. Those of single values take null for left out.
// The same reader serves for a value wherever it is, as the place knows its path.
type reader func(p place) error

// read hands each key of a mapping to its reader. A key that has none is an error.
func (p place) read(readers map[string]reader) error {
	entries, err := p.entries()
	if err != nil {
		return err
	}
	// In the order of the file, so that its first mistake is reported.
	for _, e := range entries {
		read := readers[e.key]
		if read == nil {
			known := make([]string, 0, len(readers))
			for name := range readers {
				known = append(known, name)
			}
			slices.Sort(known)
			return e.at.fail("unknown key; expected one of %s", strings.Join(known, ", "))
		}
		if err := read(e.value); err != nil {
			return err
		}
	}
	return nil
}

// of is the value of a key of a mapping, or the mapping if it has no such key.
func (p place) of(key string) place {
	entries, _ := p.entries() // they have been read before
	for _, e := range entries {
		if e.key == key {
			return e.value
		}
	}
	return p
}

// list are the elements of a list.
// It is called for values that have to be arrays; an empty one has no elements.
func (p place) list() ([]place, error) {
	n := p.value()
	if n.Kind != yaml.SequenceNode {
		return nil, p.fail("must be an array")
	}
	all := make([]place, len(n.Content))
	for i, node := range n.Content {
		all[i] = p.under(fmt.Sprintf("[%d]", i), node)
	}
	return all, nil
}
