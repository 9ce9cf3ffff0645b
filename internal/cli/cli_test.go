package cli_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

type taskJSON struct {
	ID      string
	Agent   string `json:"agent_id"`
	Kind    string
	Status  string
	Created bool
	Payload any
	Result  any
	Due     time.Time `json:"due_at"`
	Every   string
	Reason  string
	Error   string `json:"last_error"`
	Attempt int
	Runs    int `json:"run_count"`
}

type tasksJSON struct {
	Tasks []taskJSON
	Next  string `json:"next_cursor"`
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	w := noRedis()
	assert.True(t, strings.HasPrefix(w.ok(t, "version"), "duly "))
	assert.NotEmpty(t, parse[map[string]string](t, w.ok(t, "version", "--json"))["version"])
	assert.Contains(t, w.ok(t), "duly runs due tasks for AI agents")
	assert.Equal(t, "duly.yaml", parse[map[string]any](t, w.ok(t, "schema"))["title"])
	overview := w.ok(t, "--help")
	for name := range strings.FieldsSeq(`daemon run-due submit activity presets next list status explain runs jobs agents queue stats
		pause resume run cancel delete replay version schema`) {
		assert.Contains(t, overview, "  "+name+" ")
		help := w.ok(t, name, "--help")
		assert.Contains(t, help, "Usage:\n  duly "+name)
		assert.True(t, name == "version" || strings.Contains(help, "Examples:\n  duly "+name), "the help of %s has an example", name)
	}
	assert.Contains(t, w.ok(t, "completion", "bash"), "bash completion")
	verbs := w.ok(t, "__complete", "r")
	for _, verb := range []string{"replay", "resume", "run", "run-due", "runs"} {
		assert.Contains(t, verbs, verb+"\t")
	}
	assert.Contains(t, w.ok(t, "__complete", "submit", "--overlap", "q"), "queue_one\n")
	assert.Contains(t, w.ok(t, "__complete", "submit", "--preset", "memory.r"), "memory.rollup_day\n")
}

func TestSubmitListStatusStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.ok(t, "submit", "--agent", "ada", "--kind", "note", "--id", "n1", "--payload", `{"text":"hi"}`, "--group", "g", "--tag", "x", "--level", "1")
	assert.Contains(t, out, "ada")
	assert.Contains(t, out, "yes")
	again := parse[tasksJSON](t, w.ok(t, "submit", "--agent", "ada", "--kind", "note", "--id", "n1", "--json"))
	assert.False(t, again.Tasks[0].Created)
	at := parse[tasksJSON](t, w.ok(t, "submit", "--agent", "ada", "--kind", "digest", "--id", "n2", "--at", "2030-01-02T03:04:05+01:00", "--json"))
	assert.True(t, at.Tasks[0].Created)
	assert.Equal(t, "2030-01-02T02:04:05Z", at.Tasks[0].Due.Format(time.RFC3339))
	r := w.dulyWith(t, `{"n":1}`, "submit", "--agent", "ada", "--kind", "note", "--id", "n3", "--every", "90s", "--delay", "1h", "--payload", "-")
	assert.Equal(t, 0, r.code, r.stderr)

	list := parse[tasksJSON](t, w.ok(t, "list", "--agent", "ada", "--json"))
	assert.Len(t, list.Tasks, 3)
	assert.Equal(t, map[string]any{"text": "hi"}, list.Tasks[0].Payload)
	assert.Equal(t, "1m30s", list.Tasks[1].Every, "what waits is listed by due time")
	assert.Len(t, parse[tasksJSON](t, w.ok(t, "list", "--agent", "ada", "--kind", "digest", "--json")).Tasks, 1)
	assert.Len(t, parse[tasksJSON](t, w.ok(t, "list", "--agent", "ada", "--group", "g", "--json")).Tasks, 1)
	assert.Empty(t, parse[tasksJSON](t, w.ok(t, "list", "--agent", "ada", "--status", "failed,completed", "--json")).Tasks)
	page := parse[tasksJSON](t, w.ok(t, "list", "--agent", "ada", "--limit", "2", "--json"))
	assert.NotEmpty(t, page.Next)
	assert.Len(t, parse[tasksJSON](t, w.ok(t, "list", "--agent", "ada", "--cursor", page.Next, "--json")).Tasks, 1)
	table := w.ok(t, "list", "--agent", "ada")
	assert.Equal(t, 4, strings.Count(table, "\n"))
	assert.NotContains(t, table, "\x1b", "no colours but on a terminal")
	assert.Equal(t, "no tasks\n", w.ok(t, "list", "--agent", "nobody"))

	for _, args := range [][]string{{"status", "ada", "n1", "--json"}, {"status", "--agent", "ada", "n1", "--json"}} {
		assert.Equal(t, "waiting", parse[taskJSON](t, w.ok(t, args...)).Status)
	}
	assert.Contains(t, w.ok(t, "status", "ada", "n1"), "note")
	stats := parse[map[string]any](t, w.ok(t, "stats", "--json"))
	assert.EqualValues(t, 3, stats["waiting"])
	assert.EqualValues(t, 1, stats["agents"])
	assert.Contains(t, w.ok(t, "stats"), "waiting")
}

func TestSubmitAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := t.TempDir() + "/tasks.json"
	require.NoError(t, os.WriteFile(path, []byte(`{"tasks":[{"agent_id":"a","id":"1","kind":"k"},{"agent_id":"b","id":"2","kind":"k","delay":"1h"}]}`), 0o600))
	assert.Len(t, parse[tasksJSON](t, w.ok(t, "submit", "-f", path, "--json")).Tasks, 2)
	r := w.dulyWith(t, `{"agent_id":"c","kind":"k"}`, "submit", "-f", "-", "--json")
	assert.True(t, parse[tasksJSON](t, r.stdout).Tasks[0].Created)
	oneLine(t, w.dulyWith(t, `{"tasks":[{"agent_id":"c","kind":"k","x":1}]}`, "submit", "-f", "-"), 2, "tasks[0].x is not a field of a task")
	oneLine(t, w.duly(t, "submit", "-f", "nowhere.json"), 2, "nowhere.json")
	oneLine(t, w.duly(t, "submit", "-f", path, "--agent", "a"), 2, "-f excludes")
}

// Input that makes no sense is refused in one line, with exit code 2, and nothing is written.
func TestBadInputWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "stats") // what Open writes is there
	before := w.dbsize(t)
	long := strings.Repeat("x", 257)
	for _, c := range []struct{ args, want string }{
		{"submit --agent a", "--kind is required"},
		{"submit --kind k", "--agent is required"},
		{"submit --agent a --kind k --id " + long, "--id is 257 bytes long"},
		{"submit --agent a --kind k --payload {", "--payload is not JSON"},
		{"submit --agent a --kind k --at soon", "--at must be a time such as"},
		{"submit --agent a --kind k --every 5ms", "--every must be between 1s and"},
		{"submit --agent a --kind k --every 5", "invalid argument"},
		{"submit --agent a --kind k --level 4", "--level must be 1, 2 or 3"},
		{"submit --agent a --kind k --lease 1ms", "--lease must be between"},
		{"submit --agent a --kind k --at 2030-01-01T00:00:00Z --delay 1s", "--at excludes"},
		{"submit --agent a --kind k --from end --every 5s", "--from must be"},
		{"submit --agent a --kind k --info {", "--info is not JSON"},
		{"submit --agent a --kind k!", "the character '!'"},
		{"submit --agent a --kind k extra", `takes no arguments, and has "extra"; see duly submit --help`},
		{"submit ann digest", `takes no arguments, and has "ann"; did you mean --agent ann?`},
		{"submit --nonsense", "unknown flag: --nonsense"},
		{"list --status completed", "--agent must be given"},
		{"list --agent a --status done", "--status must be"},
		{"list --agent a --limit 1001", "--limit must be"},
		{"list --agent a --cursor \x01", "--cursor has the control character"},
		{"status", "expected an agent and the id"},
		{"status a b c", "expected an agent and the id"},
		{"status a " + long, "id is 257 bytes"},
		{"replay --agent a", "expected an agent and one or more task ids"},
		{"replay a i --all", "--all takes an agent and no ids"},
		{"replay --all", "--all takes an agent and no ids"},
		{"delete a", "expected an agent and one or more task ids"},
		{"delete a " + long, "id is 257"},
		{"run a", "expected an agent and the id"},
		{"cancel a", "expected an agent and the id"},
		{"cancel a i --reason \x01", "--reason has the control character"},
		{"explain", "expected an agent and the id"},
		{"runs a b c", "expected an agent and the id"},
		{"jobs a b", "expected an agent"},
		{"jobs --label x", `--label "x" has no value; use name=value`},
		{"jobs a --agent b", "expected an agent"},
		{"agents --limit 1001", "--limit must be"},
		{"queue a b", "accepts at most 1"},
		{"activity", "expected a kind"},
		{"activity k --user u", "has no activity schedule"},
		{"presets x", "takes no arguments"},
		{"pause", "expected exactly one target"},
		{"pause a b c", "expected exactly one target"},
		{"pause a --all", "expected exactly one target"},
		{"pause --kind k --key x", "expected exactly one target"},
		{"pause --kind=", "--kind must not be empty"},
		{"pause --key=", "--key must not be empty"},
		{"pause --kind k!", "the character '!'"},
		{"pause --key \x01", "--key has the control character"},
		{"pause a --until soon", `--until "soon" is not a time`},
		{"pause a --until 2030-01-01T00:00:00Z --for 1h", "--until excludes for"},
		{"pause a --for -1h", "--for must be between"},
		{"pause a --by " + strings.Repeat("x", 2000), "--by is 2000 bytes long"},
		{"resume", "expected exactly one target"},
		{"resume --all a", "expected exactly one target"},
		{"submit --agent a --kind k --every 1h --overlap skip", "--overlap needs cron"},
		{"submit --agent a --kind k --every 1h --misfire never", "--misfire must be"},
		{"submit --agent a --kind k --jitter 1s", "--jitter needs every or cron"},
		{"submit --agent a --kind k --on-conflict merge", "--on-conflict must be"},
		{"submit --agent a --kind k --id i --unique-key u", "--unique-key excludes id"},
		{"submit --agent a --kind k --min-interval -1s", "--min-interval must not be negative"},
		{"submit --agent a --kind k --limit-key \x01", "--limit-key has the control"},
		{"submit --agent a --kind k --pause-after-failures 3", "--pause-after-failures needs"},
		{"submit --agent a --preset nothing", `--preset "nothing" is unknown`},
		{"submit -f x.json --jitter 1s", "-f excludes"},
		{"run-due", "either --agents or --all"},
		{"run-due --all --agents a", "either --agents or --all"},
		{"run-due --agents a,,b", "--agents is required"},
		{"run-due --all --max -1", "must not be negative"},
		{"run-due --all --timeout -1s", "must not be negative"},
		{"run-due --all -c nowhere.yaml", "nowhere.yaml"},
		{"daemon -c nowhere.yaml", "nowhere.yaml"},
		{"daemon --concurrency -1", "concurrency: must be between"},
		{"daemon --log xml", `--log "xml" is unknown`},
		{"daemon --http nonsense", `cannot listen on "nonsense"`},
		{"lst", `unknown command "lst"`},
		{"submti --agent a", "did you mean submit?"},
		{"submit --agnet a", "did you mean --agent?"},
		{"submit --kid k", "did you mean --kind?"},
		{"status --agent a --id b", "did you mean duly status [AGENT] ID?"},
		{"stats --redis http://x", "must begin with redis://"},
		{"stats --prefix {}", `--prefix must not contain braces or white space, as "{}" does`},
	} {
		r := w.duly(t, strings.Split(c.args, " ")...)
		oneLine(t, r, 2, c.want)
		assert.Contains(t, r.stderr, ";", "it says what to do: %s", r.stderr)
	}
	assert.Equal(t, before, w.dbsize(t))
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	oneLine(t, w.duly(t, "status", "ada", "nothing"), 3, `agent "ada" has no task "nothing"`, "duly list")
	for _, verb := range []string{"replay", "resume", "run", "cancel", "delete", "explain", "runs"} {
		oneLine(t, w.duly(t, verb, "ada", "nothing"), 3, `duly: `+verb+`: agent "ada" has no task "nothing"; see duly list --agent ada`)
	}
	oneLine(t, w.duly(t, "pause", "ada", "nothing"), 3, `agent "ada" has no live task "nothing"`)
	oneLine(t, w.duly(t, "status", "it's", "x"), 3, `see duly list --agent 'it'\''s'`)
	oneLine(t, w.duly(t, "queue", "nothing"), 3, `no task of kind "nothing" exists; see duly queue`)
}

