package redisstore_test

// What the header of a script says about the parts in front of it is true: they are loaded, in an order that works, and it
// uses each of them.

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

var (
	definition = regexp.MustCompile(`(?m)^local (?:function )?([a-zA-Z_][\w, ]*)`)
	literal    = regexp.MustCompile(`'(\\.|[^'\\])*'`)
	word       = regexp.MustCompile(`(^|[^.\w])([a-zA-Z_]\w*)`)
)

// once has a function reckon its answer for each text once: all scripts are compared with all parts.
func once(f func(string) map[string]bool) func(string) map[string]bool {
	var mu sync.Mutex
	answers := map[string]map[string]bool{}
	return func(text string) map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		if answers[text] == nil {
			answers[text] = f(text)
		}
		return answers[text]
	}
}

// defines are the names that a part defines for what is behind it: those at the beginning of a line.
var defines = once(func(part string) map[string]bool {
	names := map[string]bool{}
	for _, m := range definition.FindAllStringSubmatch(redisstore.Part(part), -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			names[strings.TrimSpace(name)] = true
		}
	}
	return names
})

// uses are the names in a text that are not fields.
var uses = once(func(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range word.FindAllStringSubmatch(literal.ReplaceAllString(text, "''"), -1) {
		names[m[2]] = true
	}
	return names
})

// usesAny reports whether a text uses one of some names.
func usesAny(text string, names map[string]bool) bool {
	used := uses(text)
	for name := range names {
		if used[name] {
			return true
		}
	}
	return false
}

// isPlain reports whether a script has no tasks in front of it: few of its calls place any, and it has that part behind it.
func isPlain(name string, then []string) bool {
	return strings.HasPrefix(name, "plain") || slices.Contains(then, "tasks")
}

func TestScriptsNeedWhatTheirHeadersSay(t *testing.T) {
	t.Parallel()
	for _, s := range redisstore.ScriptFiles() {
		file := redisstore.Packed()[s.Name]
		parts, form := file.Needs, s.Name
		if s.Replaces {
			parts, form = file.Replace, s.Name+" that replaces"
		}
		sent := redisstore.Packed()["layout"].Text
		if !isPlain(s.Name, file.Then) {
			sent += "\n" + redisstore.Packed()["tasks"].Text
		}
		for i, part := range parts {
			needs := redisstore.Packed()[part]
			assert.NotEmpty(t, needs.Text, "%s: a part called %s does not exist", form, part)
			for _, n := range needs.Needs {
				assert.Contains(t, parts[:i], n, "%s: %s comes in front of %s, which it needs", form, part, n)
			}
			behind := file.Text
			for _, other := range parts[i+1:] {
				behind += redisstore.Packed()[other].Text
			}
			assert.True(t, usesAny(behind, defines(part)) || part == "answers", "%s uses nothing of %s", form, part)
			sent += "\n" + needs.Text
		}
		sent += "\n" + file.Text
		for _, part := range file.Then {
			sent += "\n" + redisstore.Packed()[part].Text
		}
		assert.True(t, sent == s.Sent, "%s is sent with other parts than those of its header", form)
	}
}

// A script that uses a name of a part is loaded behind that part. What submit uses only to replace tasks is in its second form.
func TestScriptsNameEveryPartThatTheyUse(t *testing.T) {
	t.Parallel()
	for name, file := range redisstore.Packed() {
		parts := slices.Concat(file.Needs, file.Replace)
		used, own := uses(file.Text), ownNames(file.Text)
		for part, other := range redisstore.Packed() {
			if len(other.Keys) > 0 || part == "layout" || part == name || slices.Contains(parts, part) {
				continue
			}
			if part == "tasks" && !isPlain(name, file.Then) {
				continue // it is in front of every script but the plain ones
			}
			for defined := range defines(part) {
				assert.False(t, used[defined] && !own[defined], "%s uses %s of %s, which its header does not name", name, defined, part)
			}
		}
	}
}

var (
	locals     = regexp.MustCompile(`local (?:function )?([a-zA-Z_][\w, ]*)`)
	parameters = regexp.MustCompile(`function ?[\w.]*\(([\w, ]*)\)`)
	loops      = regexp.MustCompile(`for ([\w, ]+?) (?:in|=)`)
)

// ownNames are the names that a file binds anywhere.
func ownNames(text string) map[string]bool {
	names := map[string]bool{}
	for _, re := range []*regexp.Regexp{locals, parameters, loops} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(m[1], ",") {
				names[strings.TrimSpace(name)] = true
			}
		}
	}
	return names
}
