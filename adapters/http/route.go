package http

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/operate"
)

// Routes: one table of all calls, with the rights that each requires.

// route is one call. Its answer is a status and a value that is written as JSON, or an error.
// The table is made once, in New.
type route struct {
	method  string
	path    string   // whose segments in braces match anything
	open    bool     // needs no credential
	noHead  bool     // a GET that does not end by itself, or that runs tasks
	needs   Scope    // if it differs from the scope of the method
	verify  Verifier // replaces the verifiers of other routes
	asks    bool     // asks for scopes and agents by itself, once it knows the call
	submits bool     // stores tasks: in the name of a run, if the request has that
	// Exactly one of answer and stream is set.
	answer func(r *http.Request) (int, any, error)
	stream func(w http.ResponseWriter, r *http.Request) // in place of answer
}

// scope is what a caller needs: the route's own, or to read or write as its method does.
// A POST that only reads says so itself.
func (rt *route) scope() Scope {
	switch {
	case rt.needs != "":
		return rt.needs
	case rt.method == http.MethodGet:
		return ScopeRead
	default:
		return ScopeWrite
	}
}

// routes is the whole table: the calls of every handler, then those that its configuration adds.
func (a *api) routes() []route {
	table := []route{
		{method: http.MethodPost, path: "/v1/run-due", needs: ScopeTrigger, answer: a.runDue},
		{method: http.MethodPost, path: "/v1/tasks", submits: true, answer: a.submit},
		{method: http.MethodGet, path: "/v1/tasks", answer: a.list},
		{method: http.MethodPost, path: "/v1/tasks/replay", answer: a.bulk(operate.BulkReplay)},
		{method: http.MethodPost, path: "/v1/tasks/cancel", answer: a.bulk(operate.BulkCancel)},
		{method: http.MethodPost, path: "/v1/tasks/delete", answer: a.bulk(operate.BulkDelete)},
		{method: http.MethodPost, path: "/v1/tasks/run", answer: a.bulk(operate.BulkRun)},
		{method: http.MethodPost, path: "/v1/tasks/pause", answer: a.bulk(operate.BulkPause)},
		{method: http.MethodPost, path: "/v1/tasks/resume", answer: a.bulk(operate.BulkResume)},
		{method: http.MethodGet, path: "/v1/agents/{agent}/tasks/{id}", answer: a.task},
		{method: http.MethodPatch, path: "/v1/agents/{agent}/tasks/{id}", submits: true, answer: a.edit},
		{method: http.MethodDelete, path: "/v1/agents/{agent}/tasks/{id}", answer: a.remove},
		{method: http.MethodPost, path: "/v1/agents/{agent}/tasks/{id}/pause", answer: a.pause},
		{method: http.MethodPost, path: "/v1/agents/{agent}/tasks/{id}/resume", answer: a.resume},
		{method: http.MethodPost, path: "/v1/agents/{agent}/tasks/{id}/run", answer: a.runNow},
		{method: http.MethodPost, path: "/v1/agents/{agent}/tasks/{id}/cancel", answer: a.cancel},
		{method: http.MethodPost, path: "/v1/agents/{agent}/tasks/{id}/replay", answer: a.replay},
		{method: http.MethodGet, path: "/v1/agents/{agent}/tasks/{id}/explain", answer: a.explain},
		{method: http.MethodGet, path: "/v1/agents/{agent}/tasks/{id}/runs", answer: a.runs},
		{method: http.MethodPost, path: "/v1/agents/{agent}/pause", answer: a.pause},
		{method: http.MethodPost, path: "/v1/agents/{agent}/resume", answer: a.resume},
		{method: http.MethodGet, path: "/v1/agents/{agent}", answer: a.profile},
		{method: http.MethodPut, path: "/v1/agents/{agent}", answer: a.setProfile},
		{method: http.MethodDelete, path: "/v1/agents/{agent}", answer: a.forget},
		{method: http.MethodGet, path: "/v1/agents/{agent}/export", noHead: true, stream: a.export},
		{method: http.MethodPost, path: "/v1/agents/{agent}/import", answer: a.imports},
		{method: http.MethodDelete, path: "/v1/agents/{agent}/profile", answer: a.deleteProfile},
		{method: http.MethodPost, path: "/v1/kinds/{kind}/pause", answer: a.pause},
		{method: http.MethodPost, path: "/v1/kinds/{kind}/resume", answer: a.resume},
		{method: http.MethodPost, path: "/v1/keys/{key}/pause", answer: a.pause},
		{method: http.MethodPost, path: "/v1/keys/{key}/resume", answer: a.resume},
		{method: http.MethodPost, path: "/v1/pause", answer: a.pause},
		{method: http.MethodPost, path: "/v1/resume", answer: a.resume},
		{method: http.MethodPost, path: "/v1/activity", answer: a.activity},
		{method: http.MethodPost, path: "/v1/signals/{agent}/{key}", asks: true, answer: a.signal},
		{method: http.MethodGet, path: "/v1/jobs", answer: a.jobs},
		{method: http.MethodGet, path: "/v1/agents", answer: a.agents},
		{method: http.MethodGet, path: "/v1/pauses", answer: a.pauses},
		{method: http.MethodGet, path: "/v1/limits", answer: a.limits},
		{method: http.MethodPut, path: "/v1/limits", answer: a.setLimit},
		{method: http.MethodDelete, path: "/v1/limits", answer: a.liftLimit},
		{method: http.MethodGet, path: "/v1/budgets", answer: a.budgets},
		{method: http.MethodPut, path: "/v1/budgets", answer: a.setBudget},
		{method: http.MethodDelete, path: "/v1/budgets", answer: a.liftBudget},
		{method: http.MethodGet, path: "/v1/groups/{agent}/{group}", answer: a.group},
		{method: http.MethodGet, path: "/v1/stats", answer: a.stats},
		{method: http.MethodGet, path: "/v1/kinds", answer: a.kinds},
		{method: http.MethodGet, path: "/v1/processes", answer: a.processes},
		{method: http.MethodPost, path: "/v1/audit", answer: a.audit},
		{method: http.MethodGet, path: "/v1/doctor", answer: a.doctor},
		{method: http.MethodGet, path: "/v1/presets", answer: a.presets},
		{method: http.MethodPost, path: "/v1/next", needs: ScopeRead, answer: a.next},
		{method: http.MethodGet, path: "/healthz", open: true, answer: a.health},
		{method: http.MethodGet, path: "/readyz", open: true, answer: a.ready},
		{method: http.MethodGet, path: "/openapi.json", open: true, answer: a.document},
	}
	return append(append(append(table, a.memos()...), a.configured()...), a.rpc()...)
}