func TestCommandsThatNeedRedisSaySo(t *testing.T) {
	t.Parallel()
	w := noRedis()
	for _, args := range []string{
		"submit --agent a --kind k", "list --agent a", "status a b", "replay a b", "stats",
		"pause a", "resume --all", "run a b", "cancel a b", "delete a b", "explain a b", "runs a b", "jobs a", "agents", "queue", "run-due --all",
	} {
		oneLine(t, w.duly(t, strings.Split(args, " ")...), 2, "no Redis is configured", "--redis", "--server")
	}
}

// A Redis that refuses, and one that never answers.
func TestUnreachableRedis(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	w := noRedis()
	for kind, addr := range map[string]string{"silent": silent.Addr().String(), "closed": closed.Addr().String()} {
		for _, args := range []string{"stats", "daemon", "submit --agent a --kind k"} {
			t.Run(kind+" "+args, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				r := w.duly(t, append(strings.Split(args, " "), "--redis", "redis://user:hunter2@"+addr+"/0")...)
				assert.Less(t, time.Since(begun), 5*time.Second)
				oneLine(t, r, 5, "cannot reach Redis at redis://"+addr, "--redis")
				assert.NotContains(t, r.stderr, "hunter2")
			})
		}
	}
}

// The flag goes before the environment, and the environment before the file.
func TestWhichRedis(t *testing.T) {
	t.Parallel()
	first, second, third := newWorld(t), newWorld(t), newWorld(t)
	config := file(t, "redis: "+third.redis.URL+"\n")
	first.ok(t, "submit", "-c", config, "--redis", second.redis.URL, "--agent", "a", "--kind", "k")
	assert.EqualValues(t, 1, parse[map[string]any](t, second.ok(t, "stats", "--json"))["waiting"])
	first.ok(t, "submit", "-c", config, "--agent", "a", "--kind", "k")
	assert.EqualValues(t, 1, parse[map[string]any](t, first.ok(t, "stats", "--json"))["waiting"])
	noRedis().ok(t, "submit", "-c", config, "--agent", "a", "--kind", "k")
	assert.EqualValues(t, 1, parse[map[string]any](t, third.ok(t, "stats", "--json"))["waiting"])
	third.ok(t, "submit", "--prefix", "other:", "--agent", "a", "--kind", "k")
	assert.EqualValues(t, 1, parse[map[string]any](t, third.ok(t, "stats", "--json"))["waiting"], "prefixes do not see each other")
}

