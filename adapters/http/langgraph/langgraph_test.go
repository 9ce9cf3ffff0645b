package langgraph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/langgraph"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the API on a store in memory, and what its crons have posted.
type server struct {
	http.Handler

	t         *testing.T
	scheduler *core.Scheduler
	posted    []string // path and body
	header    http.Header
}

// serve makes a server whose callers have the tokens.
func serve(t *testing.T, tokens ...httpadapter.Token) *server {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 4}), core.Config{})
	require.NoError(t, err)
	w := &server{t: t, scheduler: s, header: http.Header{"Content-Type": {"application/json"}}}
	core.Handle(s, langgraph.Kind, func(_ context.Context, task *core.Task[json.RawMessage]) error {
		path, body, err := langgraph.Runs{}.Request(task)
		if err == nil {
			w.posted = append(w.posted, path+" "+string(body))
		}
		return err
	})
	w.Handler = httpadapter.New(s, httpadapter.Config{Scoped: tokens, Doors: []httpadapter.Door{langgraph.Door{}}})
	return w
}

// call sends a request; a body of "" is none.
func (w *server) call(method, path, body string) (int, string) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Header = w.header.Clone()
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// ok is the answer to a request that succeeds.
func ok[V any](w *server, method, path, body string) (v V) {
	w.t.Helper()
	status, answer := w.call(method, path, body)
	require.Equal(w.t, 200, status, answer)
	require.NoError(w.t, json.Unmarshal([]byte(answer), &v))
	return v
}

type object = map[string]any

// runDue runs what is due.
func (w *server) runDue() {
	w.t.Helper()
	_, err := w.scheduler.RunDue(w.t.Context(), core.Scope{})
	require.NoError(w.t, err)
}

// A cron is a task of its assistant, and starts runs by the runs API.
func TestACronStartsRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := serve(t)
		c := ok[object](w, "POST", "/runs/crons", `{"schedule":"0 9 * * *","timezone":"Europe/Stockholm","assistant_id":"support","input":{"messages":[{"role":"user","content":"<hi>"}]},
			"metadata":{"team":"a"},"config":null,"multitask_strategy":"reject","on_run_completed":"keep"}`)
		assert.Equal(t, "support", c["assistant_id"])
		assert.Equal(t, "2000-01-01T08:00:00Z", c["next_run_date"])
		assert.Equal(t, object{"team": "a"}, c["metadata"])
		assert.Equal(t, "Europe/Stockholm", c["timezone"])
		assert.Equal(t, true, c["enabled"])
		assert.Nil(t, c["thread_id"])
		id := c["cron_id"].(string)

		jobs, _, err := w.scheduler.Tasks(t.Context(), core.List{Agent: "support", Jobs: true})
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		assert.Equal(t, langgraph.Kind, jobs[0].Kind)

		w.runDue()
		assert.Empty(t, w.posted)
		time.Sleep(8 * time.Hour)
		w.runDue()
		require.Len(t, w.posted, 1)
		path, body, _ := strings.Cut(w.posted[0], " ")
		assert.Equal(t, "/runs", path)
		assert.JSONEq(t, `{"assistant_id":"support","input":{"messages":[{"role":"user","content":"<hi>"}]},"multitask_strategy":"reject","on_completion":"keep",
			"metadata":{"team":"a","cron_id":"`+id+`","cron_occurrence":"2000-01-01T08:00:00Z"}}`, body)
	})
}

// A cron of a thread posts to the thread of its path, not to one that its body names.
func TestACronOfAThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := serve(t)
		c := ok[object](w, "POST", "/threads/9f2c-1%3Ax/runs/crons", `{"schedule":"* * * * *","assistant_id":"s","thread_id":"other","input":1}`)
		assert.Equal(t, "9f2c-1:x", c["thread_id"])
		time.Sleep(time.Minute)
		w.runDue()
		require.Len(t, w.posted, 1)
		assert.Contains(t, w.posted[0], `/threads/9f2c-1:x/runs {`)
		assert.Contains(t, w.posted[0], `"assistant_id":"s"`)
	})
}

// A cron is changed in part, disabled, enabled and deleted by its id alone.
func TestACronIsChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := serve(t)
		c := ok[object](w, "POST", "/runs/crons", `{"schedule":"0 * * * *","assistant_id":"s","input":{"a":1},"webhook":"https://a.example"}`)
		path := "/runs/crons/" + c["cron_id"].(string)
		time.Sleep(time.Second)
		c = ok[object](w, "PATCH", path, `{"schedule":"30 * * * *","timezone":"Asia/Kathmandu","input":{"b":2},"webhook":null,"end_time":"2000-01-02T00:00:00","metadata":{"x":1}}`)
		assert.Equal(t, "30 * * * *", c["schedule"])
		assert.Equal(t, "2000-01-01T00:45:00Z", c["next_run_date"])
		assert.Equal(t, "2000-01-02T00:00:00Z", c["end_time"])
		assert.Equal(t, object{"assistant_id": "s", "input": object{"b": 2.0}, "metadata": object{"x": 1.0}}, c["payload"])
		assert.NotEqual(t, c["created_at"], c["updated_at"])

		c = ok[object](w, "PATCH", path, `{"enabled":false}`)
		assert.Equal(t, false, c["enabled"])
		assert.Nil(t, c["next_run_date"])
		time.Sleep(2 * time.Hour)
		w.runDue()
		assert.Empty(t, w.posted)
		c = ok[object](w, "PATCH", path, `{"enabled":true,"end_time":null}`)
		assert.Equal(t, true, c["enabled"])
		assert.Nil(t, c["end_time"])
		w.runDue()
		assert.Empty(t, w.posted, "what fell due while it was disabled is not made up for")
		assert.Equal(t, "2000-01-01T02:45:00Z", c["next_run_date"])

		status, _ := w.call("DELETE", path, "")
		assert.Equal(t, 204, status)
		for _, method := range []string{"DELETE", "PATCH"} {
			status, body := w.call(method, path, `{"enabled":true}`)
			assert.Equal(t, 404, status, body)
		}
		assert.Zero(t, ok[int](w, "POST", "/runs/crons/count", `{}`))
	})
}

