package dulyfile_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// A function has no ways in of its own: keys for them are refused, not passed over.
func TestTheFileOfAFunction(t *testing.T) {
	t.Setenv("A_TOKEN", "x")
	t.Setenv("DULY_PREFIX", "mine:")
	for _, key := range []string{"http: 127.0.0.1:1", "token_env: A_TOKEN", "tokens: [{ env: A_TOKEN, scopes: [read], agents: [\"*\"] }]"} {
		_, err := dulyfile.ParseFunction(t.Context(), "duly.yaml", []byte(key+"\n"))
		require.ErrorContains(t, err, "is for duly daemon and duly serve", key)
		assert.ErrorContains(t, err, "duly.yaml: ")
	}
	f, err := dulyfile.ParseFunction(t.Context(), "duly.yaml", []byte("handlers: { note: { log: {} } }\ntasks: [{ agent: ada, id: a, kind: note }]\n"))
	require.NoError(t, err)
	assert.Equal(t, "mine:", f.Redis.Prefix, "the environment counts before the file")
	s, err := core.New(memstore.New(memstore.Config{}), f.Settings())
	require.NoError(t, err)
	require.NoError(t, f.Start(t.Context(), s, slog.New(slog.DiscardHandler)))
	report, err := s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	core.Handle(s, "twice", func(context.Context, *core.Task[any]) error { return nil })
	f.Handlers[0].Kind = "twice"
	require.ErrorContains(t, f.Start(t.Context(), s, slog.New(slog.DiscardHandler)), `the kind "twice" already has a handler`)
}