const handlersFile = `
handlers:
  note: { log: {} }
  bad: { exec: ["sh", "-c", "echo broken >&2; exit 3"], max_attempts: 1 }
`

func TestRunDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, handlersFile+`
tasks:
  - { agent: ada, id: n1, kind: note, payload: { text: hi } }
  - { agent: bob, id: n2, kind: note }
  - { agent: bob, id: later, kind: note, delay: 1h }
`)
	r := w.duly(t, "run-due", "-c", config, "--agents", "ada", "--json")
	assert.Equal(t, 0, r.code, r.stderr)
	report := parse[map[string]any](t, r.stdout)
	assert.EqualValues(t, 1, report["completed"])
	assert.Contains(t, r.stderr, `run kind=note agent=ada task=n1 payload={"text":"hi"}`)

	w.ok(t, "submit", "--agent", "eve", "--kind", "bad", "--id", "b")
	w.ok(t, "submit", "--agent", "eve", "--kind", "unknown")
	r = w.duly(t, "run-due", "-c", config, "--all", "--json", "--timeout", "20s")
	assert.Equal(t, 4, r.code, "some runs failed")
	report = parse[map[string]any](t, r.stdout)
	assert.EqualValues(t, 1, report["completed"], "the tasks of the file that are there stay as they are")
	assert.EqualValues(t, 1, report["failed"])
	assert.EqualValues(t, 1, report["parked"])
	assert.Equal(t, []any{map[string]any{"agent_id": "eve", "id": "b", "kind": "bad", "error": "exit status 3: broken"}}, report["failures"])
	assert.Contains(t, r.stderr, `"code":"runs_failed","detail":"1 run(s) failed: b of agent \"eve\" (bad): exit status 3: broken"`)

	oneLine(t, w.duly(t, "replay", "ada", "n1"), 7, "only failed tasks")
	assert.Equal(t, "waiting", parse[taskJSON](t, w.ok(t, "replay", "eve", "b", "--json")).Status)
	r = w.duly(t, "run-due", "-c", config, "--agents", "eve,ada", "--max", "1")
	assert.Equal(t, 4, r.code)
	assert.Contains(t, r.stdout, "ran 1 task of 1 agent")
	assert.Contains(t, r.stdout, "1 failed")

	r = w.duly(t, "run-due", "--all")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "no handlers")
	assert.Contains(t, r.stdout, "next due")
}

