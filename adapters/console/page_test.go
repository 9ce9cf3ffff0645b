package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// quiet are quiet hours that are not now, at whatever time the tests run.
var quiet = func() core.QuietHours {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if hour := time.Now().In(berlin).Hour(); err == nil && (hour >= 20 || hour < 8) {
		return core.QuietHours{From: "11:00", To: "17:00"}
	}
	return core.QuietHours{From: "22:00", To: "06:00"}
}()

// filled is a console with a bit of everything, whose visitors have to sign in.
func filled(t *testing.T, options console.Options) *fixture {
	t.Helper()
	options.Callers = callers()
	f := setup(t, options)
	f.submit(
		core.NewTask{Agent: "ann", ID: "done", Kind: "ok", Payload: map[string]string{"text": "hello"}},
		core.NewTask{Agent: "ann", ID: "dead", Kind: "bad"},
		core.NewTask{Agent: "bob", ID: "dead", Kind: "bad"},
		core.NewTask{Agent: "ann", ID: "later", Kind: "ok", Cron: "0 9 * * *", Zone: "Europe/Berlin"},
		core.NewTask{Agent: "bob", ID: "hourly", Kind: "ok", Every: time.Hour, Delay: time.Hour},
		core.NewTask{Agent: "bob", ID: "refund", Kind: "refund", Payload: map[string]string{"order": "order-17"}},
	)
	core.Handle(f.scheduler, "refund", asks(core.Signal{Key: "approval", From: core.FromApproval, Question: "Refund 40 EUR to Bob?", Timeout: time.Hour}))
	f.run()
	ctx := t.Context()
	assert.NoError(t, f.scheduler.Pause(ctx, core.Target{Kind: "ok"}, core.Pause{By: "ops", Reason: "a move"}))
	assert.NoError(t, f.scheduler.SetLimits(ctx, core.Limit{About: core.LimitTarget{Kind: "ok"}, Concurrency: 2}))
	assert.NoError(t, f.scheduler.SetBudgets(ctx, core.Budget{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Each: "agent"}, Unit: "runs", Per: "day"}, Amount: core.AmountOf(10)}))
	f.scheduler.Announce(ctx) // it measures what waits, and what is used
	_, err := f.scheduler.SetProfile(ctx, core.Profile{Agent: "ann", Zone: "Europe/Berlin", Quiet: []core.QuietHours{quiet}, Labels: map[string]string{"team": "care"}})
	assert.NoError(t, err)
	return f
}

