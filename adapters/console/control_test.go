package console_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// Each control does what it says for whoever may, once; for others, for what does not exist and in a console that only shows it changes nothing.
func TestControls(t *testing.T) {
	t.Parallel()
	task := func(f *fixture, id string) core.TaskInfo {
		info, err := f.scheduler.Task(f.Context(), "ann", id)
		require.NoError(f, err)
		return info
	}
	for _, c := range []struct {
		do   string
		id   string
		form []string
		done func(f *fixture)
	}{
		{"pause", "later", []string{"reason", "a <b>", "by", "root-operator", "note", "root-operator"}, func(f *fixture) {
			p := task(f, "later").Pauses
			require.Len(f, p, 2)
			for _, one := range p {
				if one.Target.ID != "" {
					assert.Equal(f, core.Order{By: "ann", Reason: "a <b>"}, one.Order)
				}
			}
		}},
		{"pause", "later", []string{"for", "15m"}, func(f *fixture) {
			assert.False(f, task(f, "later").Pauses[1].Until.IsZero() && task(f, "later").Pauses[0].Until.IsZero())
		}},
		{"run", "later", nil, func(f *fixture) { assert.False(f, task(f, "later").NextRun.After(time.Now())) }},
		{"replay", "dead", nil, func(f *fixture) { assert.Equal(f, core.StatusWaiting, task(f, "dead").Status) }},
		{"cancel", "later", []string{"name", " later ", "reason", "enough"}, func(f *fixture) {
			assert.Equal(f, "cancelled by ann: enough", task(f, "later").Reason)
		}},
		{"delete", "done", []string{"name", "done"}, func(f *fixture) {
			_, err := f.scheduler.Task(f.Context(), "ann", "done")
			assert.ErrorIs(f, err, core.ErrNotFound)
		}},
		{"pause", "", nil, func(f *fixture) { assert.Len(f, task(f, "later").Pauses, 2) }},
		{"forget", "", []string{"name", "ann"}, func(f *fixture) { assert.Equal(f, 404, f.get("/ui/agent", "agent", "ann").status) }},
	} {
		t.Run(c.do, func(t *testing.T) {
			t.Parallel()
			f := filled(t, console.Options{}).signIn("ann")
			q := []string{"do", c.do, "agent", "ann"}
			if c.id != "" {
				q = append(q, "id", c.id)
			}
			to := address("/ui/do", q...)
			for name, other := range map[string]*fixture{
				"reader": f.with(console.Options{Callers: callers()}).signIn("reader"), "read-only": f.with(console.Options{Callers: callers(), ReadOnly: true}).signIn("root"),
			} {
				a := other.post(to, c.form...)
				assert.Equal(t, 403, a.status, name)
				a.says(t, map[string]string{"reader": "does not cover the scope", "read-only": "read-only"}[name])
			}
			q[3] = "bob"
			assert.Equal(t, 403, f.post(address("/ui/do", q...), c.form...).status, "of an agent that is not hers")
			q[3] = "ann"
			if c.id != "" {
				q[5] = "nothing"
				assert.Equal(t, 404, f.post(address("/ui/do", q...), "name", "nothing").status)
			}
			a := f.post(to, c.form...)
			require.Equal(t, http.StatusSeeOther, a.status, a.body)
			assert.Contains(t, a.header.Get("Location"), "said=")
			c.done(f)
			if !strings.Contains(a.header.Get("Location"), "/ui/agent?") && c.do != "forget" {
				assert.Equal(t, 200, f.get(a.header.Get("Location")).status)
			}
		})
	}
}

