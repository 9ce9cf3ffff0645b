package cli_test

// Exit codes, and errors as JSON: what a script and an agent act on.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// said is an error as --json has it.
type said struct {
	Code   string `json:"code"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
	Exit   int    `json:"exit_code"`
}

// fails runs a command that has to fail with JSON on its standard error, and with the exit code that this names.
func (w *world) fails(t *testing.T, args ...string) said {
	t.Helper()
	r := w.duly(t, append(args, "--json")...)
	s := parse[said](t, r.stderr)
	assert.Equal(t, r.code, s.Exit, "%q: %s", args, r.stderr)
	assert.NotZero(t, r.code, "%q", args)
	assert.NotEmpty(t, s.Detail, "%q", args)
	return s
}

// Each code that a server can answer with has the exit code that docs/reference/errors.md gives it, which follows from its status.
func TestEachCodeHasItsExitCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/errors.md")
	require.NoError(t, err)
	var says atomic.Pointer[[2]string] // the code and the status of the next answer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n, _ := strconv.Atoi(says.Load()[1])
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(n)
		_ = json.NewEncoder(w).Encode(map[string]any{"code": says.Load()[0], "detail": "why <it> is so", "status": n})
	}))
	defer server.Close()
	byStatus := map[string]int{"400": 2, "413": 2, "415": 2, "404": 3, "401": 6, "403": 6, "409": 7, "429": 5, "503": 5, "500": 1, "422": 1, "405": 1}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d+) [^|]*\\| (\\d) \\|").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 20)
	for _, row := range rows {
		code, status := row[1], row[2]
		says.Store(&[2]string{code, status})
		want, err := strconv.Atoi(row[3])
		require.NoError(t, err)
		switch code {
		case "runs_failed": // a pull that worked
			assert.Equal(t, 4, want)
		case "no_route": // the server does not know the call: it is another version
			assert.Equal(t, 1, want)
		default:
			assert.Equal(t, byStatus[status], want, code)
		}
		got := noRedis().fails(t, "stats", "--server", server.URL)
		assert.Equal(t, want, got.Exit, code)
		if code != "unauthorized" && code != "no_route" && code != "method_not_allowed" { // of which the command says more than the server
			assert.Equal(t, code, got.Code)
			assert.Equal(t, "why <it> is so", got.Detail)
		}
	}
	says.Store(&[2]string{"quota", "403"})
	assert.Equal(t, 6, noRedis().fails(t, "stats", "--server", server.URL).Exit, "what a quota never allows")
}

// Errors of the commands themselves say what HTTP would say: on the store, and through a server.
func TestErrorsAreJSON(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	local.ok(t, "submit", "--agent", "ada", "--id", "a", "--kind", "note", "--delay", "1h")
	local.ok(t, "agent", "set", "ada", "--quota", "live=1,interval=5m")
	for _, w := range []*world{local, far} {
		for _, want := range []struct {
			code, field string
			exit        int
			args        []string
		}{
			{"not_found", "", 3, []string{"status", "ada", "none"}},
			{"not_found", "", 3, []string{"pause", "nobody"}},
			{"conflict", "", 7, []string{"submit", "--agent", "ada", "--id", "a", "--kind", "note", "--on-conflict", "fail"}},
			{"conflict", "", 7, []string{"replay", "ada", "a"}},
			{"invalid", "agent_id", 2, []string{"submit", "--kind", "note"}},
			{"invalid", "cron", 2, []string{"submit", "--agent", "ada", "--kind", "note", "--cron", "x"}},
			{"invalid", "", 2, []string{"status", "ada"}},
			{"invalid", "", 2, []string{"list", "--no-such-flag"}},
			{"invalid", "", 2, []string{"list", "--agent", ""}},
		} {
			got := w.fails(t, want.args...)
			assert.Equal(t, []any{want.code, want.field, want.exit}, []any{got.Code, got.Field, got.Exit}, "%q: %s", want.args, got.Detail)
			assert.NotContains(t, got.Detail, got.Hint+";", "the hint is apart")
		}
		assert.Equal(t, "see duly status ada a", w.fails(t, "submit", "--agent", "ada", "--id", "a", "--kind", "note", "--on-conflict", "fail").Hint)
	}
	gone := noRedis()
	assert.Equal(t, said{"unavailable", "", "no duly answers at http://127.0.0.1:1: the connection was refused", gone.fails(t, "stats", "--server", "http://127.0.0.1:1").Hint, 5}, gone.fails(t, "stats", "--server", "http://127.0.0.1:1"))
	away := gone.fails(t, "stats", "--redis", "redis://127.0.0.1:1")
	assert.Equal(t, []any{"unavailable", 5, "start it, or name another with --redis"}, []any{away.Code, away.Exit, away.Hint})
	assert.Equal(t, []any{"unauthorized", 6}, func() []any {
		got := gone.fails(t, "stats", "--server", far.env[len(far.env)-2][len("DULY_SERVER="):], "--token", "wr0ng")
		return []any{got.Code, got.Exit}
	}())
	found := local.fails(t, "doctor", "-c", file(t, "limits: [{ kind: note, concurrency: 3 }]\nhandlers: { note: { log: {} } }\n"))
	assert.Equal(t, []any{"failed", 1}, []any{found.Code, found.Exit}, fmt.Sprint(found))
}