// A cron ends at its end_time, which is not part of it.
func TestACronEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := serve(t)
		ok[object](w, "POST", "/runs/crons", `{"schedule":"0 * * * *","assistant_id":"s","end_time":"2000-01-01T02:00:00+00:00"}`)
		for range 3 {
			time.Sleep(time.Hour)
			w.runDue()
		}
		assert.Len(t, w.posted, 1)
		assert.Empty(t, ok[[]object](w, "POST", "/runs/crons/search", `{}`))
	})
}

// A cron may be created disabled.
func TestACronIsCreatedDisabled(t *testing.T) {
	t.Parallel()
	w := serve(t)
	c := ok[object](w, "POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"s","enabled":false}`)
	assert.Equal(t, false, c["enabled"])
	assert.Len(t, ok[[]object](w, "POST", "/runs/crons/search", `{"enabled":false}`), 1)
	assert.Empty(t, ok[[]object](w, "POST", "/runs/crons/search", `{"enabled":true}`))
}

// A search filters, sorts and pages as the client asks.
func TestCronsAreSearched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := serve(t)
		for i := range 12 {
			ok[object](w, "POST", fmt.Sprintf("/threads/t%d/runs/crons", i%2), fmt.Sprintf(
				`{"schedule":"0 %d * * *","assistant_id":"s%d","metadata":{"n":%d,"odd":%t}}`, 12-i, i%3, i, i%2 == 1))
			time.Sleep(time.Second)
		}
		// A task of the same kind that was submitted by other means is no cron.
		_, err := w.scheduler.Submit(t.Context(), core.NewTask{Agent: "s0", Kind: langgraph.Kind, Delay: time.Hour}, core.NewTask{Agent: "s0", Kind: langgraph.Kind, Cron: "@daily", Payload: "?"})
		require.NoError(t, err)

		numbers := func(body string) (all []any) {
			for _, c := range ok[[]object](w, "POST", "/runs/crons/search", body) {
				all = append(all, c["metadata"].(object)["n"])
			}
			return all
		}
		assert.Equal(t, []any{11., 10., 9., 8., 7., 6., 5., 4., 3., 2.}, numbers(`{"limit":10,"offset":0}`), "the latest first")
		assert.Equal(t, []any{1., 0.}, numbers(`{"limit":10,"offset":10}`))
		assert.Empty(t, numbers(`{"offset":100}`))
		assert.Equal(t, []any{11., 10., 9.}, numbers(`{"sort_by":"next_run_date","sort_order":"asc","limit":3}`))
		assert.Equal(t, []any{9., 6., 3., 0.}, numbers(`{"assistant_id":"s0"}`))
		assert.Equal(t, []any{9., 3.}, numbers(`{"assistant_id":"s0","thread_id":"t1"}`))
		assert.Equal(t, []any{5.}, numbers(`{"metadata":{"odd":true,"n": 5}}`))
		assert.Equal(t, 12, ok[int](w, "POST", "/runs/crons/count", `{}`))
		assert.Equal(t, 4, ok[int](w, "POST", "/runs/crons/count", `{"assistant_id":"s1"}`))
		assert.Equal(t, 6, ok[int](w, "POST", "/runs/crons/count", `{"thread_id":"t0"}`))
		some := ok[[]object](w, "POST", "/runs/crons/search", `{"limit":1,"select":["schedule","enabled"]}`)
		assert.Equal(t, []object{{"schedule": "0 1 * * *", "enabled": true}}, some)
	})
}

