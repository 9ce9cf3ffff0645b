package cli_test

// Agents that move: exported, forgotten and imported, by the binary and on Redis.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// sortedLines are lines in an order that does not depend on where tasks wait.
func sortedLines(text string) []string {
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(text), "\n"))
}

// 300 tasks of all sorts of schedules are the same after they were forgotten and imported, at the same times.
func TestAgentExportAndImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: w.redis.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	s, err := core.New(st, core.Config{Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Quiet: time.Hour}}}})
	require.NoError(t, err)
	var tasks []core.NewTask
	for i := range 290 {
		n := core.NewTask{Agent: "ada", ID: fmt.Sprintf("t%03d", i), Kind: "note", Paused: i%40 == 0}
		switch i % 6 {
		case 0:
			n.At = time.Now().Add(time.Hour + time.Duration(i)*time.Second)
		case 1:
			n.Delay = time.Hour
		case 2:
			n.Every, n.Delay = time.Hour, time.Hour
		case 3:
			n.Every, n.From, n.Delay = time.Hour, core.FromStart, time.Hour
		case 4:
			n.Cron, n.Zone, n.Jitter = "30 4 1 * *", core.ZoneOfAgent, time.Hour
		default:
			n.Manual = true
		}
		tasks = append(tasks, n)
	}
	_, err = s.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	for i := range 10 {
		_, err := s.Notice(t.Context(), "seen", core.Subject{User: fmt.Sprint("u", i), Agent: "ada"})
		require.NoError(t, err)
	}
	w.ok(t, "agent", "set", "ada", "--zone", "Asia/Tokyo")
	w.ok(t, "pause", "ada", "--reason", "moves")
	exported := w.ok(t, "agent", "export", "ada")
	assert.Equal(t, 301, strings.Count(exported, "\n"))
	lines := filepath.Join(t.TempDir(), "ada.jsonl")
	require.NoError(t, os.WriteFile(lines, []byte(exported), 0o600))
	w.ok(t, "agent", "forget", "ada", "--yes")
	assert.Equal(t, 3, w.duly(t, "agent", "export", "ada").code)

	assert.Equal(t, "302 new, 0 same, 0 refused\n", w.ok(t, "agent", "import", lines))
	assert.Equal(t, sortedLines(exported), sortedLines(w.ok(t, "agent", "export", "ada")))
	assert.Equal(t, map[string]any{"new": 0., "same": 302., "differs": 0., "refused": 0., "errors": []any{}}, w.object(t, "agent", "import", lines))
	assert.Equal(t, sortedLines(exported), sortedLines(w.ok(t, "agent", "export", "ada")))
}

// A line that is wrong is named, and keeps no other from being stored.
func TestAgentImportRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := `{"task":{"kind":"note","id":"1","delay":"1h"}}` + "\n" + `{"task":{"kind":"note","id":"2","dely":"1h"}}` + "\n" + `{"task":{"kind":"note","id":"3","manual":true}}`
	r := w.dulyWith(t, lines, "agent", "import", "--as", "bob")
	assert.Equal(t, 2, r.code)
	assert.Equal(t, "2 new, 0 same, 1 refused\nline 2: task.dely is not a field of a task: values of your own go into labels\n", r.stdout)
	assert.Contains(t, r.stderr, "1 line refused; correct them and import again")
	assert.Contains(t, w.ok(t, "explain", "bob", "3"), `it runs only when it is told to: duly run "bob" "3"`)
	assert.Contains(t, w.ok(t, "jobs", "bob"), "manual")
	w.ok(t, "agent", "import", "--as", "eve", file(t, `{"task":{"kind":"note","id":"3","manual":true,"labels":{"tier":"gold"}}}`))
	assert.Regexp(t, `(?s)^AGENT +ID .*\nbob +3 .*eve +3 |^AGENT +ID .*\neve +3 .*bob +3 `, w.ok(t, "jobs"))
	assert.Len(t, w.objects(t, "jobs", "jobs", "--label", "tier=gold"), 1)
	assert.Len(t, w.objects(t, "tasks", "list", "--agent", "eve", "--label", "tier=silver"), 0)
	oneLine(t, w.duly(t, "agent", "import", "a", "b"), 2, "expected at most one FILE")
	oneLine(t, w.duly(t, "agent", "import", "nowhere"), 2, "name a file that can be read")
	oneLine(t, w.duly(t, "agent", "export"), 2, "expected one AGENT")
	oneLine(t, w.duly(t, "submit", "--agent", "bob", "--kind", "note", "--manual", "--every", "1h"), 2, "--manual excludes at, delay, every and cron")
	w.ok(t, "submit", "--agent", "bob", "--kind", "note", "--id", "4", "--paused", "--paused-reason", "not yet")
	assert.Contains(t, w.ok(t, "explain", "bob", "4"), "not yet")
}
