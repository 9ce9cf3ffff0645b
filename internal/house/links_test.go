package house_test

// Links of the documents: to files that exist, to headings that they have, and a way from the README to each page.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fence       = regexp.MustCompile("(?s)```.*?```")
	span        = regexp.MustCompile("`[^`\n]*`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linked      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// pages are all documents for people, by their path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"sam/README.md": read(t, "sam/README.md")}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			out[filepath.ToSlash(file)] = read(t, file)
		}
	}
	require.Greater(t, len(out), 80)
	return out
}

// links are the targets of the links and pictures of a page. In code a call of a generic function looks like a link.
func links(text string) (out []string) {
	text = span.ReplaceAllString(fence.ReplaceAllString(text, ""), "code")
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// anchors are the names of the headings of a page, as GitHub makes them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		words := linked.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "$1")
		name := strings.ReplaceAll(punctuation.ReplaceAllString(words, ""), " ", "-")
		for n, first := 1, name; out[name]; n++ {
			name = fmt.Sprintf("%s-%d", first, n)
		}
		out[name] = true
	}
	return out
}

// broken is what is wrong with the links of a page.
func broken(all map[string]string, page string) (problems []string) {
	for _, to := range links(all[page]) {
		if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
			continue
		}
		path, anchor, _ := strings.Cut(to, "#")
		target := page
		if path != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
		}
		if _, err := os.Stat(target); err != nil && path != "" {
			problems = append(problems, to+": there is no such file")
			continue
		}
		if text, ok := all[target]; ok && anchor != "" && !anchors(text)[anchor] {
			problems = append(problems, to+": the page has no such heading")
		}
	}
	return problems
}

// Links between documents lead somewhere: to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for page := range all {
		for _, problem := range broken(all, page) {
			t.Errorf("%s links to %s", page, problem)
		}
	}
	all["docs/x.md"] = "# A `b` (c)\n\n## A b c\n\n[1](nowhere.md) [2](start.md#nowhere) [3](#a-b-c) [4](#a-b-c-1) [5](#a-b-c-2) `s[T](x)`\n"
	assert.Equal(t, []string{"nowhere.md: there is no such file", "start.md#nowhere: the page has no such heading", "#a-b-c-2: the page has no such heading"}, broken(all, "docs/x.md"))
}

// Every page is found by somebody who begins at the README and follows links.
func TestEveryPageIsFound(t *testing.T) {
	t.Parallel()
	all := pages(t)
	found, next := map[string]bool{}, []string{"README.md"}
	for len(next) > 0 {
		page := next[0]
		next = next[1:]
		if _, ok := all[page]; !ok || found[page] {
			continue
		}
		found[page] = true
		for _, to := range links(all[page]) {
			path, _, _ := strings.Cut(to, "#")
			target := filepath.ToSlash(filepath.Join(filepath.Dir(page), path))
			if entries, err := filepath.Glob(target + "/*.md"); err == nil { // a link to a folder shows what is in it
				next = append(next, entries...)
			}
			next = append(next, target)
		}
	}
	for page := range all {
		assert.True(t, found[page], "no link leads to %s", page)
	}
}
