// Package luapack makes a script of core/redisstore/scripts what Redis runs: without comments and indentation, and with the values of constants
// in the places of their names, as Redis runs the whole of a script at each call, its definitions too.
package luapack

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	// KeyLine is a line in the header of a script, which names one of its keys.
	KeyLine = regexp.MustCompile(`^-- KEYS\[(\d+)\] ([a-z]+)$`)

	// comment is a line with one that is in no text; the code in front of it is its group.
	comment = regexp.MustCompile(`^((?:'(?:\\.|[^'\\])*'|[^'])*?)\s*--.*$`)
	// constant is the definition of one: at the beginning of a line, alone, its name in capitals.
	constant = regexp.MustCompile(`(?m)^local ([A-Z][A-Z_]+) = ('[^'\\]*'|-?\d+)(?: --.*)?\n`)
	// token is a text in quotes, whose names are none, or a name.
	token = regexp.MustCompile(`'(?:\\.|[^'\\])*'|\b[A-Z][A-Z_]+\b`)
	// number is the number of the first character of a text.
	number = regexp.MustCompile(`\bbyte\('([^'\\])[^']*'\)`)
	// joined are two texts that are put together.
	joined = regexp.MustCompile(`'([^'\\]*)' \.\. '([^'\\]*)'`)
)

// Constants are those that a file defines, by name.
func Constants(text string) map[string]string {
	values := map[string]string{}
	for _, m := range constant.FindAllStringSubmatch(text, -1) {
		values[m[1]] = m[2]
	}
	return values
}

// WithoutConstants is a file without their definitions.
func WithoutConstants(text string) string { return constant.ReplaceAllString(text, "") }

// Shared are the constants of all files: scripts use those of the parts behind which they are loaded, and what follows a script those of it.
func Shared(texts map[string]string) map[string]string {
	shared := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		maps.Copy(shared, Constants(texts[name]))
	}
	return shared
}

// Bare is a file as it is packed.
func Bare(text string, shared map[string]string) string {
	values := maps.Clone(shared)
	maps.Copy(values, Constants(text))
	var b strings.Builder
	for line := range strings.Lines(WithoutConstants(text)) {
		code := strings.TrimSpace(comment.ReplaceAllString(strings.TrimSpace(line), "$1"))
		if code == "" {
			continue
		}
		code = token.ReplaceAllStringFunc(code, func(name string) string { return cmp.Or(values[name], name) })
		code = number.ReplaceAllStringFunc(code, func(call string) string {
			return strconv.Itoa(int(number.FindStringSubmatch(call)[1][0]))
		})
		b.WriteString(joined.ReplaceAllString(code, "'$1$2'") + "\n")
	}
	return b.String()
}
