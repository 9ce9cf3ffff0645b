package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// promise is a row of the table of docs/guarantees.md.
type promise struct {
	number string
	text   string
	tests  []string // names as they are written there: TestName, or TestName/name of a part of it
}

// Regular expressions are enough: the document is ours, and a test fails if a row is not found.
var (
	row      = regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \| (.+) \|$`)
	testName = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*(?:/[^`]+)?)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
)

// readPromises finds the rows of the table in a document. A row without a test, and a document without a row, are mistakes:
// whoever wrote them thinks that something is shown.
func readPromises(document string) ([]promise, error) {
	var all []promise
	for _, m := range row.FindAllStringSubmatch(document, -1) {
		p := promise{number: m[1], text: m[2]}
		for _, name := range testName.FindAllStringSubmatch(m[3], -1) {
			p.tests = append(p.tests, name[1])
		}
		if len(p.tests) == 0 {
			return nil, fmt.Errorf("promise %s names no test: write at least one, as `TestName`, into its last column", p.number)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no promise was found: the table must have rows such as %q", "| 1 | what is promised | `TestName` |")
	}
	return all, nil
}

// locate finds the packages, as folders below root, that have a test function of each name. The same contract is tested in
// several. Modules of their own, which have their own tests, are left out.
func locate(root fs.FS) (map[string][]string, error) {
	found := map[string][]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return enter(root, name)
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllSubmatch(source, -1) {
			test, folder := string(m[1]), path.Dir(name)
			if !slices.Contains(found[test], folder) {
				found[test] = append(found[test], folder)
			}
		}
		return nil
	})
	return found, err
}

// enter says whether a folder is looked into: nil, or fs.SkipDir.
// Hidden folders, test data and modules of their own have no tests of this module.
func enter(root fs.FS, name string) error {
	if name == "." {
		return nil
	}
	if base := path.Base(name); strings.HasPrefix(base, ".") || base == "testdata" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// byPackage says which tests each package is to run, sorted.
// A test that several packages have runs in each of them.
func byPackage(promises []promise, at map[string][]string) map[string][]string {
	tests := map[string][]string{}
	for i := range promises {
		for _, test := range promises[i].tests {
			function, _, _ := strings.Cut(test, "/")
			for _, folder := range at[function] {
				tests[folder] = append(tests[folder], test)
			}
		}
	}
	for folder := range tests {
		slices.Sort(tests[folder])
		tests[folder] = slices.Compact(tests[folder])
	}
	return tests
}

// pattern is what go test -run takes to run these tests and no others.
// Each element is quoted, as names of parts contain spaces and dots.
func pattern(tests []string) string {
	exact := make([]string, len(tests))
	for i, test := range tests {
		elements := strings.Split(test, "/")
		for k := range elements {
			elements[k] = "^" + regexp.QuoteMeta(elements[k]) + "$"
		}
		exact[i] = strings.Join(elements, "/")
	}
	return strings.Join(exact, "|")
}
