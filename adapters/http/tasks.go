package http

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Tasks: submitting, listing and showing them.

// submit stores tasks, all or none of them. The status is 201 if at least one of them is new. Everything that can be refused
// without the store is refused before it is called: faults of the body, and, by the scheduler, tasks that the caller may not touch.
func (a *api) submit(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	tasks, err := model.ParseTasks(data)
	if err != nil {
		return 0, nil, err
	}
	if err := a.identifyTasks(r, tasks); err != nil {
		return 0, nil, err
	}
	submitted, err := a.scheduler.Submit(r.Context(), tasks...)
	if err != nil {
		// Without ids a client cannot know what a retry would do, so the error explains how to get them.
		return 0, nil, problem.OfSubmit(err, tasks, "give the tasks ids, or send the header "+idempotencyHeader)
	}
	// 200 means that everything existed already.
	status := http.StatusOK
	for i := range submitted {
		if submitted[i].Created {
			status = http.StatusCreated
		}
	}
	// An empty array, not null.
	if submitted == nil {
		submitted = []core.Submitted{}
	}
	return status, struct {
		Tasks []core.Submitted `json:"tasks"`
	}{submitted}, nil
}

// list answers with a page of an agent's tasks, or of those of all agents to a caller that may see these.
// The cursor is the store's, and opaque to the client.
func (a *api) list(r *http.Request) (int, any, error) {
	q, err := query(r, "agent_id", "status", "kind", "key", "group", severalTimes, "since", "until", "overdue", "held", "limit", "cursor")
	if err != nil {
		return 0, nil, err
	}
	l := core.List{Agent: q.Get("agent_id"), Kind: q.Get("kind"), Key: q.Get("key"), Group: q.Get("group"), Cursor: q.Get("cursor")}
	if l.Overdue, err = yes(q, "overdue"); err == nil {
		l.Held, err = yes(q, "held")
	}
	if err != nil {
		return 0, nil, err
	}
	if err := a.ended(r.Context(), &l, q.Get("since"), q.Get("until")); err != nil {
		return 0, nil, err
	}
	// Several statuses are separated by commas; core refuses those that do not exist.
	if status := q.Get("status"); status != "" {
		for s := range strings.SplitSeq(status, ",") {
			l.Status = append(l.Status, core.Status(s))
		}
	}
	if l.Limit, err = pageSize(q); err == nil {
		l.Labels, err = labelsOf(q)
	}
	if err != nil {
		return 0, nil, err
	}
	tasks, next, err := a.page(r, l)
	return http.StatusOK, struct {
		Tasks []core.TaskInfo `json:"tasks"`
		Next  string          `json:"next_cursor"`
	}{tasks, next}, err
}

// jobs answers with a page of the recurring tasks of an agent, or of all agents to a caller that may see these.
// They are the tasks with every, cron or activity, and manual ones.
func (a *api) jobs(r *http.Request) (int, any, error) {
	q, err := query(r, "agent_id", "kind", severalTimes, "limit", "cursor")
	if err != nil {
		return 0, nil, err
	}
	l := core.List{Agent: q.Get("agent_id"), Kind: q.Get("kind"), Cursor: q.Get("cursor"), Jobs: true}
	if l.Limit, err = pageSize(q); err == nil {
		l.Labels, err = labelsOf(q)
	}
	if err != nil {
		return 0, nil, err
	}
	jobs, next, err := a.page(r, l)
	return http.StatusOK, struct {
		Jobs []core.TaskInfo `json:"jobs"`
		Next string          `json:"next_cursor"`
	}{jobs, next}, err
}

// edit changes fields of a task that waits, and answers with the task.
func (a *api) edit(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err == nil {
		_, err = a.scheduler.Edit(r.Context(), r.PathValue("agent"), r.PathValue("id"), data)
	}
	if err != nil {
		return 0, nil, err
	}
	return a.task(r)
}

// yes reads a parameter that is true or false; false if it is left out.
func yes(q url.Values, name string) (bool, error) {
	switch q.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, &core.InvalidError{Field: name, Reason: mustBeBool}
	}
}

// ended sets when tasks have to have ended: times, or durations before now.
func (a *api) ended(ctx context.Context, l *core.List, since, until string) (err error) {
	if l.Since, err = a.scheduler.TimeOrAgo(ctx, "since", since); err == nil {
		l.Until, err = a.scheduler.TimeOrAgo(ctx, "until", until)
	}
	return err
}

// severalTimes is the only parameter that may be given several times.
const severalTimes = "label"

// labelsOf are the labels that tasks are selected by.
func labelsOf(q url.Values) (map[string]string, error) {
	var labels map[string]string
	for _, text := range q[severalTimes] {
		name, value, err := inspect.ParseLabel(text)
		if err != nil {
			return nil, err
		}
		if _, twice := labels[name]; twice {
			return nil, &core.InvalidError{Field: severalTimes, Reason: "names " + name + " twice"}
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels, nil
}

// page is one page of a list, for an agent that the caller may see.
func (a *api) page(r *http.Request, l core.List) ([]core.TaskInfo, string, error) {
	if err := a.allow(r, l.Agent); err != nil {
		return nil, "", err
	}
	tasks, next, err := a.scheduler.Tasks(r.Context(), l)
	if tasks == nil {
		tasks = []core.TaskInfo{}
	}
	return tasks, next, err
}

// pageSize is the limit of a page; zero if none is given.
// Its upper bound is core's, which reports it.
func pageSize(q url.Values) (int, error) {
	limit := q.Get("limit")
	if limit == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(limit)
	if err != nil || n < 1 {
		return 0, &core.InvalidError{Field: "limit", Reason: "must be a whole number from 1 on"}
	}
	return n, nil
}

// runs answers with the last runs of a task, oldest first.
// A task that has never run has an empty array.
func (a *api) runs(r *http.Request) (int, any, error) {
	task, err := a.scheduler.Task(r.Context(), r.PathValue("agent"), r.PathValue("id"))
	if task.Runs == nil {
		task.Runs = []model.TaskRun{}
	}
	return http.StatusOK, struct {
		Runs []model.TaskRun `json:"runs"`
	}{task.Runs}, err
}

// replay makes a dead task live again and answers with it.
// The answer is the task as it is after the replay.
func (a *api) replay(r *http.Request) (int, any, error) {
	if _, err := a.scheduler.Replay(r.Context(), r.PathValue("agent"), r.PathValue("id")); err != nil {
		return 0, nil, err
	}
	return a.task(r)
}
