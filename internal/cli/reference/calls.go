package reference

// The page of the HTTP API, out of openapi.json.

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The parts of an OpenAPI document that the page shows.
type (
	document struct {
		Info       struct{ Description string }
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]*schema }
	}
	operation struct {
		OperationID, Summary, Description string
		Parameters                        []parameter
		RequestBody                       *struct{ Content map[string]content }
		Responses                         map[string]struct {
			Description string
			Content     map[string]content
		}
	}
	parameter struct {
		Name, In, Description string
		Required              bool
		Schema                *schema
	}
	content struct{ Schema *schema }
	schema  struct {
		Ref         string `json:"$ref"`
		Type        any
		Description string
		Enum        []any
		Items       *schema
		Properties  map[string]*schema
		Required    []string
		OneOf       []*schema
		Minimum     *float64
		Maximum     *float64
		Format      string
		Examples    []any
	}
)

// methods is the order in which the calls of a path come.
var methods = []string{"get", "post", "put", "patch", "delete"}

// Calls is the page of an OpenAPI document: each call with its parameters, bodies and answers, then the objects that they name.
func Calls(data []byte) (string, error) {
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return "", fmt.Errorf("read the description of the API: %w", err)
	}
	var b strings.Builder
	b.WriteString("# The HTTP API\n\n" + generated + "\n" + sentence(doc.Info.Description) + "\n\nThe same as OpenAPI 3.1, for tools: `GET /openapi.json`.\n\n## Calls\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range methods {
			if o, ok := doc.Paths[path][method]; ok {
				call(&b, strings.ToUpper(method)+" "+path, &o)
			}
		}
	}
	b.WriteString("\n## Objects\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		object(&b, name, doc.Components.Schemas[name])
	}
	return b.String(), nil
}

// call writes one call.
func call(b *strings.Builder, name string, o *operation) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n", name, sentence(o.Summary))
	if o.Description != "" {
		b.WriteString("\n" + sentence(o.Description) + "\n")
	}
	parameters(b, o.Parameters)
	if o.RequestBody != nil {
		b.WriteString("\nBody: " + bodies(o.RequestBody.Content) + "\n")
	}
	b.WriteString("\n| status | answer | body |\n|---|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if r.Description == "" { // an answer that all calls have
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", status, cell(r.Description), bodies(r.Content))
	}
}

// parameters writes a table of those of a call, if it has any.
func parameters(b *strings.Builder, all []parameter) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\n| parameter | in | type | what it says |\n|---|---|---|---|\n")
	for i := range all {
		p := &all[i]
		text := p.Description
		if text == "" && p.Schema != nil {
			text = p.Schema.Description
		}
		if p.Required && p.In != "path" {
			text = strings.TrimSuffix("required; "+text, "; ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, p.In, p.Schema.kind(), cell(text))
	}
}

// bodies are the types of a body, by media type if that is not JSON.
func bodies(all map[string]content) string {
	var out []string
	for _, media := range slices.Sorted(maps.Keys(all)) {
		text := all[media].Schema.kind()
		if media != "application/json" {
			text += " (`" + media + "`)"
		}
		out = append(out, text)
	}
	return strings.Join(out, " or ")
}

// object writes the fields of an object that calls name.
func object(b *strings.Builder, name string, s *schema) {
	fmt.Fprintf(b, "\n### %s\n", name)
	if s.Description != "" {
		b.WriteString("\n" + sentence(s.Description) + "\n")
	}
	if len(s.Properties) == 0 {
		b.WriteString("\n" + s.kind() + "\n")
		return
	}
	b.WriteString("\n| field | type | what it says |\n|---|---|---|\n")
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[field]
		text := p.Description
		if slices.Contains(s.Required, field) {
			text = strings.TrimSuffix("required; "+text, "; ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", field, p.kind(), cell(text))
	}
}

// kind is the type of a value for people, with a link if it is an object that has a name.
func (s *schema) kind() string {
	switch {
	case s == nil:
		return ""
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case len(s.OneOf) > 0:
		var all []string
		for _, one := range s.OneOf {
			all = append(all, one.kind())
		}
		return strings.Join(all, " or ")
	case len(s.Enum) > 0:
		var all []string
		for _, value := range s.Enum {
			all = append(all, fmt.Sprintf("`%v`", value))
		}
		return strings.Join(all, ", ")
	case s.Items != nil:
		return "array of " + s.Items.kind()
	case s.Format != "":
		return s.Format + s.bounds()
	}
	if several, ok := s.Type.([]any); ok {
		var all []string
		for _, one := range several {
			all = append(all, fmt.Sprint(one))
		}
		return strings.Join(all, ", ")
	}
	if s.Type == nil {
		return "any"
	}
	return fmt.Sprint(s.Type) + s.bounds()
}

// bounds are those of a number.
func (s *schema) bounds() string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(", %s to %s", number(*s.Minimum), number(*s.Maximum))
	case s.Minimum != nil:
		return fmt.Sprintf(", from %s on", number(*s.Minimum))
	case s.Maximum != nil:
		return fmt.Sprintf(", up to %s", number(*s.Maximum))
	default:
		return ""
	}
}

// number is a number without an exponent.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// statusText is a status with its name.
func statusText(status int) string { return fmt.Sprintf("%d %s", status, http.StatusText(status)) }
