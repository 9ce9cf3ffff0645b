package house_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Words that leave out who does something, or what: name the process, the caller, the operator or the scheduler, and use the field's verb.
var vague = map[string]*regexp.Regexp{
	"nobody, somebody, anybody":    regexp.MustCompile(`(?i)\b(nobody|somebody|anybody)\b`),
	"whoever, whatever, whichever": regexp.MustCompile(`(?i)\b(whoever|whatever|whichever)\b`),
	"told":                         regexp.MustCompile(`(?i)\btold\b`),
	"stands, anew":                 regexp.MustCompile(`(?i)\b(stands|anew)\b`),
}

// How often they are in comments of Go files, tests left out, and in the documents. The figures may only fall: who makes one smaller writes the smaller
// one here.
var (
	inComments  = map[string]int{"nobody, somebody, anybody": 29, "whoever, whatever, whichever": 35, "told": 29, "stands, anew": 7}
	inDocuments = map[string]int{"nobody, somebody, anybody": 107, "whoever, whatever, whichever": 89, "told": 93, "stands, anew": 12}
)

func TestVagueWordsBecomeFewer(t *testing.T) {
	t.Parallel()
	comments, documents := map[string]int{}, map[string]int{}
	count := func(into map[string]int, text string) {
		for name, words := range vague {
			into[name] += len(words.FindAllString(text, -1))
		}
	}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, c := range file.Comments {
				count(comments, c.Text())
			}
		case strings.HasSuffix(path, ".md") && path != "CHANGELOG.md" && path != "CONTRIBUTING.md": // they say how it was, and how not to write
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			count(documents, string(text))
		}
		return nil
	}))
	for _, name := range slices.Sorted(maps.Keys(vague)) {
		assert.Equal(t, inComments[name], comments[name], "%s in comments: write the figure here if it has fallen, and say who did it if it has grown", name)
		assert.Equal(t, inDocuments[name], documents[name], "%s in documents: write the figure here if it has fallen, and say who did it if it has grown", name)
	}
}
