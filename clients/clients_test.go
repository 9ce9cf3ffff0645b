// Package clients_test plays one story with the workers of all clients: each has to do in its language what a handler in Go does.
package clients_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/standardwebhooks"
)

func TestMain(m *testing.M) {
	if os.Getenv("STORY_NAME") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := tell(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stories are the programs of the story.
var stories = map[string][]string{
	"go":         {os.Args[0]},
	"python":     {"python3", "python/story.py"},
	"typescript": {"node", "typescript/story.js"},
}

// stage is a server, and the workers of a language.
type stage struct {
	*testing.T

	s       *core.Scheduler
	server  *httptest.Server
	program []string
	file    string
	away    atomic.Bool  // it closes every connection
	refused atomic.Int64 // that it has closed
	calls   atomic.Int64
	late    atomic.Pointer[chan struct{}] // closed when runs are on the way to a worker, which arrive once it is to stop
	puzzled atomic.Int64                  // returns that it answers without knowing what has become of their runs
}

// each plays a scene with the workers of each language.
func each(t *testing.T, scene func(s *stage)) {
	t.Helper()
	t.Parallel()
	for language, program := range stories {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program[0]); err != nil {
				t.Skipf("there is no %s here", program[0])
			}
			st := memstore.New(memstore.Config{Partitions: 1})
			s, err := core.New(st, core.Config{Presence: st, Default: core.KindConfig{Backoff: 50 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}})
			require.NoError(t, err)
			on := &stage{T: t, s: s, program: program, file: filepath.Join(t.TempDir(), "written")}
			stopping := make(chan struct{})
			defer close(stopping) // else it goes on to listen for workers for a while
			api := httpadapter.New(s, httpadapter.Config{Tokens: []string{"secret"}, Stopping: stopping})
			on.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if on.away.Load() {
					on.refused.Add(1)
					panic(http.ErrAbortHandler)
				}
				on.calls.Add(1)
				if lent := on.late.Load(); lent != nil && r.URL.Path == "/v1/work/claim" {
					on.isLate(api, w, r, *lent)
					return
				}
				if r.URL.Path == "/v1/work/return" && on.puzzled.Add(-1) >= 0 {
					on.isPuzzled(w, r)
					return
				}
				api.ServeHTTP(w, r)
			}))
			t.Cleanup(on.server.Close)
			scene(on)
		})
	}
}

// isPuzzled answers as a server does whose part of the store is away.
func (s *stage) isPuzzled(w http.ResponseWriter, r *http.Request) {
	var said, answer struct {
		Runs []map[string]any `json:"runs"`
	}
	assert.NoError(s, json.NewDecoder(r.Body).Decode(&said))
	for range said.Runs {
		answer.Runs = append(answer.Runs, map[string]any{"ended": "unknown", "error": "the store did not answer: send it again"})
	}
	assert.NoError(s, json.NewEncoder(w).Encode(answer))
}

// isLate begins an answer with runs, and ends it once the worker has got the signal to stop.
func (s *stage) isLate(api http.Handler, w http.ResponseWriter, r *http.Request, lent chan struct{}) {
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, r.Clone(context.WithoutCancel(r.Context())))
	assert.Contains(s, answer.Body.String(), "ticket")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	assert.NoError(s, http.NewResponseController(w).Flush())
	s.late.Store(nil)
	close(lent)
	assert.Eventually(s, func() bool { return r.Context().Err() != nil || s.written()[0] == "signalled" }, 20*time.Second, time.Millisecond)
	_, _ = w.Write(answer.Body.Bytes())
}

// worker is a process of the story.
type worker struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// work starts a worker.
func (s *stage) work(name string, env ...string) *worker {
	s.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(s.Context()), s.program[0], s.program[1:]...)
	cmd.Env = append(os.Environ(), append(env, "DULY_SERVER="+s.server.URL, "DULY_TOKEN=secret", "STORY_NAME="+name, "STORY_FILE="+s.file, "PYTHONDONTWRITEBYTECODE=1")...)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(s, cmd.Start())
	w := &worker{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(w.ended)
	}()
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-w.ended
		if s.Failed() {
			s.Log(name, "said:", log.String())
		}
	})
	return w
}

// signal sends a signal to the worker.
func (w *worker) signal(t *stage, sig os.Signal) { require.NoError(t, w.cmd.Process.Signal(sig)) }

