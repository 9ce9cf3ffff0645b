// Package strictjson reads JSON objects as strictly as core reads tasks, for the bodies and events of adapters: an unknown
// member is refused and not ignored, as a misspelt limit would be no limit.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// Object is a JSON object whose values are read when they are asked for. Unlike encoding/json it tells apart names that
// differ in case only.
type Object map[string]json.RawMessage

// Parse reads one JSON object, by the same reader as core's tasks. The error is a *[core.InvalidError] about what, the whole, or
// about a member that is given twice.
func Parse(what string, data []byte) (Object, error) {
	_, values, err := core.JSONObject(what, data)
	return values, err
}

// Has reports whether a member exists; one that is null counts as omitted.
func (o Object) Has(name string) bool {
	value, ok := o[name]
	return ok && !bytes.Equal(value, []byte("null"))
}

// Text is a member that is a string; empty if it is anything else.
func (o Object) Text(name string) string { return Value[string](o, name) }

// Object is a member that is an object; nil if it is anything else.
func (o Object) Object(name string) Object { return Value[Object](o, name) }

// Value is a member of a type, or its zero value if it is of another.
// It is for members whose absence and wrong type mean the same, as when an event is sniffed.
func Value[V any](o Object, name string) V {
	var v, zero V
	if raw, ok := o[name]; !ok || json.Unmarshal(raw, &v) != nil {
		return zero
	}
	return v
}

// Field is a member that an object may have.
// It is read once, by Read.
type Field struct {
	Name string
	Into any    // what encoding/json reads it into; unchanged if the member is null or missing
	Must string // what to say if that fails, as in "must be a string"
	// Zero says that an empty string or the number zero means what it says. Otherwise it is refused: who sends it means
	// something, and it would be taken for what was left out.
	Zero bool
}

// Read reads the members of an object into fields. One that is none of them is refused: it is not a field of what. The error
// is a *[core.InvalidError] that names the member.
func (o Object) Read(what string, fields ...Field) error {
	known := make(map[string]bool, len(fields))
	for i := range fields {
		known[fields[i].Name] = true
		if err := o.read(&fields[i]); err != nil {
			return err
		}
	}
	// Map order is random, so the smallest name is reported: the same request has the same error.
	var others []string
	for name := range o {
		if !known[name] {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return &core.InvalidError{Field: clip(slices.Min(others)), Reason: "is not a field of " + what}
}

// read reads one member. Null and missing leave the field unchanged, so
// that a default can be set before.
func (o Object) read(f *Field) error {
	if !o.Has(f.Name) {
		return nil
	}
	if json.Unmarshal(o[f.Name], f.Into) != nil {
		return &core.InvalidError{Field: f.Name, Reason: f.Must}
	}
	// Bool has no zero that could be a mistake: false is said.
	v := reflect.ValueOf(f.Into).Elem()
	switch {
	case f.Zero || v.Kind() == reflect.Bool || !v.IsZero():
		return nil
	case v.Kind() == reflect.String:
		return &core.InvalidError{Field: f.Name, Reason: "must not be empty: leave it out if it has no value"}
	default:
		return &core.InvalidError{Field: f.Name, Reason: "must not be " + clip(string(o[f.Name])) + ": leave it out for the default"}
	}
}

// Fields are those of a struct that v points to, embedded ones included, as encoding/json names them. What to say about a wrong value is in the tag
// must, or follows from the type; the tag zero allows a zero.
func Fields(v any) []Field {
	var out []Field
	for f, value := range reflect.ValueOf(v).Elem().Fields() {
		into := value.Addr().Interface()
		if f.Anonymous {
			out = append(out, Fields(into)...)
			continue
		}
		if d, ok := into.(*time.Duration); ok {
			into = (*Duration)(d)
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, Field{Name: name, Into: into, Must: cmp.Or(f.Tag.Get("must"), must(into)), Zero: f.Tag.Get("zero") != ""})
	}
	return out
}

// must is what to say about a value that is not of a type.
func must(into any) string {
	switch into.(type) {
	case *time.Time:
		return `must be a time such as "2026-01-02T15:04:05Z"`
	case *Duration:
		return `must be a duration such as "90s" or "1h30m"`
	case *bool:
		return "must be true or false"
	case *int:
		return "must be a whole number from 1 on"
	default:
		return "must be a string"
	}
}

// Duration is a time.Duration that is written as [inspect.ParseDuration] reads them, such as "90s" or "1d".
type Duration time.Duration

// UnmarshalText reads one.
func (d *Duration) UnmarshalText(text []byte) error {
	read, err := inspect.ParseDuration(string(text))
	*d = Duration(read)
	return err
}

// MarshalText writes one.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// mostName is how much of an unknown name an error shows, in bytes.
const mostName = 40

// clip bounds a name in an error.
func clip(name string) string { return strings.ToValidUTF8(name[:min(len(name), mostName)], "") }