// What cannot be is refused with the names that the client has sent, and nothing is stored.
func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	w := serve(t)
	path := "/runs/crons/" + ok[object](w, "POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"s"}`)["cron_id"].(string)
	for _, c := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/runs/crons", `{"assistant_id":"s"}`, 422, "schedule is required"},
		{"POST", "/runs/crons", `{"schedule":"* * * * *"}`, 422, "assistant_id is required"},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":7}`, 422, "assistant_id must be a string"},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":""}`, 422, "assistant_id "},
		{"POST", "/runs/crons", `{"schedule":"never","assistant_id":"s"}`, 422, "schedule "},
		{"POST", "/runs/crons", `{"schedule":"0 0 * * * *","assistant_id":"s"}`, 422, "schedule must have five fields"},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"s","timezone":"Mars/Base"}`, 422, "timezone "},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"s","end_time":"soon"}`, 422, "end_time must be a time"},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"s","on_run_completed":"x"}`, 422, "on_run_completed must be"},
		{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"s","metadata":[]}`, 422, "metadata "},
		{"POST", "/runs/crons", `[]`, 422, "body "},
		{"POST", "/threads/a%2Fb/runs/crons", `{"schedule":"* * * * *","assistant_id":"s"}`, 422, "thread_id must be"},
		{"PATCH", path, `{"assistant_id":"t"}`, 422, "assistant_id cannot be changed"},
		{"PATCH", path, `{"schedule":"x"}`, 422, "schedule "},
		{"PATCH", "/runs/crons/x", `{}`, 404, "there is no such cron"},
		{"PATCH", "/runs/crons/cwAx", `{}`, 404, ""}, // s and 1
		{"DELETE", "/runs/crons/AAA", ``, 404, ""},
		{"POST", "/runs/crons/search", `{"limit":0}`, 422, "limit must be between"},
		{"POST", "/runs/crons/search", `{"offset":-1}`, 422, "offset must be"},
		{"POST", "/runs/crons/search", `{"sort_by":"x"}`, 422, "sort_by must be"},
		{"POST", "/runs/crons/search", `{"sort_order":"x"}`, 422, "sort_order must be"},
		{"POST", "/runs/crons/search", `{"select":["x"]}`, 422, "select has"},
		{"POST", "/runs/crons/search", `{"owner":"x"}`, 422, "owner is not known"},
		{"POST", "/runs/crons/count", `{"assistant_id":"\u0000"}`, 422, "assistant_id "},
	} {
		status, body := w.call(c.method, c.path, c.body)
		assert.Equal(t, c.status, status, "%s %s: %s", c.path, c.body, body)
		assert.Contains(t, body, `"detail":"`+c.detail, "%s %s", c.path, c.body)
	}
	assert.Equal(t, 1, ok[int](w, "POST", "/runs/crons/count", `{}`))
}

// A credential for some agents is for the crons of these assistants; the key of LangGraph's clients is one.
func TestCredentialsCoverAssistants(t *testing.T) {
	t.Parallel()
	w := serve(t, httpadapter.Token{Token: "all", Grant: httpadapter.Grant{}}, httpadapter.Token{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}},
		httpadapter.Token{Token: "reader", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}})
	for key, want := range map[string][]int{
		"": {401, 401, 401, 401, 401, 401}, "wrong": {401, 401, 401, 401, 401, 401}, "ann": {200, 403, 403, 200, 403, 403}, "reader": {403, 403, 403, 200, 200, 403}, "all": {200, 200, 200, 200, 200, 204},
	} {
		w.header.Set("X-Api-Key", "all")
		path := "/runs/crons/" + ok[object](w, "POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"bob"}`)["cron_id"].(string)
		w.header.Set("X-Api-Key", key)
		var got []int
		for _, c := range [][3]string{
			{"POST", "/runs/crons", `{"schedule":"* * * * *","assistant_id":"ann"}`},
			{"POST", "/threads/t/runs/crons", `{"schedule":"* * * * *","assistant_id":"bob"}`},
			{"PATCH", path, `{"input":1}`},
			{"POST", "/runs/crons/search", `{"assistant_id":"ann"}`},
			{"POST", "/runs/crons/count", `{}`},
			{"DELETE", path, ""},
		} {
			status, _ := w.call(c[0], c[1], c[2])
			got = append(got, status)
		}
		assert.Equal(t, want, got, key)
	}
}

// Without the door the paths do not exist.
func TestTheDoorIsClosed(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	httpadapter.New(s, httpadapter.Config{}).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "POST", "/runs/crons", strings.NewReader("{}")))
	assert.Equal(t, 404, rec.Code)
}

// A run posts to its own assistant and to the paths of the runs API alone, for any payload of its task.
func FuzzRuns(f *testing.F) {
	f.Add([]byte(`{"run":{"assistant_id":"other","metadata":{"cron_id":"x"}},"thread_id":".."}`))
	f.Add([]byte(`{"run":null}`))
	f.Add([]byte(`{"run":{"metadata":[]},"end_time":"2000-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		task := &core.Task[json.RawMessage]{RunInfo: &core.RunInfo{Agent: "s", ID: "i"}, Payload: payload}
		path, body, err := langgraph.Runs{}.Request(task)
		if err != nil {
			return
		}
		var sent struct {
			Assistant string `json:"assistant_id"`
		}
		require.NoError(t, json.Unmarshal(body, &sent))
		assert.Equal(t, "s", sent.Assistant)
		assert.True(t, path == "/runs" || strings.HasPrefix(path, "/threads/") && strings.HasSuffix(path, "/runs") && strings.Count(path, "/") == 3 && !strings.Contains(path, "/."), path)
		langgraph.Runs{}.Result(payload)
	})
}
