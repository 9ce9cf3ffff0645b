package cli_test

// The APIs of other runtimes: by their own clients, and with several daemons on one Redis.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// clients are the published clients of runtimes, installed once.
var clients = sync.OnceValues(func() (folder string, err error) {
	for _, name := range []string{"npm", "node"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", fmt.Errorf("there is no %s", name)
		}
	}
	if folder, err = os.MkdirTemp(filepath.Dir(binary), "clients-"); err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, os.DirFS("testdata/doors")); err != nil {
		return folder, err
	}
	install := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries", "0", "--fetch-timeout", "20000")
	install.Dir = folder
	if said, err := install.CombinedOutput(); err != nil {
		return folder, fmt.Errorf("npm install failed: %w\n%s", err, said)
	}
	return folder, nil
})

// installed is the folder of the clients. The test is skipped where they cannot be installed.
func installed(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("clients that others have published are fetched: make check runs them")
	}
	folder, err := clients()
	if err != nil {
		t.Skipf("no published client was run: %v", err)
	}
	return folder
}

// ofClient runs a program with the clients, and returns what it prints.
func ofClient[V any](t *testing.T, args ...string) V {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = installed(t)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	require.NoError(t, err, failed.String())
	return parse[V](t, string(out))
}

// LangGraph's own client, unchanged, creates, changes, finds and deletes crons, by its key.
func TestTheClientOfLangGraph(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "SUPPORT_TOKEN=key-of-support")
	d := w.start(t, "daemon", "-c", file(t, "http: 127.0.0.1:0\nlanggraph: { upstream: 'http://127.0.0.1:1' }\ntokens: [{ env: SUPPORT_TOKEN, scopes: [read, write], agents: [support] }]\n"))
	url := d.url(t)
	for _, name := range []string{"@langchain/langgraph-sdk", "langgraph-2"} {
		got := ofClient[struct {
			Alone, Threaded, Updated map[string]any
			Found, OfThread          []map[string]any
			Counted, Left            int
			Refused                  string
		}](t, "langgraph.mjs", name, url, "key-of-support")
		if name == "@langchain/langgraph-sdk" { // the other one sends neither
			assert.Equal(t, "Europe/Stockholm", got.Alone["timezone"])
			assert.Equal(t, "2999-01-01T00:00:00Z", got.Alone["end_time"])
		}
		assert.Equal(t, "support", got.Alone["assistant_id"])
		assert.Equal(t, false, got.Threaded["enabled"])
		assert.Equal(t, "thread-1", got.Threaded["thread_id"])
		assert.Equal(t, true, got.Updated["enabled"])
		assert.Equal(t, "45 3 * * *", got.Updated["schedule"])
		assert.NotNil(t, got.Updated["next_run_date"])
		require.Len(t, got.Found, 1)
		assert.Len(t, got.Found[0], 2)
		require.Len(t, got.OfThread, 1)
		assert.Equal(t, got.Updated["cron_id"], got.OfThread[0]["cron_id"])
		assert.Equal(t, map[string]any{"again": true}, got.OfThread[0]["payload"].(map[string]any)["input"])
		assert.Equal(t, 2, got.Counted)
		assert.Equal(t, 1, got.Left)
		assert.Equal(t, "422", got.Refused)
		require.NoError(t, w.deleteAll(t, "support"))
	}
}

// Letta's own client, unchanged, schedules messages, finds and deletes them.
func TestTheClientOfLetta(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "AGENT_TOKEN=key-of-agent-1")
	rec := newReceiver(t, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(rw, `{"id":"run-1","status":"created","request_config":{}}`)
	})
	d := w.start(t, "daemon", "-c", file(t, fmt.Sprintf("http: 127.0.0.1:0\nletta: { upstream: %q }\ntokens: [{ env: AGENT_TOKEN, scopes: [read, write], agents: [agent-1] }]\n", rec.URL)))
	type message struct {
		ID       string         `json:"id"`
		Next     string         `json:"next_scheduled_time"`
		Message  map[string]any `json:"message"`
		Schedule map[string]any `json:"schedule"`
	}
	type page struct {
		More     bool      `json:"has_next_page"`
		Messages []message `json:"scheduled_messages"`
	}
	got := ofClient[struct {
		Daily, Once          map[string]string
		First, Second, Left  page
		One                  message
		Deleted              map[string]bool
		Gone, Foreign, Wrong int
	}](t, "letta.mjs", d.url(t), "key-of-agent-1")
	assert.Equal(t, "2199-01-01T00:00:00Z", got.Once["next_scheduled_at"])
	require.Len(t, got.First.Messages, 1)
	assert.Equal(t, got.Daily["id"], got.First.Messages[0].ID, "in order of creation")
	assert.Equal(t, map[string]any{"type": "recurring", "cron_expression": "0 4 * * *"}, got.First.Messages[0].Schedule)
	assert.InDelta(t, 3, got.First.Messages[0].Message["max_steps"], 0)
	assert.True(t, got.First.More)
	assert.False(t, got.Second.More)
	assert.Equal(t, got.Once["id"], got.One.ID)
	assert.Equal(t, "one-time", got.One.Schedule["type"])
	assert.True(t, got.Deleted["success"])
	require.Len(t, got.Left.Messages, 1)
	assert.Equal(t, []int{404, 403, 422}, []int{got.Gone, got.Foreign, got.Wrong})

	w.ok(t, "run", "agent-1", got.Once["id"])
	assert.JSONEq(t, `{"id":"run-1","status":"created"}`, string(settled(t, w.scheduler(t), "agent-1", got.Once["id"], core.StatusCompleted).Result))
	assert.Equal(t, "/v1/agents/agent-1/messages/async", rec.messages()[0].path)
	assert.JSONEq(t, `{"messages":[{"role":"user","content":"hi"}]}`, rec.messages()[0].body)
}

