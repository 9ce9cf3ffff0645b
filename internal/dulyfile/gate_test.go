package dulyfile_test

// Gates of the file, as a scheduler has them.

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// A program and a server decide whether a program runs, which gets what they say and none of their secrets.
func TestGatesOfTheFile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Connection", "close") // no idle connection is left behind
		if req.Header.Get("Webhook-Signature") == "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, _ = w.Write([]byte(`{"mails":3}`))
	}))
	t.Cleanup(server.Close)
	t.Setenv("GATE_SECRET", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	open := filepath.Join(t.TempDir(), "open")
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(strings.NewReplacer("OPEN", open, "URL", server.URL).Replace(`
handlers:
  closed: { log: {}, gate: { exec: [test, -e, "OPEN"], timeout: 10s }, idle_factor: 1.5, idle_max: 1h }
  quiet: { log: {}, gate: { webhook: URL } }
  mail:
    exec: [sh, -c, 'cat; echo "$GATE_SECRET" >&2; exit 65']
    gate: { webhook: URL, secret_env: GATE_SECRET, timeout: 5s }
`)), dulyfile.Defaults{})
	require.NoError(t, err)
	settings := f.Settings()
	assert.Equal(t, core.IdleBackoff{Factor: 1.5, Max: time.Hour}, settings.Kinds["closed"].IdleBackoff)
	s, err := core.New(memstore.New(memstore.Config{}), settings)
	require.NoError(t, err)
	require.NoError(t, f.Register(s, slog.New(slog.DiscardHandler), &exec.Children{}))
	for _, kind := range []string{"closed", "quiet", "mail"} {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: kind, Kind: kind, Every: time.Hour})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	var failed *core.RunsError
	require.ErrorAs(t, err, &failed)
	for kind, want := range map[string]model.Outcome{"closed": model.OutcomeSkipped, "quiet": model.OutcomeSkipped, "mail": model.OutcomeFailed} {
		info, err := s.Task(t.Context(), "a", kind)
		require.NoError(t, err)
		assert.Equal(t, want, info.LastOutcome, "%s: %s", kind, info.LastError)
		assert.NotContains(t, info.LastError, "whsec")
		if kind == "mail" {
			assert.Contains(t, info.LastError, `"gate":{"mails":3}`)
		}
	}
}
