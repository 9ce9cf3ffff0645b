package core

// The bounds of names and texts that come from outside.

import (
	"unicode/utf8"

	"github.com/google/uuid"
)

// Bounds of what users hand in. Longer ids are refused before any store call.
const (
	MaxIDLen   = 256 // bytes of an agent, task or group id
	MaxKindLen = 100
	MaxTextLen = 512 // bytes of a trace id, a session id and the like
)

// CheckAgent is an *[InvalidError] if a text cannot be the id of an agent: 1 to 256 bytes of UTF-8 without control characters.
func CheckAgent(id string) error { return validID("agent_id", id) }

// validID checks an id: valid UTF-8 of 1 to MaxIDLen bytes without control characters.
func validID(field, id string) error {
	if id == "" {
		return invalid(field, "is required")
	}
	return validText(field, id, MaxIDLen)
}

// validText refuses what is too long, is not UTF-8, or has control characters: such a name would be
// unreadable in logs, and two of them could look alike.
func validText(field, s string, most int) error {
	if len(s) > most {
		return invalid(field, "is %d bytes long: the limit is %d", len(s), most)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return invalid(field, "is not valid UTF-8 at byte %d", i)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return invalid(field, "has the control character %U at byte %d", r, i)
		}
		i += n
	}
	return nil
}

// validKind checks the name of a handler: letters, digits and "_.:/-".
func validKind(field, kind string) error {
	if kind == "" {
		return invalid(field, "is required")
	}
	if len(kind) > MaxKindLen {
		return invalid(field, "is %d bytes long: the limit is %d", len(kind), MaxKindLen)
	}
	for i := range len(kind) {
		c := kind[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '.', c == ':', c == '/', c == '-':
		default:
			return invalid(field, "%q has the character %q: letters, digits and _.:/- are allowed", kind, c)
		}
	}
	return nil
}

// newID is an id for a task that was submitted without one: of version 7 (RFC 9562), so that later ids of a process sort behind earlier ones.
func newID() string { return uuid.Must(uuid.NewV7()).String() } // it fails only if there is no randomness, which Go makes fatal
