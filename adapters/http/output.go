package http

// The output of runs.

import (
	"io"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// outputRoutes are the calls about output.
func outputRoutes(a *api) []route {
	return []route{{Call: *operation.TaskOutput.Call, stream: outputOf(a)}}
}

// outputOf answers with what the last run of a task has printed: as JSON, or as text alone where the caller asks for that.
func outputOf(a *api) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		var q operation.OutputFrom
		err := sent(r, operation.TaskOutput.Call, &q)
		var out inspect.Output
		if err == nil {
			out, err = a.scheduler.Output(r.Context(), r.PathValue("agent"), r.PathValue("id"), inspect.OutputFrom{Run: store.Fence(q.Run), After: q.After})
		}
		switch {
		case err != nil:
			a.refuse(w, r, err)
		case strings.HasPrefix(r.Header.Get("Accept"), "text/plain"):
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if _, err := io.WriteString(w, out.Text); err != nil {
				a.unsent(r.Context(), err)
			}
		default:
			a.write(w, r, http.StatusOK, out)
		}
	}
}
