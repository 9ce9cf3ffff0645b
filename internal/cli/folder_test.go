package cli_test

// Tasks in a folder: no Redis, one daemon, and commands that reach it by themselves.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/internal/cli/folder"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
)

// newFolder is a world whose tasks are in the folder of a user.
func newFolder(t *testing.T) (w *world, dir string) {
	t.Helper()
	w = noRedis()
	// A short path, as it has to have room for a socket.
	state, err := os.MkdirTemp("", "duly") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	w.env = append(w.env, "XDG_STATE_HOME="+state)
	return w, filepath.Join(state, "duly", "store")
}

// statusOf is what a command says of a task.
func (w *world) statusOf(t *testing.T, agent, id string) any {
	t.Helper()
	return w.object(t, "status", agent, id)["status"]
}

// becomes waits until a task of ada has a status.
func (w *world) becomes(t *testing.T, id, status string) {
	t.Helper()
	require.Eventually(t, func() bool { return w.statusOf(t, "ada", id) == status }, 20*time.Second, 50*time.Millisecond, "%s is not %s", id, status)
}

// A daemon keeps its tasks over kills and restarts, and is reached without being named.
func TestAFolderInPlaceOfRedis(t *testing.T) {
	t.Parallel()
	w, dir := newFolder(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "first", "--kind", "note") // before any daemon
	config := file(t, "lease: 2s\nhandlers: { note: { log: {} }, slow: { exec: [sleep, '60'] }, flag: { exec: [sh, -c, 'echo done'] } }")
	d := w.start(t, "daemon", "-c", config)
	assert.Contains(t, d.line(t, "tasks are kept in"), dir)
	w.becomes(t, "first", "completed")
	w.ok(t, "submit", "--agent", "ada", "--id", "runs", "--kind", "slow")
	w.ok(t, "submit", "--agent", "ada", "--id", "later", "--kind", "note", "--delay", "1h")
	w.ok(t, "submit", "--agent", "bob", "--id", "cron", "--kind", "note", "--cron", "0 9 * * *", "--zone", "Europe/Berlin")
	w.becomes(t, "runs", "in_progress")
	assert.Contains(t, w.ok(t, "context", "show"), "the daemon at "+filepath.Join(dir, "socket"))
	info, err := os.Stat(filepath.Join(dir, "socket"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	closed, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), closed.Mode().Perm())
	assert.Contains(t, w.ok(t, "doctor"), "ok  store")

	require.NoError(t, d.cmd.Process.Kill())
	<-d.ended
	assert.Equal(t, "waiting", w.statusOf(t, "ada", "later"), "commands open the folder themselves")
	assert.Equal(t, "completed", w.statusOf(t, "ada", "first"))
	assert.Contains(t, w.ok(t, "doctor"), "every live task (3) waits, runs or is parked")

	again := w.start(t, "daemon", "-c", config)
	again.line(t, "duly is running")
	again.line(t, "wait to be run again", "runs=1") // the lease of the process that died has run out
	w.becomes(t, "runs", "in_progress")
	oneLine(t, w.duly(t, "daemon", "-c", config), 1, "is in use by process "+fmt.Sprint(again.cmd.Process.Pid), "a Redis for any number")
	w.ok(t, "cancel", "ada", "runs")
	w.becomes(t, "runs", "cancelled")
	events := w.start(t, "events", "--json")
	events.line(t, "following the daemon at")
	w.ok(t, "run", "ada", "later")
	events.line(t, `"finish"`, `"later"`, `"completed"`)
	code, _ := again.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	assert.Equal(t, "completed", w.statusOf(t, "ada", "later"))
	snapshots, err := filepath.Glob(filepath.Join(dir, "snapshot-*"))
	require.NoError(t, err)
	assert.NotEmpty(t, snapshots)
}

// Many commands at once, with no daemon, take turns.
func TestCommandsShareAFolder(t *testing.T) {
	t.Parallel()
	w, _ := newFolder(t)
	done := make(chan result, 12)
	for i := range cap(done) {
		go func() {
			done <- w.duly(t, "submit", "--agent", "ada", "--id", fmt.Sprint(i), "--kind", "note", "--delay", "1h")
		}()
	}
	for range cap(done) {
		r := <-done
		assert.Equal(t, 0, r.code, r.stderr)
	}
	assert.Len(t, w.object(t, "list", "--agent", "ada")["tasks"], cap(done))
	// From a crontab, with what the file says.
	assert.Contains(t, w.ok(t, "run-due", "--all", "-c", file(t, "handlers: { other: { log: {} } }\ntasks: [{ agent: bob, id: t, kind: other, every: 1h }]")), "1 completed")
	assert.Equal(t, "waiting", w.statusOf(t, "bob", "t"), "it is due again in an hour")
}