// submit submits a task.
func (s *stage) submit(kind, id string, payload any) {
	s.Helper()
	_, err := s.s.Submit(s.Context(), core.NewTask{Agent: "ada", ID: id, Kind: kind, Payload: payload})
	require.NoError(s, err)
}

// task is a task as it is.
func (s *stage) task(id string) core.TaskInfo {
	s.Helper()
	task, err := s.s.Task(s.Context(), "ada", id)
	require.NoError(s, err)
	return task
}

// becomes waits until something is so about a task.
func (s *stage) becomes(id string, so func(t *core.TaskInfo) bool) core.TaskInfo {
	s.Helper()
	var task core.TaskInfo
	require.Eventually(s, func() bool {
		task = s.task(id)
		return so(&task)
	}, 30*time.Second, 20*time.Millisecond, "%s: %+v", id, &task)
	return task
}

func is(status core.Status) func(t *core.TaskInfo) bool {
	return func(t *core.TaskInfo) bool { return t.Status == status }
}

// written are the lines that the workers have written.
func (s *stage) written() []string {
	data, _ := os.ReadFile(s.file)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// Runs of different kinds, each with its outcome; several at once.
func TestOutcomes(t *testing.T) {
	each(t, func(s *stage) {
		s.submit("echo", "early", map[string]any{"text": "grüße"})
		s.work("w1")
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			s.submit("echo", id, id)
			assert.JSONEq(s, `"`+id+`"`, string(s.becomes(id, is(core.StatusCompleted)).Result))
		}
		early := s.becomes("early", is(core.StatusCompleted))
		assert.JSONEq(s, `{"text":"grüße"}`, string(early.Result))
		assert.Equal(s, "w1", early.Runs[0].Process)
		s.submit("outcomes", "1", nil)
		failed := s.becomes("1", is(core.StatusFailed))
		assert.Contains(s, failed.LastError, "for good, after {")
		assert.Contains(s, failed.Runs[len(failed.Runs)-2].Error, "the first attempt")
		s.submit("large", "1l", nil)
		assert.Contains(s, s.becomes("1l", is(core.StatusFailed)).LastError, "the limit is 262144")
		processes, err := s.s.Processes(s.Context())
		require.NoError(s, err)
		assert.True(s, slices.ContainsFunc(processes, func(p model.Process) bool { return p.Name == "w1" && slices.Contains(p.Kinds, "echo") }))
	})
}

// What ends while a call is under way is returned with the next, together with the claim for what is free then. One whose outcome makes no sense keeps
// none of the others.
func TestWhatEndsTogetherIsReturnedTogether(t *testing.T) {
	each(t, func(s *stage) {
		const tasks = 300
		for i := range tasks {
			s.submit("echo", strconv.Itoa(i), i)
		}
		s.submit("nonsense", "nonsense", nil)
		s.work("w1")
		assert.Contains(s, s.becomes("nonsense", is(core.StatusFailed)).LastError, "its outcome was refused")
		for i := range tasks {
			s.becomes(strconv.Itoa(i), is(core.StatusCompleted))
		}
		assert.Less(s, s.calls.Load(), int64(tasks*3/4))
		s.Log("figure:", s.calls.Load(), "calls for", tasks, "tasks")
	})
}

// A run of which the server knows nothing, as its part of the store is away, is returned again, and the others do not wait for it.
func TestAnEndThatIsUnknown(t *testing.T) {
	each(t, func(s *stage) {
		s.puzzled.Store(2)
		s.work("w1")
		s.submit("echo", "1", "one")
		s.becomes("1", is(core.StatusInProgress))
		require.Eventually(s, func() bool { return s.puzzled.Load() <= 1 }, 20*time.Second, time.Millisecond)
		s.submit("echo", "2", "two")
		for id, want := range map[string]string{"2": `"two"`, "1": `"one"`} {
			assert.JSONEq(s, want, string(s.becomes(id, is(core.StatusCompleted)).Result))
		}
		for _, id := range []string{"1", "2"} {
			assert.EqualValues(s, 1, s.task(id).RunCount)
		}
	})
}

