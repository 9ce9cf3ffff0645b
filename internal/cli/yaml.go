package cli

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
	"time"

	"go.yaml.in/yaml/v3"
)

// place is a value in the file, with what it takes to name it in an error: "duly.yaml:12: handlers.note.timeout".
type place struct {
	file string
	path string
	node *yaml.Node
}

// parseYAML reads one YAML document; name is that of its file.
func parseYAML(name string, data []byte) (place, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return place{}, syntax(name, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return place{}, &Error{File: name, Err: errors.New("has more than one document")}
	}
	if len(doc.Content) == 0 { // an empty file
		doc.Content = []*yaml.Node{{Kind: yaml.MappingNode, Line: 1}}
	}
	return place{file: name, node: doc.Content[0]}, nil
}

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

// value is what an alias stands for, or the node itself.
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
func (p place) entries() ([]entry, error) {
	if p.empty() {
		return nil, nil
	}
	n := p.value()
	if n.Kind != yaml.MappingNode {
		return nil, p.fail("must have keys: values")
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
type reader func(p place) error

// read hands each key of a mapping to its reader. A key that has none is an error.
func (p place) read(readers map[string]reader) error {
	entries, err := p.entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		read := readers[e.key]
		if read == nil {
			known := make([]string, 0, len(readers))
			for name := range readers {
				known = append(known, name)
			}
			slices.Sort(known)
			return e.at.fail("is not a key here: there are %s", strings.Join(known, ", "))
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

// text reads any single value as it stands, so that an id such as 007 need not be quoted. The empty one is refused: it would
// be taken for what was left out.
func text(into *string) reader {
	return func(p place) error {
		switch {
		case p.empty():
		case p.value().Kind != yaml.ScalarNode:
			return p.fail("must be a string")
		case p.value().Value == "":
			return p.fail("must not be empty: leave it out if it has no value")
		default:
			*into = p.value().Value
		}
		return nil
	}
}

func texts(into *[]string) reader {
	return func(p place) error {
		elements, err := p.list()
		if err != nil {
			return p.fail("must be an array of strings")
		}
		for _, e := range elements {
			if n := e.value(); n.Kind != yaml.ScalarNode {
				return e.fail("must be a string")
			}
			*into = append(*into, e.value().Value)
		}
		return nil
	}
}

// integer reads a whole number from 1 on.
func integer(into *int) reader {
	return func(p place) error {
		if err := whole(into)(p); err != nil || p.empty() {
			return err
		}
		if *into == 0 {
			return p.fail("must be at least 1, not 0")
		}
		return nil
	}
}

// atLeastOne reads a whole number of something that core takes for any number if it is negative.
func atLeastOne(into *int) reader {
	return func(p place) error {
		if err := whole(into)(p); err != nil || p.empty() {
			return err
		}
		if *into < 1 {
			return p.fail("must be at least 1, not %d", *into)
		}
		return nil
	}
}

// whole reads any whole number.
func whole(into *int) reader {
	return func(p place) error {
		if !p.empty() && p.value().Decode(into) != nil {
			return p.fail("must be a whole number")
		}
		return nil
	}
}

// never is a number of failures after which nothing happens, and none what core takes for a setting that is switched off,
// as its zero means the default.
const (
	never = -1
	none  = -1
)

// orNever reads a number of failures after which something happens; zero and less are never.
func orNever(into *int) reader {
	return func(p place) error {
		if err := whole(into)(p); err != nil || p.empty() {
			return err
		}
		if *into <= 0 {
			*into = never
		}
		return nil
	}
}

// orNone reads how many there may be; zero is none, not the default.
func orNone(into *int) reader {
	return func(p place) error {
		err := whole(into)(p)
		switch {
		case err != nil || p.empty():
		case *into < 0:
			err = p.fail("must not be negative, not %d", *into)
		case *into == 0:
			*into = none
		}
		return err
	}
}

func boolean(into *bool) reader {
	return func(p place) error {
		if !p.empty() && p.value().Decode(into) != nil {
			return p.fail("must be true or false")
		}
		return nil
	}
}

// duration reads a duration that is longer than nothing.
func duration(into *time.Duration) reader {
	return func(p place) error {
		if err := span(into)(p); err != nil || p.empty() {
			return err
		}
		if *into == 0 {
			return p.fail("must be longer than 0s: leave it out for the default")
		}
		return nil
	}
}

// durationOrNone reads a duration; zero is none, not the default.
func durationOrNone(into *time.Duration) reader {
	return func(p place) error {
		if err := span(into)(p); err != nil || p.empty() {
			return err
		}
		if *into == 0 {
			*into = none
		}
		return nil
	}
}

// span reads a duration, also of zero.
func span(into *time.Duration) reader {
	return func(p place) error {
		if p.empty() {
			return nil
		}
		d, err := time.ParseDuration(p.value().Value)
		if err != nil {
			return p.fail("must be a duration such as 90s or 1h30m")
		}
		if d < 0 {
			return p.fail("must not be negative, not %s", d)
		}
		*into = d
		return nil
	}
}
