package history_test

// The clients: one set of commands, given through Go, HTTP or the command line.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// id is that of every task: each agent has one.
const id = "t"

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// client gives a command about an agent's task and returns what it was told.
type client interface {
	do(ctx context.Context, agent string, in input) answer
}

// inGo calls the scheduler.
type inGo struct{ s *core.Scheduler }

func (c inGo) do(ctx context.Context, agent string, in input) answer {
	var out answer
	var err error
	switch in.verb {
	case submitKeep, submitReplace:
		task := core.NewTask{Agent: agent, ID: id, Kind: kind, Payload: numbered{in.def}}
		if in.verb == submitReplace {
			task.OnConflict = core.OnConflictReplace
		}
		var placed []core.Submitted
		if placed, err = c.s.Submit(ctx, task); err == nil {
			out.created = placed[0].Created
		}
	case cancel:
		out.status, err = c.s.Cancel(ctx, agent, id, core.Order{By: "history"})
	case pause:
		err = c.s.Pause(ctx, core.Target{Agent: agent, ID: id}, core.Pause{})
	case resume:
		err = c.s.Resume(ctx, core.Target{Agent: agent, ID: id})
	case remove:
		err = c.s.Delete(ctx, agent, id)
	case runNow:
		_, err = c.s.RunNow(ctx, agent, id)
	case replay:
		_, err = c.s.Replay(ctx, agent, id)
	case get:
		var t core.TaskInfo
		if t, err = c.s.Task(ctx, agent, id); err == nil {
			out.status, out.paused = t.Status, len(t.Pauses) > 0
			var n numbered
			_ = json.Unmarshal(t.Payload, &n)
			out.def = n.N
		}
	}
	out.code = known(core.CodeOf(err))
	if errors.Is(err, store.ErrChanged) {
		out.code = changed
	}
	return out
}

// changed says that the task was never as it was read, so that a command gave up: nothing was done.
const changed core.Code = "changed"

// known makes every code that says nothing about the outcome one.
func known(code core.Code) core.Code {
	if code == core.CodeStoreFull || code == core.CodeInternal {
		return core.CodeUnavailable
	}
	return code
}

// taskJSON is what all answers about a task have.
type taskJSON struct {
	Status  core.Status `json:"status"`
	Paused  bool        `json:"is_paused"`
	Created bool        `json:"created"`
	Payload numbered    `json:"payload"`
	Code    core.Code   `json:"code"`
}

// overHTTP calls the API.
type overHTTP struct{ url string }

func (c overHTTP) do(ctx context.Context, agent string, in input) answer {
	method, path, body := "POST", "/v1/agents/"+agent+"/tasks/"+id, ""
	switch in.verb {
	case submitKeep, submitReplace:
		path = "/v1/tasks"
		conflict := "keep"
		if in.verb == submitReplace {
			conflict = "replace"
		}
		body = fmt.Sprintf(`{"tasks":[{"agent_id":%q,"id":%q,"kind":%q,"payload":{"n":%d},"on_conflict":%q}]}`, agent, id, kind, in.def, conflict)
	case runNow:
		path += "/run"
	case get:
		method = "GET"
	case remove:
		method = "DELETE"
	default:
		path += "/" + in.verb
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return answer{code: core.CodeUnavailable}
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{code: core.CodeUnavailable}
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{code: core.CodeUnavailable}
	}
	return loosely(in, decoded(data))
}

// loosely is the answer to a command that was followed by a read of the task: somebody else may have been in between.
func loosely(in input, out answer) answer {
	if in.verb != get {
		out.status, out.loose = "", true
	}
	return out
}

// decoded is the answer in a task, in a list with one task, or in a problem.
func decoded(data []byte) answer {
	var list struct {
		Tasks []taskJSON `json:"tasks"`
	}
	var t taskJSON
	_ = json.Unmarshal(data, &list)
	_ = json.Unmarshal(data, &t)
	if len(list.Tasks) == 1 {
		t = list.Tasks[0]
	}
	return answer{code: known(t.Code), created: t.Created, status: t.Status, paused: t.Paused, def: t.Payload.N}
}

// onCommandLine runs duly.
type onCommandLine struct{ url string }

func (c onCommandLine) do(ctx context.Context, agent string, in input) answer {
	args := []string{map[string]string{get: "status", runNow: "run"}[in.verb], agent, id}
	switch in.verb {
	case submitKeep, submitReplace:
		conflict := "keep"
		if in.verb == submitReplace {
			conflict = "replace"
		}
		args = []string{"submit", "--agent", agent, "--id", id, "--kind", kind, "--payload", fmt.Sprintf(`{"n":%d}`, in.def), "--on-conflict", conflict}
	case get, runNow:
	default:
		args[0] = in.verb
	}
	cmd := exec.CommandContext(ctx, os.Args[0], append(args, "--json")...)
	cmd.Env = append(os.Environ(), commandEnv+"=1", "DULY_REDIS_URL="+c.url)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return loosely(in, decoded(stdout.Bytes()))
	case errors.As(err, &failed) && failed.ExitCode() == 3:
		return loosely(in, answer{code: core.CodeNotFound})
	default: // a conflict, or a Redis that is away: the exit code does not say
		return answer{code: core.CodeUnavailable}
	}
}
