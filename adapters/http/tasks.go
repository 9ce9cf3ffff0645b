package http

import (
	"context"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
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
	return submitStatus(submitted), operation.Submitted{Tasks: some(submitted)}, nil
}

// submitStatus is 201 if one of some tasks is new; 200 means that everything existed already.
func submitStatus(submitted []core.Submitted) int {
	for i := range submitted {
		if submitted[i].Created {
			return http.StatusCreated
		}
	}
	return http.StatusOK
}

// list answers with a page of an agent's tasks, or of those of all agents to a caller that may see these.
// The cursor is the store's, and opaque to the client.
func (a *api) list(r *http.Request, q operation.List) (operation.Tasks, error) {
	l := core.List{Agent: q.Agent, Kind: q.Kind, Key: q.Key, Group: q.Group, Overdue: q.Overdue, Held: q.Held, Late: q.Late, Asking: q.Asking, Limit: q.Limit, Cursor: q.Cursor}
	if err := a.selected(r.Context(), &l, q.Since, q.Until, q.Inside); err != nil {
		return operation.Tasks{}, err
	}
	// Several statuses are separated by commas; core refuses those that do not exist.
	if q.Status != "" {
		for s := range strings.SplitSeq(q.Status, ",") {
			l.Status = append(l.Status, core.Status(s))
		}
	}
	tasks, next, err := a.page(r, l, q.Labels)
	return operation.Tasks{Tasks: tasks, Next: next}, err
}

// jobs answers with a page of the recurring tasks of an agent, or of all agents to a caller that may see these.
// They are the tasks with every, cron or activity, and manual ones.
func (a *api) jobs(r *http.Request, q operation.JobList) (operation.Jobs, error) {
	jobs, next, err := a.page(r, core.List{Agent: q.Agent, Kind: q.Kind, Limit: q.Limit, Cursor: q.Cursor, Jobs: true}, q.Labels)
	return operation.Jobs{Jobs: jobs, Next: next}, err
}

// selected sets when tasks have to have ended, and what is looked for inside them. Times may be durations before or after now.
func (a *api) selected(ctx context.Context, l *core.List, since, until string, in operation.Inside) (err error) {
	l.Session, l.Text, l.Cause = in.Session, in.Text, in.Cause
	if l.Since, err = a.scheduler.TimeOrAgo(ctx, "since", since); err != nil {
		return err
	}
	if l.Until, err = a.scheduler.TimeOrAgo(ctx, "until", until); err != nil {
		return err
	}
	l.DueBy, err = a.scheduler.TimeOrAgo(ctx, "due_by", in.DueBy)
	return err
}

// severalTimes are the only parameters that may be given several times. Clients that were generated send a list so, others with commas.
var severalTimes = []string{labelParameter, "status"}

const labelParameter = "label"

// labelsOf are the labels that tasks are selected by.
func labelsOf(given []string) (map[string]string, error) {
	var labels map[string]string
	for _, text := range given {
		name, value, err := inspect.ParseLabel(text)
		if err != nil {
			return nil, err
		}
		if _, twice := labels[name]; twice {
			return nil, &core.InvalidError{Field: labelParameter, Reason: "names " + name + " twice"}
		}
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
	}
	return labels, nil
}

// page is one page of a list, for an agent that the caller may see.
func (a *api) page(r *http.Request, l core.List, labels []string) (tasks []core.TaskInfo, next string, err error) {
	if l.Labels, err = labelsOf(labels); err == nil {
		err = a.allow(r.Context(), l.Agent)
	}
	if err == nil {
		tasks, next, err = a.scheduler.Tasks(r.Context(), l)
	}
	return some(tasks), next, err
}

// runs answers with the last runs of a task, oldest first.
// A task that has never run has an empty array.
func (a *api) runs(r *http.Request, _ operation.None) (operation.Runs, error) {
	task, err := a.scheduler.Task(r.Context(), r.PathValue("agent"), r.PathValue("id"))
	return operation.Runs{Runs: some(task.Runs)}, err
}
