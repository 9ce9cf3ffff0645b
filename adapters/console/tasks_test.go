package console_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	"github.com/seed-6f6f2c11/duly/core"
)

// many is a console with tasks that differ in everything that can be selected by.
func many(t *testing.T) *fixture {
	t.Helper()
	f := setup(t, console.Options{})
	f.submit(
		core.NewTask{Agent: "ann", ID: "mail-1", Kind: "ok", Delay: time.Hour, LimitKey: "openai", Group: "import", SessionID: "s1", Labels: map[string]string{"team": "care"}},
		core.NewTask{Agent: "ann", ID: "mail-2", Kind: "ok", Delay: 48 * time.Hour},
		core.NewTask{Agent: "bob", ID: "report:7/x", Kind: "other", Delay: time.Hour},
		core.NewTask{Agent: "bob", ID: "dead", Kind: "bad"},
		core.NewTask{Agent: "ann", ID: "done", Kind: "ok"},
	)
	f.run()
	return f
}

// Each part of a filter selects the tasks that have it, alone and with others, and is in every address of the page.
func TestTheListOfTasksIsFiltered(t *testing.T) {
	t.Parallel()
	f := many(t)
	all := []string{"mail-1", "mail-2", "report:7/x", "dead", "done"}
	for _, c := range []struct {
		query []string
		want  []string
	}{
		{nil, []string{"mail-1", "mail-2", "report:7/x"}},
		{[]string{"status", "waiting"}, []string{"mail-1", "mail-2", "report:7/x"}},
		{[]string{"status", "in_progress"}, nil},
		{[]string{"status", "overdue"}, nil},
		{[]string{"status", "failed"}, []string{"dead"}},
		{[]string{"agent", "ann"}, []string{"mail-1", "mail-2", "done"}},
		{[]string{"agent", "ann", "status", "completed"}, []string{"done"}},
		{[]string{"kind", "other"}, []string{"report:7/x"}},
		{[]string{"key", "openai"}, []string{"mail-1"}},
		{[]string{"label", "team=care"}, []string{"mail-1"}},
		{[]string{"label", "team=x"}, nil},
		{[]string{"group", "import"}, []string{"mail-1"}},
		{[]string{"session", "s1"}, []string{"mail-1"}},
		{[]string{"session", "s2"}, nil},
		{[]string{"text", "MAIL"}, []string{"mail-1", "mail-2"}},
		{[]string{"text", "boom", "status", "failed"}, []string{"dead"}},
		{[]string{"text", "boom 8", "status", "failed"}, nil},
		{[]string{"cause", "boom #", "status", "failed"}, []string{"dead"}},
		{[]string{"due", "2h"}, []string{"mail-1", "report:7/x"}},
		{[]string{"due", "7d", "agent", "ann"}, []string{"mail-1", "mail-2"}},
		{[]string{"since", "1h"}, []string{"dead"}},
		{[]string{"until", "1h"}, nil},
		{[]string{"since", "1h", "agent", "ann"}, []string{"done"}},
		{[]string{"text", "mail", "key", "openai", "agent", "ann"}, []string{"mail-1"}},
	} {
		a := f.get("/ui/tasks", c.query...)
		require.Equal(t, 200, a.status, "%v", c.query)
		for _, id := range all {
			assert.Equal(t, slices.Contains(c.want, id), strings.Contains(a.body, ">"+id+"</a></th>"), "%s with %v", id, c.query)
		}
		if len(c.want) == 0 {
			a.says(t, "No task is like that", "%v", c.query)
		}
		for i := 0; i < len(c.query); i += 2 {
			if c.query[i] != "status" {
				a.says(t, `href="/ui/tasks?`+strings.NewReplacer("&", "&amp;", "+", "&#43;").Replace(tab(c.query)), "%v", c.query)
			}
		}
	}
	for _, query := range [][]string{{"status", "odd"}, {"status", "completed"}, {"label", "x"}, {"due", "soon"}, {"due", "-1h"}, {"since", "x"}, {"cursor", "x"}, {"since", "1d", "status", "waiting"}} {
		a := f.get("/ui/tasks", query...)
		assert.Equal(t, 400, a.status, "%v", query)
		a.says(t, "Go back, change it", "%v", query)
	}
}

// tab is the address of the tab of dead tasks with the same filter.
func tab(query []string) string {
	q := url.Values{"status": {"failed"}}
	for i := 0; i < len(query); i += 2 {
		if query[i] != "status" {
			q.Set(query[i], query[i+1])
		}
	}
	return q.Encode()
}

