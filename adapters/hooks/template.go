package hooks

// Templates: texts and JSON in which parts of a message are named.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// template is a text in which {/pointer} and {header:Name} are replaced. Nothing else has a meaning in it, but {{ for a brace.
type template []part

// part is literal, or what a source finds.
type part struct {
	literal string
	from    *source // nil if it is literal
}

// parseTemplate reads a template.
func parseTemplate(text string) (template, error) {
	var t template
	var literal strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		literal.WriteString(before)
		switch {
		case !found:
			text = ""
			continue
		case strings.HasPrefix(rest, "{"):
			literal.WriteByte('{')
			text = rest[1:]
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, errors.New("has a { without its }; write {{ for a brace")
		}
		from, err := parseSource(name)
		if err != nil {
			return nil, err
		}
		if literal.Len() > 0 {
			t = append(t, part{literal: literal.String()})
			literal.Reset()
		}
		t, text = append(t, part{from: &from}), after
	}
	if literal.Len() > 0 {
		t = append(t, part{literal: literal.String()})
	}
	return t, nil
}

// fixed reports whether the text is the same for each message.
func (t template) fixed() bool {
	for _, p := range t {
		if p.from != nil {
			return false
		}
	}
	return true
}

// render is the text for a message.
func (t template) render(m *message) (string, error) {
	var b strings.Builder
	for _, p := range t {
		text := p.literal
		if p.from != nil {
			var err error
			if text, err = p.from.string(m); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// name is render for what must not be empty: an empty id would be taken for one that was left out.
func (t template) name(field string, m *message) (string, error) {
	text, err := t.render(m)
	if err == nil && text == "" {
		err = errors.New("is empty for this message")
	}
	if err != nil {
		return "", &core.InvalidError{Field: field, Reason: err.Error()}
	}
	return text, nil
}

// value is JSON whose strings are templates. Exactly one of its fields is set.
type value struct {
	object  map[string]*value
	array   []*value
	text    template
	literal json.RawMessage
}

// parseValue reads JSON. field is the name of the value in errors.
func parseValue(field string, data json.RawMessage) (*value, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, &core.ConfigError{Field: field, Reason: "must be JSON: " + err.Error()}
	}
	return compile(field, v)
}

// compile reads the strings of a value.
func compile(field string, v any) (out *value, err error) {
	switch v := v.(type) {
	case map[string]any:
		out = &value{object: map[string]*value{}}
		for _, name := range slices.Sorted(maps.Keys(v)) { // so that the same mistakes have the same error
			if out.object[name], err = compile(field+"."+name, v[name]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out = &value{array: make([]*value, len(v))}
		for i, element := range v {
			if out.array[i], err = compile(fmt.Sprintf("%s[%d]", field, i), element); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		return compileText(field, v)
	default:
		literal, err := json.Marshal(v)
		return &value{literal: literal}, err
	}
}

// compileText reads a string.
func compileText(field, v string) (*value, error) {
	text, err := parseTemplate(v)
	switch {
	case err != nil:
		return nil, &core.ConfigError{Field: field, Value: v, Reason: err.Error()}
	case v == "":
		return &value{literal: json.RawMessage(`""`)}, nil
	default:
		return &value{text: text}, nil
	}
}

// json is the value for a message. A string that is one pointer alone becomes what that finds, of any type.
func (v *value) json(field string, m *message) (json.RawMessage, error) {
	var err error
	switch {
	case v.literal != nil:
		return v.literal, nil
	case v.object != nil:
		all := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(v.object)) {
			if all[name], err = v.object[name].json(field+"."+name, m); err != nil {
				return nil, err
			}
		}
		return json.Marshal(all)
	case v.array != nil:
		all := make([]json.RawMessage, len(v.array))
		for i, element := range v.array {
			if all[i], err = element.json(fmt.Sprintf("%s[%d]", field, i), m); err != nil {
				return nil, err
			}
		}
		return json.Marshal(all)
	default:
		data, err := v.text.json(m)
		if err != nil {
			err = &core.InvalidError{Field: field, Reason: err.Error()}
		}
		return data, err
	}
}

// json is a text as JSON: what it finds, if it is one pointer alone, else a string.
func (t template) json(m *message) (json.RawMessage, error) {
	if len(t) == 1 && t[0].from != nil && t[0].from.header == "" {
		return t[0].from.raw(m)
	}
	text, err := t.render(m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(text)
}
