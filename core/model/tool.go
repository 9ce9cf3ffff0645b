package model

// Tools: how models see a kind.

import (
	"encoding/json"
	"regexp"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Tool makes a kind one that models call: each call is a task of that kind, whose payload are the arguments.
type Tool struct {
	Name        string          // that models see; the kind's if empty
	Description string          // what it does, for models; required, at most 1 KiB
	Input       json.RawMessage // the JSON Schema of the arguments, an object; any object if nil; at most 16 KiB
}

// Bounds of a tool, in bytes.
const (
	mostToolText  = 1 << 10
	mostToolInput = 16 << 10
	// longestToolName is what all that speak the Model Context Protocol take.
	longestToolName = 64
)

// toolName is what all that speak the Model Context Protocol take as a name.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// Called is the name of the tool of a kind.
func (t *Tool) Called(kind string) string {
	if t.Name != "" {
		return t.Name
	}
	return kind
}

// Check refuses an invalid tool of a kind. The field of its error is one of Tool.
func (t *Tool) Check(kind string) *store.ConfigError {
	if t == nil {
		return nil
	}
	if err := t.validate(); err != nil {
		return check.OfPart("Tool", err)
	}
	if name := t.Called(kind); len(name) > longestToolName || !toolName.MatchString(name) {
		return check.Misconfigured("Tool.Name", name, "must be 1 to 64 letters, digits, _, - and dots, not %q: give the tool of the kind %q such a name", check.Clip(name), kind)
	}
	return nil
}

// validate is Check without the name.
func (t *Tool) validate() *store.ConfigError {
	var schema struct {
		Type string `json:"type"`
	}
	switch {
	case t.Description == "" || len(t.Description) > mostToolText:
		return check.Misconfigured("Description", t.Description, "must say in 1 to %d bytes what the tool does: models choose by it", mostToolText)
	case len(t.Input) > mostToolInput:
		return check.Misconfigured("Input", len(t.Input), "must have at most %d bytes, not %d", mostToolInput, len(t.Input))
	case t.Input != nil && (json.Unmarshal(t.Input, &schema) != nil || schema.Type != "object"):
		return check.Misconfigured("Input", nil, `must be the JSON Schema of an object: {"type": "object", "properties": {}}`)
	}
	return nil
}