// What is resumed runs again, and what is wider than an agent is for those who may touch all.
func TestWideControls(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{}).signIn("root")
	ann := f.with(console.Options{Callers: callers()}).signIn("ann")
	for _, to := range []string{"/ui/do?do=resume&kind=ok", "/ui/do?do=pause&key=k", "/ui/do?do=pause", "/ui/bulk?kind=bad", "/ui/limit", "/ui/budget", "/ui/edit?agent=bob&id=x", "/ui/again?agent=bob&id=x", "/ui/key"} {
		assert.Equal(t, 403, ann.post(to, "key", "k").status, to)
	}
	assert.Equal(t, 303, f.post("/ui/do?do=resume&kind=ok").status)
	assert.Equal(t, 303, f.post("/ui/do?do=pause", "reason", "all").status)
	assert.Equal(t, 303, f.post("/ui/key", "key", "openai").status)
	pauses := f.get("/ui/pauses")
	pauses.says(t, "everything")
	pauses.says(t, "openai")
	pauses.lacks(t, "a move")
	a := f.post("/ui/do?do=run&agent=ann&id=later")
	assert.Equal(t, 409, a.status)
	a.says(t, "everything is paused")
	assert.Equal(t, 303, f.post("/ui/do?do=resume").status)

	assert.Equal(t, 303, f.post("/ui/limit", "kind", "bad", "concurrency", "3", "rate", "60/1m").status)
	f.get("/ui/kinds").says(t, "3 runs at once, 60/1m")
	assert.Equal(t, 303, f.post("/ui/limit", "kind", "bad", "lift", "yes").status)
	f.get("/ui/kinds").lacks(t, "3 runs at once")
	assert.Equal(t, 303, f.post("/ui/budget", "kind", "bad", "unit", "usd", "per", "day", "amount", "2.5", "then", "hold").status)
	f.get("/ui/kinds").says(t, "2.5 usd a day of kind &#34;bad&#34;")
	assert.Equal(t, 303, f.post("/ui/budget", "kind", "bad", "unit", "usd", "per", "day", "lift", "yes").status)
	f.get("/ui/kinds").lacks(t, "2.5 usd")
	for _, c := range [][]string{
		{"/ui/limit", "kind", "bad"},
		{"/ui/limit", "kind", "bad", "concurrency", "x"},
		{"/ui/limit", "kind", "bad", "rate", "x"},
		{"/ui/budget", "unit", "usd", "per", "day"},
		{"/ui/budget", "unit", "usd", "per", "week", "amount", "1"},
		{"/ui/budget", "unit", "usd", "per", "day", "amount", "-1"},
		{"/ui/edit?agent=ann&id=later", "was_level", "3", "level", "3"},
		{"/ui/edit?agent=ann&id=later", "was_level", "3", "level", "9"},
		{"/ui/edit?agent=ann&id=later", "payload", "{"},
		{"/ui/edit?agent=ann&id=later", "cron", "often"},
		{"/ui/key"},
		{"/ui/do?do=odd"},
		{"/ui/do?do=run&agent=ann"},
		{"/ui/do?do=forget&agent=ann&id=done"},
		{"/ui/do?do=pause&id=x"},
		{"/ui/do?do=pause&kind=ok&agent=ann"},
		{"/ui/do?do=pause&agent=ann", "for", "soon"},
		{"/ui/do?do=delete&agent=ann&id=done", "name", "don"},
		{"/ui/do?do=delete&agent=ann&id=done"},
		{"/ui/do?do=forget&agent=ann", "name", "bob"},
		{"/ui/replay"},
		{"/ui/replay", "task", "%zz"},
	} {
		a := f.post(c[0], c[1:]...)
		assert.Equal(t, 400, a.status, "%v", c)
		a.says(t, "Go back, change it", "%v", c)
	}
	assert.Equal(t, 404, f.post("/ui/limit", "kind", "none", "lift", "yes").status)
}

