package house_test

// docs/start.md: every command of it is run, as a reader would, and prints what the page shows.

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command of "Start here" is run, in order. What the page shows behind a command is printed by it, sooner or later: a reader
// looks again too.
func TestStartCommands(t *testing.T) {
	t.Parallel()
	r := newReader(t, "docs/start.md")
	r.env = append(r.env, "DULY_REDIS_URL=") // the page needs none
	shown := 0
	last := ""
	for _, m := range regexp.MustCompile("(?s)\n```(sh|text)\n(.*?)\n```").FindAllStringSubmatch(read(t, "docs/start.md"), -1) {
		if m[1] == "text" {
			shown++
			r.printsInTime(last, m[2])
			continue
		}
		for command := range strings.SplitSeq(m[2], "\n") {
			last = command
			if strings.HasPrefix(command, "touch ") || strings.HasPrefix(command, "rm ") { // these print nothing
				r.ran++
				require.NoError(t, r.shell(command).Run(), command)
				continue
			}
			r.run(command)
		}
	}
	assert.GreaterOrEqual(t, r.ran, 19)
	assert.GreaterOrEqual(t, shown, 8)
}

// printsInTime runs a command again until it prints what a page shows.
func (r *reader) printsInTime(command, shown string) {
	r.Helper()
	var out []byte
	assert.Eventually(r, func() bool {
		out, _ = r.shell(command).CombinedOutput()
		return prints(string(out), shown)
	}, 20*time.Second, 100*time.Millisecond, "%s shows\n%s", command, shown)
	if r.Failed() {
		r.Logf("%s prints\n%s", command, out)
	}
}

// prints says whether a text has the lines of another, in their order. Words with digits, such as times, may differ.
func prints(text, shown string) bool {
	for line := range strings.SplitSeq(shown, "\n") {
		var pattern strings.Builder
		for i, word := range strings.Fields(line) {
			if i > 0 {
				pattern.WriteString(`\s+`)
			}
			if regexp.MustCompile(`\d`).MatchString(word) {
				pattern.WriteString(`\S+`)
				continue
			}
			pattern.WriteString(regexp.QuoteMeta(word))
		}
		at := regexp.MustCompile(pattern.String()).FindStringIndex(text)
		if at == nil {
			return false
		}
		text = text[at[1]:]
	}
	return true
}

// What a page shows and a command does not print is noticed.
func TestPrints(t *testing.T) {
	t.Parallel()
	for shown, right := range map[string]bool{
		"due  2030-01-02 (in 2s)": true, "status waiting\nto resume: duly resume": true,
		"status paused": false, "to resume: duly resume\nstatus waiting": false, "due now": false,
	} {
		assert.Equal(t, right, prints("status  waiting\ndue  2031-05-06 (in 4s)\n  to resume: duly resume ada", shown), shown)
	}
}