// Every page shows what it is for to whoever may see it, and to nobody else; what makes no sense gets a page that says what to do.
func TestPages(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{Version: "1.2.3"})
	_, err := f.scheduler.SetProfile(t.Context(), core.Profile{Agent: "kim", Quota: store.Quota{Live: 40, Kinds: []string{"o*"}}})
	assert.NoError(t, err)
	root, reader, ann := f.with(console.Options{Callers: callers()}).signIn("root"), f.with(console.Options{Callers: callers()}).signIn("reader"), f.with(console.Options{Callers: callers()}).signIn("ann")
	for _, c := range []struct {
		path  string
		query []string
		want  int
		ann   int // the status for somebody who may see one agent
		says  []string
	}{
		{"/ui", nil, 200, 303, []string{"Runs</strong>", "paused", "bad", "2 failures", "−45 min", ">7 days<"}},
		{"/ui", []string{"over", "7d"}, 200, 303, []string{"−6 d", `hx-get="/ui?over=7d"`}},
		{"/ui", []string{"over", "2d"}, 400, 303, []string{"must be 1h, 24h or 7d"}},
		{"/ui/", nil, 200, 303, []string{"Runs</strong>"}},
		{"/ui/agents", nil, 200, 200, []string{">ann<", ">bob<"}},
		{"/ui/agents", []string{"prefix", "bo"}, 200, 303, []string{">bob<", "2 agents looked at"}},
		{"/ui/agents", []string{"prefix", "zed"}, 200, 303, []string{"begins with “zed”"}},
		{"/ui/agent", []string{"agent", "ann"}, 200, 200, []string{"The next 7 days", "later", "Europe/Berlin", quiet.From + " to " + quiet.To, "care", "runs a day of each agent"}},
		{"/ui/agent", []string{"agent", "ann", "status", "failed"}, 200, 200, []string{">dead<"}},
		{"/ui/agent", []string{"agent", "ann", "kind", "none"}, 200, 200, []string{"No task on this page is like that"}},
		{"/ui/agent", []string{"agent", "bob"}, 200, 403, []string{"hourly"}},
		{"/ui/agent", []string{"agent", "nobody"}, 404, 403, []string{"nobody", "Look for it among the agents"}},
		{"/ui/agent", nil, 400, 400, []string{"Agent is required."}},
		{"/ui/agent", []string{"agent", "ann", "status", "odd"}, 400, 400, []string{"must be waiting", "Go back, change it"}},
		{"/ui/agent", []string{"agent", "ann", "cursor", strings.Repeat("x", 3000)}, 400, 400, []string{"Cursor"}},
		{"/ui/task", []string{"agent", "ann", "id", "done"}, 200, 200, []string{"It completed at", "Result", "success", "worker"}},
		{"/ui/task", []string{"agent", "ann", "id", "dead"}, 200, 200, []string{"It failed at", "boom 7", "Replay"}},
		{"/ui/task", []string{"agent", "ann", "id", "later"}, 200, 200, []string{"cron 0 9 * * * (Europe/Berlin)", "kind ok has been paused", "Snooze"}},
		{"/ui/task", []string{"agent", "bob", "id", "dead"}, 200, 403, nil},
		{"/ui/task", []string{"agent", "ann", "id", "nothing"}, 404, 404, []string{"may have been deleted"}},
		{"/ui/task", []string{"agent", "ann"}, 400, 400, []string{"Id is required."}},
		{"/ui/task", []string{"agent", "ann", "id", "x", "odd", "1"}, 400, 400, []string{"is not a parameter of this page"}},
		{"/ui/task", []string{"agent", strings.Repeat("a", 300), "id", "x"}, 400, 403, nil},
		{"/ui/tasks", nil, 200, 303, []string{">later<", ">hourly<", "Europe/Berlin", "Waiting <span"}},
		{"/ui/tasks", []string{"status", "failed"}, 200, 303, []string{"boom 7", ">ann<", ">bob<", "Replay the ticked", "Delete all"}},
		{"/ui/tasks", []string{"agent", "ann"}, 200, 200, []string{">later<", ">done<"}},
		{"/ui/tasks", []string{"agent", "bob"}, 200, 403, []string{">hourly<"}},
		{"/ui/tasks", []string{"status", "odd"}, 400, 303, []string{"must be waiting"}},
		{"/ui/find", []string{"q", "ann/done"}, 303, 303, nil},
		{"/ui/find", []string{"q", "bob"}, 303, 404, nil},
		{"/ui/approvals", nil, 200, 403, []string{"Refund 40 EUR to Bob?", ">Approve<", ">Refuse<", "order-17", "asked "}},
		{"/ui/approvals", []string{"agent", "ann"}, 200, 200, []string{"Nothing waits for a person."}},
		{"/ui/approvals", []string{"agent", "bob"}, 200, 403, []string{"Refund 40 EUR to Bob?"}},
		{"/ui/approvals", []string{"cursor", "x"}, 400, 403, nil},
		{"/ui/dead", nil, 200, 403, []string{"boom 7", "<strong>2</strong>", "100.0 % of all", "2 agents", "Replay all", "Delete all", "first <time"}},
		{"/ui/dead", []string{"agent", "ann"}, 200, 200, []string{"boom 7", "1 agent"}},
		{"/ui/dead", []string{"kind", "ok"}, 200, 403, []string{"No dead task is like that."}},
		{"/ui/kinds", nil, 200, 403, []string{"kind &#34;ok&#34;", "2 runs at once", "10 runs a day of each agent"}},
		{"/ui/kinds", nil, 200, 403, []string{`class="spark"`, "/ui/charts?kind=ok"}},
		{"/ui/charts", nil, 200, 403, []string{"4 runs, 2 failures", "p95 at most", "3 tasks when last measured", "runs a day of each agent", "By kind", "/ui/charts?kind=bad&amp;over=1h"}},
		{"/ui/charts", []string{"over", "7d"}, 200, 403, []string{"4 runs, 2 failures", "−6 d"}},
		{"/ui/charts", []string{"over", "24h", "kind", "bad"}, 200, 403, []string{"2 runs, 2 failures", "0 tasks when last measured", "Failures ever", "Pause"}},
		{"/ui/charts", []string{"kind", "none"}, 200, 403, []string{"No kind of this name", "0 runs, 0 failures"}},
		{"/ui/charts", []string{"over", "1y"}, 400, 403, []string{"must be 1h, 24h or 7d"}},
		{"/ui/held", nil, 200, 403, []string{"kind &#34;ok&#34;", "a move", "by ops", "/ui/tasks?kind=ok&amp;status=waiting", "Resume"}},
		{"/ui/pauses", nil, 200, 403, []string{"a move", "ops", "Resume"}},
		{"/ui/pauses", []string{"cursor", strings.Repeat("x", 3000)}, 400, 403, nil},
		{"/ui/processes", nil, 200, 403, []string{"worker"}},
		{"/ui/events", nil, 200, 403, []string{"data-stream"}},
		{"/ui/agent", []string{"agent", "kim"}, 200, 403, []string{"Quota: live tasks", "0 of 40, 0 %", "Quota: kinds", "o*"}},
		{"/ui/events", []string{"agent", "ann"}, 200, 200, []string{"data-stream"}},
		{"/ui/next", []string{"cron", "0 9 * * *", "zone", "Europe/Berlin"}, 200, 200, []string{"09:00:00", "09:00:00"}},
		{"/ui/next", []string{"cron", "61 * * * *"}, 400, 400, []string{"Cron "}},
		{"/ui/next", []string{"cron", "1 * * * *", "zone", "Mars"}, 400, 400, []string{"Zone "}},
		{"/ui/confirm", []string{"do", "delete", "agent", "ann", "id", "done"}, 200, 200, []string{"Type <code>done</code> to confirm"}},
		{"/ui/confirm", []string{"do", "forget", "agent", "ann"}, 200, 200, []string{"Type <code>ann</code> to confirm"}},
		{"/ui/confirm", []string{"do", "forget", "agent", "bob"}, 200, 403, nil},
		{"/ui/confirm", []string{"do", "pause", "agent", "ann"}, 400, 400, nil},
		{"/ui/confirm", []string{"do", "delete", "agent", "ann", "id", "nothing"}, 404, 404, nil},
		{"/ui/nothing", nil, 404, 404, []string{"The menu above has all pages"}},
		{"/ui/do", nil, 405, 405, []string{"allowed: POST"}},
		{"/ui?said=paused&said=x", nil, 200, 303, []string{"no run starts before it is resumed"}},
	} {
		at := address(c.path, c.query...)
		a := root.get(c.path, c.query...)
		assert.Equal(t, c.want, a.status, at)
		for _, says := range c.says {
			a.says(t, says, at)
		}
		assert.LessOrEqual(t, len(a.body), 60<<10, at)
		assert.Equal(t, c.ann, ann.get(c.path, c.query...).status, "%s for ann", at)
		status := reader.get(c.path, c.query...).status
		if c.path == "/ui/confirm" {
			assert.Contains(t, []int{400, 403}, status, "%s for a reader", at)
		} else {
			assert.Equal(t, c.want, status, "%s for a reader", at)
		}
		if c.want != 405 {
			assert.Equal(t, 401, f.get(c.path, c.query...).status, "%s for nobody", at)
		}
	}
}

