package console

// The handler: its settings, and the way of each request from its admission to its page.

import (
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/localhost"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Path is where the pages begin. The handler has to get all requests for it and for what is below it.
const Path = "/ui"

// Events bounds how many listen to events; the HTTP API has one, for instance.
type Events interface {
	// Listen takes a place, until leave is called. who is whose share of the places it takes.
	Listen(who string) (leave func(), err error)
}

// Options say how the console is served. Every zero is a good default, but without Callers any client that reaches the handler may do everything.
type Options struct {
	// Callers identifies the sender of a request, by its bearer token alone; nil if no token is needed. It is called for each request, with the
	// token that the user signed in with. Its error is logged, and never shown.
	Callers func(r *http.Request) (core.Principal, error)
	// LocalOnly refuses requests for a host that is neither localhost nor an IP address. Set it when there are no Callers and the server listens
	// on loopback: a page in a browser cannot reach it then through a name that it made point here.
	LocalOnly bool
	// ReadOnly leaves out all controls, and refuses their requests.
	ReadOnly bool
	// Version is shown at the foot of each page.
	Version string
	// Events, if set, bounds who looks at the page of live events; without it the page has none.
	Events Events
	// Stopping, if set, is closed when the server is about to shut down: it ends the streams of events.
	Stopping <-chan struct{}
	// Logger gets what went wrong on this side. Nothing is logged if nil.
	Logger *slog.Logger
	// TraceURL is where the trace of a task is, with {trace_id} in place of its id, as in https://traces.example/trace/{trace_id}. The page of a task
	// that has a trace leads there.
	TraceURL string
	// Clock is what relative times are counted from: core.SystemClock if nil.
	Clock core.Clock
}

// console answers requests with pages. It is used by many goroutines, and immutable after New but for what was counted lately.
type console struct {
	scheduler *core.Scheduler
	options   Options
	pages     map[string]*template.Template
	routes    map[string]map[string]route // by path and method
	tallies   tallies
}

// New makes the handler of the pages of a scheduler. Nothing listens yet: the caller gives it to a server of its own.
func New(s *core.Scheduler, options Options) http.Handler {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Clock == nil {
		options.Clock = core.SystemClock{}
	}
	c := &console{scheduler: s, options: options, pages: parsePages()}
	c.routes = c.table()
	return c
}

// route is one page, or one thing that a form orders.
type route struct {
	open   bool     // needs no session
	query  []string // parameters that it may have
	answer func(v *visit) (*page, error)
	stream func(v *visit) error // in place of answer: it writes by itself
}

// table is all that the console answers, but for what it embeds.
func (c *console) table() map[string]map[string]route {
	get := func(r route) map[string]route { return map[string]route{http.MethodGet: r} }
	post := func(r route) map[string]route { return map[string]route{http.MethodPost: r} }
	filtered := func(more ...string) []string { return append(append([]string{}, filterNames...), more...) }
	target := []string{"do", "agent", "id", "kind", "key", "each", "unit", "per"}
	return map[string]map[string]route{
		Path:                get(route{query: []string{"over"}, answer: c.now}),
		Path + "/charts":    get(route{query: []string{"over", "kind"}, answer: c.charts}),
		Path + "/agents":    get(route{query: []string{"prefix", "cursor"}, answer: c.agents}),
		Path + "/agent":     get(route{query: []string{"agent", "status", "kind", "cursor"}, answer: c.agent}),
		Path + "/task":      get(route{query: []string{"agent", "id"}, answer: c.task}),
		Path + "/tasks":     get(route{query: filtered("cursor", "sort"), answer: c.tasks}),
		Path + "/find":      get(route{query: []string{"q"}, answer: c.find}),
		Path + "/dead":      get(route{query: filtered("more"), answer: c.dead}),
		Path + "/approvals": get(route{query: []string{"agent", "cursor"}, answer: c.approvals}),
		Path + "/answer":    post(route{query: []string{"agent", "id", "key", "fence"}, answer: c.answer}),
		Path + "/replay":    post(route{answer: c.replay}),
		Path + "/bulk":      post(route{query: filtered("do", "cursor"), answer: c.bulk}),
		Path + "/held":      get(route{answer: c.held}),
		Path + "/kinds":     get(route{answer: c.kinds}),
		Path + "/pauses":    get(route{query: []string{"cursor"}, answer: c.pauses}),
		Path + "/processes": get(route{answer: c.processes}),
		Path + "/events":    get(route{query: []string{"agent", "kind"}, answer: c.events}),
		Path + "/stream":    get(route{query: []string{"agent", "kind"}, stream: c.stream}),
		Path + "/next":      get(route{query: []string{"cron", "zone"}, answer: c.next}),
		Path + "/confirm":   get(route{query: target, answer: c.confirm}),
		Path + "/do":        post(route{query: target, answer: c.do}),
		Path + "/key":       post(route{answer: c.pauseKey}),
		Path + "/limit":     post(route{answer: c.setLimit}),
		Path + "/budget":    post(route{answer: c.setBudget}),
		Path + "/edit":      post(route{query: []string{"agent", "id"}, answer: c.edit}),
		Path + "/again":     post(route{query: []string{"agent", "id"}, answer: c.again}),
		Path + "/signin":    post(route{open: true, answer: c.signIn}),
		Path + "/signout":   post(route{open: true, answer: c.signOut}),
	}
}

// visit is one request, and who sends it.
type visit struct {
	*console

	w       http.ResponseWriter
	r       *http.Request
	session session
	who     core.Principal
	q       url.Values
	now     time.Time
}

// mostForm is the largest form, in bytes.
const mostForm = 64 << 10

// ServeHTTP answers a request. The order is: from where, then who, then whether a form is one of ours, and only then the page itself.
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.guard(w)
	v := &visit{console: c, w: w, r: r, now: c.options.Clock.Now()}
	defer c.caught(v)
	if c.options.LocalOnly && !localhost.Is(r.Host) {
		v.refuse(problem.New(core.CodeForbidden, "the Host is neither localhost nor an IP address: open the console at http://localhost"))
		return
	}
	if strings.HasPrefix(r.URL.Path, assetPath) {
		c.asset(v)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := v.serve(); err != nil {
		v.refuse(err)
	}
}

// guard sets what holds for all answers: nothing from elsewhere, nothing inline, nothing kept, and in no frame.
func (*console) guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// serve finds the route of a request and answers with it.
func (v *visit) serve() error {
	// Whether a page exists is only said to those who may come in.
	rt, err := v.find()
	if refused := v.identify(rt.open); refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	if v.q, err = query(v.r, rt.query); err != nil {
		return err
	}
	if v.r.Method == http.MethodPost {
		if err := v.checkForm(); err != nil {
			return err
		}
	}
	if rt.stream != nil {
		return rt.stream(v)
	}
	p, err := rt.answer(v)
	if err != nil {
		return err
	}
	if v.r.Method == http.MethodPost { // what was counted may have changed
		v.tallies.forget()
	}
	return v.write(p)
}

// find is the route of a request.
func (v *visit) find() (route, error) {
	methods := v.routes[strings.TrimSuffix(v.r.URL.Path, "/")]
	if methods == nil {
		return route{}, problem.New(problem.CodeNoRoute, "no such page")
	}
	method := v.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	rt, ok := methods[method]
	if !ok || rt.stream != nil && v.r.Method == http.MethodHead {
		var allowed []string
		for name := range methods {
			allowed = append(allowed, name)
		}
		return route{}, problem.Method(allowed)
	}
	return rt, nil
}

// query reads the parameters of a request, each of which is given once at most. An empty one is one that is left out, as forms send it.
func query(r *http.Request, names []string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &core.InvalidError{Field: "query", Reason: "has an invalid escape"}
	}
	for name, all := range values {
		switch {
		case name == "said": // how the page before ended: every page may show it
		case !slices.Contains(names, name):
			return nil, &core.InvalidError{Field: strings.ToValidUTF8(name[:min(len(name), core.MaxIDLen)], ""), Reason: "is not a parameter of this page"}
		case len(all) > 1:
			return nil, &core.InvalidError{Field: name, Reason: "is given twice"}
		}
	}
	return values, nil
}

// may reports whether the visitor may do something with the tasks of an agent; of all if it is empty.
func (v *visit) may(action model.Action, agent string) error {
	return v.scheduler.Authorize(v.r.Context(), core.Access{Action: action, Agent: agent})
}

// steers reports whether there are controls for an agent, or for all.
func (v *visit) steers(agent string) bool {
	return !v.options.ReadOnly && v.may(model.ActionControl, agent) == nil
}

// caught is deferred: it turns a panic into a page that hides what happened.
func (c *console) caught(v *visit) {
	p := recover() //nolint:revive // it is called by the deferred function itself
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // a value that was thrown, not an error that was returned
		panic(p)
	}
	c.options.Logger.LogAttrs(v.r.Context(), slog.LevelError, "a page panicked",
		slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	v.refuse(problem.ErrInternal)
}