// A run in steps: each is done once, over a sleep and a wait.
func TestSteps(t *testing.T) {
	each(t, func(s *stage) {
		s.work("w1")
		s.submit("steps", "story", nil)
		s.becomes("story", func(t *core.TaskInfo) bool { return t.Awaiting != nil })
		_, err := s.s.Signal(s.Context(), "ada", "story/approval", json.RawMessage(`"yes"`))
		require.NoError(s, err)
		done := s.becomes("story", is(core.StatusCompleted))
		assert.JSONEq(s, `{"plan":["plan","ada/story/`+done.Due.UTC().Format("20060102T150405.000Z")+`/plan"],"answer":"yes"}`, string(done.Result))
		assert.Equal(s, []string{"plan", "end"}, s.written())
		assert.EqualValues(s, 3, done.RunCount, "one before the sleep, one before the wait, one behind it")
	})
}

// What a run reports that is no JSON fails that run, and keeps no other from its signs of life.
func TestAReportThatIsNoJSON(t *testing.T) {
	each(t, func(s *stage) {
		s.work("w1", "STORY_FREEZE=3") // longer than a lease
		s.submit("odd", "1", nil)
		failed := s.becomes("1", func(t *core.TaskInfo) bool { return t.LastError != "" })
		assert.Regexp(s, "serializ|unsupported", failed.LastError)
		s.submit("frozen", "2", nil)
		assert.EqualValues(s, 1, s.becomes("2", is(core.StatusCompleted)).RunCount)
	})
}

// The clients are to be read, and copied into programs.
func TestTheClientsAreSmall(t *testing.T) {
	t.Parallel()
	const most = 415 // lines of code
	for file, comment := range map[string]*regexp.Regexp{
		"python/duly.py":     regexp.MustCompile(`(?ms)^ *""".*?"""$|^ *#.*?$`),
		"typescript/duly.js": regexp.MustCompile(`(?m)^ *(//|/\*\*).*$`),
	} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := 0
		for line := range strings.Lines(string(comment.ReplaceAll(data, nil))) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		assert.LessOrEqual(t, lines, most, file)
		assert.Greater(t, lines, most/2, file)
		t.Log("figure:", file, lines, "lines of code")
	}
}

// A worker that dies leaves its checkpoint to the next.
func TestAWorkerDies(t *testing.T) {
	each(t, func(s *stage) {
		first := s.work("w1")
		s.submit("dies", "1", nil)
		<-first.ended
		assert.JSONEq(s, `{"half":true}`, string(s.task("1").Checkpoint))
		s.work("w2")
		done := s.becomes("1", is(core.StatusCompleted))
		assert.JSONEq(s, `{"half":true}`, string(done.Result))
		assert.Len(s, s.written(), 2)
	})
}

// A cancel, and a budget that is used up, end a run in its midst; progress is seen meanwhile.
func TestRunsThatHaveToEnd(t *testing.T) {
	each(t, func(s *stage) {
		tokens := core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "spends"}, Unit: "tokens", Per: core.PerDay}
		require.NoError(s, s.s.SetBudgets(s.Context(), core.Budget{About: tokens, Amount: core.AmountOf(100)}))
		s.work("w1")
		for _, kind := range []string{"slow", "async"} {
			s.submit(kind, kind, nil)
			s.becomes(kind, is(core.StatusInProgress))
			if kind == "slow" {
				s.becomes(kind, func(t *core.TaskInfo) bool { return len(t.Progress) > 0 })
			}
			_, err := s.s.Cancel(s.Context(), "ada", kind, core.Order{Reason: "no more"})
			require.NoError(s, err)
			s.becomes(kind, is(core.StatusCancelled))
		}
		s.submit("spends", "spends", nil)
		spent := s.becomes("spends", func(t *core.TaskInfo) bool { return t.RunCount > 0 })
		assert.JSONEq(s, "1", string(spent.Checkpoint))
	})
}

// Slots that become free while a call waits for a single run are used although that call brings one: a worker whose runs take minutes has others to
// make meanwhile.
func TestALongRunKeepsNoSlotsIdle(t *testing.T) {
	each(t, func(s *stage) {
		long := []string{"1", "2", "3", "4"} // of five slots
		for _, id := range long {
			s.submit("async", id, nil)
		}
		s.work("w1")
		for _, id := range long {
			s.becomes(id, is(core.StatusInProgress))
		}
		for _, id := range long[1:] {
			_, err := s.s.Cancel(s.Context(), "ada", id, core.Order{})
			require.NoError(s, err)
		}
		for _, id := range long[1:] {
			s.becomes(id, is(core.StatusCancelled))
		}
		s.submit("async", "5", nil)
		s.becomes("5", is(core.StatusInProgress))
		s.submit("echo", "short", nil)
		s.becomes("short", is(core.StatusCompleted))
		assert.Equal(s, core.StatusInProgress, s.task("5").Status)
	})
}

