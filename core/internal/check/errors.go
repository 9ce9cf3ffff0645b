package check

// How input and settings are refused.

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// MustBe reads a value of JSON of a type that is named in the error.
func MustBe[V any](data []byte, into *V, what string) error {
	if json.Unmarshal(data, into) != nil {
		return fmt.Errorf("must be %s", what)
	}
	return nil
}

// Invalid is the error of a value that a caller has passed.
func Invalid(field, format string, args ...any) error {
	return &store.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Misconfigured is the error of a setting.
func Misconfigured(field string, value any, format string, args ...any) *store.ConfigError {
	return &store.ConfigError{Field: field, Value: value, Reason: fmt.Sprintf(format, args...)}
}

// OfPart turns the error of a field of a part of a configuration into one of the whole.
func OfPart(part string, e *store.ConfigError) *store.ConfigError {
	return &store.ConfigError{Field: part + "." + e.Field, Value: e.Value, Reason: e.Reason}
}

// OfField is an error of a field, with its name.
func OfField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &store.InvalidError{Field: field, Reason: err.Error()}
}

// Within puts the place of a task before the field that its error names.
func Within(place string, err error) error {
	var inv *store.InvalidError
	if !errors.As(err, &inv) {
		return err
	}
	field := place + "." + inv.Field
	if inv.Field == "task" {
		field = place
	}
	return &store.InvalidError{Field: field, Reason: inv.Reason}
}

// otherwise are names that people give fields of a task, by what these are named.
var otherwise = map[string]string{"agent": "agent_id", "task_id": "id", "type": "kind", "priority": "level"}

// NotOfTask is the error of a field that a task has not.
func NotOfTask(name string) error {
	if field := otherwise[name]; field != "" {
		return Invalid(name, "is not a field of a task: its name is %s", field)
	}
	return Invalid(Clip(name), "is not a field of a task: values of your own go into labels")
}
