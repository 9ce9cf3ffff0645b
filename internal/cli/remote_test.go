package cli_test

// Commands on a server: the same output as on its Redis, byte for byte, and the same errors.

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const serverToken = "t0p-secret-t0ken"

// served is a world with a server on its Redis, and one without a Redis whose commands ask that server.
func served(t *testing.T, file string) (local, far *world) {
	t.Helper()
	local = newWorld(t)
	server := *local
	server.env = append(append([]string(nil), local.env...), "DULY_TOKEN="+serverToken)
	args := []string{"serve", "--http", "127.0.0.1:0"}
	if file != "" {
		args = append(args, "-c", file)
	}
	url := server.start(t, args...).url(t)
	far = noRedis()
	far.env = append(far.env, "DULY_SERVER="+url, "DULY_TOKEN="+serverToken)
	return local, far
}

// moments and nonces differ from call to call.
var (
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	durations = regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b`)
	numbers   = regexp.MustCompile(`"(created|last_changed|duration_ms|at|since)":\d+`)
	blanks    = regexp.MustCompile(` {2,}`)
)

// Who ordered something is whom a command names on its store, and its credential at a server.
func steady(text string) string {
	text = strings.ReplaceAll(text, ", by a credential without a name", "")
	text = durations.ReplaceAllString(moments.ReplaceAllString(text, "TIME"), "SPAN")
	return blanks.ReplaceAllString(numbers.ReplaceAllString(text, `"$1":0`), "  ")
}

// alike runs a command on both and compares all that it says.
func alike(t *testing.T, local, far *world, exact bool, args ...string) {
	t.Helper()
	l, r := local.duly(t, args...), far.duly(t, args...)
	if !exact {
		l.stdout, r.stdout, l.stderr, r.stderr = steady(l.stdout), steady(r.stdout), steady(l.stderr), steady(r.stderr)
	}
	assert.Equal(t, l.stdout, r.stdout, "%q", args)
	assert.Equal(t, l.stderr, r.stderr, "%q", args)
	assert.Equal(t, l.code, r.code, "%q: %s", args, r.stderr)
	assert.NotContains(t, r.stdout+r.stderr, serverToken)
}

// fill puts tasks of all sorts into a store.
func fill(t *testing.T, w *world) {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw.json") // JSON that no encoder of ours has written
	require.NoError(t, os.WriteFile(raw, []byte("{\"agent_id\":\"raw\",\"id\":\"r\",\"kind\":\"note\",\"delay\":\"3h\",\"payload\":{ \"a\" : \"<b> & \\u003cc\\u003e \\\\u003c \u202e\"}}"), 0o600))
	for _, args := range [][]string{
		{"submit", "-f", raw},
		{"submit", "--agent", "ada", "--id", "n1", "--kind", "note", "--payload", `{"text": "<hi> & \u003cbye\u003e", "n": [1, 2]}`, "--tag", "x", "--group", "g", "--label", "cube=c"},
		{"submit", "--agent", "ada", "--id", "cron", "--kind", "note", "--cron", "0 1 * * *", "--zone", "Europe/Berlin", "--jitter", "3m", "--limit-key", "openai:gpt"},
		{"submit", "--agent", "ada", "--id", "every", "--kind", "digest", "--every", "90m", "--from", "start", "--overlap", "allow", "--timeout", "0s", "--backoff", "0s", "--delay", "1h"},
		{"submit", "--agent", "bob/..%2F", "--id", "a b/c?d#e", "--kind", "no/ne", "--at", "2036-01-02T03:04:05Z", "--level", "1"},
		{"submit", "--agent", "..", "--id", ".", "--kind", "note", "--delay", "2h", "--payload", `{ "text": "<hi> & \u003cbye\u003e \\u003c \u202e", "n": [1, 2], "é": "\u00e9" }`},
		{"submit", "--agent", "dead", "--id", "d1", "--kind", "bad", "--max-attempts", "1"},
		{"submit", "--agent", "dead", "--id", "d2", "--kind", "bad", "--max-attempts", "1"},
		{"run-due", "-c", file(t, "handlers: { note: { log: {} }, bad: { exec: [\"/bin/sh\", \"-c\", \"echo broken '<x>' >&2; exit 65\"] } }\n"), "--all"},
		{"pause", "ada", "cron", "--reason", "quota & more", "--by", "ops"},
		{"pause", "--kind", "digest", "--until", "2036-01-01T00:00:00Z", "--by", "ops"},
		{"limit", "set", "--kind", "note", "--concurrency", "5", "--rate", "60/1m"},
		{"limit", "set", "--key", "openai:*", "--each", "key", "--rate", "10/1h", "--burst", "0"},
		{"budget", "set", "--each", "agent", "--unit", "tokens", "--per", "day", "--amount", "1000.25", "--zone", "Europe/Berlin"},
		{"agent", "set", "ada", "--quota", "live=200,interval=5m,kinds=note+report-*", "--zone", "Europe/Berlin", "--quiet", "22:00-07:00 mon-fri", "--label", "tier=gold", "--limit", "rate=60/1m,burst=0", "--limit", "kind=note,rate=5/1s", "--budget", "unit=usd,amount=0.5,per=day"},
	} {
		r := w.duly(t, args...)
		require.Contains(t, []int{0, 4}, r.code, "%q: %s", args, r.stderr)
	}
}

// Reading prints the same bytes, as a table and as JSON.
func TestReadingAServerPrintsTheSame(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs nearly every command, each several times")
	}
	local, far := served(t, "")
	fill(t, local)
	odd := []string{"bob/..%2F", "a b/c?d#e"}
	for _, args := range [][]string{
		{"list"},
		{"list", "--agent", "ada"},
		{"list", "--agent", "ada", "--status", "completed,waiting", "--limit", "2"},
		{"list", "--status", "failed", "--since", "1d"},
		{"list", "--status", "failed", "--text", "D1"},
		{"list", "--status", "failed", "--cause", "no such cause"},
		{"list", "--agent", "ada", "--due-by", "2100-01-01T00:00:00Z"},
		{"list", "--due-by", "soon"},
		{"list", "--asking"},
		{"list", "--session", "s"},
		{"list", "--agent", "nobody"},
		{"status", "ada", "n1"},
		{"status", "ada", "cron"},
		{"status", "ada", "every"},
		{"status", odd[0], odd[1]},
		{"status", "..", "."},
		{"status", "raw", "r"},
		{"status", "dead", "d1"},
		{"runs", "dead", "d1"},
		{"runs", "ada", "cron"},
		{"logs", "dead", "d1"},
		{"logs", "dead", "d1", "--follow"},
		{"logs", "ada", "n1"},
		{"jobs"},
		{"jobs", "ada", "--kind", "note"},
		{"agents"},
		{"agents", "--limit", "2"},
		{"agents", "--sort", "waiting"},
		{"agents", "--sort", "overdue", "--limit", "3"},
		{"approvals"},
		{"wait", "ada", "n1"},
		{"pauses"},
		{"kinds"},
		{"queue"},
		{"queue", "bad"},
		{"processes"},
		{"limit", "list"},
		{"budget", "list"},
		{"agent", "show", "ada"},
		{"agent", "list"},
		{"audit"},
		{"stats", "--window", "1h"},
		{"presets"},
		{"next", "0 9 * * *", "--from", "2026-01-01T00:00:00Z"},
		{"bulk", "replay", "--status", "failed", "--dry-run"},
		{"agent", "forget", "ada", "--dry-run"},
	} {
		exact := args[0] != "stats" && args[0] != "processes"
		alike(t, local, far, exact, args...)
		alike(t, local, far, exact, append(args, "--json")...)
	}
	for _, args := range [][]string{{"stats"}, {"explain", "ada", "cron"}, {"explain", "ada", "every"}, {"explain", "dead", "d1"}} { // they have the time of now
		alike(t, local, far, false, args...)
		alike(t, local, far, false, append(args, "--json")...)
	}
	alike(t, local, far, true, "agent", "export", "ada")
}

// What is refused is refused with the same line and the same exit code.
func TestAServerRefusesTheSame(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs nearly every command, each several times")
	}
	local, far := served(t, "")
	fill(t, local)
	for _, args := range [][]string{
		{"status", "ada", "none"},
		{"explain", "ada", "none"},
		{"logs", "ada", "none"},
		{"logs", "ada", "none", "--follow"},
		{"logs", "dead", "d1", "--previous"},
		{"logs", "dead", "d1", "--previous", "--follow"},
		{"run", "ada", "none"},
		{"cancel", "ada", "none"},
		{"replay", "ada", "none"},
		{"replay", "ada", "cron"},
		{"delete", "ada", "none"},
		{"edit", "ada", "none", "--set", `{"level":1}`},
		{"edit", "ada", "cron", "--set", `{"levl":1}`},
		{"edit", "ada", "n1", "--set", `{"level":1}`},
		{"pause", "ada", "none"},
		{"pause", "--kind", "unknown"},
		{"pause", "nobody"},
		{"pause", "ada", "--reason", strings.Repeat("x", 2000)},
		{"resume", "nobody"},
		{"queue", "none"},
		{"list", "--agent", "ada", "--status", "odd"},
		{"list", "--agent", "ada", "--limit", "5000"},
		{"list", "--since", "soon"},
		{"list", "--agent", "ada", "--cursor", "bogus"},
		{"stats", "--window", "1m"},
		{"submit", "--agent", "ada", "--kind", "note", "--every", "1ns"},
		{"submit", "--agent", "ada", "--id", "cron", "--kind", "note", "--on-conflict", "fail"},
		{"submit", "--agent", "ada"},
		{"submit", "--kind", "note"},
		{"submit", "--agent", "ada", "--kind", "note", "--cron", "x"},
		{"submit", "--agent", "ada", "--kind", "note", "--callback", "http://x"},
		{"limit", "unset", "--kind", "none"},
		{"limit", "set", "--kind", "note"},
		{"budget", "unset", "--all", "--unit", "usd", "--per", "day"},
		{"budget", "set", "--all", "--unit", "usd", "--per", "week", "--amount", "1"},
		{"agent", "show", "nobody"},
		{"agent", "unset", "nobody"},
		{"agent", "export", "nobody"},
		{"agent", "set", "ada", "--zone", "Mars/Base"},
		{"signal", "ada", "key", "--payload", "{"},
		{"bulk", "cancel", "--agent", "ada", "--status", "odd", "--yes"},
	} {
		alike(t, local, far, false, args...)
	}
	assert.Equal(t, 3, far.duly(t, "status", "ada", "none").code)
	assert.Equal(t, 2, far.duly(t, "submit", "--agent", "ada").code)
}

// Changing does the same to the store of a server, and says so in the same words. Each has a store of its own, as a change cannot be made twice.
func TestChangingAServerIsTheSame(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs nearly every command, each several times")
	}
	config := file(t, "handlers: { summary: { log: {}, activity: { quiet: 30m } } }\n")
	local, far := newWorld(t), (*world)(nil)
	on, far := served(t, config)
	fill(t, local)
	fill(t, on)
	lines := filepath.Join(t.TempDir(), "ada.jsonl")
	require.NoError(t, os.WriteFile(lines, []byte(local.ok(t, "agent", "export", "ada")+"{\"odd\":1}\n"), 0o600))
	tasks := filepath.Join(t.TempDir(), "tasks.json")
	require.NoError(t, os.WriteFile(tasks, []byte(`{"tasks":[{"agent_id":"f","id":"1","kind":"k","pause_after_failures":0},{"agent_id":"f","id":"2","kind":"k","delay":"1h","labels":{"a":"b"}}]}`), 0o600))
	for _, args := range [][]string{
		{"submit", "--agent", "new", "--id", "1", "--kind", "note", "--every", "1h", "--payload", `"x"`, "--label", "user_name=ann", "--paused"},
		{"submit", "--agent", "new", "--id", "1", "--kind", "note", "--every", "2h", "--on-conflict", "replace"},
		{"submit", "-f", tasks},
		{"status", "new", "1"},
		{"edit", "ada", "every", "--set", `{"level": 1}`},
		{"run", "ada", "every"},
		{"resume", "ada", "cron"},
		{"pause", "ada", "every", "--for", "1h", "--reason", "why", "--by", "me"},
		{"pause", "--all", "--by", "me"},
		{"resume", "--all"},
		{"pause", "later", "--ahead", "--by", "me"},
		{"resume", "later"},
		{"resume", "never", "--ahead"},
		{"cancel", "ada", "every", "--reason", "done", "--by", "me"},
		{"replay", "dead", "d1"},
		{"replay", "dead", "d2", "--payload", `{"text":"another"}`},
		{"replay", "dead", "--all"},
		{"replay", "dead", "--all", "--payload", "1"},
		{"replay", "dead", "d1", "--payload", "{"},
		{"delete", "ada", "every"},
		{"delete", "ada", "none", "cron"},
		{"delete", "ada", "none", "cron", "--yes"},
		{"bulk", "cancel", "--agent", "dead", "--yes", "--by", "me", "--reason", "no"},
		{"limit", "set", "--all", "--concurrency", "200", "--adaptive"},
		{"limit", "unset", "--all"},
		{"budget", "set", "--all", "--unit", "usd", "--per", "month", "--amount", "2.5", "--then", "notify"},
		{"budget", "unset", "--all", "--unit", "usd", "--per", "month"},
		{"agent", "set", "eve", "--zone", "Asia/Tokyo"},
		{"agent", "set", "eve", "--quota", "live=200,interval=5m,kinds=note+report-*", "--limit", "kind=note,concurrency=2", "--quiet", "22:00-07:00"},
		{"agent", "set", "eve", "--zone", "Europe/Berlin"},
		{"agent", "show", "eve"},
		{"agent", "set", "eve", "--quota", "none", "--quiet", "none"},
		{"agent", "show", "eve"},
		{"agent", "unset", "eve"},
		{"signal", "ada", "key", "--payload", `{"a":1}`},
		{"signal", "ada", "key"},
		{"agent", "import", lines, "--as", "copy"},
		{"agent", "import", lines},
		{"agent", "forget", "copy"},
		{"agent", "forget", "copy", "--yes"},
		{"list", "--agent", "ada"},
	} {
		alike(t, local, far, false, args...)
	}
	l := local.duly(t, "activity", "summary", "--user", "ann", "-c", config)
	r := far.duly(t, "activity", "summary", "--user", "ann")
	assert.Equal(t, steady(l.stdout), steady(r.stdout), r.stderr)
	assert.Contains(t, far.ok(t, "run-due", "--all"), "ran ")
	assert.Contains(t, far.duly(t, "doctor").stdout, "the store answers")
	assert.Equal(t, on.ok(t, "list", "--json"), far.ok(t, "list", "--json"))
}

// A server runs what is due with its own handlers; runs that fail are the exit code, as here.
func TestAServerRunsWhatIsDue(t *testing.T) {
	t.Parallel()
	config := file(t, "handlers: { bad: { exec: [\"/bin/sh\", \"-c\", \"exit 65\"] } }\n")
	local := newWorld(t)
	on, far := served(t, config)
	for _, w := range []*world{local, on} {
		w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "bad", "--max-attempts", "1")
	}
	here := local.duly(t, "run-due", "-c", config, "--agents", "ada,bob", "--max", "5", "--timeout", "20s")
	there := far.duly(t, "run-due", "--agents", "ada,bob", "--max", "5", "--timeout", "20s")
	assert.Equal(t, 4, there.code, there.stderr)
	assert.Equal(t, steady(here.stdout), steady(there.stdout))
	assert.Contains(t, there.stderr, `duly: run-due: 1 run(s) failed: 1 of agent "ada" (bad): exit status 65`)
	assert.Contains(t, here.stderr, strings.TrimSpace(there.stderr))
	assert.Equal(t, 0, far.duly(t, "run-due", "--all", "--json").code)
	oneLine(t, far.duly(t, "run-due", "--all", "--timeout", "1h"), 2, "must be at most")
	assert.Equal(t, 0, far.duly(t, "run-due", "--all", "-c", config, "--store", "memory").code, "with a file it runs here")
}

// Nobody there, a wrong token and another program are told apart, in one line without the token.
func TestAServerThatIsAwaySaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := inMemory()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	gone := "http://" + closed.Addr().String()
	oneLine(t, w.duly(t, "stats", "--server", gone, "--token", serverToken), 5,
		"duly: stats: no duly answers at "+gone+": the connection was refused; check that duly daemon --http or duly serve is running there")

	_, far := served(t, "")
	server := strings.TrimPrefix(far.env[len(far.env)-2], "DULY_SERVER=")
	oneLine(t, w.duly(t, "stats", "--server", server), 6, "asks for a token; pass --token, set $DULY_TOKEN")
	r := w.duly(t, "stats", "--server", server, "--token", "wr0ng")
	oneLine(t, r, 6, "does not accept the token; pass --token")
	assert.NotContains(t, r.stderr, "wr0ng")
	assert.Equal(t, 0, w.duly(t, "stats", "--server", server+"/", "--token", serverToken).code)
	oneLine(t, w.duly(t, "stats", "--server", strings.Replace(server, "http:", "https:", 1), "--token", serverToken), 1, "it speaks http://, not https://")
	oneLine(t, w.duly(t, "stats", "--server", server+"/below", "--token", serverToken), 1, "does not know this call")

	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, "/stats") {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("<html>\x1b[2J"))
	}))
	defer other.Close()
	oneLine(t, w.duly(t, "stats", "--server", other.URL, "--token", serverToken), 1, "redirects to", "not followed")
	oneLine(t, w.duly(t, "agents", "--server", other.URL), 1, "answered with something that is not duly's")
	assert.EqualValues(t, 2, asked.Load())
}

// A token does not travel where others can read it, and is in no output.
func TestATokenIsNotSentInTheClear(t *testing.T) {
	t.Parallel()
	w := inMemory()
	for _, args := range [][]string{{"stats"}, {"events"}, {"submit", "--agent", "a", "--kind", "k"}, {"run-due", "--all"}, {"doctor"}} {
		r := w.duly(t, append(args, "--server", "http://duly.invalid:1", "--token", serverToken)...)
		oneLine(t, r, 2, "--server must begin with https:// when a token is sent to another machine", "--insecure-http")
		assert.NotContains(t, r.stderr, serverToken)
	}
	oneLine(t, w.duly(t, "stats", "--server", "http://duly.invalid:1", "--token", serverToken, "--insecure-http"), 5, "no duly answers at http://duly.invalid:1")
	oneLine(t, w.duly(t, "stats", "--server", "http://duly.invalid:1"), 5, "no duly answers at http://duly.invalid:1")
	oneLine(t, w.duly(t, "stats", "--server", "http://me:pw@127.0.0.1:1"), 2, "--server must have no name and no password")
	oneLine(t, w.duly(t, "stats", "--server", "127.0.0.1:8080"), 2, "--server must be a URL")
	oneLine(t, w.duly(t, "stats", "--server", "http://127.0.0.1:1", "--token", "a\nb"), 2, "--token must be one line")
}

// What needs Redis itself says so, and what names two places is refused.
func TestCommandsThatNeedRedisSayWhy(t *testing.T) {
	t.Parallel()
	w := inMemory()
	for _, args := range [][]string{{"daemon"}, {"serve"}, {"upgrade", "--yes"}, {"repartition", "--to", "1"}, {"apply"}, {"approval", "a", "k"}} {
		oneLine(t, w.duly(t, append(args, "--server", "http://127.0.0.1:1")...), 2, "--server cannot be used here: ", "; ")
	}
	oneLine(t, w.duly(t, "doctor", "--host", "upstash", "--server", "http://127.0.0.1:1"), 2, "--host looks at Redis itself")
	oneLine(t, w.duly(t, "stats", "--server", "http://127.0.0.1:1", "--redis", "redis://127.0.0.1:1"), 2, "--server and --redis name a place each")
	oneLine(t, w.duly(t, "stats", "--server", "http://127.0.0.1:1", "--prefix", "x:"), 2, "--prefix is for a Redis")
	oneLine(t, w.duly(t, "run-due", "--all", "-c", file(t, "handlers: {}\n"), "--server", "http://127.0.0.1:1"), 2, "--server and -c exclude each other")
	oneLine(t, w.duly(t, "stats", "--token", "x"), 2, "--token is for a server")
	oneLine(t, w.duly(t, "stats", "--server", ""), 2, "--server must not be empty")
}

// Who orders something at a server is the credential of the command, whomever it names; on the store itself it is whom it names.
func TestByIsTheCredential(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	for w, want := range map[*world][2]any{local: {"root-operator", nil}, far: {"a credential without a name", "root-operator"}} {
		for _, id := range []string{"1", "2"} {
			w.ok(t, "submit", "--agent", "a", "--id", id, "--kind", "k", "--delay", "1h", "--on-conflict", "replace")
		}
		w.ok(t, "pause", "a", "1", "--by", "root-operator")
		w.ok(t, "bulk", "pause", "--agent", "a", "--yes", "--by", "root-operator")
		pauses := w.objects(t, "pauses", "pauses")
		require.Len(t, pauses, 2)
		for _, p := range pauses {
			assert.Equal(t, want, [2]any{p["by"], p["note"]})
		}
		w.ok(t, "resume", "a", "1")
		w.ok(t, "resume", "a", "2")
	}
}
