package browser_test

// What is looked at: a daemon with a bit of everything, on a Redis of its own.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// config is the file of the daemon: kinds that work, fail and take long, and what bounds them.
const config = `
name: worker-1
http: 127.0.0.1:0
concurrency: 8
approvals: { url: "http://127.0.0.1:1", secret_env: APPROVALS_SECRET }
handlers:
  digest: { exec: ["sh", "-c", "echo '{\"mails\":3,\"unread\":[\"Q4 plan\",\"invoice 1203\"]}'"] }
  sync: { exec: ["sh", "-c", "sleep 0.02"] }
  crm: { exec: ["sh", "-c", "echo \"connection to crm-$DULY_FENCE.example refused\" >&2; exit 1"], max_attempts: 1 }
  refund: { exec: ["sh", "-c", "grep -q heard || echo 'duly-await: {\"key\":\"approval\",\"from\":\"approval\",\"question\":\"Refund 40 EUR to Bob?\",\"timeout\":\"24h\"}' >&3"] }
  research: { exec: ["sleep", "600"], timeout: 15m }
limits:
  - { kind: research, concurrency: 1 }
  - { kind: sync, rate: 600/1m }
budgets:
  - { each: agent, unit: runs, amount: 500, per: day }
agents:
  - { agent: ada, zone: Europe/Berlin, quiet: [{ from: "22:00", to: "06:00" }], labels: { team: care } }
tasks:
  - { agent: ada, id: morning-digest, kind: digest, cron: "0 9 * * MON-FRI", zone: Europe/Berlin }
  - { agent: ada, id: weekly-review, kind: digest, cron: "0 17 * * FRI", zone: Europe/Berlin }
  - { agent: ada, id: sync-calendar, kind: sync, every: 1s }
  - { agent: ada, id: noon-check, kind: digest, cron: "0 12 * * *" }
  - { agent: bob, id: sync-crm, kind: crm, every: 1s }
  - { agent: bob, id: ping, kind: sync, every: 1s }
  - { agent: cleo, id: long-research, kind: research }
  - { agent: cleo, id: second-research, kind: research }
`

// redisServer starts a Redis that ends with the test.
func redisServer(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DULY_TEST_REDIS_SERVER")
	if path == "" {
		t.Skip("DULY_TEST_REDIS_SERVER names no redis-server: make ui-test finds one")
	}
	dir, err := os.MkdirTemp("", "duly") // a short path, as sockets need
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	start(t, exec.Command(path, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir))
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	return "unix://" + socket
}

// start starts a program that ends with the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "duly")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/duly")
	cmd.Dir = "../../.."
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// daemon starts a daemon and returns the address of its API.
func daemon(t *testing.T, program, redis string, env ...string) string {
	t.Helper()
	return daemonOf(t, program, redis, config, env...)
}

// daemonOf is daemon with a file.
func daemonOf(t *testing.T, program, redis, text string, env ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.Command(program, "daemon", "-c", file, "--redis", redis, "--grace", "1s")
	cmd.Env = append(os.Environ(), append(env, approvalsSecret)...)
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	start(t, cmd)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if _, url, found := strings.Cut(lines.Text(), "console url="); found {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return strings.TrimSuffix(url, "/ui")
		}
	}
	t.Fatal("the daemon did not say where its console is")
	return ""
}

// approvalsSecret is what signs the addresses of approvals.
const approvalsSecret = "APPROVALS_SECRET=0123456789abcdef"

// approval is the path of the page on which a person answers a task, without a credential.
func approval(t *testing.T, program, redis, agent, id string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	cmd := exec.Command(program, "approval", agent, id, "-c", file, "--redis", redis)
	cmd.Env = append(os.Environ(), approvalsSecret)
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "http://127.0.0.1:1")
}

// fill adds what a file cannot have: tasks whose kind nobody handles, attacks, and a pause.
func fill(t *testing.T, url string) {
	t.Helper()
	for _, id := range []string{"translate-1", `<img src=x onerror=window.attacked=1>`, `"><script>window.attacked=1</script>`} {
		call(t, url, "/v1/tasks", fmt.Sprintf(`{"agent_id":"dora","id":%q,"kind":"translate","payload":{"text":%q}}`, id, id))
	}
	for i := range 5 {
		call(t, url, "/v1/tasks", fmt.Sprintf(`{"agent_id":"dora","id":"import-%d","kind":"crm"}`, i))
	}
	for _, id := range []string{"refund-1042", "refund-1043"} {
		call(t, url, "/v1/tasks", fmt.Sprintf(`{"agent_id":"finn","id":%q,"kind":"refund","payload":{"order":%q,"amount":"40.00 EUR","to":"Bob Miller"}}`, id, id))
	}
	call(t, url, "/v1/agents/bob/tasks/ping/pause", `{"reason":"CRM maintenance","by":"ops","for":"2h"}`)
}

// call sends a request to the API.
func call(t *testing.T, url, path, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	said, _ := io.ReadAll(res.Body)
	require.Less(t, res.StatusCode, 300, string(said))
}
