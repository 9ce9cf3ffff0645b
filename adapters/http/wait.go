package http

// Waiting for the end of a task.

import (
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// How often a request that waits looks at its task: soon at first, as most end soon.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
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
	runs, end := task.RunCount, a.config.Clock.Now().Add(longest)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		left := end.Sub(a.config.Clock.Now())
		if left <= 0 || !a.sleep(r, min(pause, left)) {
			return task, nil
		}
		if task, err = a.scheduler.Task(r.Context(), agent, id); err != nil || task.Status.Finished() || task.Recurring() && task.RunCount > runs {
			return task, err
		}
	}
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

// sleep waits; false if the request is over, or the server about to shut down: another server answers a client that asks again.
func (a *api) sleep(r *http.Request, d time.Duration) bool {
	done := make(chan struct{})
	stop := a.config.Clock.AfterFunc(d, func() { close(done) })
	defer stop()
	select {
	case <-done:
		return true
	case <-a.config.Stopping:
		return false
	case <-r.Context().Done():
		return false
	}
}
