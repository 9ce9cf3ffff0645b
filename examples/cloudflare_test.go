package examples_test

// Receivers of webhooks in other languages, run as they are written: the Worker of Cloudflare, and the one of the reference in Python.

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// edge runs a Worker as Cloudflare does: a request is a Request, its answer a Response. GET /scheduled is its cron trigger.
const edge = `import http from "node:http";
import { buffer } from "node:stream/consumers";
import worker from "./worker.js";

http.createServer(async (asked, answered) => {
  if (asked.url === "/scheduled") {
    await worker.scheduled({}, process.env);
    return answered.end();
  }
  const body = asked.method === "GET" ? undefined : await buffer(asked);
  const answer = await worker.fetch(new Request("http://edge.example" + asked.url, { method: asked.method, headers: asked.headers, body }), process.env);
  answered.writeHead(answer.status, Object.fromEntries(answer.headers));
  answered.end(Buffer.from(await answer.arrayBuffer()));
}).listen(Number(process.env.PORT), "127.0.0.1");
`

var digestSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of a webhook for digests"))

// receiver starts a program of another language that listens at a port, until the test ends; skipped where the language is missing.
func receiver(t *testing.T, language, dir, file string, env ...string) (url string) {
	t.Helper()
	program, err := exec.LookPath(language)
	if err != nil {
		t.Skip("there is no " + language + " here")
	}
	port := freePort(t)
	cmd := exec.CommandContext(t.Context(), program, file)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PORT="+port, "DIGEST_SECRET="+digestSecret), env...)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	return "http://127.0.0.1:" + port
}

// copied puts files of the repository into a folder.
func copied(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		copyTo(t, file, filepath.Join(dir, filepath.Base(file)), func(text string) string { return text })
	}
}

// digests is a duly whose tasks of the kind digest are posted to a URL.
func digests(t *testing.T, verb, url string) *service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "handlers:\n  digest: { webhook: %q, secret_env: DIGEST_SECRET, max_attempts: 1 }\n", url), 0o600))
	return serveDuly(t, verb, file, "DULY_TOKEN=right", "DIGEST_SECRET="+digestSecret)
}

// done waits for a task of ada, and returns its result.
func (s *service) done(id string) string {
	s.Helper()
	require.Eventually(s, func() bool { return s.task(id).Status.Finished() }, 20*time.Second, 20*time.Millisecond)
	task := s.task(id)
	require.Equal(s, core.StatusCompleted, task.Status, task.LastError)
	return string(task.Result)
}

// A Worker at the edge runs what duly posts, submits, and ticks; it lets in neither a message without a signature nor a stranger.
func TestAWorkerAtTheEdge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copied(t, dir, "cloudflare-worker/worker.js", "../clients/typescript/duly.js")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "edge.mjs"), []byte(edge), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600))
	var s *service
	front := receiver(t, "node", dir, "edge.mjs", "DULY_URL=http://127.0.0.1:1", "DULY_TOKEN=right", "APP_TOKEN=mine")
	s = digests(t, "serve", front+"/run")
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "digest", Payload: map[string]any{"topics": []string{"go"}}})
	behind := receiver(t, "node", dir, "edge.mjs", "DULY_URL="+s.url, "DULY_TOKEN=right", "APP_TOKEN=mine")
	get, err := s.client.Get(behind + "/scheduled")
	require.NoError(t, err)
	require.NoError(t, get.Body.Close())
	assert.JSONEq(t, `{"digest":"of ada","topics":["go"]}`, s.done("1"))

	for token, want := range map[string]int{"": http.StatusUnauthorized, "mine": http.StatusCreated} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, behind+"/digests", strings.NewReader(`{"agent":"bob","delay":"1h","topics":["redis"]}`))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := s.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, want, res.StatusCode)
	}
	tasks, _, err := s.scheduler.Tasks(t.Context(), core.List{Agent: "bob"})
	require.NoError(t, err)
	assert.Len(t, tasks, 1)
	res, err := s.client.Post(front+"/run", "application/json", strings.NewReader(`{"agent_id":"eve","payload":{}}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, res.StatusCode)
}

// The receiver of the reference runs tasks as it stands there.
func TestTheReceiverOfTheReference(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reference/calls.md")
	require.NoError(t, err)
	code := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, code)
	assert.LessOrEqual(t, strings.Count(string(code[1]), "\n"), 25)
	dir := t.TempDir()
	copied(t, dir, "../clients/python/duly.py")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "receiver.py"), code[1], 0o600))
	url := receiver(t, "python3", dir, "receiver.py")
	s := digests(t, "daemon", url)
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "digest", Payload: map[string]any{"topics": []string{"go"}}})
	assert.JSONEq(t, `{"digest":"of go"}`, s.done("1"))
	res, err := s.client.Post(url, "application/json", strings.NewReader(`{"agent_id":"eve","payload":{}}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, res.StatusCode)
}