// Dead tasks are replayed as they are ticked, or all of a filter step by step.
func TestDeadTasksAreReplayed(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{}).signIn("root")
	name := func(agent, id string) string { return url.Values{"agent": {agent}, "id": {id}}.Encode() }
	f.get("/ui/tasks", "status", "failed").says(t, strings.ReplaceAll(name("ann", "dead"), "&", "&amp;"))
	assert.Equal(t, 303, f.post("/ui/replay", "task", name("ann", "dead")).status)
	a := f.post("/ui/replay", "task", name("ann", "dead"), "task", name("bob", "dead"), "task", name("bob", "none"))
	assert.Equal(t, 200, a.status)
	a.says(t, "1 of 3 tasks are due again")
	a.says(t, "not found")
	f.run()
	ann := f.with(console.Options{Callers: callers()}).signIn("ann")
	assert.Equal(t, 403, ann.post("/ui/replay", "task", name("bob", "dead")).status)
	for i := range 120 {
		f.submit(core.NewTask{Agent: "cleo" + time.Duration(i).String(), Kind: "bad"})
	}
	f.run()
	const bulk = "/ui/bulk?do=replay&status=failed&kind=bad"
	a = f.post(bulk)
	a.says(t, "Replay 100<")
	a = f.post(bulk, "count", "99")
	a.says(t, "Replay 100<")
	require.NotContains(t, a.body, "are due again", "another count than the one that was shown changes nothing")
	assert.Equal(t, 400, f.post(bulk, "count", "-1").status)
	a = f.post(bulk, "count", "100")
	a.says(t, "100 of 100 tasks are due again")
	a.says(t, "Replay the next 22<")
	next := strings.ReplaceAll(strings.Split(strings.Split(a.body, `action="/ui/bulk?`)[1], `"`)[0], "&amp;", "&")
	a = f.post("/ui/bulk?"+next, "count", "22")
	a.says(t, "22 of 22")
	f.post(bulk).says(t, "No such task.")
	f.get("/ui/tasks", "status", "failed").says(t, "No task is like that.")
	readOnly := f.with(console.Options{Callers: callers(), ReadOnly: true}).signIn("root")
	for _, to := range []string{"/ui/replay", "/ui/bulk", "/ui/limit", "/ui/key"} {
		assert.Equal(t, 403, readOnly.post(to, "task", name("bob", "dead"), "key", "k").status, to)
	}
}

// A form counts only if a browser says that it comes from a page of this console, and only with what that page had for this session.
func TestForgedFormsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	f.submit(core.NewTask{Agent: "ann", ID: "t", Kind: "ok", Delay: time.Hour})
	const to = "/ui/do?do=pause&agent=ann&id=t"
	paused := func() bool {
		info, err := f.scheduler.Task(t.Context(), "ann", "t")
		require.NoError(t, err)
		return len(info.Pauses) > 0
	}
	f.get("/ui")
	other := setup(t, console.Options{})
	other.get("/ui")
	for name, change := range map[string]func(r *http.Request){
		"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"the same site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"no page":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") },
		"nothing said":   func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") },
		"another origin": func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "http://evil.example") },
		"no origin":      func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
		"another referer": func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Referer", "http://evil.example/ui")
		},
		"another session": func(r *http.Request) {
			r.Header.Set("Cookie", "duly_session="+other.cookies["duly_session"])
			clear(f.cookies)
		},
		"no session":            func(r *http.Request) { clear(f.cookies) },
		"not as browsers do it": func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		kept := maps.Clone(f.cookies)
		r := f.form(to)
		change(r)
		assert.Contains(t, []int{403, 415}, f.do(r).status, name)
		assert.False(t, paused(), name)
		f.cookies = kept
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+to, strings.NewReader("form_token=x"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	assert.Equal(t, 403, f.do(r).status, "without its token")
	assert.Equal(t, 413, f.post(to, "reason", strings.Repeat("x", 100<<10)).status)
	assert.False(t, paused())

	r = f.form(to)
	r.Header.Del("Sec-Fetch-Site")
	r.Header.Set("Origin", "http://localhost")
	assert.Equal(t, 303, f.do(r).status, "an older browser says its origin")
	assert.True(t, paused())
}

