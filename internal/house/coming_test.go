package house_test

// docs/coming-from: the tables that have another system's words beside duly's. Those of duly exist.

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each row of the tables says what duly has, by names that exist, or that it has none.
func TestMappingsNameWhatExists(t *testing.T) {
	t.Parallel()
	k := look(t)
	pages, err := filepath.Glob("docs/coming-from/*.md")
	require.NoError(t, err)
	index := read(t, "docs/coming-from/README.md")
	for _, page := range pages {
		if filepath.Base(page) == "README.md" {
			continue
		}
		text, rows := read(t, page), 0
		assert.Contains(t, index, "("+filepath.Base(page)+")", "the index leads to each page")
		for _, heading := range []string{"## What is different", "## What duly does not do"} {
			assert.Contains(t, text, heading, page)
		}
		for _, row := range mappings(text) {
			rows++
			for _, problem := range k.mapped(page, row) {
				t.Errorf("%s: %q: %s", page, row, problem)
			}
		}
		assert.GreaterOrEqual(t, rows, 10, page)
	}
	require.GreaterOrEqual(t, len(pages), 10)
	for wrong, right := range map[string]string{
		"`duly submitt`": "`duly submit`", "`--agents-of`": "`--agent`", "`overlaps: skip`": "`overlap: skip`", "`core.Enqueue`": "`core.Handle`",
		"`POST /v1/task`": "`POST /v1/tasks`", "`a word`": "`zone:`", "nothing that is named": "none", "`daemon.Start`": "`daemon.New`",
	} {
		assert.NotEmpty(t, k.mapped("docs/coming-from/x.md", wrong), wrong)
		assert.Empty(t, k.mapped("docs/coming-from/x.md", right), right)
	}
}

// mappings are the cells of duly in the tables of a page: the second ones.
func mappings(text string) (out []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if cells := strings.Split(strings.Trim(line, "| "), " | "); strings.HasPrefix(line, "| ") && len(cells) == 2 && cells[1] != "duly" {
			out = append(out, cells[1])
		}
	}
	return out
}

// theirs takes the first cells out of the tables of a page about another system: its words are not duly's.
func theirs(document, text string) string {
	if !strings.Contains(document, "coming-from/") {
		return text
	}
	text = regexp.MustCompile(`(?m)^\| [^\n]*? \| `).ReplaceAllString(text, "| | ")
	return text
}

// mapped finds what is wrong with the cell of duly in a row: a name that does not exist, or of which nobody knows what it is.
func (k *known) mapped(page, cell string) (problems []string) {
	if strings.HasPrefix(cell, "none") {
		return k.check(page, cell)
	}
	spans := regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(cell, -1)
	recognised := 0
	for _, span := range spans {
		if k.recognises(span[1]) {
			recognised++
			continue
		}
		if !strings.Contains(cell, "["+span[0]+"]") && !k.words[span[1]] {
			problems = append(problems, "nothing of duly's is called "+span[0])
		}
	}
	if recognised == 0 {
		problems = append(problems, "it names nothing of duly's, and does not say none")
	}
	return append(problems, k.check(page, cell)...)
}

// recognises says whether a span of code is a command, a flag, a key of the file, a call of the API or something of Go, which exists.
func (k *known) recognises(span string) bool {
	switch {
	case strings.HasPrefix(span, "duly "):
		return len(k.checkCommands(span)) == 0
	case strings.HasPrefix(span, "--"):
		return k.flags[""][span]
	case regexp.MustCompile(`^(GET|POST|PUT|DELETE) /`).MatchString(span):
		return len(k.checkRoutes("`"+span)) == 0
	case regexp.MustCompile(`^[a-z_]+:( |$)`).MatchString(span):
		return len(k.checkKeys(span)) == 0
	default:
		m := regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)$`).FindStringSubmatch(span)
		return m != nil && k.exports[m[1]] != nil && len(k.checkPackages(span)) == 0
	}
}
