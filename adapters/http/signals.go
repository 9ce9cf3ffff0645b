package http

// Signals: messages to tasks that wait for them.

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// signal has the tasks of an agent that wait for a key continue, and answers with how many there are.
// A caller that may approve needs no other right.
func (a *api) signal(r *http.Request) (int, any, error) {
	approve := core.Access{Action: model.ActionApprove, Agent: r.PathValue("agent")}
	if a.scheduler.Authorize(r.Context(), approve) != nil {
		if err := a.allow(r.Context(), approve.Agent); err != nil {
			return 0, nil, err
		}
	}
	var q operation.Signal
	if err := sent(r, operation.SendSignal.Call, &q); err != nil {
		return 0, nil, err
	}
	out, err := a.scheduler.Signal(r.Context(), r.PathValue("agent"), r.PathValue("key"), q.Payload)
	if err != nil {
		return 0, nil, err
	}
	return signalStatus(out), out, nil
}

// signalStatus is the status of a signal that was sent.
func signalStatus(out model.Signalled) int {
	if out.Kept {
		return http.StatusAccepted // a task that waits for it comes later
	}
	return http.StatusOK
}