// Of a kind with a limit no more runs are lent than that, and the next as soon as one has ended.
func TestALimit(t *testing.T) {
	each(t, func(s *stage) {
		limit := core.Limit{About: core.LimitTarget{Kind: "async"}, Concurrency: 1}
		require.NoError(s, s.s.SetLimits(s.Context(), limit))
		s.submit("async", "1", nil)
		s.submit("async", "2", nil)
		s.work("w1")
		first, second := "1", "2"
		s.submit("echo", "free", nil)
		s.becomes("free", is(core.StatusCompleted))
		if s.task(second).Status == core.StatusInProgress {
			first, second = second, first
		}
		s.becomes(first, is(core.StatusInProgress))
		assert.Equal(s, core.StatusWaiting, s.task(second).Status)
		_, err := s.s.Cancel(s.Context(), "ada", first, core.Order{})
		require.NoError(s, err)
		s.becomes(first, is(core.StatusCancelled))
		s.becomes(second, is(core.StatusInProgress))
	})
}

// What a run submits is below it, so that one which submits itself stops at the depth that is allowed, with a message.
func TestTasksThatTasksSubmit(t *testing.T) {
	each(t, func(s *stage) {
		s.work("w1")
		s.submit("breeds", "0", 0)
		last := fmt.Sprintf("%d é/%d", model.DefaultMaxDepth, model.DefaultMaxDepth-1)
		require.Eventually(s, func() bool {
			_, err := s.s.Task(s.Context(), "ada", last)
			return err == nil
		}, 20*time.Second, 10*time.Millisecond)
		deepest := s.becomes(last, func(t *core.TaskInfo) bool { return t.LastError != "" })
		assert.Contains(s, deepest.LastError, "below")
		assert.Equal(s, model.DefaultMaxDepth, deepest.Origin.Depth)
		assert.Equal(s, "0", deepest.Origin.Root.ID)
	})
}

// A worker that is told to stop gives back what it cannot end, uncharged, and ends.
func TestAWorkerStops(t *testing.T) {
	each(t, func(s *stage) {
		w := s.work("w1")
		s.submit("slow", "1", nil)
		s.becomes("1", func(t *core.TaskInfo) bool { return len(t.Progress) > 0 })
		w.signal(s, syscall.SIGTERM)
		<-w.ended
		assert.Equal(s, 0, w.cmd.ProcessState.ExitCode())
		task := s.task("1")
		assert.Equal(s, core.StatusWaiting, task.Status)
		assert.Zero(s, task.ErrorCount+int64(task.Crashes))
		assert.Equal(s, core.Usage{"tokens": 3}, task.Runs[0].Used, "what it has used counts")
		assert.Equal(s, []string{"stopped"}, s.written())
	})
}

// A run that is on the way to a worker when it has to stop is given back, and not left to its lease.
func TestALoanThatIsOnTheWay(t *testing.T) {
	each(t, func(s *stage) {
		lent := make(chan struct{})
		s.late.Store(&lent)
		s.submit("echo", "1", nil)
		w := s.work("w1", "STORY_SIGNALS=1")
		<-lent
		w.signal(s, syscall.SIGTERM)
		<-w.ended
		assert.Equal(s, core.StatusWaiting, s.task("1").Status)
		assert.Zero(s, s.task("1").Crashes)
	})
}

// A worker that was frozen for longer than its lease changes nothing when it comes back.
func TestAFrozenWorker(t *testing.T) {
	each(t, func(s *stage) {
		w := s.work("w1", "STORY_FREEZE=3")
		s.submit("frozen", "1", nil)
		require.Eventually(s, func() bool { return strings.Contains(s.written()[0], "frozen") }, 20*time.Second, 10*time.Millisecond)
		w.signal(s, syscall.SIGSTOP)
		s.work("w2")
		done := s.becomes("1", is(core.StatusCompleted))
		assert.JSONEq(s, `"w2"`, string(done.Result))
		w.signal(s, syscall.SIGCONT)
		s.submit("echo", "after", 1)
		s.becomes("after", is(core.StatusCompleted))
		w.signal(s, syscall.SIGTERM)
		<-w.ended
		assert.JSONEq(s, `"w2"`, string(s.task("1").Result))
	})
}

