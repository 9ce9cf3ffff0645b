package attack_test

// Secrets: each is a marker, everything that the binary writes or starts is searched for it.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// hush begins every secret. What a program says of a run has its own marker, so that the search is known to look at the right place.
const hush = "keep-this-"

// signing is the key of a webhook: a secret has to be base64 there.
const signing = "whsec_a2VlcC10aGlzLXNlY3JldC1vZi1hLXdlYmhvb2stc2FmZQ=="

// secrets are what is not to be found: the markers, and the key as text and decoded.
func secrets() []string { return []string{hush, signing, signing[6:], "secret-of-a-webhook"} }

// silent demands that a text has no secret.
func silent(t *testing.T, where, text string) {
	t.Helper()
	for _, one := range secrets() {
		assert.NotContains(t, text, one, where)
	}
}

// guarded is a Redis with a password, and a program all of whose secrets are markers.
func guarded(t *testing.T) (*program, string, *redistest.Server) {
	t.Helper()
	redis := redistest.StartTCP(t)
	require.NoError(t, redis.Client(t).Do(t.Context(), "ACL", "SETUSER", "ann", "on", ">"+hush+"redis", "~*", "&*", "+@all").Err())
	url := strings.Replace(redis.URL, "redis://", "redis://ann:"+hush+"redis@", 1)
	return newProgram(t, "DULY_REDIS_URL="+url, "DULY_TOKEN="+hush+"token,"+hush+"older", "CRON_SECRET="+hush+"cron", "HOOK="+signing,
		"HEADER="+hush+"header", "BEARER="+hush+"bearer"), url, redis
}

// A daemon with every secret set runs programs, fails webhooks and answers requests: no log line, answer, task, metric, command or
// environment has one.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	p, url, _ := guarded(t)
	dir := t.TempDir()
	look := filepath.Join(dir, "look")
	require.NoError(t, os.WriteFile(look, []byte(`env; tr '\0' '\n' </proc/$$/environ; tr '\0' ' ' </proc/$$/cmdline; tr '\0' ' ' </proc/$PPID/cmdline; ls -l /proc/$$/fd; echo MARK; exit 65`+"\n"), 0o600))
	config := file(t, fmt.Sprintf(`handlers:
  look: { exec: [sh, %q] }
  hook: { webhook: "https://127.0.0.1:1/?key=%surl", secret_env: HOOK, headers_env: { X-Key: HEADER }, bearer_env: BEARER }
  user: { webhook: "https://%suser:%spass@127.0.0.1:1/", secret_env: HOOK }
`, look, hush, hush, hush))
	for _, format := range []string{"text", "json"} {
		s := p.start(t, "daemon", "-c", config, "--log", format)
		answers := s.explore(t, format)
		s.waitFor(t, "look"+format)
		s.waitFor(t, "hook"+format)
		s.waitFor(t, "user"+format)
		silent(t, "the log", s.log())
		silent(t, "the answers", answers)
		require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
		<-s.ended
		silent(t, "the end", s.log())
	}
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	require.NoError(t, err)
	defer st.Close()
	reader, err := core.New(st, core.Config{})
	require.NoError(t, err)
	task, err := reader.Task(t.Context(), "a", "looktext")
	require.NoError(t, err)
	require.Contains(t, task.LastError, "MARK")
	shown := ""
	for _, args := range [][]string{
		{"doctor", "-c", config, "--json"},
		{"doctor", "-c", config},
		{"explain", "a", "looktext"},
		{"explain", "a", "hooktext", "--json"},
		{"status", "a", "usertext"},
		{"runs", "a", "hooktext"},
		{"stats"},
		{"processes", "--json"},
		{"audit"},
		{"queue", "hook"},
		{"list", "--agent", "a", "--json"},
		{"apply", "-f", config},
		{"run-due", "--all", "-c", config},
		{"version", "--json"},
	} {
		shown += p.run(t, args...)
	}
	require.Contains(t, shown, "MARK")
	silent(t, "the commands", shown)
}

