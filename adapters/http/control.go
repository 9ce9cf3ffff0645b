package http

import (
	"errors"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// An operator's calls. Each answers with the new state of what it changed, so that a client needs no second request.

// target is the target of a request to pause or resume: the names in its path, or all tasks.
//
// A request without a body must not stop the fleet: its body has to ask for all tasks, and only where the path names nothing.
func target(r *http.Request, all bool) (core.Target, error) {
	t := core.Target{Agent: r.PathValue("agent"), ID: r.PathValue("id"), Kind: r.PathValue("kind"), Key: r.PathValue("key")}
	switch {
	case t == core.Target{} && !all:
		return t, &core.InvalidError{Field: "all", Reason: "must be true: this is about all tasks of all agents"}
	case t != core.Target{} && all:
		return t, &core.InvalidError{Field: "all", Reason: "must be left out: the path says what is meant"}
	}
	return t, nil
}

// pause keeps the tasks of a target that is wider than a task from being started.
func (a *api) pause(r *http.Request, p operation.Pause) (operation.Paused, error) {
	t, err := target(r, p.All)
	if err == nil {
		err = a.scheduler.Pause(r.Context(), t, core.Pause{Reason: p.Reason, By: p.By, Until: p.Until, For: time.Duration(p.For), Ahead: p.Ahead})
	}
	return operation.Paused{Target: t, Paused: true}, toCome(err)
}

// pauseTask keeps a task from being started, and answers with it.
func (a *api) pauseTask(r *http.Request, p operation.Pause) (core.TaskInfo, error) {
	_, err := a.pause(r, p)
	return a.after(r, err)
}

// toCome explains how to pause what does not exist yet.
func toCome(err error) error {
	if _, unknown := errors.AsType[*operate.UnknownTargetError](err); unknown {
		return problem.New(core.CodeNotFound, err.Error()+`; send "ahead": true if it is still to be created`)
	}
	return err
}

// resume ends a pause. With ahead it is no error if the target does not exist yet: it was not paused ahead either.
// It is the same rule as that of the command line's --ahead.
func (a *api) resume(r *http.Request, q operation.Resume) (operation.Paused, error) {
	t, err := target(r, q.All)
	if err == nil {
		err = a.scheduler.Resume(r.Context(), t)
	}
	if _, unknown := errors.AsType[*operate.UnknownTargetError](err); unknown && q.Ahead {
		err = nil
	}
	return operation.Paused{Target: t}, toCome(err)
}

// resumeTask ends the pause of a task, and answers with it.
func (a *api) resumeTask(r *http.Request, q operation.Resume) (core.TaskInfo, error) {
	_, err := a.resume(r, q)
	return a.after(r, err)
}

// after is the answer to an order about a task: the task as it is then.
func (a *api) after(r *http.Request, err error) (core.TaskInfo, error) {
	if err != nil {
		return core.TaskInfo{}, err
	}
	return a.scheduler.Task(r.Context(), r.PathValue("agent"), r.PathValue("id"))
}

// runNow makes a task due now and answers with it.
func (a *api) runNow(r *http.Request, _ operation.Empty) (core.TaskInfo, error) {
	_, err := a.scheduler.RunNow(r.Context(), r.PathValue("agent"), r.PathValue("id"))
	return a.after(r, err)
}

// replay makes a dead task live again, with another payload if one is sent, and answers with it.
func (a *api) replay(r *http.Request, with operation.Replayed) (core.TaskInfo, error) {
	_, err := a.scheduler.ReplayWith(r.Context(), r.PathValue("agent"), r.PathValue("id"), with.Payload)
	return a.after(r, err)
}

// cancel ends a task and answers with it: its status shows whether it has ended, or ends with its run.
func (a *api) cancel(r *http.Request, by operation.Order) (core.TaskInfo, error) {
	_, err := a.scheduler.Cancel(r.Context(), r.PathValue("agent"), r.PathValue("id"), core.Order{Reason: by.Reason, By: by.By})
	return a.after(r, err)
}

// edit changes fields of a task that waits, and answers with the task.
func (a *api) edit(r *http.Request, change []byte) (core.TaskInfo, error) {
	_, err := a.scheduler.Edit(r.Context(), r.PathValue("agent"), r.PathValue("id"), change)
	return a.after(r, err)
}

// remove forgets a task.
// Nothing is left to answer with, so the answer repeats the request.
func (a *api) remove(r *http.Request, _ operation.None) (operation.DeletedTask, error) {
	agent, id := r.PathValue("agent"), r.PathValue("id")
	return operation.DeletedTask{Agent: agent, ID: id, Deleted: true}, a.scheduler.Delete(r.Context(), agent, id)
}

// explain answers why a task has not run.
func (a *api) explain(r *http.Request, _ operation.None) (inspect.Explanation, error) {
	return a.scheduler.Explain(r.Context(), r.PathValue("agent"), r.PathValue("id"))
}

// activity notes that a subject was active.
// The status is 202: the run comes later, if at all.
func (a *api) activity(r *http.Request, s operation.Activity) (model.Noticed, error) {
	return a.scheduler.Notice(r.Context(), s.Kind, core.Subject{User: s.User, Device: s.Device, Agent: s.Agent})
}
