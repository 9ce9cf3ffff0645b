package a2a

// The list of an agent's tasks.

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// Bounds of a list. The protocol wants the tasks that changed last first, and the store keeps no such order: they are put in order here, so there is a bound to how many
// are read.
const (
	defaultPage = 50
	mostPage    = 100
	mostTasks   = 10_000
)

// query is which tasks are wanted.
type query struct {
	context   string
	state     string // as 1.0 names it; empty for all
	after     time.Time
	from      *place // the last task of the page before; nil for the first page
	size      int
	artifacts bool
}

// place is that of a task in the order of the list.
type place struct {
	at int64 // milliseconds
	id string
}

// placeOf is the place of a task.
func placeOf(t *core.TaskInfo) place { return place{t.UpdatedAt.UnixMilli(), t.ID} }

// compare puts what changed last first.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(q.at, p.at), strings.Compare(p.id, q.id))
}

// token names a place for the call for the next page.
func (p place) token() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", p.at, p.id))
}

// readToken reads a place.
func readToken(text string) (*place, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	at, id, is := strings.Cut(string(data), " ")
	p := place{id: id}
	if err == nil {
		p.at, err = strconv.ParseInt(at, 10, 64)
	}
	if err != nil || !is {
		return nil, &core.InvalidError{Field: "pageToken", Reason: "must be the nextPageToken of the page before"}
	}
	return &p, nil
}

// allStates are the states that the protocol has, also those that no task of duly is in.
var allStates = []string{
	"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_INPUT_REQUIRED",
	"TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED",
}

// readQuery reads the parameters of a list.
func readQuery(c *call) (*query, error) {
	q := &query{size: defaultPage}
	var after, token string
	for name, field := range map[string]struct {
		into any
		kind string
	}{
		"contextId": {&q.context, "a string"}, "status": {&q.state, "a string"}, "statusTimestampAfter": {&after, "a string"}, "pageToken": {&token, "a string"},
		"pageSize": {&q.size, "a whole number"}, "includeArtifacts": {&q.artifacts, "true or false"},
	} {
		if _, err := c.params.Take(name, field.kind, field.into); err != nil {
			return nil, err
		}
	}
	if q.state == "TASK_STATE_UNSPECIFIED" {
		q.state = ""
	}
	var err error
	if after != "" {
		q.after, err = time.Parse(time.RFC3339, after)
	}
	switch {
	case err != nil:
		return nil, &core.InvalidError{Field: "statusTimestampAfter", Reason: "must be a time, such as 2027-01-31T09:00:00Z"}
	case q.size < 1 || q.size > mostPage:
		return nil, &core.InvalidError{Field: "pageSize", Reason: fmt.Sprintf("must be between 1 and %d, not %d", mostPage, q.size)}
	case q.state != "" && !slices.Contains(allStates, q.state):
		return nil, &core.InvalidError{Field: "status", Reason: fmt.Sprintf("must be one of %q", allStates)}
	case token != "":
		q.from, err = readToken(token)
	}
	return q, err
}

// matches reports whether a task is wanted.
func (q *query) matches(t *core.TaskInfo) bool {
	of := contextOf(t.ID)
	return of != "" && (q.context == "" || q.context == of) && (q.state == "" || q.state == stateOf(t).in(v1)) && t.UpdatedAt.After(q.after)
}

// page is a page of tasks.
type page struct {
	Tasks []task `json:"tasks"`
	Next  string `json:"nextPageToken"`
	Size  int    `json:"pageSize"`
	Total int    `json:"totalSize"`
}

// list answers with a page of the tasks that messages to an agent have made.
func (a *api) list(c *call) (any, error) {
	q, err := readQuery(c)
	if err != nil {
		return nil, err
	}
	all, err := a.find(c.Context(), c.agent, q)
	if err != nil {
		return nil, err
	}
	out := page{Tasks: []task{}, Size: q.size, Total: len(all)}
	from := 0
	if q.from != nil {
		from, _ = slices.BinarySearchFunc(all, *q.from, place.compare)
		if from < len(all) && all[from] == *q.from {
			from++
		}
	}
	for _, p := range all[from:min(from+q.size, len(all))] {
		t, err := a.task(c, p.id)
		if core.CodeOf(err) == core.CodeNotFound { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		one := shown(t, v1)
		if !q.artifacts {
			one.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, one)
	}
	if end := from + q.size; end < len(all) {
		out.Next = all[end-1].token()
	}
	return out, nil
}

// find are the places of the tasks that match, in order. Of what is read no more is kept, as all results at once may be large.
func (a *api) find(ctx context.Context, agent string, q *query) (all []place, err error) {
	l := core.List{Agent: agent, Kind: a.door.Kind, Limit: inspect.MaxPage}
	for read := 0; ; {
		tasks, next, err := a.scheduler.Tasks(ctx, l)
		if err != nil {
			return nil, err
		}
		for i := range tasks {
			if q.matches(&tasks[i]) {
				all = append(all, placeOf(&tasks[i]))
			}
		}
		if l.Cursor = next; next == "" {
			slices.SortFunc(all, place.compare)
			return slices.Compact(all), nil
		}
		if read += len(tasks); read > mostTasks {
			return nil, problem.New(problem.CodeTooLarge, fmt.Sprintf("the agent has more than %d tasks of the kind: ask for each by GetTask, or list them by GET /v1/tasks", mostTasks))
		}
	}
}