func TestWhatNamesAFolder(t *testing.T) {
	t.Parallel()
	w, dir := newFolder(t)
	other := t.TempDir()
	assert.Contains(t, w.ok(t, "context", "show"), "file:"+dir)
	assert.Contains(t, w.ok(t, "context", "show", "--store", "file:"+other), "file:"+other+"\nnamed by  --store")
	assert.Contains(t, w.ok(t, "context", "show", "-c", file(t, "store: file://"+other)), "file:"+other)
	w.env = append(w.env, "DULY_STORE=file:"+other)
	assert.Contains(t, w.ok(t, "context", "show", "-c", file(t, "redis: redis://127.0.0.1:1")), "file:"+other+"\nnamed by  $DULY_STORE")
	assert.Contains(t, w.ok(t, "context", "show", "--redis", "redis://127.0.0.1:1"), "redis://127.0.0.1:1")
	oneLine(t, w.duly(t, "events"), 2, "no daemon has "+other+" open", "start duly daemon")
	oneLine(t, w.duly(t, "stats", "--store", "nonsense"), 2, "--store must be file:FOLDER or memory", `"nonsense"`)
	oneLine(t, w.duly(t, "stats", "--store", "memory"), 2, "tasks in memory would be lost")
	oneLine(t, w.duly(t, "stats", "--store", "file:/dev/null/x"), 1, "not a directory")
	oneLine(t, w.duly(t, "stats", "--store", "file:"+other, "--redis", "redis://127.0.0.1:1"), 2, "--redis and --store name a place each")
	for text, want := range map[string]string{
		"store: postgres://x": "store: must be memory, or file: and a folder", "store: memory\nredis: redis://127.0.0.1:1": "must be left out where there is redis",
		"fsync: sometimes": "fsync: must be always or a duration", "fsync: 1s\nredis: redis://127.0.0.1:1": "fsync: is for a store in a folder",
	} {
		w := noRedis()
		oneLine(t, w.duly(t, "daemon", "-c", file(t, text)), 2, want)
	}
	d := w.start(t, "daemon", "-c", file(t, "fsync: 50ms"), "--store", "memory")
	d.line(t, "tasks are kept in memory and are lost when this process ends")
	oneLine(t, noRedis().duly(t, "daemon"), 2, "no Redis is configured, and no home is known", "--store")
}

