// Package proof tries what duly promises: its folders are the ways to try. `make test` runs a slice of each, `make proof` all of it,
// and writes the figures into docs/proof.md.
package proof

import (
	"fmt"
	"os"
	"strings"
)

// Env makes tests run whole when it is "whole", as `make proof` does.
const Env = "DULY_PROOF"

// Whole reports whether everything is to be run.
func Whole() bool { return os.Getenv(Env) == "whole" }

// Size is how much a test is to do: so much as a slice, so much as a whole.
func Size(slice, whole int) int {
	if Whole() {
		return whole
	}
	return slice
}

// Logger is a test.
type Logger interface {
	Helper()
	Logf(format string, args ...any)
}

// Figure logs what a test has measured, in a line that `make proof` finds.
func Figure(tb Logger, format string, args ...any) {
	tb.Helper()
	tb.Logf("figure: %s", fmt.Sprintf(format, args...))
}

// Write puts a text into a document, between a line that begins its part and one that ends it.
func Write(file, begins, ends, text string) error {
	data, err := os.ReadFile(file) //nolint:gosec // of this module
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(data), begins+"\n")
	_, after, ok2 := strings.Cut(rest, ends+"\n")
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q", file, begins, ends)
	}
	return os.WriteFile(file, []byte(before+begins+"\n"+text+ends+"\n"+after), 0o644) //nolint:gosec // a document, for all to read
}