// configured are the calls that exist only if the configuration has them.
func (a *api) configured() (table []route) {
	// Without a secret the path does not exist, so that it cannot be guessed.
	if a.cron != nil {
		table = append(table, route{method: http.MethodGet, path: "/v1/cron", noHead: true, needs: ScopeTrigger, verify: a.cron, answer: a.runCron})
	}
	if a.config.Approvals != nil {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			table = append(table, route{method: method, path: approvalPath + "{call}", open: true, stream: a.approve})
		}
	}
	if a.config.Profiles != nil {
		table = append(table, route{method: http.MethodGet, path: "/v1/profiles", answer: a.profiles})
	}
	if events := a.config.Events; events != nil {
		table = append(table, route{method: http.MethodGet, path: "/v1/events", noHead: true, stream: events.answer(a)})
	}
	if a.config.Metrics != nil {
		table = append(table, route{method: http.MethodGet, path: "/metrics", stream: a.metrics})
	}
	return table
}

// find returns the route of a request and sets the request's path values. If there is none it returns the methods that
// the path has.
//
// http.ServeMux would not do: it takes an id that is just a slash (%2F) for the end of the path, and answers a path with
// an empty segment with a redirect.
func find(routes []route, r *http.Request) (*route, []string) {
	for _, name := range []string{"agent", "id", "kind", "key", "group", "call"} {
		r.SetPathValue(name, "") // an outer mux may have such wildcards
	}
	// The escaped path is split, so that %2F stays within its segment.
	segments := strings.Split(r.URL.EscapedPath(), "/")
	var allowed []string
	for i := range routes {
		if !matches(r, routes[i].path, segments) {
			continue
		}
		methods := []string{routes[i].method}
		// Go's server drops the body of an answer to HEAD.
		if routes[i].method == http.MethodGet && !routes[i].noHead {
			methods = append(methods, http.MethodHead)
		}
		if slices.Contains(methods, r.Method) {
			return &routes[i], nil
		}
		allowed = append(allowed, methods...)
	}
	slices.Sort(allowed)
	return nil, allowed
}

// matches compares the segments of a path with those of a route. An id that is empty or a dot matches nothing: it is
// what proxies and clients make of a path that was not escaped.
func matches(r *http.Request, path string, segments []string) bool {
	wanted := strings.Split(path, "/")
	if len(wanted) != len(segments) {
		return false
	}
	// Segments are compared one by one; only a whole segment can be a wildcard.
	for i, raw := range segments {
		segment, err := url.PathUnescape(raw)
		name, wild := strings.CutPrefix(wanted[i], "{")
		switch {
		case err != nil, !wild && segment != wanted[i], wild && (raw == "" || raw == "." || raw == ".."):
			return false
		case wild:
			r.SetPathValue(strings.TrimSuffix(name, "}"), segment)
		}
	}
	return true
}
