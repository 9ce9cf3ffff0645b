package cli_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// What `make run` shows within its first seconds.
func TestTheQuickstart(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	w := noRedis()
	w.env = append(w.env, "XDG_STATE_HOME="+t.TempDir())
	d := w.start(t, "daemon", "-c", "../../examples/quickstart/duly.yaml", "--http", "127.0.0.1:0")
	d.line(t, "tasks are kept in", "duly/store")
	d.line(t, "duly is running", "store=", "duly/store", "tasks=6", "new=6")
	d.line(t, "run kind=note agent=ada task=heartbeat")
	d.line(t, "done kind=digest agent=bob")
	d.line(t, "failed, will retry kind=sync agent=cleo", "the other side is busy")
	d.line(t, "run kind=note agent=ada task=reminder")
	d.line(t, "done kind=sync agent=cleo", "attempt=2")
	d.line(t, "waits for a signal kind=refund agent=dora")
	d.line(t, "failed for good kind=import agent=cleo", "the file has no rows")
	assert.Less(t, time.Since(begun), 5*time.Second)

	// The command that it suggests works.
	_, try, _ := strings.Cut(d.line(t, "try command="), "command=")
	body := strings.Split(try, "'")[3]
	res, err := http.Post(d.url(t)+"/v1/tasks", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusCreated, res.StatusCode)
	d.line(t, "run kind=note agent=me", `payload={"text":"hello"}`)
	code, _ := d.stop(t, syscall.SIGINT)
	assert.Equal(t, 0, code)
}

func call(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(data)
}

func TestTheAPIOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN= old , new")
	d := w.start(t, "daemon", "-c", file(t, handlersFile), "--http", "0.0.0.0:0")
	url := strings.Replace(d.url(t), "[::]", "127.0.0.1", 1)
	url = strings.Replace(url, "0.0.0.0", "127.0.0.1", 1)
	d.line(t, "Authorization: Bearer $DULY_TOKEN")

	status, _ := call(t, http.MethodGet, url+"/v1/stats", "", "")
	assert.Equal(t, http.StatusUnauthorized, status)
	require.Eventually(t, func() bool {
		status, _ = call(t, http.MethodGet, url+"/readyz", "", "")
		return status == http.StatusOK
	}, 5*time.Second, 5*time.Millisecond)
	status, body := call(t, http.MethodPost, url+"/v1/tasks", "new", `{"agent_id":"a/b","id":"../i","kind":"note"}`)
	assert.Equal(t, http.StatusCreated, status, body)
	d.line(t, "run kind=note agent=a/b task=../i")
	s := w.scheduler(t)
	settled(t, s, "a/b", "../i", core.StatusCompleted)
	status, body = call(t, http.MethodGet, url+"/v1/agents/a%2Fb/tasks/..%2Fi", "old", "")
	assert.Equal(t, http.StatusOK, status, body)
	_, body = call(t, http.MethodGet, url+"/healthz", "", "")
	assert.Contains(t, body, `"status":"ok"`)

	w.redis.Kill()
	require.Eventually(t, func() bool {
		status, _ = call(t, http.MethodGet, url+"/readyz", "", "")
		return status == http.StatusServiceUnavailable
	}, 10*time.Second, 10*time.Millisecond)
	assert.NotContains(t, d.log(), "old")
}

func TestWhoMayListenWhere(t *testing.T) {
	t.Parallel()
	w := inMemory()
	for _, addr := range []string{"0.0.0.0:8080", ":8080", "[::]:8080"} {
		oneLine(t, w.duly(t, "daemon", "--http", addr), 2, "can be reached from other machines, and no token is set; set $DULY_TOKEN, add tokens to the file, or listen on 127.0.0.1:8080")
	}
	w.env = append(w.env, "DULY_TOKEN=, ,")
	oneLine(t, w.duly(t, "daemon", "--http", "127.0.0.1:0"), 2, "the environment variable DULY_TOKEN contains no token")
	for _, blank := range []string{"", " \n"} {
		w := noRedis()
		w.env = append(w.env, "CRON_SECRET="+blank)
		oneLine(t, w.duly(t, "serve", "--http", "127.0.0.1:0"), 2, "the environment variable CRON_SECRET contains no secret; set it, or unset it")
	}
	oneLine(t, noRedis().duly(t, "daemon", "-c", file(t, "token_env: MINE\nhttp: 127.0.0.1:0\n")), 2, "the environment variable MINE contains no token")
}

func TestATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	w := newWorld(t)
	w.ok(t, "stats")
	before := w.dbsize(t)
	config := file(t, handlersFile+"tasks:\n  - { agent: a, id: i, kind: note }\n")
	port := taken.Addr().(*net.TCPAddr).Port
	oneLine(t, w.duly(t, "daemon", "-c", config, "--http", taken.Addr().String()), 1,
		fmt.Sprintf("another program already listens on 127.0.0.1:%d", port), fmt.Sprintf("--http 127.0.0.1:%d", port%65535+1))
	assert.Equal(t, before, w.dbsize(t))
}

func TestJSONLogs(t *testing.T) {
	t.Parallel()
	d := inMemory().start(t, "daemon", "--log", "json", "-c", file(t, handlersFile+"tasks:\n  - { agent: a, id: i, kind: note, payload: { x: 1 } }\n"))
	line := parse[map[string]any](t, d.line(t, `"msg":"run"`))
	assert.Equal(t, "a", line["agent"])
	assert.Equal(t, map[string]any{"x": 1.0}, line["payload"])
}

