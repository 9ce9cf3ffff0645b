package cli_test

// Contexts: what is kept by names, what counts before what, and that no secret is shown.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// contexts is a world whose file of contexts is its own.
func contexts(t *testing.T, env ...string) (*world, string) {
	t.Helper()
	w, path := noRedis(), filepath.Join(t.TempDir(), "sub", "contexts.yaml")
	w.env = append(append(w.env, "DULY_CONTEXTS="+path), env...)
	return w, path
}

func TestContextsAreKept(t *testing.T) {
	t.Parallel()
	w, path := contexts(t)
	assert.Contains(t, w.ok(t, "context", "list"), "no contexts")
	assert.Contains(t, w.ok(t, "context", "show"), "no server and no Redis")
	w.ok(t, "context", "set", "prod", "--server", "https://duly.example", "--token-env", "PROD_TOKEN")
	w.ok(t, "context", "set", "here", "--redis", "redis://:s3cret@127.0.0.1:1/0", "--prefix", "x:")
	r := w.dulyWith(t, serverToken+"\n", "context", "set", "near", "--server", "http://127.0.0.1:1", "--token", "-")
	require.Equal(t, 0, r.code, r.stderr)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	assert.Contains(t, read(t, path), serverToken)

	list := w.ok(t, "context", "list") + w.ok(t, "context", "list", "--json") + w.ok(t, "context", "show", "near") + w.ok(t, "context", "show", "here", "--json")
	assert.NotContains(t, list, serverToken)
	assert.NotContains(t, list, "s3cret")
	assert.Regexp(t, `(?m)^\*  prod +https://duly.example +- +\$PROD_TOKEN$`, list, "the first is the current one")
	assert.Contains(t, list, "the file of contexts")

	w.ok(t, "context", "use", "here")
	assert.Contains(t, w.ok(t, "context", "show"), "named by  the current context here")
	oneLine(t, w.duly(t, "stats"), 5, "127.0.0.1:1", "start it, or name another with --redis")
	oneLine(t, w.duly(t, "stats", "--context", "near"), 5, "no duly answers at http://127.0.0.1:1")
	oneLine(t, w.duly(t, "stats", "--context", "prod"), 2, "context prod takes its token from $PROD_TOKEN, which is not set")
	w.ok(t, "context", "delete", "here")
	assert.Contains(t, w.ok(t, "context", "show"), "no server and no Redis")
	oneLine(t, w.duly(t, "context", "use", "here"), 3, `context "here" does not exist`)
	oneLine(t, w.duly(t, "context", "use", "nera"), 3, "did you mean near?")

	require.NoError(t, os.Chmod(path, 0o644))
	assert.Contains(t, w.duly(t, "context", "list").stderr, "other users can read the secrets")
}

func TestContextsAreRefused(t *testing.T) {
	t.Parallel()
	w, path := contexts(t)
	for _, c := range []struct{ args, want string }{
		{"context set a", "needs a server or a redis"},
		{"context use", "expected the name of one context"},
		{"context set a --server http://far.example --token-env T", "must begin with https://"},
		{"context set a --server nowhere", "--server must be a URL"},
		{"context set a --redis redis://127.0.0.1 --token-env T", "has a token"},
		{"context set a --server https://far.example --token-env T --token-file F", "has several of token"},
		{"context sett", `unknown command "sett"`},
		{"stats --context a --server http://127.0.0.1:1", "--server and --context name a place each"},
	} {
		oneLine(t, w.duly(t, strings.Fields(c.args)...), 2, c.want)
	}
	_, err := os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing was written")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	for _, text := range []string{"contexts: {a: {tokn: " + serverToken + "}}", "contexts: [" + serverToken, "contexts: {a: {server: x, redis: y}}"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		r := w.duly(t, "stats", "--context", "a")
		oneLine(t, r, 2, path)
		assert.NotContains(t, r.stderr, serverToken)
	}
}

// A flag counts before the environment, that before the current context; a token stays with its server.
func TestWhatNamesAPlace(t *testing.T) {
	t.Parallel()
	w, _ := contexts(t)
	w.ok(t, "context", "set", "c", "--server", "http://127.0.0.1:3", "--token", "of-c")
	w.ok(t, "context", "set", "r", "--redis", "redis://127.0.0.1:4")
	server, redis, token := "DULY_SERVER=http://127.0.0.1:2", "DULY_REDIS_URL=redis://127.0.0.1:5", "DULY_TOKEN=of-env"
	for _, c := range []struct {
		env, args []string
		want      map[string]any
	}{
		{nil, nil, map[string]any{"server": "http://127.0.0.1:3", "token_from": "the file of contexts", "by": "the current context c"}},
		{[]string{token}, nil, map[string]any{"server": "http://127.0.0.1:3", "token_from": "the file of contexts", "by": "the current context c"}},
		{[]string{server, token}, nil, map[string]any{"server": "http://127.0.0.1:2", "token_from": "$DULY_TOKEN", "by": "$DULY_SERVER"}},
		{[]string{server, redis}, nil, map[string]any{"server": "http://127.0.0.1:2", "by": "$DULY_SERVER"}},
		{[]string{redis}, nil, map[string]any{"redis": "redis://127.0.0.1:5", "by": "$DULY_REDIS_URL"}},
		{[]string{server}, []string{"--redis", "redis://127.0.0.1:6"}, map[string]any{"redis": "redis://127.0.0.1:6", "by": "--redis"}},
		{[]string{server, redis}, []string{"--context", "r"}, map[string]any{"redis": "redis://127.0.0.1:4", "by": "--context r"}},
		{[]string{server, token}, []string{"--context", "c"}, map[string]any{"server": "http://127.0.0.1:3", "token_from": "the file of contexts", "by": "--context c"}},
		{[]string{server, token}, []string{"--token", "t"}, map[string]any{"server": "http://127.0.0.1:2", "token_from": "--token", "by": "$DULY_SERVER"}},
		{nil, []string{"-c", file(t, "redis: redis://127.0.0.1:7\n")}, map[string]any{"redis": "redis://127.0.0.1:7"}},
		{nil, []string{"--server", "http://127.0.0.1:8"}, map[string]any{"server": "http://127.0.0.1:8", "by": "--server"}},
	} {
		in := *w
		in.env = append(append([]string(nil), w.env...), c.env...)
		got := in.object(t, append([]string{"context", "show"}, c.args...)...)
		delete(got, "current")
		if c.want["by"] == nil {
			delete(got, "by") // it is a path
		}
		assert.Equal(t, c.want, got, "%v %v", c.env, c.args)
	}
	// A process that runs tasks does not do so where somebody only looked.
	w.ok(t, "context", "use", "r")
	w.env = append(w.env, "DULY_STORE=memory")
	d := w.start(t, "daemon")
	d.line(t, "store=memory")
	oneLine(t, w.duly(t, "serve", "--context", "c"), 2, "--context c cannot be used here")
	oneLine(t, w.duly(t, "serve", "--context", "r", "--http", "127.0.0.1:0"), 5, "127.0.0.1:4")
}
