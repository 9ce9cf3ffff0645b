package table

// Texts as people and shells take them.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// ShellWord is a text as a shell takes it for one word.
// It is used wherever duly prints a command to be copied, so that an id
// from a task can do no harm in a shell.
func ShellWord(text string) string {
	simple := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@+,%", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !simple(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Plain escapes what a terminal could take for more than a text.
// Invalid UTF-8 becomes the replacement character; what cannot be printed
// becomes an escape as Go writes it.
func Plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// JSON escapes in a JSON text what a terminal could take for more than a text. It means the same afterwards: such characters, but for
// white space, are in strings only, and encoders escape those of ASCII by themselves, all but one.
func JSON(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	odd := func(r rune) bool { return r >= unicode.MaxASCII && !unicode.IsPrint(r) }
	if !strings.ContainsFunc(text, odd) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !odd(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// First is the first line of a text, for a cell of a table: the width of a terminal cuts it, and nothing else does.
func First(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += "..."
	}
	return line
}

// Count is a number of things: "1 task", "2 tasks".
// The plural is formed by an s, which fits every thing that duly counts.
func Count[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + one + "s"
}

// Value is a JSON value on one line, in readable form: without the blanks between its parts, and with < > and & unescaped, which some
// encoders escape for pages of HTML. Text that is not JSON is returned unchanged.
func Value(data []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil {
		return string(data)
	}
	text := compact.String()
	var b strings.Builder
	for i := 0; i < len(text); {
		// An escape is read whole, so that the u of an escaped backslash begins none.
		n := 1
		if text[i] == '\\' && i+1 < len(text) {
			n = 2
			if text[i+1] == 'u' {
				n = min(6, len(text)-i)
			}
		}
		switch part := text[i : i+n]; part {
		case `\u003c`:
			b.WriteByte('<')
		case `\u003e`:
			b.WriteByte('>')
		case `\u0026`:
			b.WriteByte('&')
		default:
			b.WriteString(part)
		}
		i += n
	}
	return b.String()
}
