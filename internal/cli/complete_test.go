package cli_test

// Completion, suggestions and man pages.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Names come from the store, or from a server, as they are there.
func TestNamesAreCompleted(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	for _, names := range [][3]string{{"ada", "nightly", "digest"}, {"ada", "noon", "digest"}, {"adele", "x", "note"}, {"bob", "\u202ebad", "note"}, {"bob", "good", "note"}} {
		local.ok(t, "submit", "--agent", names[0], "--id", names[1], "--kind", names[2], "--delay", "1h")
	}
	far.env = append(far.env, "DULY_CONTEXTS="+filepath.Join(t.TempDir(), "c.yaml"))
	far.ok(t, "context", "set", "prod", "--server", "https://duly.example")
	for _, w := range []*world{local, far} {
		for line, want := range map[string]string{
			"status ":                        "ada adele bob",
			"status ad":                      "ada adele",
			"status ada n":                   "nightly noon",
			"status --agent ada ni":          "nightly",
			"status ada nightly ":            "",
			"delete ada nightly ":            "noon",
			"explain bob ":                   "good",
			"pause a":                        "ada adele",
			"jobs a":                         "ada adele",
			"agent show b":                   "bob",
			"signal ad":                      "ada adele",
			"list --agent b":                 "bob",
			"list --kind ":                   "digest note",
			"list --watch --kind d":          "digest",
			"pause --kind n":                 "note",
			"queue ":                         "digest note",
			"list --status ":                 "cancelled completed failed in_progress waiting",
			"bulk re":                        "replay resume",
			"agent export ada ":              "",
			"submit --agent adel":            "adele",
			"submit --agent ada --kind dige": "digest",
		} {
			want, got := strings.TrimSpace(want+" :4"), ""
			for range 10 { // a shell is not kept waiting: a busy machine may be asked again
				out := w.ok(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
				if got = strings.Join(strings.Fields(out), " "); got == want {
					break
				}
			}
			assert.Equal(t, want, got, line)
		}
	}
	assert.Contains(t, far.ok(t, "__complete", "context", "use", ""), "prod")
	assert.Contains(t, far.ok(t, "__complete", "stats", "--context", "p"), "prod")
	for _, w := range []*world{noRedis(), {env: append(noRedis().env, "DULY_SERVER=http://127.0.0.1:1")}, {env: append(noRedis().env, "DULY_REDIS_URL=redis://127.0.0.1:1")}} {
		r := w.duly(t, "__complete", "status", "")
		assert.Equal(t, ":4", strings.TrimSpace(r.stdout), "without a store there are no names, and no error")
		assert.NotContains(t, r.stderr, "127.0.0.1")
	}
}

func TestMistypedNamesAreSuggested(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "digest", "--delay", "1h")
	for line, want := range map[string]string{
		"limit sett": "did you mean set?", "budget lst": "did you mean list?", "agent shwo x": "did you mean show?", "context lits": "did you mean list?",
		"bulk replya": "did you mean replay?", "queue digets": "did you mean digest?", "pause --kind digset": "did you mean digest?", "resume --kind digset": "did you mean digest?",
		"lits": "did you mean list?", "list --knid x": "did you mean --kind?", "limit set --concurency 2": "did you mean --concurrency?",
	} {
		r := w.duly(t, strings.Fields(line)...)
		assert.Contains(t, r.stderr, want, line)
		assert.Contains(t, []int{2, 3}, r.code, line)
	}
	assert.NotContains(t, w.duly(t, "queue", "entirely-different").stderr, "did you mean")
	assert.True(t, strings.HasPrefix(w.ok(t, "--version"), "duly "))
}

// Each command has a page, which man can read.
func TestManPages(t *testing.T) {
	t.Parallel()
	w := noRedis()
	dir := filepath.Join(t.TempDir(), "man1")
	assert.Contains(t, w.ok(t, "man", dir), "pages to "+dir)
	for _, name := range []string{"duly", "duly-list", "duly-limit-set", "duly-agent-export", "duly-context-use", "duly-man"} {
		page := read(t, filepath.Join(dir, name+".1"))
		assert.True(t, strings.HasPrefix(page, ".TH "), page)
		for _, section := range []string{".SH NAME", ".SH SYNOPSIS"} {
			assert.Contains(t, page, section)
		}
	}
	page := read(t, filepath.Join(dir, "duly-list.1"))
	assert.Contains(t, page, `\-\-status`)
	assert.Contains(t, page, ".SH EXAMPLES")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("no man here")
	}
	if testing.Short() { // make check reads them all
		files = files[:5]
	}
	for _, f := range files {
		out, err := exec.Command(man, "--warnings", "-l", filepath.Join(dir, f.Name())).CombinedOutput()
		require.NoError(t, err, "%s: %s", f.Name(), out)
		assert.NotContains(t, string(out), "warning", f.Name())
	}
}

func TestManIsRefused(t *testing.T) {
	t.Parallel()
	oneLine(t, noRedis().duly(t, "man"), 2, "name it as DIR")
	oneLine(t, noRedis().duly(t, "man", "/dev/null/x"), 2, "name a folder that can be written")
}
