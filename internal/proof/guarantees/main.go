// Command guarantees runs the tests that docs/guarantees.md names, and prints for each promise how they went and the
// figures that they have logged. It ends with code 1 if one fails or does not exist.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	fine, err := show(ctx, ".", goTest, os.Stdout, os.Stderr)
	stop()
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(os.Stderr, "guarantees:", err)
		os.Exit(2)
	case !fine:
		os.Exit(1)
	}
}

// runner runs the tests of a package that match a pattern, and returns what go test -json prints.
// Tests of this program have one that runs nothing.
type runner func(ctx context.Context, root, folder, pattern string) (io.Reader, error)

// goTest is the runner that does. That tests fail is no error of its own: what it prints says so.
func goTest(ctx context.Context, root, folder, pattern string) (io.Reader, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-timeout", "10m", "-run", pattern, "./"+folder) //nolint:gosec // names of tests and folders of this module
	cmd.Dir = root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that tests stop the servers that they started
	err := cmd.Run()
	if _, failed := err.(*exec.ExitError); failed && ctx.Err() == nil { //nolint:errorlint // as exec returns it
		err = nil
	}
	return &out, err
}

// show runs the tests of the promises of the module at root, a package at a time, and prints a table to out and the output of
// what has failed to problems. It reports whether all promises are shown.
// A package is run once, however many promises its tests show.
func show(ctx context.Context, root string, run runner, out, problems io.Writer) (bool, error) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md")) //nolint:gosec // of the module that the user is in
	if err != nil {
		return false, err
	}
	promises, err := readPromises(string(document))
	if err != nil {
		return false, err
	}
	at, err := locate(os.DirFS(root))
	if err != nil {
		return false, err
	}
	tests := byPackage(promises, at)
	results := map[string]*outcomes{}
	for _, folder := range slices.Sorted(maps.Keys(tests)) {
		_, _ = fmt.Fprintf(problems, "%s: %d tests\n", folder, len(tests[folder]))
		lines, err := run(ctx, root, folder, pattern(tests[folder]))
		if err != nil {
			return false, fmt.Errorf("go test ./%s: %w", folder, err)
		}
		if results[folder], err = readOutcomes(lines); err != nil {
			return false, fmt.Errorf("go test ./%s: %w", folder, err)
		}
		printProblems(problems, folder, results[folder])
	}
	return printTable(out, promises, at, results), nil
}

// printProblems prints what failed tests have printed, or the whole package if it is none of them.
// Without the output a failure in CI could not be understood.
func printProblems(w io.Writer, folder string, r *outcomes) {
	told := false
	for _, name := range slices.Sorted(maps.Keys(r.tests)) {
		if t := r.tests[name]; t.result == resultFailed || t.result == "" {
			_, _ = fmt.Fprintf(w, "%s: %s\n%s", folder, name, t.output.String())
			told = true
		}
	}
	if r.failed && !told {
		_, _ = fmt.Fprintf(w, "%s:\n%s", folder, r.output.String())
	}
}

// printTable prints a line for each test of each promise and package, and whether all is well: what is skipped here is, as
// some promises are about one operating system.
func printTable(out io.Writer, promises []promise, at map[string][]string, results map[string]*outcomes) bool {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	bad := 0
	for i := range promises {
		p := &promises[i]
		number, text := p.number, firstWords(p.text)
		for _, l := range linesOf(p, at, results) {
			if l.result == resultFailed || l.result == resultNotFound {
				bad++
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", number, text, l.test, l.folder, l.result, l.figure)
			number, text = "", ""
		}
	}
	_ = w.Flush() // to a terminal or a buffer
	if bad > 0 {
		_, _ = fmt.Fprintf(out, "%d of the tests above failed or were not found\n", bad)
	}
	return bad == 0
}

// line is one of the table: a test in a package that has it.
// Several lines may be about one test: the contract of stores is tested by each store.
type line struct{ test, folder, result, figure string }

// linesOf are the lines of one promise, in the order in which it names its tests.
func linesOf(p *promise, at map[string][]string, results map[string]*outcomes) []line {
	var lines []line
	for _, test := range p.tests {
		function, _, _ := strings.Cut(test, "/")
		if len(at[function]) == 0 {
			lines = append(lines, line{test: test, result: resultNotFound})
		}
		for _, folder := range at[function] {
			result, figure := results[folder].of(test)
			lines = append(lines, line{test, folder, result, figure})
		}
	}
	return lines
}

// shortText is how many characters of a promise a line shows at most.
const shortText = 48

// firstWords are as many words of a text as fit a line.
func firstWords(text string) string {
	short := ""
	for word := range strings.FieldsSeq(text) {
		if len(short)+1+len(word) > shortText {
			return short + " ..."
		}
		short = strings.TrimSpace(short + " " + word)
	}
	return short
}
