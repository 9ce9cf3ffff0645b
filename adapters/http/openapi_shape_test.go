package http_test

// What the description has to have, so that people can read it and clients can be generated from it.

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	data, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(data)
	require.NoError(t, err)
	return doc
}

// Each call has a name, a tag, words, and examples of its bodies that fit.
func TestEachCallIsDescribedWithExamples(t *testing.T) {
	t.Parallel()
	doc := document(t)
	var tags []string
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	names, used := map[string]bool{}, map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			at := method + " " + path
			assert.False(t, o.OperationID == "" || names[o.OperationID], "%s: operationId %q", at, o.OperationID)
			names[o.OperationID] = true
			assert.NotEmpty(t, o.Summary, at)
			assert.NotEmpty(t, o.Description, at)
			if assert.Len(t, o.Tags, 1, at) {
				assert.Contains(t, tags, o.Tags[0], at)
				used[o.Tags[0]] = true
			}
			for _, p := range o.Parameters {
				assert.NotEmpty(t, p.Value.Description, "%s: parameter %s", at, p.Value.Name)
			}
			if o.RequestBody != nil {
				hasExamples(t, at, o.RequestBody.Value.Content)
			}
			for status, r := range o.Responses.Map() {
				hasExamples(t, at+": "+status, r.Value.Content)
			}
		}
	}
	assert.Len(t, used, len(tags), "each tag is that of a call")
}

// hasExamples demands an example of each body, and that it is one.
func hasExamples(t *testing.T, at string, content openapi3.Content) {
	t.Helper()
	for media, c := range content {
		assert.NotEmpty(t, c.Examples, "%s: %s has no example", at, media)
		for name, e := range c.Examples {
			assert.NoError(t, c.Schema.Value.VisitJSON(e.Value.Value), "%s: example %s of %s", at, name, media)
		}
	}
}

// Each field says what it is, and what has fields, or a choice of words, has a name: a client gets a type of that name.
func TestEachFieldIsDescribedAndEachTypeHasAName(t *testing.T) {
	t.Parallel()
	doc := document(t)
	var plain struct { // kin-openapi drops what is written beside a reference
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	data, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &plain))
	for name, s := range doc.Components.Schemas {
		for field, p := range s.Value.Properties {
			assert.NotEmpty(t, plain.Components.Schemas[name].Properties[field].Description, "%s.%s has no description", name, field)
			isNamed(t, name+"."+field, p)
		}
		for _, part := range slices.Concat(s.Value.OneOf, s.Value.AnyOf, openapi3.SchemaRefs{s.Value.Items, s.Value.AdditionalProperties.Schema}) {
			isNamed(t, name, part)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, o := range item.Operations() {
			if o.RequestBody != nil {
				for _, c := range o.RequestBody.Value.Content {
					isNamed(t, method+" "+path, c.Schema)
				}
			}
			for _, r := range o.Responses.Map() {
				for _, c := range r.Value.Content {
					isNamed(t, method+" "+path, c.Schema)
				}
			}
			for _, p := range o.Parameters {
				isNamed(t, method+" "+path+" "+p.Value.Name, p.Value.Schema)
			}
		}
	}
}

// isNamed demands that a schema is a reference, or nothing that a name would be natural for.
func isNamed(t *testing.T, at string, s *openapi3.SchemaRef) {
	t.Helper()
	if s == nil || s.Ref != "" {
		return
	}
	assert.Empty(t, s.Value.Properties, "%s has fields: give it a name", at)
	assert.Empty(t, s.Value.Enum, "%s has a choice of words: give it a name", at)
	for _, part := range slices.Concat(s.Value.OneOf, s.Value.AnyOf, openapi3.SchemaRefs{s.Value.Items, s.Value.AdditionalProperties.Schema}) {
		isNamed(t, at, part)
	}
}

// words are the constants of a type in a file.
func words(t *testing.T, file, typeName string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +(?:core\.)?`+typeName+` += "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// The choices of codes, events and the fields of an event are those of the code.
func TestCodesAndEventsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	schemas := document(t).Components.Schemas
	for name, want := range map[string][]string{
		"Code":      append(words(t, "../../core/model/errors.go", "Code"), words(t, "../internal/problem/problem.go", "Code")...),
		"EventType": words(t, "../../core/model/event.go", "EventType"),
	} {
		var have []string
		for _, v := range schemas[name].Value.Enum {
			have = append(have, v.(string))
		}
		assert.ElementsMatch(t, want, have, name)
	}
	e := core.Event{Time: time.Unix(1, 0), Due: time.Unix(1, 0), Next: time.Unix(1, 0), Used: core.Usage{"tokens": 1}, Type: model.EventFinish, Labels: map[string]string{"tier": "gold"}}
	for _, f := range reflect.ValueOf(&e).Elem().Fields() {
		switch {
		case f.Kind() == reflect.String && f.String() == "":
			f.SetString("failed")
		case f.CanInt() && f.Int() == 0:
			f.SetInt(1)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		}
	}
	data, err := json.Marshal(e)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	fields["event_id"] = nil // of the stream
	assert.ElementsMatch(t, slices.Collect(maps.Keys(schemas["Event"].Value.Properties)), slices.Collect(maps.Keys(fields)), strings.TrimSpace(string(data)))
}
