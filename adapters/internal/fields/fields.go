// Package fields reads JSON objects field by field, for the APIs of other runtimes: what they do not know is left over, to be passed on or refused.
package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

// Fields are those of an object that have not been read yet.
type Fields map[string]json.RawMessage

// Body reads the body of a request, which has to be a JSON object.
func Body(r *http.Request) (Fields, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return nil, err
	}
	return Of("body", data)
}

// Of reads an object; name is what an error calls it.
func Of(name string, data []byte) (Fields, error) {
	_, values, err := core.JSONObject(name, data)
	return values, err
}

// longestName is how much of a name that is not known an error shows.
const longestName = 64

// Null reports whether a field is null.
func (f Fields) Null(name string) bool { return string(f[name]) == "null" }

// Take reads a field into a variable and removes it. It reports whether the object has it; null counts as missing. kind is what an error says that the field has to be.
func (f Fields) Take(name, kind string, into any) (bool, error) {
	value, has := f[name]
	delete(f, name)
	if !has || string(value) == "null" {
		return false, nil
	}
	if json.Unmarshal(value, into) != nil {
		return false, &core.InvalidError{Field: name, Reason: "must be " + kind}
	}
	return true, nil
}

// Need is Take for a field that is required.
func (f Fields) Need(name, kind string, into any) error {
	has, err := f.Take(name, kind, into)
	if err == nil && !has {
		err = &core.InvalidError{Field: name, Reason: "is required"}
	}
	return err
}

// Rest refuses what is left over, nulls aside: a filter that is not known would otherwise return too much.
func (f Fields) Rest() error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !f.Null(name) {
			return &core.InvalidError{Field: name[:min(len(name), longestName)], Reason: "is not known: leave it out"}
		}
	}
	return nil
}

// Merge returns the object with the fields of another one over its own; null takes a field away.
func (f Fields) Merge(over Fields) Fields {
	all := maps.Clone(f)
	if all == nil {
		all = Fields{}
	}
	for name, value := range over {
		if all[name] = value; over.Null(name) {
			delete(all, name)
		}
	}
	return all
}

// Only are some fields of the object.
func (f Fields) Only(names ...string) Fields {
	some := Fields{}
	for _, name := range names {
		if value, has := f[name]; has {
			some[name] = value
		}
	}
	return some
}

// JSON is the object. Its fields are JSON already, so that it cannot fail.
func (f Fields) JSON() json.RawMessage {
	data, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("fields: %v", err))
	}
	return data
}
