package contract

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core"
)

// Truncated is the result of a run whose answer is larger than a result may be: the beginning of it, as text.
// A reader recognises it by its first member.
type Truncated struct {
	Truncated bool   `json:"truncated"` // always true
	Text      string `json:"text"`
}

// Keep keeps what a program or a server answered as the task's result: JSON unchanged, any other text as a string, and of
// what is too large the beginning, marked as such. The work is done, so an answer is no reason to do it again. answer has
// at most one byte more than t.MaxResult.
func Keep(t *core.RunInfo, answer []byte) error {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return nil
	}
	if err := useOf(t, answer); err != nil {
		return err
	}
	// Quoting and escaping can make a text longer than it was.
	if len(answer) <= t.MaxResult() {
		if IsJSON(answer) {
			return t.SetResult(json.RawMessage(answer))
		}
		if t.SetResult(Text(answer)) == nil {
			return nil // else it grew by what JSON escapes
		}
	}
	// Half of the limit, and less if escapes make it longer.
	var err error
	for most := t.MaxResult() / 2; most > 0; most /= 2 {
		if err = t.SetResult(Truncated{Truncated: true, Text: Text(answer[:min(most, len(answer))])}); err == nil {
			return nil
		}
	}
	return err
}

// useOf adds what an answer says that the run has used: its member duly_usage, if it is a JSON object that has one.
func useOf(t *core.RunInfo, answer []byte) error {
	if answer[0] != '{' || !bytes.Contains(answer, []byte(`"duly_usage"`)) {
		return nil
	}
	var said struct {
		Used json.RawMessage `json:"duly_usage"`
	}
	// What is no JSON is a text, and its own affair.
	if json.Valid(answer) && json.Unmarshal(answer, &said) == nil && said.Used != nil {
		return Use(t, said.Used)
	}
	return nil
}

// IsJSON reports whether data is JSON for every reader: json.Valid lets text pass that is not UTF-8.
// encoding/json replaces bad bytes when it encodes, so that a result would not be what was said.
func IsJSON(data []byte) bool { return utf8.Valid(data) && json.Valid(data) }

// Text is data as text that can be stored.
func Text(data []byte) string { return strings.ToValidUTF8(string(data), "\uFFFD") }
