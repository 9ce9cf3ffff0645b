package house_test

// The README is read in three minutes, a guide in four: few words, in short sentences.

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README has at most 700 words, its code left out, and no sentence of more than 25.
func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	all, long := wordsAndLongSentences(read(t, "README.md"))
	assert.LessOrEqual(t, all, 700, "move what is more to docs")
	assert.Empty(t, long)

	all, long = wordsAndLongSentences("# A b\n\nOne [two three](four.md) 3.5 -- five.\nSix" + strings.Repeat(" x", 25) + ". y\n- item\n\n```\nno word\n```\n\n| a | b |\n|---|---|\n")
	assert.Equal(t, 2+5+26+1+1+2, all)
	assert.Len(t, long, 1)
}

// A guide of the website has at most 900 words, its code left out: details belong to the pages of concepts and of reference.
func TestGuidesAreShort(t *testing.T) {
	t.Parallel()
	list := regexp.MustCompile(`(?s)\{"Guides", \[\]string\{(.*?)\}`).FindStringSubmatch(read(t, "tools/site/build.go"))
	require.NotNil(t, list)
	guides := regexp.MustCompile(`docs/\w+\.md`).FindAllString(list[1], -1)
	require.Len(t, guides, 12)
	for _, guide := range guides {
		all, _ := wordsAndLongSentences(read(t, guide))
		assert.LessOrEqual(t, all, 900, "%s: move what is more", guide)
	}
}

// wordsAndLongSentences counts the words of a page as a reader sees them, and has its sentences of more than 25. A paragraph, an item of a list and a
// cell of a table are sentences of their own.
func wordsAndLongSentences(text string) (all int, long []string) {
	text = fence.ReplaceAllString(text, "")
	text = regexp.MustCompile(`<[^>]*>|!?\[!\[[^\]]*\]\([^)]*\)\]\([^)]*\)`).ReplaceAllString(text, "\n\n")
	text = linked.ReplaceAllString(text, "$1")
	for _, part := range regexp.MustCompile(`\n\n|\n[-#] ?|\|`).Split(text, -1) {
		for _, sentence := range regexp.MustCompile(`[.!?]\s`).Split(part, -1) {
			words := len(regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`).FindAllString(sentence, -1))
			if all += words; words > 25 {
				long = append(long, sentence)
			}
		}
	}
	return all, long
}