// The examples run as they are written.
func TestTheExamplesOfDoors(t *testing.T) {
	t.Parallel()
	folder := installed(t)
	for program, want := range map[string]string{
		"langgraph/crons.mjs": `(?s)^created \S+ next run 20.*\n30 8 \* \* 1-5 20\S+\n$`, "a2a/ask.mjs": "^ada has read it\n$", "letta/schedule.mjs": `^created (\S+) next 20\S+\nscheduled-\S+ 20\S+\n$`,
	} {
		w := newWorld(t)
		name := filepath.Base(program)
		d := w.start(t, "daemon", "-c", filepath.Join("../../examples", filepath.Dir(program), "duly.yaml"), "--http", "127.0.0.1:0")
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(read(t, filepath.Join("../../examples", program))), 0o600))
		cmd := exec.CommandContext(t.Context(), "node", name)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "DULY_URL="+d.url(t))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Regexp(t, want, string(out))
	}
}

// deleteAll deletes the jobs of an agent.
func (w *world) deleteAll(t *testing.T, agent string) error {
	t.Helper()
	s := w.scheduler(t)
	jobs, _, err := s.Tasks(t.Context(), core.List{Agent: agent, Jobs: true})
	for i := 0; i < len(jobs) && err == nil; i++ {
		err = s.Delete(t.Context(), agent, jobs[i].ID)
	}
	return err
}

// However many daemons there are, each occurrence of a cron starts one run, also while one of them is killed.
func TestReplicasFireACronOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "GRAPHS_KEY=hunter2-of-the-graphs")
	rec := newReceiver(t, func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(rw, `{"run_id":"r1","thread_id":"t1","status":"pending","kwargs":{"input":1}}`)
	})
	config := file(t, fmt.Sprintf("http: 127.0.0.1:0\nlanggraph: { upstream: %q, headers_env: { X-Api-Key: GRAPHS_KEY } }\n", rec.URL))
	daemons := []*running{w.start(t, "daemon", "-c", config), w.start(t, "daemon", "-c", config)}
	s := w.scheduler(t)
	ids := map[string]bool{}
	for i := range 4 {
		res, err := http.Post(daemons[i%2].url(t)+"/runs/crons", "application/json", strings.NewReader(fmt.Sprintf(`{"schedule":"0 0 1 1 *","assistant_id":"a%d","input":{}}`, i)))
		require.NoError(t, err)
		var c struct {
			ID string `json:"cron_id"`
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&c))
		require.NoError(t, res.Body.Close())
		ids[c.ID] = true
	}
	for i := range 4 { // the API has minutes; a test has not
		jobs, _, err := s.Tasks(t.Context(), core.List{Agent: fmt.Sprintf("a%d", i), Jobs: true})
		require.NoError(t, err)
		_, err = s.Edit(t.Context(), jobs[0].Agent, jobs[0].ID, json.RawMessage(`{"cron":"* * * * * *"}`))
		require.NoError(t, err)
	}
	posted := func(least int) map[string]int {
		times := map[string]int{}
		require.Eventually(t, func() bool { return len(rec.messages()) >= least }, 20*time.Second, 5*time.Millisecond)
		for _, m := range rec.messages() {
			assert.Equal(t, "hunter2-of-the-graphs", m.header.Get("X-Api-Key"))
			run := parse[struct {
				Metadata struct {
					ID string `json:"cron_id"`
					At string `json:"cron_occurrence"`
				}
			}](t, m.body)
			assert.True(t, ids[run.Metadata.ID])
			times[run.Metadata.ID+" "+run.Metadata.At]++
		}
		return times
	}
	posted(8)
	require.Eventually(t, func() bool { // between two rounds: what a process was at when it died waits for the end of a lease, and may be posted again
		return !slices.ContainsFunc([]string{"a0", "a1", "a2", "a3"}, func(agent string) bool {
			tasks, _, err := s.Tasks(t.Context(), core.List{Agent: agent, Jobs: true})
			return err != nil || tasks[0].Status != core.StatusWaiting || time.Until(tasks[0].Due) < 200*time.Millisecond
		})
	}, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, daemons[0].cmd.Process.Signal(syscall.SIGKILL))
	for run, n := range posted(len(rec.messages()) + 12) {
		assert.Equal(t, 1, n, run)
	}
	jobs, _, err := s.Tasks(t.Context(), core.List{Agent: "a0", Jobs: true})
	require.NoError(t, err)
	task, err := s.Task(t.Context(), "a0", jobs[0].ID)
	require.NoError(t, err)
	assert.JSONEq(t, `{"run_id":"r1","thread_id":"t1","status":"pending"}`, string(task.Result), "what was started, and not the request again")
	assert.NotContains(t, daemons[0].log()+daemons[1].log(), "hunter2")
}

