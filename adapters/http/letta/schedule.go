package letta

// The calls that create, show and delete schedules.

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Door has the calls. Its zero value is ready.
type Door struct{}

// api answers the requests.
type api struct {
	scheduler *core.Scheduler
	host      door.Host
}

// Routes are the calls of the API.
func (Door) Routes(s *core.Scheduler, host door.Host) []door.Route {
	a := &api{scheduler: s, host: host}
	const all, one = "/v1/agents/{agent}/schedule", "/v1/agents/{agent}/schedule/{schedule}"
	table := []door.Route{
		{Method: http.MethodPost, Path: all, Submits: true, Respond: a.create},
		{Method: http.MethodGet, Path: all, Respond: a.list},
		{Method: http.MethodGet, Path: one, Respond: a.retrieve},
		{Method: http.MethodDelete, Path: one, Respond: a.remove},
	}
	for i := range table {
		table[i].Respond = door.Unprocessable(theirs, table[i].Respond)
	}
	return table
}

// theirs are the fields of the API by those of the task that they become.
var theirs = map[string]string{"cron": "cron_expression", "at": "scheduled_at", "payload": "messages"}

// when is the schedule of a message: at a time, or again and again.
type when struct {
	Type string  `json:"type"`
	Cron string  `json:"cron_expression,omitempty"`
	At   float64 `json:"scheduled_at,omitempty"` // in milliseconds since 1970
}

const (
	oneTime   = "one-time"
	recurring = "recurring"
)

// seconds is the number from which on a time is in milliseconds: as seconds it is the year 5138, as milliseconds March of 1973.
const seconds = 100_000_000_000

// into sets when a task is due.
func (w *when) into(t *core.NewTask) error {
	switch {
	case w.Type == recurring || w.Type == "" && w.Cron != "":
		if len(strings.Fields(w.Cron)) > 5 {
			return &core.InvalidError{Field: "cron_expression", Reason: "must have five fields: minute, hour, day of month, month and day of week"}
		}
		if w.Cron == "" {
			return &core.InvalidError{Field: "cron_expression", Reason: "is required"}
		}
		t.Cron, t.Zone = w.Cron, "UTC"
	case w.Type == oneTime || w.Type == "":
		if math.IsNaN(w.At) || w.At < 1 || w.At > 253402300799999 {
			return &core.InvalidError{Field: "scheduled_at", Reason: "must be a time, as milliseconds or seconds since 1970"}
		}
		if w.At < seconds {
			w.At *= 1000
		}
		t.At = time.UnixMilli(int64(w.At))
	default:
		return &core.InvalidError{Field: "type", Reason: `must be "one-time" or "recurring"`}
	}
	return nil
}

// message is a scheduled message in the answers of the API.
type message struct {
	ID       string          `json:"id"`
	Agent    string          `json:"agent_id"`
	Message  json.RawMessage `json:"message"`
	Next     *string         `json:"next_scheduled_time"`
	Schedule when            `json:"schedule"`
}

// shown is a task as a scheduled message. It reports false if it is none, or has ended.
func shown(t *core.TaskInfo) (*message, bool) {
	if t.Kind != Kind || t.Status.Finished() || len(t.Payload) == 0 || !t.Recurring() && t.Schedule == "" && t.Due.IsZero() {
		return nil, false
	}
	m := &message{ID: t.ID, Agent: t.Agent, Message: t.Payload, Schedule: when{Type: recurring, Cron: t.Cron}}
	if t.Cron == "" {
		m.Schedule = when{Type: oneTime, At: float64(t.Due.UnixMilli())}
	}
	if !t.NextRun.IsZero() {
		next := t.NextRun.UTC().Format(time.RFC3339Nano)
		m.Next = &next
	}
	return m, true
}