// Who may only look sees no control, and neither does anybody in a console that only shows.
func TestReadersSeeNoControls(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{})
	for name, v := range map[string]*fixture{
		"reader": f.with(console.Options{Callers: callers()}).signIn("reader"), "read-only": f.with(console.Options{Callers: callers(), ReadOnly: true}).signIn("root"),
	} {
		for _, path := range []string{
			"/ui", "/ui/tasks", "/ui/tasks?status=failed", "/ui/approvals", "/ui/agents", "/ui/agent?agent=ann", "/ui/task?agent=ann&id=later", "/ui/task?agent=bob&id=refund", "/ui/dead", "/ui/kinds", "/ui/charts", "/ui/charts?kind=ok", "/ui/held", "/ui/pauses", "/ui/processes", "/ui/next",
		} {
			a := v.get(path)
			assert.Equal(t, 200, a.status, path)
			for _, control := range []string{"/ui/do", "/ui/confirm", "/ui/limit", "/ui/budget", "/ui/edit", "/ui/key", "/ui/bulk", "/ui/answer", "Approve<", "Replay the", "checkbox\" name"} {
				a.lacks(t, control, "%s of %s", path, name)
			}
			assert.Equal(t, name == "read-only", strings.Contains(a.body, "read-only"), path)
		}
	}
}

