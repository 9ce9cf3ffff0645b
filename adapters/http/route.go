package http

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// Routes: the operations of package operation, each with the method that answers it.

// route is one call. Its answer is a status and a value that is written as JSON, or an error.
// The table is made once, in New.
type route struct {
	operation.Call

	verify  Verifier // replaces the verifiers of other routes
	anyHost bool     // its verifier proves who sends a request from any Host, and answers one that it refuses
	// keyHeader is a header whose value counts as a bearer token in a request without Authorization; none if empty.
	keyHeader string
	// Exactly one of answer and stream is set.
	answer func(r *http.Request) (int, any, error)
	stream func(w http.ResponseWriter, r *http.Request) // in place of answer
}

// answers is the route of an operation whose request is read strictly by its type. What depends on the types is little, as a function's cold start loads it
// for each operation.
func answers[Q, A any](a *api, op operation.Op[Q, A], do func(r *http.Request, sent Q) (A, error)) route {
	return mount(a, op.Call, func(r *http.Request) (func() (any, error), error) {
		q := new(Q)
		return func() (any, error) { return do(r, *q) }, sent(r, op.Call, q)
	})
}

// takes is answers for what has a reader of its own.
func takes[Q, A, T any](a *api, op operation.Op[Q, A], read func(r *http.Request) (T, error), do func(r *http.Request, sent T) (A, error)) route {
	return mount(a, op.Call, func(r *http.Request) (func() (any, error), error) {
		sent, err := read(r)
		return func() (any, error) { return do(r, sent) }, err
	})
}

// mount is the route of a call. read reads what is sent, and returns what answers it.
func mount(a *api, call *operation.Call, read func(r *http.Request) (func() (any, error), error)) route {
	return route{Call: *call, answer: func(r *http.Request) (int, any, error) {
		do, err := read(r)
		if err == nil && call.Wide {
			err = a.allowAll(r.Context())
		}
		if err != nil {
			return 0, nil, err
		}
		answer, err := do()
		return cmp.Or(call.Status, http.StatusOK), answer, err
	}}
}

// asks is the answer to a question without parameters.
func asks[Q, A any](ask func(ctx context.Context) (A, error)) func(r *http.Request, _ Q) (A, error) {
	return func(r *http.Request, _ Q) (A, error) { return ask(r.Context()) }
}

