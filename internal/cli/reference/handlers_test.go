package reference_test

// Real runs of exec and webhook, out of which their pages are written.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/dulytest"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
	"github.com/seed-6f6f2c11/duly/internal/cli/reference"
)

const root = "../../.."

// example is the task of the pages.
func example(id string) core.NewTask {
	return core.NewTask{
		Agent: "ada", ID: id, Kind: "digest", Payload: json.RawMessage(`{"topics":["go"]}`), Cron: "0 9 * * *", Zone: "Europe/Berlin", Group: "mornings",
		TraceID: "9f2c", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", SessionID: "s-17", UserID: "ann",
		Info: json.RawMessage(`{"source":"mail"}`), Tags: []string{"weekly"}, Labels: map[string]string{"team": "core"},
	}
}

// settings are those of the examples: one value, and batches where they are asked for.
func settings(kind core.KindConfig) core.Config {
	kind.MaxAttempts, kind.Timeout = 2, 10*time.Second
	longest := func(most time.Duration) time.Duration { return most } // a pause of no time would be a second attempt already
	return core.Config{Concurrency: 50, Random: longest, Kinds: map[string]core.KindConfig{"digest": kind}, Bindings: []core.Binding{
		func(context.Context, *core.RunInfo) (core.Values, error) { return core.Values{"TENANT": "acme"}, nil },
	}}
}

// meant is what has become of a task that has run once.
func meant(t *testing.T, s *dulytest.Scheduler, id string) string {
	t.Helper()
	info, err := s.Task(t.Context(), "ada", id)
	require.NoError(t, err)
	switch {
	case info.Status == core.StatusCompleted:
		return "succeeded"
	case info.Status == core.StatusCancelled:
		return "cancels its task"
	case info.Status == core.StatusFailed:
		return "failed, is not tried again"
	case info.Awaiting != nil:
		return "waits for a signal"
	case info.LastOutcome == model.OutcomeSkipped:
		return "is skipped: there is nothing to do"
	case info.Attempt > 1:
		return "failed, is tried again"
	default:
		return "runs again later, uncharged"
	}
}

// run runs what is due; runs may fail.
func run(t *testing.T, s *dulytest.Scheduler) {
	t.Helper()
	if _, err := s.Scheduler.RunDue(t.Context(), core.Scope{}); err != nil {
		require.ErrorAs(t, err, new(*core.RunsError))
	}
}

// next turns the clock to when a task is due, and runs it.
func next(t *testing.T, s *dulytest.Scheduler, id string) {
	t.Helper()
	info, err := s.Task(t.Context(), "ada", id)
	require.NoError(t, err)
	s.Clock.Advance(info.Due.Sub(s.Clock.Now()))
	run(t, s)
}

// probe submits a task for each code, runs all, and says what became of each.
func probe(t *testing.T, s *dulytest.Scheduler, codes []int) map[int]string {
	t.Helper()
	for _, code := range codes {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: strconv.Itoa(code), Kind: "digest"})
		require.NoError(t, err)
	}
	run(t, s)
	out := map[int]string{}
	for _, code := range codes {
		out[code] = meant(t, s, strconv.Itoa(code))
	}
	return out
}