// The list has pages, each with few calls of the store however many agents there are, and counts that the store keeps.
func TestTheListOfTasksHasPages(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	f.get("/ui/tasks").says(t, "No live task.")
	var tasks []core.NewTask
	for i := range 100 {
		tasks = append(tasks, core.NewTask{Agent: fmt.Sprintf("agent-%02d", i/2), ID: fmt.Sprintf("t-%03d", i), Kind: "ok", Delay: time.Hour})
	}
	f.submit(tasks...)
	f.get("/ui/tasks").says(t, `Waiting <span class="muted">100</span>`)
	f.get("/ui/tasks", "kind", "ok").says(t, `Live <span class="muted">100</span>`)
	f.get("/ui/tasks", "kind", "none").says(t, `Live <span class="muted">0</span>`)
	f.get("/ui/tasks", "key", "k").lacks(t, "100</span>")
	seen, at := map[string]bool{}, "/ui/tasks?text=t-"
	for page := 0; at != ""; page++ {
		require.Less(t, page, 100)
		before := f.calls.Load()
		a := f.get(at)
		require.Equal(t, 200, a.status)
		assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
		assert.Less(t, len(a.body), 60<<10)
		for _, task := range tasks {
			if strings.Contains(a.body, ">"+task.ID+"</a></th>") {
				seen[task.ID] = true
			}
		}
		assert.Equal(t, page > 0, strings.Contains(a.body, ">First page<"))
		_, rest, more := strings.Cut(a.body, `<a class="button" href="/ui/tasks?cursor=`)
		if at = ""; more {
			rest, _, _ = strings.Cut(rest, `"`)
			at = "/ui/tasks?cursor=" + strings.ReplaceAll(rest, "&amp;", "&")
			assert.Contains(t, at, "text=t-")
		}
	}
	assert.Len(t, seen, 100)
}

// A search leads to the task, to the agent, or to the tasks that have the text.
func TestASearchLeadsToWhatItNames(t *testing.T) {
	t.Parallel()
	f := many(t)
	for text, want := range map[string]string{
		"ann/mail-1":     "/ui/task?agent=ann&id=mail-1",
		"/ann/mail-1":    "/ui/task?agent=ann&id=mail-1",
		" ann mail-1 ":   "/ui/task?agent=ann&id=mail-1",
		"bob/report:7/x": "/ui/task?agent=bob&id=report%3A7%2Fx",
		"ann":            "/ui/agent?agent=ann",
		"mail":           "/ui/tasks?text=mail",
		"ann/none":       "/ui/tasks?text=ann%2Fnone",
		"a/b/c/d/e/f/g":  "/ui/tasks?text=a%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg",
		"":               "/ui/tasks",
	} {
		a := f.get("/ui/find", "q", text)
		assert.Equal(t, 303, a.status, text)
		assert.Equal(t, want, a.header.Get("Location"), text)
	}
	ann := f.with(console.Options{Callers: callers()}).signIn("ann")
	assert.Equal(t, "/ui/task?agent=ann&id=mail-1", ann.get("/ui/find", "q", "ann/mail-1").header.Get("Location"))
	for _, text := range []string{"bob/dead", "bob", "mail"} {
		assert.Equal(t, 404, ann.get("/ui/find", "q", text).status, "%s: of others nothing is said, not even that it exists", text)
	}
	f.fail.Store(true)
	assert.Equal(t, 503, f.get("/ui/find", "q", "ann/mail-1").status)
}

// All tasks of a filter are changed step by step, as many as were shown; what cannot be undone wants their number typed.
func TestAllTasksOfAFilterAreChanged(t *testing.T) {
	t.Parallel()
	f := many(t)
	a := f.get("/ui/tasks", "text", "mail", "agent", "ann", "status", "waiting")
	for _, do := range []string{"run", "pause", "resume", "cancel"} {
		a.says(t, `action="/ui/bulk?agent=ann&amp;do=`+do+`&amp;status=waiting&amp;text=mail"`)
	}
	f.get("/ui/tasks").lacks(t, "/ui/bulk", "without a filter nothing is changed by one button")
	const where = "&agent=ann&status=waiting&text=mail"
	f.post("/ui/bulk?do=pause"+where).says(t, "Pause 2<")
	f.post("/ui/bulk?do=pause"+where, "count", "2").says(t, "2 of 2 tasks are paused")
	info, err := f.scheduler.Task(t.Context(), "ann", "mail-1")
	require.NoError(t, err)
	assert.Len(t, info.Pauses, 1)
	f.post("/ui/bulk?do=cancel"+where).says(t, "Type 2 to confirm")
	assert.Equal(t, 400, f.post("/ui/bulk?do=cancel"+where, "count", "2").status)
	assert.Equal(t, 400, f.post("/ui/bulk?do=cancel"+where, "count", "2", "typed", "3").status)
	f.post("/ui/bulk?do=cancel"+where, "count", "2", "typed", "2").says(t, "2 of 2 tasks are cancelled")
	info, err = f.scheduler.Task(t.Context(), "ann", "mail-1")
	require.NoError(t, err)
	assert.Equal(t, core.StatusCancelled, info.Status)
	other, err := f.scheduler.Task(t.Context(), "bob", "report:7/x")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, other.Status)
	f.post("/ui/bulk?do=delete&status=failed&cause=boom+%23", "count", "1", "typed", "1").says(t, "1 of 1 tasks are deleted")
	_, err = f.scheduler.Task(t.Context(), "bob", "dead")
	require.ErrorIs(t, err, core.ErrNotFound)
	for _, to := range []string{"/ui/bulk?do=odd&kind=ok", "/ui/bulk?do=pause", "/ui/bulk?do=delete&kind=ok&status=odd"} {
		assert.Equal(t, 400, f.post(to).status, to)
	}
	ann := f.with(console.Options{Callers: callers()}).signIn("ann")
	assert.Equal(t, 200, ann.post("/ui/bulk?do=run&agent=ann&status=waiting").status)
	assert.Equal(t, 403, ann.post("/ui/bulk?do=run&agent=bob&status=waiting").status)
	assert.Equal(t, 403, ann.post("/ui/bulk?do=run&kind=ok&status=waiting").status)
}

