package http

// Waiting for the end of a task.

import (
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/waits"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// task answers with a task: with ?wait=30s once it has ended, or after that time at the latest. One that recurs has ended when a
// run of it has.
func (a *api) task(r *http.Request, q operation.Wait) (core.TaskInfo, error) {
	agent, id := r.PathValue("agent"), r.PathValue("id")
	longest, err := a.waitOf(q.Wait)
	if err != nil {
		return core.TaskInfo{}, err
	}
	task, err := a.scheduler.Task(r.Context(), agent, id)
	if err != nil || longest == 0 || task.Status.Finished() {
		return task, err
	}
	leave, err := a.waits.Enter(callerOf(r.Context()).credential, a.config.MaxWaits)
	if err != nil {
		return core.TaskInfo{}, err
	}
	defer leave()
	runs := task.RunCount
	// A server about to shut down answers: another one does for a client that asks again.
	waits.Until(r.Context(), a.config.Clock, a.config.Stopping, longest, func() bool {
		task, err = a.scheduler.Task(r.Context(), agent, id)
		return err != nil || task.Status.Finished() || task.Recurring() && task.RunCount > runs
	})
	return task, err
}

// waitOf is how long a request is ready to wait; zero for not at all.
func (a *api) waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := inspect.ParseDuration(text)
	if err != nil || d < 0 || d > a.config.MaxTimeout {
		return 0, &core.InvalidError{Field: "wait", Reason: "must be a duration up to " + a.config.MaxTimeout.String() + ", such as 30s"}
	}
	return d, nil
}
