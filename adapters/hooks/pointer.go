package hooks

// Sources: what a template names in a message.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// mostSteps is how deep a pointer may reach.
const mostSteps = 32

// whole is the pointer to all of a body. That of RFC 6901 is empty, and cannot be seen in a pair of braces.
const whole = "/"

// message is a request whose sender is known.
type message struct {
	header http.Header
	body   []byte
}

// source names a header of a message, or a value of its body.
type source struct {
	text    string // as it is written
	header  string
	pointer []string // the steps of a pointer; nil for the whole body, and for a header
}

// parseSource reads a JSON pointer (RFC 6901), or header: and the name of one.
func parseSource(text string) (source, error) {
	s := source{text: text}
	name, isHeader := strings.CutPrefix(text, "header:")
	switch {
	case isHeader && name != "" && strings.Trim(name, tokenBytes) == "":
		s.header = name
		return s, nil
	case isHeader:
		return s, fmt.Errorf("{%s} must name a header, such as {header:X-GitHub-Event}", text)
	case !strings.HasPrefix(text, "/"):
		return s, fmt.Errorf("{%s} must be a JSON pointer such as {/data/id}, or a header such as {header:X-GitHub-Event}; write {{ for a brace", text)
	case text == whole:
		return s, nil
	}
	steps := strings.Split(text[1:], "/")
	if len(steps) > mostSteps {
		return s, fmt.Errorf("{%s} has %d steps: the limit is %d", text, len(steps), mostSteps)
	}
	for _, step := range steps {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(step), "~") {
			return s, fmt.Errorf("{%s} has a ~ that is neither ~0, for ~, nor ~1, for /", text)
		}
		s.pointer = append(s.pointer, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	return s, nil
}

// tokenBytes are those of which the name of a header consists.
const tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// raw is the JSON that a pointer finds, as the sender has written it.
func (s *source) raw(m *message) (json.RawMessage, error) {
	if err := core.CheckJSON("body", m.body); err != nil {
		return nil, fmt.Errorf("{%s} needs a body of JSON, and %w", s.text, err)
	}
	at := json.RawMessage(m.body)
	for _, step := range s.pointer {
		next, err := child(at, step)
		if err != nil {
			return nil, fmt.Errorf("{%s}: %w", s.text, err)
		}
		if next == nil {
			return nil, fmt.Errorf("{%s} finds nothing in the body", s.text)
		}
		at = next
	}
	return at, nil
}

// child is a member or an element of a value; nil if it has none by this name. An object that names it twice is an error: one of the two would
// be lost.
func child(of json.RawMessage, step string) (json.RawMessage, error) {
	switch trimmed := bytes.TrimLeft(of, " \t\r\n"); {
	case bytes.HasPrefix(trimmed, []byte("{")):
		_, members, err := core.JSONObject("body", of)
		return members[step], err
	case bytes.HasPrefix(trimmed, []byte("[")):
		var all []json.RawMessage
		err := json.Unmarshal(of, &all)
		if i := index(step); i < len(all) {
			return all[i], err
		}
		return nil, err
	default:
		return nil, nil
	}
}

// index is the place of an element, as its pointer says it: in digits, without a zero in front. What is none is beyond each array.
func index(step string) int {
	i, err := strconv.Atoi(step)
	if err != nil || i < 0 || strconv.Itoa(i) != step {
		return math.MaxInt
	}
	return i
}

// string is the value as text: a string, a number as it is written, true or false. Anything else has no text.
func (s *source) string(m *message) (string, error) {
	if s.header != "" {
		switch all := m.header.Values(s.header); len(all) {
		case 0:
			return "", fmt.Errorf("{%s} finds no such header", s.text)
		case 1:
			return all[0], nil
		default:
			return "", fmt.Errorf("{%s} finds %d such headers, and must find one", s.text, len(all))
		}
	}
	raw, err := s.raw(m)
	if err != nil {
		return "", err
	}
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case 'n':
		return "", fmt.Errorf("{%s} finds null, and must find a string, a number or a boolean", s.text)
	case '[':
		return "", fmt.Errorf("{%s} finds an array, and must find a string, a number or a boolean", s.text)
	case '{':
		return "", fmt.Errorf("{%s} finds an object, and must find a string, a number or a boolean", s.text)
	default: // as it is written: a number may be larger than any that is counted with
		return string(raw), nil
	}
}