// programs runs real programs.
func programs(t *testing.T) *reference.Seen {
	t.Helper()
	seen := &reference.Seen{Env: map[string]string{}}
	dir := t.TempDir()
	seeing := func(name string, batch bool) (input []byte, env string) {
		h, err := exec.New(exec.Config{Argv: []string{"sh", "-c", `cat > "$0.in"; env > "$0.env"; echo '[null,null]'`, filepath.Join(dir, name)}})
		require.NoError(t, err)
		s := dulytest.New(t, settings(core.KindConfig{}))
		tasks := []core.NewTask{example("nightly")}
		if batch {
			s = dulytest.New(t, settings(core.KindConfig{Batch: 2}))
			core.HandleBatch(s.Scheduler, "digest", h.RunBatch)
			tasks = append(tasks, example("weekly"))
		} else {
			core.Handle(s.Scheduler, "digest", h.Run)
		}
		_, err = s.Submit(t.Context(), tasks...)
		require.NoError(t, err)
		next(t, s, "nightly")
		input, err = os.ReadFile(filepath.Join(dir, name+".in"))
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(dir, name+".env"))
		require.NoError(t, err)
		return input, ofTests.ReplaceAllString(string(text), "")
	}
	var env string
	seen.Input, env = seeing("one", false)
	for _, m := range variable.FindAllStringSubmatch(env, -1) {
		seen.Env[m[1]] = m[2]
	}
	seen.Batch, env = seeing("batch", true)
	for _, m := range variable.FindAllStringSubmatch(env, -1) {
		if m[2] != "" && !strings.HasPrefix(m[1], "DULY_VALUE_") {
			seen.BatchEnv = append(seen.BatchEnv, m[1])
		}
		if _, known := seen.Env[m[1]]; !known {
			seen.Env[m[1]] = "" // of a batch alone
		}
	}
	h, err := exec.New(exec.Config{Argv: []string{"sh", "-c", `echo approval; exit "$DULY_TASK_ID"`}})
	require.NoError(t, err)
	s := dulytest.New(t, settings(core.KindConfig{}))
	core.Handle(s.Scheduler, "digest", h.Run)
	seen.Codes = probe(t, s, []int{0, 1, 2, 64, 65, 66, 74, 75, 76, 77, 78, 126, 255})
	others(t, seen.Codes, 0, 65, 75, 76)
	g, err := exec.NewGate(exec.GateConfig{Argv: []string{"sh", "-c", `exit "$DULY_TASK_ID"`}})
	require.NoError(t, err)
	seen.Gate = opened(probe(t, gated(t, g.Ask), []int{0, 1, 2, 65, 75}))
	others(t, seen.Gate, 0, 1)
	return seen
}

// others says that all codes but some mean the same.
func others(t *testing.T, codes map[int]string, but ...int) {
	t.Helper()
	for code, means := range codes {
		if !slices.Contains(but, code) {
			assert.Equal(t, codes[2], means, "%d", code)
		}
	}
}

// opened are the same words about a gate: what succeeded has only started by it.
func opened(codes map[int]string) map[int]string {
	for code, means := range codes {
		if means == "succeeded" {
			codes[code] = "starts"
		}
	}
	return codes
}

// variable is one of duly's in what env prints.
// ofTests are variables of whoever runs the tests, which programs get as all of duly's environment.
var ofTests = regexp.MustCompile(`(?m)^DULY_TEST_[A-Z_]+=.*$`)

var variable = regexp.MustCompile(`(?m)^(DULY_[A-Z_]+|TRACEPARENT)=(.*)$`)

// gated is a scheduler whose kind has a gate, and a handler that succeeds.
func gated(t *testing.T, ask func(context.Context, *core.RunInfo) (core.GateAnswer, error)) *dulytest.Scheduler {
	t.Helper()
	s := dulytest.New(t, settings(core.KindConfig{}))
	core.Handle(s.Scheduler, "digest", func(context.Context, *core.Task[any]) error { return nil })
	core.Gate(s.Scheduler, "digest", ask)
	return s
}

// clock stands still for signatures.
type clock struct {
	core.SystemClock

	now time.Time
}

func (c clock) Now() time.Time { return c.now }