// All answers are for nobody else's pages, and ask for nothing but the console's own files; none has a script or a style of its own.
func TestAnswersAreGuarded(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	for _, path := range []string{"/ui", "/ui/nothing", "/ui/assets/console.css", "/ui/task", "/ui/next"} {
		h := f.get(path).header
		assert.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "+
			"frame-ancestors 'none'; base-uri 'none'", h.Get("Content-Security-Policy"), path)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "no-store", h.Get("Cache-Control"), path)
		assert.Equal(t, "same-origin", h.Get("Referrer-Policy"), path)
	}
	for _, line := range shape(t, f.get("/ui").body) {
		assert.NotRegexp(t, `^style| style| on[a-z]+`, line)
		if strings.HasPrefix(line, "script") {
			assert.Contains(t, line, "script src")
		}
	}
	head := f.do(httptest.NewRequest(http.MethodHead, "http://localhost/ui", nil))
	assert.Equal(t, 200, head.status)
}

// A name that somebody else's name server makes point here reaches nothing.
func TestAForeignHostIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{LocalOnly: true})
	r := httptest.NewRequest(http.MethodGet, "http://evil.example/ui", nil)
	a := f.do(r)
	assert.Equal(t, 403, a.status)
	a.says(t, "neither localhost nor an IP address")
	assert.Zero(t, f.calls.Load())
	assert.Equal(t, 200, f.get("/ui").status)
}

// A store that is away shows as that, and what it said is for the log.
func TestAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{}).signIn("root")
	f.fail.Store(true)
	for _, path := range []string{"/ui", "/ui/tasks", "/ui/tasks?agent=ann", "/ui/approvals", "/ui/agents", "/ui/agent?agent=ann", "/ui/task?agent=ann&id=done", "/ui/dead", "/ui/kinds", "/ui/charts?kind=ok", "/ui/held", "/ui/pauses"} {
		a := f.get(path)
		assert.Equal(t, 503, a.status, path)
		a.says(t, "Check that Redis is running", path)
		a.lacks(t, "secret.host", path)
	}
	assert.Equal(t, 200, f.get("/ui/next", "cron", "@daily").status, "it needs no store")
}

// What a page costs the store does not grow with what is stored: no page looks at all agents, or at all tasks.
func TestPagesCostFewCalls(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{}).signIn("root")
	paths := []string{
		"/ui", "/ui/tasks", "/ui/tasks?status=failed", "/ui/tasks?status=in_progress", "/ui/tasks?status=overdue", "/ui/tasks?agent=ann", "/ui/tasks?text=none", "/ui/tasks?sort=created", "/ui/tasks?status=failed&text=none",
		"/ui/approvals", "/ui/agents", "/ui/agents?prefix=z", "/ui/agent?agent=ann", "/ui/task?agent=ann&id=done", "/ui/dead", "/ui/kinds", "/ui/charts", "/ui/charts?over=7d&kind=ok", "/ui/held", "/ui/pauses", "/ui/processes",
	}
	cost := func() (out []int64) {
		for _, path := range paths {
			before := f.calls.Load()
			a := f.get(path)
			assert.Equal(t, 200, a.status)
			assert.LessOrEqual(t, len(a.body), 60<<10, path)
			out = append(out, f.calls.Load()-before)
		}
		return out
	}
	cost()
	for i := range 30 {
		var many []core.NewTask
		for k := range 30 {
			many = append(many, core.NewTask{Agent: "ann", Kind: "bad"}, core.NewTask{Agent: strings.Repeat("a", 200) + string(rune('A'+i)) + string(rune('A'+k)), Kind: "ok", Delay: time.Hour})
		}
		f.submit(many...)
	}
	f.run()
	after := cost()
	for i, path := range paths {
		assert.LessOrEqual(t, after[i], int64(12), path)
	}
}
