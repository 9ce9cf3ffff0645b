// Package check refuses invalid input: names, texts, JSON and settings. Each refusal names the field that is wrong.
package check

// Names and texts in input, and the errors of those that are refused.

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// TextReason says what is wrong with a text; nothing if it is empty. It never shows the text.
func TextReason(text string, most int) string {
	inv, ok := errors.AsType[*store.InvalidError](ValidText("value", text, most))
	if !ok {
		return ""
	}
	return inv.Reason
}

// Bounds of input. Longer ids are refused before any store call.
const (
	MaxIDLen   = 256 // bytes of an agent, task or group id
	MaxKindLen = 100
	MaxTextLen = 512 // bytes of a trace id, a session id and the like
)

// Agent returns an *[store.InvalidError] if a text cannot be the id of an agent: 1 to 256 bytes of UTF-8 without control characters.
func Agent(id string) error { return ValidID("agent_id", id) }

// ValidID checks an id: valid UTF-8 of 1 to MaxIDLen bytes without control characters.
func ValidID(field, id string) error {
	if id == "" {
		return Invalid(field, "is required")
	}
	return ValidText(field, id, MaxIDLen)
}

// ValidText refuses a text that is too long, is not UTF-8, or has control characters: such a name would be
// unreadable in logs, and two of them could look alike.
func ValidText(field, s string, most int) error {
	// guard: input
	if len(s) > most {
		return Invalid(field, "is %d bytes long: the limit is %d", len(s), most)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return Invalid(field, "is not valid UTF-8 at byte %d", i)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return Invalid(field, "has the control character %U at byte %d", r, i)
		}
		i += n
	}
	return nil
}

// ValidKind checks the name of a handler: letters, digits and "_.:/-".
func ValidKind(field, kind string) error {
	if kind == "" {
		return Invalid(field, "is required")
	}
	if len(kind) > MaxKindLen {
		return Invalid(field, "is %d bytes long: the limit is %d", len(kind), MaxKindLen)
	}
	for i := range len(kind) {
		c := kind[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '.', c == ':', c == '/', c == '-':
		default:
			return Invalid(field, "%q has the character %q: letters, digits and _.:/- are allowed", kind, c)
		}
	}
	return nil
}

// NewID is an id for a task that was submitted without one: of version 7 (RFC 9562), so that later ids of a process sort after earlier ones.
func NewID() string { return uuid.Must(uuid.NewV7()).String() } // it fails only if there is no randomness, which Go makes fatal

// Clip bounds an error's text to what is stored and logged, at a rune's edge.
func Clip(s string) string {
	if len(s) <= MaxErrorLen {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:MaxErrorLen-3], "") + "..."
}