// servers runs real webhooks against a server that answers with the status that the id of a task is.
func servers(t *testing.T) *reference.Seen {
	t.Helper()
	seen := &reference.Seen{Header: map[string]http.Header{}}
	bodies, as, later := map[string]json.RawMessage{}, "", ""
	var mu sync.Mutex // of what the server shares with the test
	say := func(word, after string) {
		mu.Lock()
		defer mu.Unlock()
		as, later = word, after
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, "POST /digest", r.Method+" "+r.URL.Path)
		w.Header().Set("Connection", "close") // no idle connection is left behind
		body, _ := io.ReadAll(r.Body)
		var in struct{ ID string }
		_ = json.Unmarshal(body, &in) // a batch has no id
		if status, err := strconv.Atoi(in.ID); err == nil {
			if later != "" {
				w.Header().Set("Retry-After", later)
			}
			w.WriteHeader(status)
			return
		}
		seen.Header[as], bodies[as] = r.Header, body
		w.Header().Set("ETag", `"7"`)
		_, _ = io.WriteString(w, `[null,null]`)
	}))
	t.Cleanup(server.Close)
	config := webhook.Config{URL: server.URL + "/digest", Secret: reference.SecretOfExample, AllowLoopback: true, Clock: clock{now: time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)}}
	h, err := webhook.New(config)
	require.NoError(t, err)
	g, err := webhook.NewGate(webhook.GateConfig{Config: config})
	require.NoError(t, err)
	with := func(kind core.KindConfig) *dulytest.Scheduler {
		s := dulytest.New(t, settings(kind))
		if kind.Batch > 0 {
			core.HandleBatch(s.Scheduler, "digest", h.RunBatch)
		} else {
			core.Handle(s.Scheduler, "digest", h.Run)
		}
		return s
	}
	submit := func(s *dulytest.Scheduler, tasks ...core.NewTask) {
		_, err := s.Submit(t.Context(), tasks...)
		require.NoError(t, err)
		for range 2 { // so that a gate has a tag the second time
			next(t, s, "nightly")
		}
	}
	say("batch", "")
	submit(with(core.KindConfig{Batch: 2}), example("nightly"), example("weekly"))
	say("gate", "")
	submit(gated(t, g.Ask), example("nightly"))
	say("run", "")
	s := with(core.KindConfig{})
	_, err = s.Submit(t.Context(), example("nightly"))
	require.NoError(t, err)
	next(t, s, "nightly")
	seen.Input, seen.Batch = bodies["run"], bodies["batch"]
	var statuses []int
	for status := 200; status < 600; status++ {
		statuses = append(statuses, status)
	}
	seen.Codes = probe(t, with(core.KindConfig{}), statuses)
	seen.Gate = opened(probe(t, gated(t, g.Ask), statuses))
	say("", "60")
	seen.Later = probe(t, with(core.KindConfig{}), statuses)
	return seen
}

// The pages of the handlers are what real runs got, and what their answers meant.
func TestTheHandlersAreDescribed(t *testing.T) {
	t.Parallel()
	environment, err := os.ReadFile(filepath.Join(pages, "environment.md"))
	require.NoError(t, err)
	_, given, _ := strings.Cut(string(environment), "## Given to programs of `exec`")
	given, _, _ = strings.Cut(given, "\n## ")
	ofPrograms, err := reference.Exec(root, given, programs(t))
	require.NoError(t, err)
	ofServers, err := reference.Webhook(root, servers(t))
	require.NoError(t, err)
	for name, text := range map[string]string{"exec.md": ofPrograms, "webhook.md": ofServers} {
		written(t, name, text)
		for line := range strings.Lines(text) {
			assert.NotRegexp(t, `^\| .*\|\s+\|$`, strings.Replace(line, "| no answer |", "", 1), "%s says nothing there", name)
		}
	}
	// What the page of the environment says that programs get is what they get.
	for _, m := range regexp.MustCompile("(?m)^\\| `(DULY_[A-Z_]+)").FindAllStringSubmatch(given, -1) {
		assert.Contains(t, ofPrograms, "| `"+m[1], "no program gets %s", m[1])
	}
}

// Each thing that the pages say a run can say, a program and a server can say.
func TestWhatRunsSayIsUnderstood(t *testing.T) {
	t.Parallel()
	says, err := reference.Steering(root)
	require.NoError(t, err)
	require.Len(t, says, 6)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // no idle connection is left behind
		name := r.URL.Path[1:]
		value, checkpoint, _ := strings.Cut(says[name], ` {"page"`)
		w.Header().Set("Duly-"+name, value)
		if checkpoint != "" {
			_, _ = io.WriteString(w, `{"page"`+checkpoint)
		}
	}))
	t.Cleanup(server.Close)
	for name, value := range says {
		require.NotEmpty(t, value, "add an example of %s", name)
		p, err := exec.New(exec.Config{Argv: []string{"sh", "-c", `printf '%s\n' "$0" >&3`, "duly-" + name + ": " + value}})
		require.NoError(t, err)
		w, err := webhook.New(webhook.Config{URL: server.URL + "/" + name, AllowLoopback: true})
		require.NoError(t, err)
		for by, handler := range map[string]func(context.Context, *core.Task[json.RawMessage]) error{"exec": p.Run, "webhook": w.Run} {
			s := dulytest.New(t, core.Config{})
			core.Handle(s.Scheduler, "digest", handler)
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "i", Kind: "digest", Every: time.Minute})
			require.NoError(t, err)
			run(t, s)
			info, err := s.Task(t.Context(), "ada", "i")
			require.NoError(t, err)
			assert.Empty(t, info.LastError, "%s: %s", by, name)
			assert.EqualValues(t, 1, info.RunCount, fmt.Sprint(by, name, errors.Join(err)))
		}
	}
}