// tick waits until the clock of the store, which counts milliseconds, has another time.
func (f *fixture) tick() {
	f.Helper()
	begun, err := f.scheduler.Stats(f.Context())
	require.NoError(f, err)
	require.Eventually(f, func() bool {
		now, err := f.scheduler.Stats(f.Context())
		return err == nil && now.Now.After(begun.Now)
	}, time.Minute, time.Millisecond)
}

// A list says by what it is in order. It is sorted by a time if all that match can be read by the calls of a page, and says so if not.
func TestTasksAreSorted(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	for i := range 45 { // the later it was created, the sooner it is due
		if i > 42 {
			f.tick()
		}
		f.submit(core.NewTask{Agent: fmt.Sprintf("agent-%d", i%4), ID: fmt.Sprintf("t%02d", i), Kind: "ok", Delay: time.Duration(100-i) * time.Hour})
	}
	order := func(a answer) (ids []string) {
		for _, m := range regexp.MustCompile(`title="(t\d\d)"`).FindAllStringSubmatch(a.body, -1) {
			ids = append(ids, m[1])
		}
		return ids
	}
	a := f.get("/ui/tasks", "sort", "due")
	a.says(t, "In order: due, soonest first.")
	a.says(t, `<option value="due" selected="selected">`)
	ids := order(a)
	require.Len(t, ids, 40)
	assert.Equal(t, []string{"t44", "t43", "t05"}, []string{ids[0], ids[1], ids[39]})
	a.says(t, "/ui/tasks?cursor=40&amp;sort=due")
	a = f.get("/ui/tasks", "sort", "due", "cursor", "40")
	assert.Equal(t, []string{"t04", "t03", "t02", "t01", "t00"}, order(a))
	a.says(t, `href="/ui/tasks?sort=due">First page`)
	assert.Equal(t, "t44", order(f.get("/ui/tasks", "sort", "created"))[0])
	assert.Equal(t, "t43", order(f.get("/ui/tasks", "sort", "created", "agent", "agent-3"))[0])
	assert.Empty(t, order(f.get("/ui/tasks", "sort", "due", "cursor", "99999999999999999999")))
	f.get("/ui/tasks", "sort", "due", "cursor", "-5").says(t, ">t44<")
	assert.Equal(t, 400, f.get("/ui/tasks", "sort", "size").status)
	for query, says := range map[string]string{
		"": "agent by agent, in no order of their own", "?status=failed": "the last ended first", "?status=in_progress": "by the end of their leases",
		"?status=overdue": "agents that have waited longest first", "?agent=agent-1": "waiting ones by due time", "?agent=agent-1&status=waiting": "In order: by due time", "?agent=agent-1&status=failed": "In order: by id",
	} {
		if a := f.get("/ui/tasks" + query); strings.Contains(a.body, "on this page") {
			a.says(t, says, query)
		}
	}
	for i := range 1100 / 50 {
		var some []core.NewTask
		for k := range 50 {
			some = append(some, core.NewTask{Agent: "many", ID: fmt.Sprint(i, "-", k), Kind: "ok", Delay: time.Hour})
		}
		f.submit(some...)
	}
	before := f.calls.Load()
	a = f.get("/ui/tasks", "sort", "created")
	a.says(t, "narrow the choice")
	a.says(t, "list them page by page")
	a.lacks(t, "cursor=40&")
	assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
}