// routes is the whole table: the calls of every handler, then those that its configuration adds.
func (a *api) routes() []route {
	s := a.scheduler
	table := []route{
		takes(a, operation.RunDue, a.scope, a.runDue),
		{Call: *operation.SubmitAll.Call, answer: a.submit},
		answers(a, operation.ListTasks, a.list),
		answers(a, operation.ListJobs, a.jobs),
		answers(a, operation.Task, a.task),
		takes(a, operation.Edit, requestbody.JSON, a.edit),
		answers(a, operation.Delete, a.remove),
		answers(a, operation.PauseTask, a.pauseTask),
		answers(a, operation.ResumeTask, a.resumeTask),
		answers(a, operation.RunNow, a.runNow),
		answers(a, operation.Cancel, a.cancel),
		answers(a, operation.Replay, a.replay),
		answers(a, operation.Explain, a.explain),
		answers(a, operation.TaskRuns, a.runs),
		answers(a, operation.Group, a.group),
		answers(a, operation.Notice, a.activity),
		{Call: *operation.SendSignal.Call, answer: a.signal},
		answers(a, operation.PauseAgent, a.pause),
		answers(a, operation.ResumeAgent, a.resume),
		answers(a, operation.PauseKind, a.pause),
		answers(a, operation.ResumeKind, a.resume),
		answers(a, operation.PauseKey, a.pause),
		answers(a, operation.ResumeKey, a.resume),
		answers(a, operation.PauseAll, a.pause),
		answers(a, operation.ResumeAll, a.resume),
		answers(a, operation.ListPauses, a.pauses),
		answers(a, operation.ListAgents, a.agents),
		answers(a, operation.AgentProfile, a.profile),
		takes(a, operation.SetProfile, readProfile, a.setProfile),
		answers(a, operation.DeleteProfile, a.deleteProfile),
		answers(a, operation.ForgetAgent, a.forget),
		{Call: *operation.Export.Call, stream: a.export},
		takes(a, operation.Import, linesOf, a.imports),
		answers(a, operation.ListLimits, a.limits),
		takes(a, operation.SetLimit, bodyBy(core.ReadLimit), a.setLimit),
		answers(a, operation.LiftLimit, a.liftLimit),
		answers(a, operation.ListBudgets, a.budgets),
		takes(a, operation.SetBudget, bodyBy(core.ReadBudget), a.setBudget),
		answers(a, operation.LiftBudget, a.liftBudget),
		answers(a, operation.Op[operation.Window, any]{Call: operation.Stats.Call}, a.stats),
		answers(a, operation.Kinds, asks[operation.Empty](s.DescribeKinds)),
		answers(a, operation.ListProcesses, a.processes),
		answers(a, operation.AuditStep, a.audit),
		answers(a, operation.Doctor, a.doctor),
		answers(a, operation.ListPresets, a.presets),
		answers(a, operation.Forecast, a.next),
		answers(a, operation.Healthz, a.health),
		answers(a, operation.Readyz, a.ready),
		answers(a, operation.Document, a.document),
		answers(a, operation.DocumentV1, a.document),
	}
	for _, verb := range []operate.BulkVerb{operate.BulkReplay, operate.BulkCancel, operate.BulkDelete, operate.BulkRun, operate.BulkPause, operate.BulkResume} {
		table = append(table, answers(a, operation.BulkOf(verb), a.bulk(verb)))
	}
	work := newLending(a, s)
	return slices.Concat(table, outputRoutes(a), work.routes(), a.memos(), doors(a), a.configured(), a.rpc(work), models{a}.routes())
}

// configured are the calls that exist only if the configuration has them.
func (a *api) configured() (table []route) {
	// Without a secret the path does not exist, so that it cannot be guessed.
	if a.cron != nil {
		cron := answers(a, operation.Cron, a.runCron)
		cron.verify = a.cron
		table = append(table, cron)
	}
	if a.config.Approvals != nil {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			table = append(table, route{Call: operation.Call{Method: method, Path: approvalPath + "{call}", Open: true}, stream: a.approve})
		}
	}
	if a.config.Hooks != nil {
		table = append(table, hookRoute(a))
	}
	if a.config.Profiles != nil {
		table = append(table, answers(a, operation.ListProfiles, a.profiles))
	}
	if events := a.config.Events; events != nil {
		table = append(table, route{Call: *operation.Events.Call, stream: events.answer(a)})
	}
	if a.config.Metrics != nil {
		table = append(table, route{Call: *operation.Metrics.Call, stream: a.config.Metrics.ServeHTTP})
	}
	return table
}

// find returns the route of a request and sets the request's path values. If there is none it returns the methods that
// the path has.
//
// http.ServeMux would not do: it takes an id that is just a slash (%2F) for the end of the path, and answers a path with
// an empty segment with a redirect.
func find(routes []route, r *http.Request) (*route, []string) {
	for _, name := range []string{"agent", "id", "kind", "key", "group", "call", "name", "thread", "schedule"} {
		r.SetPathValue(name, "") // an outer mux may have such wildcards
	}
	// The escaped path is split, so that %2F stays within its segment.
	segments := strings.Split(r.URL.EscapedPath(), "/")
	var allowed []string
	for i := range routes {
		if !matches(r, routes[i].Path, segments) {
			continue
		}
		methods := []string{routes[i].Method}
		// Go's server drops the body of an answer to HEAD.
		if routes[i].Method == http.MethodGet && !routes[i].NoHead {
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
