package memos

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/adapters/internal/memosmessage"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/waits"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// The routes of the API, what they have in common, and the questions about the state of tasks.

// Config says how the API works. All fields are required but Stopping.
type Config struct {
	Clock core.Clock
	// MaxWaits is how many requests of one credential may wait at once; all together may be eight times as many.
	MaxWaits int
	// Waits bounds the waits of this and of other calls together; of this alone if nil.
	Waits *waits.Bound
	// Stopping is closed when the server is about to shut down: it ends the waits.
	Stopping <-chan struct{}
}

// api answers the requests.
type api struct {
	scheduler *core.Scheduler
	host      door.Host
	config    Config
	waits     *waits.Bound
	// Both hold pointers, so that the compiler makes the code of looks once.
	// They live as long as the handler.
	idle   looks[*idleLook]  // how many tasks of a user are active
	queues looks[*queueLook] // what of a user waits and runs
}

// envelope is what every answer is wrapped in.
type envelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// refusal is an error in an envelope. The host sends it as Answer says, as MemOS has no problem details.
// It never has a cause: what the store said would end up with the client.
type refusal struct{ envelope }

func (e *refusal) Error() string { return e.Message }

func (e *refusal) Answer() (status int, body any) { return e.Code, e.envelope }

func refuse(code int, format string, args ...any) error {
	return &refusal{envelope{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// answered is a success in an envelope, with the status in both places where MemOS's clients look.
func answered(message string, data any) (int, any, error) {
	return http.StatusOK, envelope{Code: http.StatusOK, Message: message, Data: data}, nil
}

// itemStatus is the status of one task, or of a business task. Differs says of a message that one with its item_id was known
// already, with another content.
type itemStatus struct {
	TaskID  string      `json:"task_id"`
	Status  core.Status `json:"status"`
	Differs bool        `json:"differs,omitempty"`
}

// Routes are the calls of the API, for a scheduler and the host that mounts them. They share their reads of a user, so a host
// makes them once.
func Routes(s *core.Scheduler, host door.Host, config Config) []door.Route {
	const base = "/product/scheduler"
	if config.Waits == nil {
		config.Waits = new(waits.Bound)
	}
	a := &api{scheduler: s, host: host, config: config, waits: config.Waits}
	// The messages are MemOS's own, word by word, as clients compare them.
	return []door.Route{
		{Method: http.MethodPost, Path: base + "/submit", Submits: true, Respond: a.enveloped(a.submit)},
		{Method: http.MethodGet, Path: base + "/status", Respond: a.orSay(http.StatusInternalServerError, "Failed to get scheduler status", a.status)},
		{Method: http.MethodGet, Path: base + "/allstatus", Respond: a.orSay(http.StatusInternalServerError, "Failed to get full scheduler status", a.allStatus)},
		{Method: http.MethodGet, Path: base + "/task_queue_status", Respond: a.orSay(http.StatusServiceUnavailable, "Scheduler queue is not available", a.queue)},
		{Method: http.MethodPost, Path: base + "/wait", Reads: true, Stream: a.wait},
		{Method: http.MethodGet, Path: base + "/wait/stream", Endless: true, Stream: a.waitStream},
	}
}

// orSay wraps an endpoint so that its errors have MemOS's shape and words.
func (a *api) orSay(code int, message string, answer func(r *http.Request) (int, any, error)) func(r *http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		status, body, err := answer(r)
		if err != nil {
			// Errors that are MemOS's already pass unchanged.
			err = a.inWords(r, err, code, message)
		}
		return status, body, err
	}
}

// inWords is a failure in MemOS's words. What the store said is logged and never sent to the client; an error that says what is
// wrong with the request stays unchanged.
func (a *api) inWords(r *http.Request, err error, code int, message string) error {
	_, known := errors.AsType[*problem.Error](err)
	_, worded := errors.AsType[*refusal](err)
	if known || worded || core.CodeOf(err) == core.CodeForbidden {
		return err
	}
	a.host.Failed(r, err)
	return refuse(code, "%s", message)
}

// nowhere reports whether an error says that there is no such task, or that there cannot be one under such names.
func nowhere(err error) bool {
	return core.CodeOf(err) == core.CodeNotFound || core.CodeOf(err) == core.CodeInvalid
}

// user is a required parameter of a request, which its caller has to be allowed.
// The check of the grant comes with reading it, so that no call can forget it.
func (a *api) user(r *http.Request, name string) (string, error) {
	value := r.URL.Query().Get(name)
	if value == "" {
		return "", refuse(http.StatusUnprocessableEntity, "%s: Field required", name)
	}
	return value, a.host.Allow(r, value)
}

// status answers with the status of a business task, of a task, or of all tasks of a user.
func (a *api) status(r *http.Request) (int, any, error) {
	// done is what MemOS says, including its grammar.
	const done = "Memory get status successfully"
	agent, err := a.user(r, "user_id")
	if err != nil {
		return 0, nil, err
	}
	asked := r.URL.Query().Get("task_id")
	if asked == "" {
		all := []itemStatus{}
		err := a.each(r, core.List{Agent: agent, Brief: true}, func(t *core.TaskInfo) {
			all = append(all, itemStatus{TaskID: t.ID, Status: t.Status})
		})
		if err != nil {
			return 0, nil, err
		}
		return answered(done, all)
	}
	// A business task is a group, and may have the name of a task. MemOS looks for the business task first, and so do we.
	counts, err := a.scheduler.Group(r.Context(), agent, asked)
	if err == nil {
		return answered(done, []itemStatus{{TaskID: asked, Status: counts.Status()}})
	}
	if nowhere(err) {
		var t core.TaskInfo
		if t, err = a.scheduler.Task(r.Context(), agent, asked); err == nil {
			return answered(done, []itemStatus{{TaskID: asked, Status: t.Status}})
		}
	}
	if nowhere(err) {
		err = refuse(http.StatusNotFound, "Task %s not found for user %s", asked, agent)
	}
	return 0, nil, err
}

// each calls see for all of an agent's tasks that a list asks for. An agent that cannot exist has none: MemOS has no rules for
// the names of users, so a name that duly would refuse is an unknown one.
func (a *api) each(r *http.Request, l core.List, see func(t *core.TaskInfo)) error {
	// Pages are as large as they may be, as every task has to be seen.
	l.Limit = inspect.MaxPage
	for {
		tasks, next, err := a.scheduler.Tasks(r.Context(), l)
		if nowhere(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range tasks {
			see(&tasks[i])
		}
		if l.Cursor = next; next == "" {
			return nil
		}
	}
}

// summary counts tasks by status; pending mirrors waiting and is no part of the total.
// The names are MemOS's.
type summary struct {
	Waiting    int64 `json:"waiting"`
	InProgress int64 `json:"in_progress"`
	Pending    int64 `json:"pending"`
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
	Cancelled  int64 `json:"cancelled"`
	Total      int64 `json:"total"`
}

// allStatus counts the tasks of all users, which only callers for all may see.
func (a *api) allStatus(r *http.Request) (int, any, error) {
	if err := a.host.AllowAll(r); err != nil {
		return 0, nil, err
	}
	st, err := a.scheduler.Stats(r.Context())
	if err != nil {
		return 0, nil, err
	}
	s := summary{
		Waiting: st.Waiting, InProgress: st.InProgress, Pending: st.Waiting, Completed: st.Completed, Failed: st.Failed,
		Cancelled: st.Cancelled, Total: st.Waiting + st.InProgress + st.Completed + st.Failed + st.Cancelled,
	}
	return answered("Scheduler status summary retrieved successfully", map[string]summary{
		"scheduler_summary": s, "all_tasks_summary": s,
	})
}

// queueLook counts a user's tasks that wait or run, and those that run, by stream. It is shared and must not be changed.
type queueLook struct{ remaining, pending map[string]int }

// queueOf looks at what of a user waits or runs. Requests that come at the same time share a look: it reads all live tasks of the
// user, and clients poll it.
func (a *api) queueOf(r *http.Request, agent string) (*queueLook, error) {
	leave, err := a.waits.Enter(a.host.Caller(r), a.config.MaxWaits)
	if err != nil {
		return nil, err
	}
	defer leave()
	forget := a.queues.use(agent, a.config.Clock)
	defer forget()
	// It waits at most as long as a wait does, and only for others' looks.
	w := &waiting{a: a, begun: a.config.Clock.Now(), timeout: longestWait}
	seen, _, ok, err := a.queues.see(r.Context(), agent, seeing[*queueLook]{
		clock: a.config.Clock, since: w.begun,
		pause: func(d time.Duration) bool { return w.sleep(r.Context(), d) },
		look:  func() (*queueLook, error) { return a.lookAtQueue(r, agent) },
	})
	if err == nil && !ok {
		err = problem.ErrCutOff
	}
	return seen, err
}

// lookAtQueue reads all live tasks of a user, and counts them by stream.
func (a *api) lookAtQueue(r *http.Request, agent string) (*queueLook, error) {
	q := &queueLook{map[string]int{}, map[string]int{}}
	l := core.List{Agent: agent, Status: []core.Status{core.StatusWaiting, core.StatusInProgress}}
	err := a.each(r, l, func(t *core.TaskInfo) {
		key := fmt.Sprintf("%s:%s:%s:%s", memosmessage.StreamPrefix(), agent, t.Labels["mem_cube_id"], t.Kind)
		q.remaining[key]++ // what is being worked on is part of it
		if t.Status == core.StatusInProgress {
			q.pending[key]++
		}
	})
	return q, err
}

// queue answers with what waits and runs for a user, by stream: one for each memory cube and label.
func (a *api) queue(r *http.Request) (int, any, error) {
	agent, err := a.user(r, "user_id")
	if err != nil {
		return 0, nil, err
	}
	seen, err := a.queueOf(r, agent)
	if err != nil {
		return 0, nil, err
	}
	// One answer has both, as of the same look.
	pending, remaining := seen.pending, seen.remaining
	if len(remaining) == 0 {
		return 0, nil, refuse(http.StatusNotFound, "No scheduler streams found for user %s", agent)
	}
	st, err := a.scheduler.Stats(r.Context())
	if err != nil {
		return 0, nil, err
	}
	// A caller for some agents learns that there is one user: its own.
	if a.host.AllowAll(r) != nil { // how many others there are is not for it
		st.Agents = 1
	}
	keys := slices.Sorted(maps.Keys(remaining))
	detail := func(counts map[string]int) (sum int, lines []string) {
		for _, key := range keys {
			sum += counts[key]
			lines = append(lines, fmt.Sprintf("%s:%d", key, counts[key]))
		}
		return sum, lines
	}
	pendingSum, pendingLines := detail(pending)
	remainingSum, remainingLines := detail(remaining)
	return answered("Scheduler task queue status retrieved successfully", struct {
		UserID    string   `json:"user_id"`
		UserName  *string  `json:"user_name"`
		MemCubeID *string  `json:"mem_cube_id"`
		Keys      []string `json:"stream_keys"`
		Users     int64    `json:"users_count"`
		Pending   int      `json:"pending_tasks_count"`
		Remaining int      `json:"remaining_tasks_count"`
		PDetail   []string `json:"pending_tasks_detail"`
		RDetail   []string `json:"remaining_tasks_detail"`
	}{agent, nil, nil, keys, st.Agents, pendingSum, remainingSum, pendingLines, remainingLines})
}