// With a file, run-due works in memory too: for trying a file out.
func TestRunDueInMemory(t *testing.T) {
	t.Parallel()
	r := inMemory().duly(t, "run-due", "--all", "--json", "-c", file(t, handlersFile+"tasks:\n  - { agent: a, id: i, kind: note }\n"))
	assert.Equal(t, 0, r.code, r.stderr)
	assert.EqualValues(t, 1, parse[map[string]any](t, r.stdout)["completed"])
}

// A text that comes from elsewhere cannot reach the terminal as a control sequence.
func TestTablesEscapeWhatTheyShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, "handlers:\n  evil: { exec: [\"sh\", \"-c\", \"printf '\\\\033[31mred\\\\nsecond' >&2; exit 1\"], max_attempts: 1 }\n")
	_, err := w.scheduler(t).Submit(t.Context(), core.NewTask{Agent: "a\u202e", ID: "i\u202e", Kind: "evil"})
	require.NoError(t, err)
	r := w.duly(t, "run-due", "-c", config, "--all")
	assert.Equal(t, 4, r.code)
	for _, text := range []string{r.stdout, r.stderr, w.ok(t, "list", "--agent", "a\u202e"), w.ok(t, "status", "a\u202e", "i\u202e")} {
		assert.NotContains(t, text, "\x1b")
		assert.NotContains(t, text, "\u202e")
	}
	assert.Contains(t, w.ok(t, "list", "--agent", "a\u202e"), `\x1b[31mred...`)
}

// What a flag is without being given is said once.
func TestNoFlagHasTwoDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, command := range []string{"submit", "daemon", "run-due", "serve", "pause", "activity", "approval"} {
		for line := range strings.Lines(w.ok(t, command, "--help")) {
			assert.LessOrEqual(t, strings.Count(line, "(default"), 1, line)
		}
	}
}

// A program without pauses between its attempts runs.
func TestAProgramWithoutBackoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
handlers: { work: { exec: ["true"], backoff: 0s } }
tasks: [{ agent: a, id: "1", kind: work }]
`)
	w.ok(t, "run-due", "-c", config, "--all")
	assert.Equal(t, "completed", w.object(t, "status", "a", "1")["status"])
}
