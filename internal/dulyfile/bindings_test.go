package dulyfile_test

// Bindings of the file, as programs and servers get them.

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// Values go to the runs that they are for, a secret by the name of the value alone, and none replaces a variable of the process.
func TestBindingsOfTheFile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Connection", "close") // no idle connection is left behind
		_, _ = fmt.Fprintf(w, "%s|%s", req.Header.Get("Duly-Value-Tenant"), req.Header.Get("Duly-Value-Api-Key"))
	}))
	t.Cleanup(server.Close)
	t.Setenv("BIND_SECRET", "s3cret")
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(strings.ReplaceAll(`
handlers:
  program: { exec: [sh, -c, 'printf "%s|%s|%s|%s" "$DULY_VALUE_TENANT" "$DULY_VALUE_API_KEY" "$BIND_SECRET" "${DULY_VALUE_PATH:+$PATH}"'] }
  server: { webhook: URL }
bindings:
  - { values: { TENANT: shared } }
  - { kind: server, values: { API_KEY: { env: BIND_SECRET } } }
  - { agent: "team-*", kind: program, values: { TENANT: team, API_KEY: { env: BIND_SECRET } } }
  - { agent: odd, values: { PATH: /nowhere, TENANT: 007 } }
`, "URL", server.URL)), dulyfile.Defaults{})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), f.Settings())
	require.NoError(t, err)
	require.NoError(t, f.Register(s, slog.New(slog.DiscardHandler), &exec.Children{}))
	got := map[string]string{}
	for _, agent := range []string{"a", "team-1", "odd"} {
		for _, kind := range []string{"program", "server"} {
			_, err = s.Submit(t.Context(), core.NewTask{Agent: agent, ID: kind, Kind: kind})
			require.NoError(t, err)
		}
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	for _, agent := range []string{"a", "team-1", "odd"} {
		for _, kind := range []string{"program", "server"} {
			info, err := s.Task(t.Context(), agent, kind)
			require.NoError(t, err)
			got[agent+" "+kind] = strings.Trim(string(info.Result), `"`)
		}
	}
	assert.Contains(t, got["odd program"], "/bin", "the PATH of the process is untouched")
	got["odd program"], _, _ = strings.Cut(got["odd program"], "/")
	assert.Equal(t, map[string]string{
		"a program": "shared|||", "a server": "shared|s3cret", "team-1 program": "team|s3cret||", "team-1 server": "shared|s3cret",
		"odd program": "007|||", "odd server": "007|s3cret",
	}, got)
}

func TestMistakesInBindings(t *testing.T) {
	t.Setenv("BIND_BAD", "s3cret\nline")
	t.Setenv("BIND_EMPTY", " ")
	for text, want := range map[string]string{
		"bindings: {}":                                         "duly.yaml:2: bindings: must be an array",
		"bindings: [ { kind: note } ]":                         "duly.yaml:2: bindings[0]: must have values, such as values: { TENANT: acme }",
		"bindings: [ { values: [a] } ]":                        "duly.yaml:2: bindings[0].values: must be an object (key: value)",
		"bindings: [ { kind: nix, values: { A: b } } ]":        `duly.yaml:2: bindings[0].kind: kind "nix" has no handler in this file; handlers: note`,
		"bindings: [ { agent: 'a*b', values: { A: b } } ]":     `duly.yaml:2: bindings[0].agent: "a*b" must not have a * before its end`,
		"bindings: [ { values: { path: b } } ]":                `duly.yaml:2: bindings[0].values.path: the name "path" must have capital letters`,
		"bindings: [ { values: { A: } } ]":                     "duly.yaml:2: bindings[0].values.A: must be a string, or an object such as { env: NAME }",
		"bindings: [ { values: { A: [b] } } ]":                 "duly.yaml:2: bindings[0].values.A: must be a string, or an object such as { env: NAME }",
		"bindings: [ { values: { A: { env: BIND_NONE } } } ]":  "duly.yaml:2: bindings[0].values.A: the environment variable BIND_NONE, named by env, is not set",
		"bindings: [ { values: { A: { env: BIND_EMPTY } } } ]": "duly.yaml:2: bindings[0].values.A: the environment variable BIND_EMPTY, named by env, is not set",
		"bindings: [ { values: { A: {} } } ]":                  "duly.yaml:2: bindings[0].values.A: must name an environment variable, such as env: NAME",
		"bindings: [ { values: { A: { env: BIND_BAD } } } ]":   "duly.yaml:2: bindings[0].values.A: the value of A has the control character U+000A at byte 6",
		"bindings: [ { user: u, values: { A: b } } ]":          "duly.yaml:2: bindings[0].user: unknown key; expected one of agent, kind, values",
	} {
		_, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte("handlers: { note: { log: {} } }\n"+text), dulyfile.Defaults{})
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}
