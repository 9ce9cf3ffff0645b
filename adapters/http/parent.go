package http

import (
	"context"
	"errors"
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
)

// Parents: a server that runs a task submits others in the name of its run.

// parentHeader comes with a run to a webhook, which sends it along with the tasks that it submits.
const parentHeader = "Duly-Parent"

// inRun is the context of a request, in the name of the run that its header names, if it has one.
func (a *api) inRun(r *http.Request) (context.Context, error) {
	given := r.Header.Values(parentHeader)
	if len(given) == 0 || len(given) == 1 && given[0] == "" {
		return r.Context(), nil
	}
	if len(given) > 1 {
		return nil, &core.InvalidError{Field: parentHeader, Reason: "is given more than once: a submit is of one run"}
	}
	ctx, err := a.scheduler.WithParent(r.Context(), given[0])
	if inv, is := errors.AsType[*core.InvalidError](err); is {
		return nil, &core.InvalidError{Field: parentHeader, Reason: inv.Reason}
	}
	return ctx, err
}
