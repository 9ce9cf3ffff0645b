package check

// What counts as JSON, from any source.

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// WellFormed is JSON that was stored, or nothing if it is damaged: one bad record must not hide a list of good ones.
func WellFormed(data json.RawMessage) json.RawMessage {
	if !json.Valid(data) {
		return nil
	}
	return bytes.ToValidUTF8(data, []byte("\ufffd"))
}

// JSON returns an *[store.InvalidError] about a field unless data is one JSON value in UTF-8 whose strings are valid text. It is
// stricter than encoding/json, which puts U+FFFD in the place of broken UTF-8 and of half a surrogate pair: two ids that
// differ would become one.
func JSON(field string, data []byte) error {
	if !utf8.Valid(data) {
		return Invalid(field, "is not valid UTF-8")
	}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return Invalid(field, "is not valid JSON: %v", err)
	}
	if half := halfSurrogate(data); half != "" {
		return Invalid(field, "has the escape %s, which is half of a surrogate pair and no character", half)
	}
	return nil
}

// maxToldName is how much of the name of a member an error shows, in bytes: the sender chooses it, and may send any length.
const maxToldName = 40

// JSONObject reads one JSON object, as [JSON] requires it: the names of its members in the order they are written, and their
// values. Every object that comes from outside is read by it, in core and in the adapters. Unlike encoding/json it distinguishes
// names that differ in case only, and refuses a name that is given twice: of two values one would be lost silently. The error is
// an *[store.InvalidError] about field, which names the object, or about the member.
func JSONObject(field string, data []byte) (names []string, values map[string]json.RawMessage, err error) {
	if err := JSON(field, data); err != nil {
		return nil, nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, nil, Invalid(field, "must be a JSON object")
	}
	values = map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		var value json.RawMessage
		if err == nil {
			err = decoder.Decode(&value)
		}
		if err != nil { // it is valid JSON, so this is about the reader
			return nil, nil, Invalid(field, "cannot be read: %v", err)
		}
		name, _ := token.(string)
		if _, twice := values[name]; twice {
			return nil, nil, Invalid(strings.ToValidUTF8(name[:min(len(name), maxToldName)], ""), "is given twice")
		}
		names, values[name] = append(names, name), value
	}
	return names, values, nil
}

// halfSurrogate is the first escape in valid JSON that is half of a surrogate pair without the other; empty if none is.
func halfSurrogate(data []byte) string {
	for {
		at := bytes.IndexByte(data, '\\') // backslashes exist within strings only
		if at < 0 {
			return ""
		}
		data = data[at:]
		first, ok := escaped(data)
		if !ok {
			data = data[2:]
			continue
		}
		if !utf16.IsSurrogate(first) {
			data = data[6:]
			continue
		}
		second, ok := escaped(data[6:])
		if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
			return string(data[:6])
		}
		data = data[12:]
	}
}

// escaped is the UTF-16 code unit of an escape such as \u00e9 that data begins with.
func escaped(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(unit), err == nil
}
