package world

// The row of marks: what a submitter writes on a task for itself, and finds again where the task runs.

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

var marksArrive = invariant("marks-arrive", "13", "A handler finds the user, the session, the trace, the info and the tags of the task as they were submitted.")

var marks = &feature{
	name:   "marks",
	fields: []string{"TraceID", "Traceparent", "SessionID", "UserID", "Info", "Tags"},
	holds:  []held{{marksArrive, "marks-lost"}},
	plan: func(g *generator) {
		if g.in(75) {
			return
		}
		for i := range g.plan.Requests {
			for _, def := range g.plan.Requests[i].Tasks {
				if n := strconv.Itoa(def.Number); g.in(50) && def.Agent != crowdAgent {
					def.TraceID, def.SessionID, def.UserID, def.Tags = "trace"+n, "session"+n, "user"+n, []string{"tag", n}
					def.Info = json.RawMessage(`{"n":` + n + `}`)
					def.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
				}
			}
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher { return watcher{began: a.marked} },
}

// marked holds that a run has the marks of its definition.
func (a *auditor) marked(r *run) {
	def, i := a.w.defs[r.number], r.info
	if def == nil {
		return
	}
	same := i.TraceID == def.TraceID && i.SessionID == def.SessionID && i.UserID == def.UserID && string(i.Info) == string(def.Info) &&
		slices.Equal(i.Tags, def.Tags) && maps.Equal(i.Labels, def.Labels)
	a.must(marksArrive, same, "%s/%s (number %d) runs with %q, %q, %q, %s, %v, %v", i.Agent, i.ID, r.number, i.TraceID, i.SessionID, i.UserID, i.Info, i.Tags, i.Labels)
}
