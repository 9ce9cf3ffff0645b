package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// What became of a test.
// They are printed as they are, in the column "result".
const (
	resultOK       = "ok"
	resultFailed   = "FAIL"
	resultSkipped  = "skipped"
	resultNotFound = "not found"
)

// outcome is what is known of one test in one package.
type outcome struct {
	result string
	figure string // the last that it has logged
	output strings.Builder
}

// outcomes are those of one package, by the names that go test has for tests.
type outcomes struct {
	tests  map[string]*outcome
	failed bool            // the package as a whole, for instance as it does not compile
	output strings.Builder // of no test
}

// event is a line of go test -json.
// Only the fields that matter here are read.
type event struct {
	Action, Test, Output string
}

// figureMark begins what a test logs to be shown beside its result.
const figureMark = "figure: "

// readOutcomes reads what go test -json prints. A line that is none of its own counts as output of the package.
func readOutcomes(r io.Reader) (*outcomes, error) {
	all := &outcomes{tests: map[string]*outcome{}}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)}
			}
			all.add(&e)
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// add notes one event: of a test, or of the package as a whole.
func (all *outcomes) add(e *event) {
	if e.Test == "" {
		all.failed = all.failed || e.Action == "fail"
		all.output.WriteString(e.Output)
		return
	}
	t := all.tests[e.Test]
	if t == nil {
		t = &outcome{}
		all.tests[e.Test] = t
	}
	switch e.Action {
	case "pass":
		t.result = resultOK
	case "fail":
		t.result = resultFailed
	case "skip":
		t.result = resultSkipped
	case "output":
		t.output.WriteString(e.Output)
		if _, figure, ok := strings.Cut(e.Output, figureMark); ok {
			all.note(e.Test, strings.TrimSpace(figure))
		}
	}
}

// note keeps a figure for a test and for those that it is a part of.
// A part's figure is shown for the whole test too, which is what the document names.
func (all *outcomes) note(test, figure string) {
	for name := test; ; {
		if t := all.tests[name]; t != nil {
			t.figure = figure
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return
		}
		name = name[:cut]
	}
}

// of is what became of a test as the document names it. A test that began and has no end, or did not begin as its package
// failed, has failed.
// go test writes spaces in names as underscores.
func (all *outcomes) of(test string) (result, figure string) {
	t := all.tests[strings.ReplaceAll(test, " ", "_")]
	switch {
	case t != nil && t.result != "":
		return t.result, t.figure
	case t != nil || all.failed:
		return resultFailed, ""
	default:
		return resultNotFound, ""
	}
}
