package dulyfile

// The schema of the file, for editors and for docs/reference/file.md.

import _ "embed"

// schema.json is written by hand, beside the readers. Tests compare the two key by key, with bounds, enumerations, defaults and examples, so that
// neither knows what the other does not. Keywords that begin with x- are for people: x-unit is what a number counts, and x-default what holds
// without the key where that is no value.
//
//go:embed schema.json
var schema string

// Schema is a JSON Schema (draft 2020-12) of the file. What it refuses, Parse refuses; Parse also checks what needs more than one key, the
// environment or core.
func Schema() string { return schema }
