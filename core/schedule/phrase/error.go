package phrase

// The errors of Parse: a question, a word that is not understood, and what cannot be.

import (
	"fmt"
	"strings"
)

// AmbiguousError says that a phrase has several meanings. The caller shows the question, and parses the answer that the user chooses.
type AmbiguousError struct {
	Question string
	Answers  []string // phrases with one meaning each, by the same time and zone
}

// Error is the question and its answers.
func (e *AmbiguousError) Error() string {
	quoted := make([]string, len(e.Answers))
	for i, answer := range e.Answers {
		quoted[i] = fmt.Sprintf("%q", answer)
	}
	return e.Question + " Say " + list(quoted, "or")
}

// understood is the help for a phrase that is not understood.
const understood = `understood are phrases such as "every 5 minutes", "every weekday at 9am", "every monday and thursday at 18:30", "on the 1st of each ` +
	`month at noon", "every 15 minutes between 9am and 5pm on weekdays", "tomorrow at 8am", "in 2 hours", "2026-12-24 18:00" and "cron 0 9 * * 1-5", ` +
	`each also with a zone, as in "in Europe/Berlin"`

// UnknownError names the word of a phrase that has no meaning, or none in its place.
type UnknownError struct {
	Word string // as it was written; empty if the phrase ends too early, or is empty
}

// Error names the word, and says what is understood.
func (e *UnknownError) Error() string {
	if e.Word == "" {
		return "the phrase is not complete; " + understood
	}
	return fmt.Sprintf("%q is not understood here; %s", e.Word, understood)
}

// RefusedError says why a phrase that is understood cannot be a schedule.
type RefusedError struct {
	Reason string
}

// Error is the reason.
func (e *RefusedError) Error() string { return e.Reason }

func refused(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// list joins words as a sentence does: "a, b and c".
func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