// Tasks move to a Redis and back. What was copied once is the same the next time, and the store that was read runs nothing any more.
func TestStoreCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here, dir := newFolder(t)
	for i := range 30 {
		here.ok(t, "submit", "--agent", fmt.Sprint("a", i%3), "--id", fmt.Sprint(i), "--kind", "note", "--delay", "1h", "--payload", fmt.Sprintf(`{"n":%d}`, i))
	}
	here.ok(t, "submit", "--agent", "a0", "--id", "daily", "--kind", "note", "--cron", "0 9 * * *", "--zone", "Europe/Berlin")
	here.ok(t, "agent", "set", "quiet", "--zone", "Asia/Tokyo")
	here.ok(t, "pause", "a1", "--reason", "slowly")
	here.ok(t, "pause", "--kind", "other", "--ahead")
	here.ok(t, "limit", "set", "--kind", "note", "--concurrency", "2")
	here.ok(t, "budget", "set", "--kind", "note", "--unit", "runs", "--amount", "100", "--per", "day")
	config := file(t, "handlers: { note: { log: {} } }")
	d := here.start(t, "daemon", "-c", config)
	d.line(t, "duly is running")
	oneLine(t, here.duly(t, "store", "copy", "--to", w.redis.URL), 1, "is in use by process")
	d.stop(t, syscall.SIGTERM)

	out := here.ok(t, "store", "copy", "--to", w.redis.URL)
	assert.Contains(t, out, "4 agents and 31 live tasks of "+dir)
	assert.Contains(t, out, "limits, budgets and pauses of more than an agent: 3 new")
	assert.Contains(t, out, "has 31 live tasks now; "+dir+" has 31, and is paused as a whole")
	for _, agent := range []string{"a0", "a1", "a2", "quiet"} {
		assert.Equal(t, sortedLines(here.ok(t, "agent", "export", agent)), sortedLines(w.ok(t, "agent", "export", agent)), agent)
	}
	for _, command := range []string{"limit list", "budget list"} {
		assert.Equal(t, here.ok(t, strings.Fields(command)...), w.ok(t, strings.Fields(command)...))
	}
	again := here.object(t, "store", "copy", "--to", w.redis.URL)
	assert.EqualValues(t, 0, again["new"])
	assert.EqualValues(t, 31, again["to_live"])
	assert.Contains(t, here.ok(t, "pauses"), "its tasks were copied to "+w.redis.URL)

	oneLine(t, w.duly(t, "store", "copy", "--to", "file:"+t.TempDir()), 2, "stop every process of that store, then pass --yes")
	oneLine(t, w.duly(t, "store", "copy", "--to", w.redis.URL, "--yes"), 2, "the same store")
	oneLine(t, w.duly(t, "store", "copy"), 2, "where to is not said")
	back := "file:" + t.TempDir()
	assert.EqualValues(t, 31, w.object(t, "store", "copy", "--to", back, "--yes")["to_live"])
	assert.Equal(t, sortedLines(w.ok(t, "agent", "export", "a0")), sortedLines(noRedis().ok(t, "agent", "export", "a0", "--store", back)))
}

// A daemon of a folder is killed again and again, and frozen before: all that was submitted is completed, and no start goes unexplained. None waits for
// the lease of a dead process, which is half a minute.
func TestCrashesInAFolder(t *testing.T) {
	t.Parallel()
	w, dir := newFolder(t)
	log := filepath.Join(t.TempDir(), "starts")
	config := func(lease time.Duration) string {
		return file(t, fmt.Sprintf(`
lease: %s
max_crashes: 20  # as in TestCrashes
handlers:
  work: { exec: ["sh", "-c", 'echo "$DULY_TASK_ID $DULY_FENCE $DULY_ATTEMPT $DAEMON $(date +%%s%%N)" >>"$0"; sleep 0.02', %s] }
`, lease, log))
	}
	short, usual := config(crashLease), config(30*time.Second)
	client, err := remote.New(remote.OnSocket(folder.Socket(dir)))
	require.NoError(t, err)
	defer client.Close()
	begun, killed, tasks := map[*running]time.Time{}, map[int]time.Time{}, 0
	start := func(number int) *running {
		numbered := world{env: append(slices.Clone(w.env), "DAEMON="+strconv.Itoa(number))}
		at := time.Now()
		of := usual
		if number == 1 {
			of = short
		}
		d := numbered.start(t, "daemon", "-c", of)
		begun[d] = at
		d.line(t, "duly is running")
		return d
	}
	submit := func(n int) {
		all := make([]core.NewTask, n)
		for i := range all {
			all[i] = core.NewTask{Agent: agentOf(tasks + i), ID: strconv.Itoa(tasks + i), Kind: "work"}
		}
		_, err := client.Submit(t.Context(), all...)
		require.NoError(t, err)
		tasks += n
	}
	d := start(1)
	const kills = 12
	for number := 1; number <= kills; number++ {
		submit(60)
		pause(time.Duration(rand.IntN(300)) * time.Millisecond)
		if number == 1 { // frozen for longer than a lease: its runs go on, and none starts again
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGSTOP))
			pause(crashLease + time.Second/2)
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGCONT))
			pause(time.Second)
		}
		killed[number] = time.Now()
		require.NoError(t, d.cmd.Process.Kill())
		<-d.ended
		d = start(number + 1)
	}
	require.Eventually(t, func() bool {
		stats, err := client.Stats(t.Context())
		return err == nil && stats.Completed == int64(tasks)
	}, 60*time.Second, 50*time.Millisecond)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	st, err := filestore.Open(filestore.Config{Dir: dir})
	require.NoError(t, err)
	defer func() { assert.NoError(t, st.Close()) }()
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	account(t, s, tasks, starts(t, log), killed, longestStart(t, begun), lateness(t))
}
