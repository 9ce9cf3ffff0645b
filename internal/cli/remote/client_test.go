package remote_test

// Requests, as a server sees them.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
)

// against is a client of a server that answers as told.
func against(t *testing.T, answer http.HandlerFunc) *remote.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	c, err := remote.New(remote.Config{URL: server.URL, Token: "t"})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// An import of any size goes in requests that a server takes, each of one agent, and faults have the numbers of the lines of the whole.
func TestImportsAreSentInParts(t *testing.T) {
	t.Parallel()
	var sent []string
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.LessOrEqual(t, len(data), 1<<20)
		assert.Equal(t, "application/x-ndjson", r.Header.Get("Content-Type"))
		lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		sent = append(sent, fmt.Sprint(r.URL.Path, " ", len(lines)))
		answer := map[string]any{"new": len(lines), "errors": []any{}}
		for i, line := range lines {
			if strings.Contains(line, "odd") {
				answer["refused"], answer["errors"] = 1, []any{map[string]any{"line": i + 1, "code": "invalid", "field": "odd", "error": "odd is not a field"}}
			}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(answer))
	})
	long := `{"task":{"id":"x","payload":"` + strings.Repeat("x", 300<<10) + `"}}` + "\n"
	lines := `{"agent_id":"ada"}` + "\n" + strings.Repeat(long, 4) + `{"odd":1}` + "\n" + `{"agent_id":"bob"}` + "\n\n" + long
	done, err := c.Import(t.Context(), "", strings.NewReader(lines))
	require.NoError(t, err)
	assert.Equal(t, []string{"/v1/agents/ada/import 3", "/v1/agents/ada/import 3", "/v1/agents/bob/import 3"}, sent)
	assert.Equal(t, 9, done.New)
	require.Len(t, done.Errors, 1)
	assert.Equal(t, "line 6: odd is not a field", done.Errors[0].Error())
	_, err = c.Import(t.Context(), "", strings.NewReader(`{"task":{}}`))
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err), "nobody knows for whom it is")
}

// Each code of a problem is that of core again, with the detail as its text.
func TestProblemsAreErrorsOfCore(t *testing.T) {
	t.Parallel()
	for code, status := range map[core.Code]int{
		core.CodeInvalid: 400, core.CodeNotFound: 404, core.CodeLimit: 429, core.CodeConflict: 409, core.CodeDisabled: 409, core.CodeLeaseLost: 409,
		core.CodeUnavailable: 503, core.CodeStoreFull: 503, core.CodeAbandoned: 503, core.CodeForbidden: 403, core.CodeSpawnRate: 429, core.CodeSpawnDepth: 422,
		core.CodeInternal: 500,
	} {
		c := against(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"code":%q,"detail":"the detail","status":%d}`, code, status)
		})
		_, err := c.Stats(t.Context())
		assert.Equal(t, code, core.CodeOf(err))
		assert.EqualError(t, err, "the detail")
	}
}

// An audit goes on until a step says that it was the last.
func TestAuditsAreSteps(t *testing.T) {
	t.Parallel()
	step := 0
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		assert.JSONEq(t, []string{`{"repair":true}`, `{"repair":true,"cursor":"0.1"}`, `{"repair":true,"cursor":"0.2"}`}[step], string(data))
		step++
		next := fmt.Sprintf("0.%d", step)
		if step == 3 {
			next = ""
		}
		faults := strings.TrimSuffix(strings.Repeat(`{"agent_id":"a","id":"1","code":"lost"},`, 60), ",")
		_, _ = fmt.Fprintf(w, `{"tasks":100,"found":60,"repairable":60,"faults":[%s],"next_cursor":%q}`, faults, next)
	})
	report, err := c.Audit(t.Context(), inspect.AuditOptions{Repair: true})
	require.NoError(t, err)
	assert.Equal(t, [4]int{300, 180, 180, inspect.MaxFaults}, [4]int{report.Tasks, report.Found, report.Repairable, len(report.Faults)})
}

// Text that JSON would change in silence is refused before anything is sent.
func TestInvalidTextIsNotSent(t *testing.T) {
	t.Parallel()
	c := against(t, func(http.ResponseWriter, *http.Request) { assert.Fail(t, "it was sent") })
	err := c.Pause(t.Context(), core.Target{Agent: "a"}, core.Pause{Reason: "\xff"})
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	_, err = c.Task(t.Context(), "", "x")
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
}
