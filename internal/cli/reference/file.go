package reference

// The page of the file, out of its JSON Schema.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// keyed is a part of the schema of the file: an object with keys, or one of their values.
type keyed struct {
	Title, Description string
	Ref                string `json:"$ref"`
	Type               any
	Enum               []any
	Const              any
	Minimum, Maximum   *float64
	Items              *keyed
	AnyOf, OneOf       []*keyed
	Properties         map[string]*keyed
	Additional         json.RawMessage `json:"additionalProperties"`
	PropertyNames      struct{ Enum []string }
	Required           []string
	Examples           []json.RawMessage
	Default            json.RawMessage
	OtherDefault       string            `json:"x-default"`
	Unit               string            `json:"x-unit"`
	Defs               map[string]*keyed `json:"$defs"`
}

// filePage writes the page; each part has a section, in the order in which the parts are met.
type filePage struct {
	b     strings.Builder
	defs  map[string]*keyed
	order []section
}

// section is a part that is still to be written, with its place in the file.
type section struct {
	at   string
	part *keyed
}

// words are what the plain types of the schema are called.
var words = map[string]string{
	"text": "string", "item": "string", "argument": "string", "label": "string", "kind": "string", "span": "duration", "duration": "duration",
	"variables": "string or array of strings",
}

// File is the page of the file of duly, whose schema it gets.
func File(schema string) (string, error) {
	var root keyed
	if err := json.Unmarshal([]byte(schema), &root); err != nil {
		return "", fmt.Errorf("read the schema of the file: %w", err)
	}
	page := &filePage{defs: root.Defs}
	page.b.WriteString("# The file\n\n" + generated + `
The file that ` + "`-c`" + ` names, by custom duly.yaml, is YAML. Every key may be left out; one that duly does not know is an error with its line. ` + "`duly schema`" + ` prints the same as a
JSON Schema (draft 2020-12): an editor with a YAML language server completes and checks the file by it, if this is its first line:

` + "```yaml\n# yaml-language-server: $schema=duly.schema.json\n```" + `

A duration is a number with a unit, such as ` + "`90s`, `1h30m`, `1d` or `PT10M`" + `. A string needs no quotes, also if it looks like a number. A value that is empty counts as left out.

## Keys of the file
`)
	page.table(&section{part: &root})
	for len(page.order) > 0 { // sections that a section names follow it
		next := page.order[0]
		page.order = page.order[1:]
		fmt.Fprintf(&page.b, "\n## %s\n\n%s\n", next.at, sentence(next.part.Description))
		page.table(&next)
		page.variants(next.part)
	}
	return page.b.String(), nil
}

// table writes the keys of a part.
func (page *filePage) table(s *section) {
	if len(s.part.Properties) == 0 {
		return
	}
	page.b.WriteString("\n| key | type | default | what it says | example |\n|---|---|---|---|---|\n")
	var below []section
	for _, key := range slices.Sorted(maps.Keys(s.part.Properties)) {
		p := s.part.Properties[key]
		kind, parts := page.kind(p, strings.TrimPrefix(s.at+"."+key, "."))
		below = append(below, parts...)
		example := ""
		if len(p.Examples) > 0 {
			example = code(p.Examples[0])
		}
		fmt.Fprintf(&page.b, "| `%s` | %s | %s | %s | %s |\n", key, cell(kind), cell(byDefault(p, slices.Contains(s.part.Required, key))), cell(p.Description), example)
	}
	page.order = append(below, page.order...)
}

// byDefault is what holds without a key.
func byDefault(p *keyed, required bool) string {
	switch {
	case required:
		return "required"
	case p.Default != nil:
		return code(p.Default)
	default:
		return p.OtherDefault
	}
}

// variants writes which keys each type has, of a part whose type decides.
func (page *filePage) variants(part *keyed) {
	if len(part.OneOf) == 0 || part.OneOf[0].Title == "" {
		return
	}
	fmt.Fprintf(&page.b, "\n| type | keys that it needs | keys that it may have |\n|---|---|---|\n")
	for _, v := range part.OneOf {
		var may []string
		for _, name := range v.PropertyNames.Enum {
			if !slices.Contains(v.Required, name) && name != "type" && name != "scopes" {
				may = append(may, name)
			}
		}
		fmt.Fprintf(&page.b, "| `%s` | `%s` | `%s` |\n", v.Title, strings.Join(append([]string{"scopes"}, v.Required...), "`, `"), strings.Join(may, "`, `"))
	}
}

// kind is the type of a value for people, and the parts that it links to.
func (page *filePage) kind(p *keyed, at string) (string, []section) {
	name := strings.TrimPrefix(p.Ref, "#/$defs/")
	below := keyed{}
	hasBelow := len(p.Additional) > 0 && json.Unmarshal(p.Additional, &below) == nil
	switch {
	case words[name] != "":
		return words[name], nil
	case name != "":
		return link(at, page.defs[name])
	case len(p.AnyOf) > 0: // or nothing, or an object with more
		kind, parts := page.kind(p.AnyOf[0], at)
		if more := p.AnyOf[1]; more.Ref != "" && p.AnyOf[0].Ref == "" {
			object, others := page.kind(more, at)
			kind, parts = kind+", or "+object, append(parts, others...)
		}
		return kind, parts
	case p.Items != nil:
		kind, parts := page.kind(p.Items, at+"[]")
		return "array of " + plural(kind), parts
	case len(p.Enum) > 0:
		var all []string
		for _, v := range p.Enum {
			if v != nil {
				all = append(all, fmt.Sprintf("`%v`", v))
			}
		}
		return strings.Join(all, ", "), nil
	case hasBelow && len(below.AnyOf) > 0:
		kind, parts := page.kind(below.AnyOf[1], at+".NAME")
		return "object of strings, or of " + kind, parts
	case hasBelow && words[strings.TrimPrefix(below.Ref, "#/$defs/")] == "" && below.Ref != "":
		name := ".NAME"
		if at == "handlers" {
			name = ".KIND"
		}
		kind, parts := page.kind(&below, at+name)
		return "object of " + kind, parts
	case hasBelow:
		return "object of strings", nil
	}
	return plain(p), nil
}

// link names a part that has a section of its own.
func link(at string, part *keyed) (string, []section) {
	anchor := strings.ToLower(strings.NewReplacer(".", "", "[", "", "]", "").Replace(at))
	return "[" + at + "](#" + anchor + ")", []section{{at, part}}
}

// plain is the type of a value without a name, with its unit and its bounds.
func plain(p *keyed) string {
	kind := "any"
	switch t := p.Type.(type) {
	case string:
		kind = t
	case []any:
		kind = fmt.Sprint(t[0])
	}
	if p.Unit != "" {
		kind += ", " + p.Unit
	}
	bounds := schema{Minimum: p.Minimum, Maximum: p.Maximum}
	return kind + bounds.bounds()
}

// plural is the type of the elements of an array.
func plural(kind string) string {
	if kind == "string" {
		return "strings"
	}
	return kind
}

// code is a JSON value as the file has it.
func code(value json.RawMessage) string {
	text := string(value)
	var s string
	if json.Unmarshal(value, &s) == nil {
		text = s
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}
