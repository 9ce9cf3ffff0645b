package table_test

// What a terminal gets, of any text.

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

func TestValuesAreShownAsTheyWereMeant(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{ "a" : "<b> & \u003cc\u003e" }`, `"\\u003c"`, `["\\\u003c", 1]`} {
		encoded, err := json.Marshal(json.RawMessage(data)) // which escapes for HTML
		require.NoError(t, err)
		assert.Equal(t, table.Value([]byte(data)), table.Value(encoded), data)
	}
	assert.Equal(t, `{"a":"<b> & \\u003c \n"}`, table.Value([]byte(`{ "a" : "\u003cb> \u0026 \\u003c \n" }`)))
	assert.Equal(t, "no json", table.Value([]byte("no json")))
}

// Of any text only what can be printed reaches a terminal, and JSON means the same as before.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"plain", "\x1b[2J", "\xff", "\u009b31m", "\u202e", "\x7f\u2028\U000e0041", "a\u00a0\"\\\n\t", "\ufffd", "é"} {
		f.Add(text)
	}
	printable := func(t *testing.T, text string) {
		t.Helper()
		assert.True(t, utf8.ValidString(text), "%q", text)
		assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		printable(t, table.Plain(text))
		printable(t, table.Plain(table.ShellWord(text)))
		printable(t, table.Plain(table.First(text)))
		encoded, err := json.Marshal(map[string]string{text: text})
		require.NoError(t, err)
		plain := table.JSON(string(encoded))
		printable(t, plain)
		var before, after map[string]string
		require.NoError(t, json.Unmarshal(encoded, &before))
		require.NoError(t, json.Unmarshal([]byte(plain), &after))
		assert.Equal(t, before, after)
	})
}

// Texts are broken between words, at the width that a terminal shows; what is longer than a line stays whole.
func TestTextsWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, indent string
		width        int
		want         string
	}{
		{"one two three", "", 0, "one two three"},
		{"one two three", "", 13, "one two three"},
		{"one two three", "", 12, "one two\nthree"},
		{"one two three", "", 3, "one\ntwo\nthree"},
		{"a https://duly.example/a/long/one b", "", 8, "a\nhttps://duly.example/a/long/one\nb"},
		{"  name   what it does here", "         ", 20, "  name   what it\n         does here"},
		{"東京都 要約会 作仕事", "", 13, "東京都 要約会\n作仕事"},
		{"", "", 5, ""},
	} {
		assert.Equal(t, c.want, table.Wrap(c.text, c.width, c.indent), c.text)
	}
}