// explore submits a task of each kind, waits until they have run, and returns all that the API answers.
func (s *server) explore(t *testing.T, suffix string) string {
	t.Helper()
	var all strings.Builder
	call := func(token, method, path, body string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		fmt.Fprintf(&all, "%v\n", res.Header)
		_, err = io.Copy(&all, res.Body)
		require.NoError(t, err)
	}
	for _, kind := range []string{"look", "hook", "user"} {
		call(hush+"token", http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"agent_id":"a","id":"%s%s","kind":"%s","max_attempts":1}`, kind, suffix, kind))
		s.waitFor(t, kind+suffix)
	}
	for _, token := range []string{hush + "token", hush + "older", hush + "cron", hush + "guessed", ""} {
		for _, path := range []string{
			"/metrics", "/openapi.json", "/healthz", "/readyz", "/v1/stats", "/v1/tasks?agent_id=a", "/v1/agents/a/tasks/look" + suffix, "/v1/agents/a/tasks/hook" + suffix + "/explain",
			"/v1/agents/a/tasks/user" + suffix + "/runs", "/v1/agents", "/v1/cron", "/product/scheduler/allstatus", "/nothing",
		} {
			call(token, http.MethodGet, path, "")
		}
	}
	return all.String()
}

// Whatever is wrong with a secret, the error does not show it: a wrong password, a URL that cannot be read, a server that is away, a
// file that does not parse.
func TestMistakesDoNotShowSecrets(t *testing.T) {
	t.Parallel()
	p, url, redis := guarded(t)
	wrong := strings.Replace(url, hush+"redis", hush+"wrong", 1)
	tls := strings.Replace(url, "redis://", "rediss://", 1)
	_, port, _ := strings.Cut(redis.URL, "127.0.0.1:")
	var commands sync.WaitGroup // some wait for a server that is away
	for _, one := range []string{
		wrong, tls, "redis://ann:" + hush + "@127.0.0.1:1/0", "redis://ann:" + hush + "%zz@127.0.0.1:1/0", "redis://ann:" + hush + "@127.0.0.1:port/0", "redis://ann:" + hush + "@127.0.0.1:1/x",
		"redis+cluster://ann:" + hush + "@127.0.0.1:1", "redis+sentinel://ann:" + hush + "@127.0.0.1:1/m/0?sentinel_password=" + hush, "redis+sentinel://ann:" + hush + "@127.0.0.1:1", "http://ann:" + hush + "@127.0.0.1:1",
		"redis://ann:" + hush + "@127.0.0.1:1/0?x=" + hush, "redis://" + hush + "@127.0.0.1:1/0", "redis://:" + hush + "@127.0.0.1:" + port, "redis://ann:" + hush + " @127.0.0.1:1", "redis://ann:" + hush + "\x7f@127.0.0.1:1", hush,
		"redis://ann:" + hush + "#@127.0.0.1:1", "redis://ann:" + hush + "/x@127.0.0.1:1/0", "redis://ann:" + hush + "?x@127.0.0.1:1/0", "redis://ann:" + hush + "@[::1:1/0", "unix://ann:" + hush + "@/nowhere?password=" + hush,
	} {
		config, bare, env := file(t, fmt.Sprintf("redis: %q\n", one)), &program{path: p.path}, &program{path: p.path, env: []string{"DULY_REDIS_URL=" + one}}
		commands.Go(func() {
			out := p.run(t, "stats", "--redis", one)
			assert.NotEmpty(t, out, one)
			silent(t, "--redis "+one, out)
		})
		commands.Go(func() { silent(t, "redis: "+one, bare.run(t, "stats", "-c", config)) })
		commands.Go(func() { silent(t, "DULY_REDIS_URL="+one, env.run(t, "doctor", "--json")) })
	}
	commands.Wait()
	for _, text := range []string{
		"handlers: { x: { webhook: \"https://a/?" + hush + "\", secret_env: HOOK, secret: " + hush + " } }", "handlers: { x: { webhook: \"ftp://" + hush + "@a\" } }", "handlers: { x: { webhook: \"http://u:" + hush + "@a\" } }",
		"handlers: { x: { webhook: \"https://u:" + hush + "%zz@a\" } }",
	} {
		silent(t, text, p.run(t, "daemon", "-c", file(t, text+"\n")))
	}
	short := &program{path: p.path, env: []string{"HOOK=whsec_" + hush}}
	silent(t, "a secret that is no base64", short.run(t, "daemon", "-c", file(t, "handlers: { x: { webhook: \"https://a\", secret_env: HOOK } }\n")))
	follow := &program{path: p.path, env: []string{"DULY_TOKEN=" + hush}}
	silent(t, "events", follow.run(t, "events", "--server", "http://u:"+hush+"@127.0.0.1:1/"))
}
