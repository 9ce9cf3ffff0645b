package cli_test

// The command mcp: a model on standard input, for one agent, on a store and on a server.

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// says are calls of tools, each a line of the newest version, which needs no greeting.
func says(t *testing.T, calls ...[2]string) string {
	t.Helper()
	var lines strings.Builder
	for i, call := range calls {
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": map[string]any{
			"name": call[0], "arguments": json.RawMessage(call[1]), "_meta": knowsTasks,
		}})
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	return lines.String()
}

func TestAModelOnStandardInput(t *testing.T) {
	t.Parallel()
	config := file(t, "handlers:\n  note: { log: {} }\n  schedule_note: { log: {}, tool: { description: notes } }\n")
	taken := file(t, "handlers:\n  schedule: { log: {}, tool: { description: has the name of one of ours } }\n")
	dir := filepath.Join(t.TempDir(), "store")
	for name, begin := range map[string]func() (w *world, at []string){
		"on a store": func() (*world, []string) { return newWorld(t), nil },
		"on the daemon of a folder": func() (*world, []string) {
			w := noRedis()
			d := w.start(t, "daemon", "-c", config, "--store", "file:"+dir)
			d.line(t, "duly is running")
			t.Cleanup(func() { d.stop(t, syscall.SIGTERM) })
			return w, []string{"--store", "file:" + dir}
		},
		"on a server": func() (*world, []string) {
			w := newWorld(t)
			d := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
			t.Cleanup(func() { d.stop(t, syscall.SIGTERM) })
			return w, []string{"--server", d.url(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, at := begin()
			mcp := func(agent, lines string, more ...string) result {
				args := append([]string{"mcp", "--agent", agent}, at...)
				if name == "on a store" {
					args = append(args, "-c", config)
				}
				return w.dulyWith(t, lines, append(args, more...)...)
			}
			r := mcp("ada", says(t, [2]string{"schedule", `{"kind":"note","id":"standup","when":"every weekday at 9am in Europe/Berlin"}`}))
			assert.Zero(t, r.code, r.stderr)
			assert.Contains(t, r.stdout, "is scheduled: every weekday at 09:00 in Europe/Berlin")
			assert.Contains(t, mcp("bob", says(t, [2]string{"explain", `{"id":"standup"}`})).stdout, "no such task")
			assert.Contains(t, mcp("ada", says(t, [2]string{"cancel", `{"id":"standup"}`}), "--scopes", "read").stdout, "does not cover the scope")
			assert.Contains(t, mcp("ada", says(t, [2]string{"explain", `{"id":"standup"}`}), "--scopes", "read").stdout, "it is not due until")
			r = mcp("ada", "no JSON\n\n5\n[]\n"+says(t, [2]string{"explain", `{"id":"standup"}`}))
			assert.Zero(t, r.code, "a line that is no message ends nothing: %s", r.stderr)
			assert.Contains(t, r.stdout, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON`)
			assert.Equal(t, 2, strings.Count(r.stdout, `"code":-32600,"message":"not a message`), r.stdout)
			assert.Contains(t, r.stdout, "it is not due until")
			r = mcp("a\nb", "")
			assert.Equal(t, 2, r.code, r.stdout)
			assert.Contains(t, r.stderr, "--agent has the control character")
			r = mcp("ada", "", "--scopes", "read,everything")
			assert.Equal(t, 2, r.code)
			assert.Contains(t, r.stderr, "use some of read, write and approve")
		})
	}
	r := newWorld(t).duly(t, "mcp")
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, "--agent")
	for _, command := range []string{"mcp", "daemon"} {
		args := map[string][]string{"mcp": {"mcp", "--agent", "ada"}, "daemon": {"daemon", "--http", "127.0.0.1:0"}}[command]
		r = newWorld(t).duly(t, append(args, "-c", taken)...)
		assert.NotZero(t, r.code, command)
		assert.Contains(t, r.stderr, `"schedule" is the name of another tool`, command)
	}
}