// Somebody who signs in has the rights of the token until they sign out; the token is in a cookie that no script sees, and in no page.
func TestSignIn(t *testing.T) {
	t.Parallel()
	f := filled(t, console.Options{})
	a := f.get("/ui/task?agent=ann&id=done")
	assert.Equal(t, 401, a.status)
	a.lacks(t, "<nav", "there is nothing to go to")
	for token, want := range map[string]int{"": 400, "wrong": 401, strings.Repeat("x", 5000): 400} {
		a := f.post("/ui/signin", "token", token)
		assert.Equal(t, want, a.status, token)
		assert.NotContains(t, f.cookies, "duly_token")
	}
	f.signIn("root")
	a = f.get("/ui")
	assert.Equal(t, 200, a.status)
	a.lacks(t, "root\"")
	r := httptest.NewRequest(http.MethodGet, "http://duly.example/ui", nil)
	a = f.do(r)
	assert.Equal(t, 200, a.status)
	assert.Equal(t, 303, f.post("/ui/signout").status)
	assert.Equal(t, 401, f.get("/ui").status)

	r = httptest.NewRequest(http.MethodGet, "http://duly.example/ui", nil)
	f.cookies = map[string]string{}
	a = f.do(r)
	cookie := a.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Secure", "Path=/ui"} {
		assert.Contains(t, cookie, part)
	}
	a.says(t, "is not encrypted")
	r = httptest.NewRequest(http.MethodGet, "http://duly.example/ui", nil)
	r.Header.Set("Authorization", "Bearer root")
	assert.Equal(t, 200, f.do(r).status, "as a proxy sends it")
}

// A task is changed by what differs from what the form showed; what somebody else has changed meanwhile stays.
func TestATaskIsEdited(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	f.submit(core.NewTask{Agent: "ann", ID: "later", Kind: "ok", Every: time.Hour, Payload: []byte(`{"a":1}`), LimitKey: "openai", Level: 2})
	page := f.get("/ui/task?agent=ann&id=later")
	page.says(t, `<input name="every" value="1h0m0s"`)
	page.says(t, `<input type="hidden" name="was_level" value="2"`)
	_, err := f.scheduler.Edit(t.Context(), "ann", "later", []byte(`{"limit_key":"other"}`))
	require.NoError(t, err)
	a := f.post("/ui/edit?agent=ann&id=later", "was_level", "2", "level", "1", "was_every", "1h0m0s", "every", "30m", "was_limit_key", "openai", "limit_key", "openai",
		"was_payload", `{"a":1}`, "payload", "{\r\n\"a\":2}")
	require.Equal(t, 303, a.status, a.body)
	f.get(a.header.Get("Location")).says(t, "Changed: all other fields")
	task, err := f.scheduler.Task(t.Context(), "ann", "later")
	require.NoError(t, err)
	assert.Equal(t, []any{core.LevelHigh, 30 * time.Minute, "other"}, []any{task.Level, task.Every, task.LimitKey})
	assert.JSONEq(t, `{"a":2}`, string(task.Payload))

	require.Equal(t, 303, f.post("/ui/edit?agent=ann&id=later", "was_payload", `{"a":2}`, "payload", "").status)
	task, err = f.scheduler.Task(t.Context(), "ann", "later")
	require.NoError(t, err)
	assert.Empty(t, task.Payload)
	assert.Equal(t, 404, f.post("/ui/edit?agent=ann&id=none", "level", "1").status)
}

// A large payload is neither in the page nor in its form, whose other fields can be changed all the same.
func TestATaskWithALargePayloadIsEdited(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	f.submit(core.NewTask{Agent: "ann", ID: "large", Kind: "ok", Delay: time.Hour, Payload: []byte(`"` + strings.Repeat("x", 200<<10) + `"`)})
	page := f.get("/ui/task?agent=ann&id=large")
	page.says(t, `name="was_level"`)
	page.lacks(t, `name="was_payload"`)
	assert.Less(t, len(page.body), 100<<10)
	require.Equal(t, 303, f.post("/ui/edit?agent=ann&id=large", "was_level", "3", "level", "1").status)
	task, err := f.scheduler.Task(t.Context(), "ann", "large")
	require.NoError(t, err)
	assert.Equal(t, core.LevelHigh, task.Level)
	assert.Len(t, task.Payload, 200<<10+2)
}