// create stores a message. The server has asked whether the caller may act for the agent of the path.
func (a *api) create(r *http.Request) (int, any, error) {
	f, err := fields.Body(r)
	if err != nil {
		return 0, nil, err
	}
	t := core.NewTask{Agent: r.PathValue("agent"), ID: newID(a.scheduler), Kind: Kind}
	if !door.IsID(t.Agent) {
		return 0, nil, &core.InvalidError{Field: "agent_id", Reason: notAgent}
	}
	var w when
	if err := f.Need("schedule", "an object with cron_expression or scheduled_at", &w); err != nil {
		return 0, nil, err
	}
	if err := w.into(&t); err != nil {
		return 0, nil, err
	}
	var messages []json.RawMessage
	if json.Unmarshal(f["messages"], &messages) != nil || len(messages) == 0 {
		return 0, nil, &core.InvalidError{Field: "messages", Reason: "must be an array with at least one message"}
	}
	t.Payload = fields.Fields{}.Merge(f).JSON() // without nulls
	all, err := a.scheduler.Submit(r.Context(), t)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]string{"id": t.ID, "next_scheduled_at": all[0].Due.UTC().Format(time.RFC3339Nano)}, nil
}

// newID is the id of a message: later ones have greater ids, so that a list is in order of them.
func newID(s *core.Scheduler) string {
	epoch := time.UnixMilli(0)
	return fmt.Sprintf("scheduled-%012x-%s", -s.Until(epoch).Milliseconds(), strings.ToLower(rand.Text()))
}

// find is the message that the path names.
func (a *api) find(r *http.Request) (*message, error) {
	t, err := a.scheduler.Task(r.Context(), r.PathValue("agent"), r.PathValue("schedule"))
	m, is := shown(&t)
	if core.CodeOf(err) == core.CodeInvalid || err == nil && !is {
		err = fmt.Errorf("there is no such scheduled message: %w", core.ErrNotFound)
	}
	return m, err
}

// retrieve shows a message.
func (a *api) retrieve(r *http.Request) (int, any, error) {
	m, err := a.find(r)
	return http.StatusOK, m, err
}

// remove deletes a message.
func (a *api) remove(r *http.Request) (int, any, error) {
	m, err := a.find(r)
	if err == nil {
		err = a.scheduler.Delete(r.Context(), m.Agent, m.ID)
	}
	return http.StatusOK, map[string]bool{"success": true}, err
}

// Bounds of a list.
const (
	defaultLimit = 10
	mostLimit    = 100
	mostPages    = 32 // of other tasks that are passed over
)

// list is a page of an agent's messages. The last id of a page is where the next one begins: it need not exist any more, as its page is found again by
// its place in the list.
func (a *api) list(r *http.Request) (int, any, error) {
	q := r.URL.Query()
	limit := defaultLimit
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostLimit {
			return 0, nil, &core.InvalidError{Field: "limit", Reason: fmt.Sprintf("must be between 1 and %d", mostLimit)}
		}
		limit = n
	}
	found, more, err := a.page(r, q.Get("after"), limit)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"scheduled_messages": found, "has_next_page": more}, nil
}

// page reads up to limit messages after the one with an id. The store keeps no order of ids, so it reads all tasks, and keeps the first messages.
func (a *api) page(r *http.Request, after string, limit int) (found []*message, more bool, err error) {
	found = []*message{}
	l := core.List{Agent: r.PathValue("agent"), Kind: Kind, Status: []core.Status{core.StatusWaiting, core.StatusInProgress}, Limit: 200}
	for range mostPages {
		tasks, next, err := a.scheduler.Tasks(r.Context(), l)
		if err != nil {
			return nil, false, err
		}
		for i := range tasks {
			if m, is := shown(&tasks[i]); is && m.ID > after {
				found = append(found, m)
			}
		}
		slices.SortFunc(found, func(a, b *message) int { return strings.Compare(a.ID, b.ID) })
		if len(found) > limit {
			found, more = found[:limit], true
		}
		if l.Cursor = next; next == "" {
			return found, more, nil
		}
	}
	return nil, false, problem.New(problem.CodeTooLarge, "the agent has too many tasks for this list: use GET /v1/tasks")
}