// A server that is away is waited for: nothing is lost, and what was saved meanwhile is stored.
func TestAServerThatIsAway(t *testing.T) {
	each(t, func(s *stage) {
		s.away.Store(true)
		s.work("w1")
		s.submit("echo", "1", 7)
		require.Eventually(s, func() bool { return s.refused.Load() >= 3 }, 20*time.Second, 10*time.Millisecond)
		s.away.Store(false)
		s.becomes("1", is(core.StatusCompleted))
	})
}

// The clients read what duly signs, and refuse what it has not.
func TestVerifiedWebhooks(t *testing.T) {
	t.Parallel()
	programs := map[string][]string{
		"python3": {"-c", "import sys, json; sys.path.insert(0, 'python'); import duly; print(json.dumps(duly.verify(sys.argv[2].encode(), json.loads(sys.argv[1]), *sys.argv[3:])))"},
		"node": {"--input-type=module", "-e", `import { verify } from "./typescript/duly.js"; const [headers, body, ...secrets] = process.argv.slice(1);
			console.log(JSON.stringify(await verify(body, JSON.parse(headers), ...secrets)))`},
	}
	const secret, other = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz", "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
	key, err := standardwebhooks.Key(secret)
	require.NoError(t, err)
	said := func(body string, now time.Time) string {
		header := http.Header{}
		standardwebhooks.Sign(header, key, "m1", now, []byte(body))
		flat := map[string]string{}
		for name := range header {
			flat[strings.ToLower(name)] = header.Get(name)
		}
		data, err := json.Marshal(flat)
		require.NoError(t, err)
		return string(data)
	}
	for program, args := range programs {
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		run := func(headers, body string, secrets ...string) (string, error) {
			cmd := exec.CommandContext(t.Context(), program, append(slices.Concat(args, []string{headers, body}), secrets...)...)
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.Output()
			return strings.TrimSpace(string(out)), err
		}
		out, err := run(said(`{"id": 1}`, time.Now()), `{"id": 1}`, other, secret)
		require.NoError(t, err, program)
		assert.JSONEq(t, `{"id": 1}`, out)
		_, err = run(said(`{"id": 1}`, time.Now()), `{"id": 2}`, secret)
		require.Error(t, err, "%s: another body", program)
		_, err = run(said(`{"id": 1}`, time.Now()), `{"id": 1}`, other)
		require.Error(t, err, "%s: another secret", program)
		_, err = run(said(`{"id": 1}`, time.Now().Add(-time.Hour)), `{"id": 1}`, secret)
		require.Error(t, err, "%s: an old message", program)
	}
}

// What a run prints is seen while it goes on, and its end is whole, in characters of several bytes and more than is kept.
func TestWhatRunsPrint(t *testing.T) {
	each(t, func(s *stage) {
		s.work("w")
		s.submit("prints", "1", 12_000)
		output := func() inspect.Output {
			out, err := s.s.Output(s.Context(), "ada", "1", inspect.OutputFrom{})
			require.NoError(s, err)
			return out
		}
		require.Eventually(s, func() bool { return output().Text != "" }, 20*time.Second, 20*time.Millisecond)
		begun := output()
		assert.Equal(s, "begun "+strings.Repeat("é", 10)+" \x01\r\n", begun.Text)
		assert.False(s, begun.Ended)
		require.NoError(s, os.WriteFile(s.file+".go", nil, 0o600))
		s.becomes("1", is(core.StatusCompleted))
		require.Eventually(s, func() bool { return output().Ended }, 10*time.Second, 20*time.Millisecond)
		out := output()
		assert.Contains(s, out.Text, "\nline 11998 €\nline 11999 €\n")
		assert.True(s, strings.HasSuffix(out.Text, " is no character\n"), out.Text[len(out.Text)-40:])
		assert.NotContains(s, out.Text, "begun")
		assert.NotContains(s, out.Text, "\ufffdline")
		assert.InDelta(s, 64<<10, len(out.Text), 200, "so much is kept")
	})
}