// A runtime that restarts loses no run; one that may have started a run is not asked twice.
func TestARunIsPostedUntilItArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := []int{503, 429, 200, 500}
	rec := newReceiver(t, nil)
	rec.answer = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(answers[len(rec.messages())-1]) }
	config := file(t, fmt.Sprintf("langgraph: { upstream: '%s/api/', backoff: 1ms }\n", rec.URL))
	w.start(t, "daemon", "-c", config).line(t, "duly is running")
	s := w.scheduler(t)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "langgraph", Payload: map[string]any{"run": map[string]any{"input": 1}, "thread_id": "t"}})
	require.NoError(t, err)
	settled(t, s, "a", "1", core.StatusCompleted)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "2", Kind: "langgraph", Payload: map[string]any{"run": map[string]any{"input": 2}}})
	require.NoError(t, err)
	task := settled(t, s, "a", "2", core.StatusFailed)
	assert.Contains(t, task.LastError, "500 Internal Server Error: it may have been done, and is not sent again")
	assert.Len(t, rec.messages(), 4)
}

// The cron route of eve, and any other of Vercel's, gets what it knows a call by, and its body is not read.
func TestACronRouteIsCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CRON_SECRET=hunter2-of-cron")
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	config := file(t, strings.ReplaceAll(read(t, "../../examples/eve/duly.yaml"), "http://127.0.0.1:3000", rec.URL))
	w.start(t, "daemon", "-c", config).line(t, "duly is running")
	w.ok(t, "run", "eve", "hourly")
	require.Eventually(t, func() bool { return len(rec.messages()) == 1 }, 20*time.Second, 5*time.Millisecond)
	got := rec.messages()[0]
	assert.Equal(t, "/eve/v1/cron/TOKEN", got.path)
	assert.Equal(t, "0 * * * *", got.header.Get("x-vercel-cron-schedule"))
	assert.Equal(t, "Bearer hunter2-of-cron", got.header.Get("Authorization"))
}

// A workflow of GitHub is dispatched with the payload and nothing else, and a dispatch that may have been taken is not repeated.
func TestAWorkflowIsDispatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "GITHUB_TOKEN=hunter2-of-github")
	rec := newReceiver(t, nil)
	answers := []int{503, 204, 502}
	rec.answer = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(answers[len(rec.messages())-1]) }
	config := file(t, strings.NewReplacer("https://api.github.com", rec.URL, "max_attempts: 5", "max_attempts: 5\n    backoff: 1ms").Replace(read(t, "../../examples/github/duly.yaml")))
	d := w.start(t, "daemon", "-c", config)
	d.line(t, "duly is running")
	s := w.scheduler(t)
	for i, want := range []core.Status{core.StatusCompleted, core.StatusFailed} {
		id := fmt.Sprint(i)
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "builds", ID: id, Kind: "nightly-build", Payload: map[string]any{"ref": "main", "inputs": map[string]string{"deep": "true"}}})
		require.NoError(t, err)
		settled(t, s, "builds", id, want)
	}
	got := rec.messages()
	require.Len(t, got, 3)
	for _, m := range got {
		assert.Equal(t, "/repos/OWNER/REPO/actions/workflows/nightly.yml/dispatches", m.path)
		assert.JSONEq(t, `{"ref":"main","inputs":{"deep":"true"}}`, m.body)
		assert.Equal(t, "Bearer hunter2-of-github", m.header.Get("Authorization"))
		assert.Equal(t, "application/vnd.github+json", m.header.Get("Accept"))
		assert.Equal(t, "application/json", m.header.Get("Content-Type"))
	}
	assert.NotContains(t, d.log(), "hunter2")
}

// A schedule of a door is not paused by failures, as one of another kind is after five in a row.
func TestTheDoorsGoOnAfterFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := newReceiver(t, func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) })
	w.start(t, "daemon", "-c", file(t, fmt.Sprintf("letta: { upstream: %q }\n", rec.URL))).line(t, "duly is running")
	s := w.scheduler(t)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "letta", Cron: "* * * * * *", Payload: map[string]any{"messages": []any{"hi"}}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(rec.messages()) >= 7 }, 20*time.Second, 5*time.Millisecond)
	task, err := s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.Empty(t, task.Pauses)
}