// stampFile is a configuration whose handler appends a line to a file for each start.
func stampFile(t *testing.T) (config, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	return file(t, `handlers: { work: { exec: ["sh", "-c", 'echo "$DULY_TASK_ID $PPID" >>"$0"; sleep 0.02', `+log+`] } }`), log
}

func TestTwoDaemonsShareTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config, log := stampFile(t)
	s := w.scheduler(t)
	first, second := w.start(t, "daemon", "-c", config), w.start(t, "daemon", "-c", config)
	first.line(t, "duly is running")
	second.line(t, "duly is running")
	const tasks = 200
	var batch []core.NewTask
	for i := range tasks {
		batch = append(batch, core.NewTask{Agent: "a" + strconv.Itoa(i%20), ID: strconv.Itoa(i), Kind: "work"})
	}
	_, err := s.Submit(t.Context(), batch...)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stats, err := s.Stats(t.Context())
		return err == nil && stats.Completed == tasks
	}, 30*time.Second, 10*time.Millisecond)
	seen, by := map[string]int{}, map[string]int{}
	for _, line := range lines(t, log) {
		id, pid, _ := strings.Cut(line, " ")
		seen[id]++
		by[pid]++
	}
	assert.Len(t, seen, tasks)
	for id, n := range seen {
		assert.Equal(t, 1, n, id)
	}
	assert.Len(t, by, 2, "both have worked: %v", by)
	for _, d := range []*running{first, second} {
		code, _ := d.stop(t, syscall.SIGTERM)
		assert.Equal(t, 0, code)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// sleeperFile is a configuration whose handler starts a child, writes its process id to a file, and ends after a time.
func sleeperFile(t *testing.T, seconds string) (config, pidFile string) {
	t.Helper()
	pidFile = filepath.Join(t.TempDir(), "pid")
	return file(t, `handlers: { sleep: { exec: ["sh", "-c", 'sleep 300 & echo $! >"$0"; sleep `+seconds+`', `+pidFile+`] } }`), pidFile
}

// alive reports whether a process runs; one that nobody has waited for yet has ended.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// grandchild waits until a handler has written the process id of its child.
func grandchild(t *testing.T, path string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil
	}, 10*time.Second, 5*time.Millisecond)
	return pid
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	assert.Eventually(t, func() bool { return !alive(pid) }, 5*time.Second, 5*time.Millisecond, "process %d lives on", pid)
}

// sleeping starts a daemon and a task of sleeperFile, and waits until it runs.
func sleeping(t *testing.T, w *world, seconds string, flags ...string) (*running, *core.Scheduler, int) {
	t.Helper()
	s := w.scheduler(t)
	config, pidFile := sleeperFile(t, seconds)
	d := w.start(t, append([]string{"daemon", "-c", config}, flags...)...)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "sleep"})
	require.NoError(t, err)
	return d, s, grandchild(t, pidFile)
}

func TestSIGTERMLetsRunningTasksEnd(t *testing.T) {
	t.Parallel()
	d, s, pid := sleeping(t, newWorld(t), "1")
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	task, err := s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	assert.Equal(t, core.StatusCompleted, task.Status)
	gone(t, pid)
}

// After the grace a task is given back, uncharged, and its program ends.
func TestTheGraceEnds(t *testing.T) {
	t.Parallel()
	d, s, pid := sleeping(t, newWorld(t), "300", "--grace", "300ms")
	code, took := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	assert.Less(t, took, 5*time.Second)
	d.line(t, `released kind=sleep agent=a task=i in=0s reason="its process stopped"`)
	assert.NotContains(t, d.log(), "in=-", "its due time is past")
	task, err := s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Equal(t, 1, task.Attempt)
	gone(t, pid)
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	d, _, pid := sleeping(t, newWorld(t), "300")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGINT))
	var code int
	require.Eventually(t, func() bool { // two signals that come together count as one
		_ = d.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-d.ended:
			code = d.cmd.ProcessState.ExitCode()
			return true
		default:
			return false
		}
	}, 5*time.Second, 20*time.Millisecond)
	assert.Equal(t, 1, code)
	gone(t, pid)
}

// While Redis is away the daemon says so once, and once that it is back.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.start(t, "daemon", "-c", file(t, handlersFile))
	d.line(t, "duly is running")
	w.redis.Kill()
	d.line(t, "WARN the store is unavailable; retrying")
	w.redis.Restart(t)
	d.line(t, "the store is available again")
	w.ok(t, "submit", "--agent", "a", "--id", "i", "--kind", "note")
	d.line(t, "run kind=note agent=a task=i")
	for _, once := range []string{"the store is unavailable", "the store is available again"} {
		assert.Equal(t, 1, strings.Count(d.log(), once), d.log())
	}
	assert.LessOrEqual(t, strings.Count(d.log(), "\n"), 6, d.log())
}

// Nothing that a daemon has started outlives it, however it ends.
func TestProgramsDieWithTheirDaemon(t *testing.T) {
	t.Parallel()
	d, _, pid := sleeping(t, newWorld(t), "300")
	require.NoError(t, d.cmd.Process.Kill())
	gone(t, pid)
}
