package http_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func product(t *testing.T) *fixture {
	t.Helper()
	f := setup(t, httpadapter.Config{})
	core.Handle(f.scheduler, "add", func(context.Context, *core.Task[any]) error { return nil })
	return f
}

func TestMessagesAreSubmitted(t *testing.T) {
	t.Parallel()
	f := product(t)
	res, body := f.call(t, "POST", "/product/scheduler/submit", `[
		{"item_id":"i1","user_id":"u_123","mem_cube_id":"mem_001","label":"add","content":"hello","timestamp":"2026-01-02T03:04:05","task_id":"t1",
		 "trace_id":"tr","session_id":"s","user_name":"Ann","info":{"monitor_flag":1},"chat_history":[]},
		{"item_id":"i2","user_id":"u_123","mem_cube_id":"mem_001","label":"query","content":"?","task_id":"t1","info":null}]`)
	assert.Equal(t, 200, res.StatusCode, body)
	assert.JSONEq(t, `{"code":200,"message":"Messages submitted successfully","data":[{"task_id":"i1","status":"waiting"},{"task_id":"i2","status":"waiting"}]}`, body)
	_, body = f.call(t, "GET", "/v1/agents/u_123/tasks/i1", "")
	task := get[map[string]any](t, body)
	assert.EqualValues(t, 1, task["level"], "labels have their levels")
	assert.Equal(t, "t1", task["group"])
	assert.Equal(t, "hello", task["payload"].(map[string]any)["content"])
	assert.Equal(t, map[string]any{"mem_cube_id": "mem_001", "user_name": "Ann"}, task["labels"])

	_, body = f.call(t, "GET", "/product/scheduler/task_queue_status?user_id=u_123", "")
	assert.JSONEq(t, `{"code":200,"message":"Scheduler task queue status retrieved successfully","data":{
		"user_id":"u_123","user_name":null,"mem_cube_id":null,"users_count":1,"pending_tasks_count":0,"remaining_tasks_count":2,
		"stream_keys":["scheduler:messages:stream:v2.0:u_123:mem_001:add","scheduler:messages:stream:v2.0:u_123:mem_001:query"],
		"pending_tasks_detail":["scheduler:messages:stream:v2.0:u_123:mem_001:add:0","scheduler:messages:stream:v2.0:u_123:mem_001:query:0"],
		"remaining_tasks_detail":["scheduler:messages:stream:v2.0:u_123:mem_001:add:1","scheduler:messages:stream:v2.0:u_123:mem_001:query:1"]}}`, body)
	f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	for asked, want := range map[string]string{"i1": "completed", "i2": "waiting", "t1": "in_progress"} {
		_, body = f.call(t, "GET", "/product/scheduler/status?user_id=u_123&task_id="+asked, "")
		assert.JSONEq(t, `{"code":200,"message":"Memory get status successfully","data":[{"task_id":"`+asked+`","status":"`+want+`"}]}`, body)
	}
	_, body = f.call(t, "GET", "/product/scheduler/status?user_id=u_123", "")
	assert.JSONEq(t, `{"code":200,"message":"Memory get status successfully","data":[{"task_id":"i2","status":"waiting"},{"task_id":"i1","status":"completed"}]}`, body)
	_, body = f.call(t, "GET", "/product/scheduler/allstatus", "")
	const counts = `{"waiting":1,"in_progress":0,"pending":1,"completed":1,"failed":0,"cancelled":0,"total":2}`
	assert.JSONEq(t, `{"code":200,"message":"Scheduler status summary retrieved successfully","data":{"scheduler_summary":`+counts+`,"all_tasks_summary":`+counts+`}}`, body)
}

// A message may have white space around it, as what is typed or generated has.
func TestAMessageMayHaveSpaceAroundIt(t *testing.T) {
	t.Parallel()
	f := product(t)
	for _, body := range []string{"\n{\"item_id\":\"1\",\"user_id\":\"u\",\"label\":\"add\",\"content\":\"\"}\n", "\t[ {\"item_id\":\"1\",\"user_id\":\"u\",\"label\":\"add\",\"content\":\"\"} ]"} {
		_, answer := f.call(t, "POST", "/product/scheduler/submit", body)
		assert.JSONEq(t, `{"code":200,"message":"Messages submitted successfully","data":[{"task_id":"1","status":"waiting"}]}`, answer)
	}
}

func TestProductRefuses(t *testing.T) {
	t.Parallel()
	f := product(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"GET", "status", "", 422, "user_id: Field required"},
		{"GET", "status?user_id=u&task_id=x", "", 404, "Task x not found for user u"},
		{"GET", "task_queue_status", "", 422, "user_id: Field required"},
		{"GET", "task_queue_status?user_id=u", "", 404, "No scheduler streams found for user u"},
		{"POST", "wait", "", 422, "user_name: Field required"},
		{"POST", "wait?user_name=u&timeout_seconds=x", "", 422, "timeout_seconds"},
		{"GET", "wait/stream?user_name=u&poll_interval=-1", "", 422, "poll_interval"},
		{"POST", "submit", `["x"]`, 422, "[0].message: must be a JSON object"},
		{"POST", "submit", `{"label":7}`, 422, "label: must be a string"},
		{"POST", "submit", "null", 422, "message: must be a JSON object"},
		{"POST", "submit", " null", 422, "message: must be a JSON object"},
		{"POST", "submit", "[null]", 422, "[0].message: must be a JSON object"},
		{"POST", "submit", " ", 422, "body is not valid JSON"},
		{"POST", "submit", "{\"user_id\":\"\xff\",\"label\":\"add\",\"content\":\"\"}", 422, "body is not valid UTF-8"},
		{"POST", "submit", "{\"user_id\":\"u\",\"label\":\"add\",\"content\":\"\xff\"}", 422, "body is not valid UTF-8"},
	} {
		res, body := f.call(t, c.method, "/product/scheduler/"+c.path, c.body)
		assert.Equal(t, c.status, res.StatusCode, c)
		got := get[map[string]any](t, body)
		assert.EqualValues(t, c.status, got["code"])
		assert.Contains(t, got["message"], c.message)
		assert.Nil(t, got["data"])
	}
	_, body := f.call(t, "GET", "/product/scheduler/status?user_id=nobody", "")
	assert.JSONEq(t, `{"code":200,"message":"Memory get status successfully","data":[]}`, body)
}

func TestProductKeepsToTheAgentsOfItsCaller(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}}}})
	for _, path := range []string{"status?user_id=bob", "task_queue_status?user_id=bob", "allstatus", "wait/stream?user_name=bob"} {
		res, _ := f.with(t, "ann", "GET", "/product/scheduler/"+path, "")
		assert.Equal(t, 403, res.StatusCode, path)
	}
	res, _ := f.with(t, "ann", "POST", "/product/scheduler/submit", `{"user_id":"bob","label":"add","content":""}`)
	assert.Equal(t, 403, res.StatusCode)
	assert.Zero(t, f.store.calls.Load())
	for _, agent := range []string{"ann", "bob"} {
		_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: agent, Kind: "ok"})
		require.NoError(t, err)
	}
	_, body := f.with(t, "ann", "GET", "/product/scheduler/task_queue_status?user_id=ann", "")
	assert.Contains(t, body, `"users_count":1,`, "how many others there are is not for it")
}

// waitFixture is a handler in virtual time.
func waitFixture(t *testing.T) *fixture {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	return &fixture{scheduler: s, handler: httpadapter.New(s, httpadapter.Config{})}
}

func TestWaitUntilIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := waitFixture(t)
		f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"u","kind":"ok","delay":"10s"},{"agent_id":"u","kind":"ok","cron":"@daily"}]}`)
		_, body := f.call(t, "POST", "/product/scheduler/wait?user_name=u&timeout_seconds=3", "")
		assert.JSONEq(t, `{"message":"timeout","data":{"running_tasks":1,"waited_seconds":3,"timed_out":true,"user_name":"u"}}`, body)
		go func() {
			time.Sleep(7*time.Second + 100*time.Millisecond)
			_, _ = f.scheduler.RunDue(context.Background(), core.Scope{})
		}()
		_, body = f.call(t, "POST", "/product/scheduler/wait?user_name=u", "")
		assert.JSONEq(t, `{"message":"idle","data":{"running_tasks":0,"waited_seconds":7.5,"timed_out":false,"user_name":"u"}}`, body)
	})
}

func TestWaitStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := waitFixture(t)
		frames := func(query string) []map[string]any {
			w := httptest.NewRecorder()
			f.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/product/scheduler/wait/stream?user_name=u"+query, nil))
			assert.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
			var out []map[string]any
			for lines := bufio.NewScanner(w.Body); lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					out = append(out, get[map[string]any](t, data))
				}
			}
			return out
		}
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"u","kind":"ok","delay":"1s"}`)
		got := frames("&timeout_seconds=2&poll_interval=1")
		require.Len(t, got, 4)
		assert.Equal(t, "running", got[0]["status"])
		assert.EqualValues(t, 1, got[0]["active_tasks"])
		assert.Equal(t, "timeout", got[3]["status"])
		assert.Equal(t, true, got[3]["timed_out"])
		_, err := f.scheduler.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		got = frames("")
		require.Len(t, got, 1)
		assert.Equal(t, "idle", got[0]["status"])
	})
}

// busy is a handler, its user u not being idle for an hour.
func busy(t *testing.T, config httpadapter.Config) *fixture {
	t.Helper()
	f := setup(t, config)
	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "u", Kind: "ok", Delay: time.Hour})
	require.NoError(t, err)
	return f
}

// A wait is answered however much shorter than it the server's WriteTimeout is.
func TestAWaitOutlastsTheWriteTimeout(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(busy(t, httpadapter.Config{}).handler)
	server.Config.WriteTimeout = 200 * time.Millisecond
	server.Start()
	defer server.Close()
	res, err := server.Client().Post(server.URL+"/product/scheduler/wait?user_name=u&timeout_seconds=0.5", "", nil)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, 200, res.StatusCode)
}

// A wait ends when its client goes away, although that has sent a body that nobody needs.
func TestAWaitEndsWithItsClient(t *testing.T) {
	t.Parallel()
	f := busy(t, httpadapter.Config{})
	ended := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.handler.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer server.Close()
	for _, line := range []string{"POST /product/scheduler/wait", "GET /product/scheduler/wait/stream"} {
		before := f.store.calls.Load()
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(client, line+"?user_name=u&timeout_seconds=20&poll_interval=20 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return f.store.calls.Load() > before }, 10*time.Second, time.Millisecond)
		require.NoError(t, client.Close())
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			require.Fail(t, "it waits for nobody", line)
		}
	}
	res, body := busy(t, httpadapter.Config{MaxBody: 3}).call(t, "POST", "/product/scheduler/wait?user_name=u", `"long"`)
	assert.Equal(t, 413, res.StatusCode, body)
}

// With its store away duly says what MemOS says, and keeps what the store said to its log.
func TestProductWithTheStoreAway(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.store.err = &store.Error{Verb: "read", Err: errors.New("dial tcp 10.0.0.7: refused")}
	for _, c := range []struct {
		method, path string
		status       int
		message      string
	}{
		{"GET", "status?user_id=u", 500, "Failed to get scheduler status"},
		{"GET", "status?user_id=u&task_id=t", 500, "Failed to get scheduler status"},
		{"GET", "allstatus", 500, "Failed to get full scheduler status"},
		{"GET", "task_queue_status?user_id=u", 503, "Scheduler queue is not available"},
		{"POST", "wait?user_name=u", 500, "Failed while waiting for scheduler"},
	} {
		f.logs.Reset()
		res, body := f.call(t, c.method, "/product/scheduler/"+c.path, "")
		assert.Equal(t, c.status, res.StatusCode, c.path)
		assert.JSONEq(t, fmt.Sprintf(`{"code":%d,"message":%q,"data":null}`, c.status, c.message), body)
		assert.Contains(t, f.logs.String(), "10.0.0.7", c.path)
	}
	f.logs.Reset()
	_, body := f.call(t, "GET", "/product/scheduler/wait/stream?user_name=u", "")
	frame := get[map[string]any](t, strings.TrimPrefix(body, "data: "))
	assert.Equal(t, "error", frame["status"])
	assert.Equal(t, "stream_failed", frame["detail"])
	assert.NotContains(t, body, "10.0.0.7")
	assert.Contains(t, f.logs.String(), "10.0.0.7")
	res, body := f.call(t, "POST", "/product/scheduler/submit", `{"user_id":"u","label":"ok","content":""}`)
	assert.Equal(t, 503, res.StatusCode, body)
}

// A user that duly cannot have is one that is unknown.
func TestProductOfAUserThatCannotBe(t *testing.T) {
	t.Parallel()
	f := product(t)
	for _, user := range []string{strings.Repeat("x", 257), "a\x01", "\xff"} {
		escaped := url.QueryEscape(user)
		res, body := f.call(t, "GET", "/product/scheduler/status?user_id="+escaped, "")
		assert.Equal(t, 200, res.StatusCode)
		assert.JSONEq(t, `{"code":200,"message":"Memory get status successfully","data":[]}`, body)
		res, body = f.call(t, "GET", "/product/scheduler/status?task_id=t&user_id="+escaped, "")
		assert.Equal(t, 404, res.StatusCode)
		assert.Contains(t, body, "Task t not found for user")
		res, body = f.call(t, "GET", "/product/scheduler/task_queue_status?user_id="+escaped, "")
		assert.Equal(t, 404, res.StatusCode)
		assert.Contains(t, body, "No scheduler streams found for user")
		res, body = f.call(t, "POST", "/product/scheduler/wait?user_name="+escaped, "")
		assert.Equal(t, 200, res.StatusCode)
		assert.Contains(t, body, `"message":"idle"`)
	}
	res, body := f.call(t, "GET", "/product/scheduler/status?user_id=u&task_id=%01", "")
	assert.Equal(t, 404, res.StatusCode, body)
}

// What is wrong with a message is told in the words of its sender, in MemOS's shape.
func TestAMessageThatIsWrong(t *testing.T) {
	t.Parallel()
	f := product(t)
	for body, want := range map[string]string{
		`{"label":"add"}`:                                                                         "user_id: is required",
		`{"user_id":"u"}`:                                                                         "label: is required",
		`{"user_id":"u","label":""}`:                                                              "label: must not be empty: leave it out if it has no value",
		`{"user_id":"u","label":"a b","content":""}`:                                              `label: "a b" has the character ' ': letters, digits and _.:/- are allowed`,
		`{"user_id":"u\u0001","label":"add","content":""}`:                                        "user_id: has the control character U+0001 at byte 1",
		`{"user_id":"u","agent_id":"a\u0001","label":"add","content":""}`:                         "agent_id: has the control character U+0001 at byte 1",
		`{"user_id":"u","label":"add"}`:                                                           "content: is required: a message may have an empty one",
		`{"user_id":"u","label":"add","content":"","timestamp":"yesterday"}`:                      "timestamp: must be a time of ISO 8601, such as 2026-03-01T08:30:00+00:00",
		`{"user_id":"u","label":"add","content":"","item_id":"\n"}`:                               "item_id: has the control character U+000A at byte 0",
		`{"user_id":"u","label":"add","content":"","task_id":"\n"}`:                               "task_id: has the control character U+000A at byte 0",
		`{"user_id":"u","label":"add","content":"","contnet":"x"}`:                                "contnet: is not a field of a message",
		`{"user_id":"u","label":"add","content":1}`:                                               "content: must be a string",
		`[{"user_id":"u","label":"add","content":""},{"user_id":"u","lable":"add"}]`:              "[1].lable: is not a field of a message",
		`[{"user_id":"u","label":"add","content":""},{"user_id":"u","label":"a b","content":""}]`: `[1].label: "a b" has the character ' ': letters, digits and _.:/- are allowed`,
		`{"user_id":"\ud800","label":"add","content":""}`:                                         `body has the escape \ud800, which is half of a surrogate pair and no character`,
	} {
		res, text := f.call(t, "POST", "/product/scheduler/submit", body)
		assert.Equal(t, http.StatusUnprocessableEntity, res.StatusCode, text)
		got := get[map[string]any](t, text)
		assert.Equal(t, map[string]any{"code": 422.0, "message": want, "data": nil}, got, body)
	}
}

// A message with the item_id of another says so, and changes nothing.
func TestAKnownItemWithAnotherContent(t *testing.T) {
	t.Parallel()
	f := product(t)
	const message = `{"user_id":"u","label":"query","item_id":"i","content":"one"}`
	for _, c := range [][2]string{
		{message, `{"code":200,"message":"Messages submitted successfully","data":[{"task_id":"i","status":"waiting"}]}`},
		{message, `{"code":200,"message":"Messages submitted successfully","data":[{"task_id":"i","status":"waiting"}]}`},
		{strings.Replace(message, "one", "two", 1), `{"code":200,"message":"Messages submitted; 1 had the item_id of an existing message, which stays unchanged",
			"data":[{"task_id":"i","status":"waiting","differs":true}]}`},
	} {
		_, text := f.call(t, "POST", "/product/scheduler/submit", c[0])
		assert.JSONEq(t, c[1], text)
	}
	_, text := f.call(t, "GET", "/v1/agents/u/tasks/i", "")
	assert.Contains(t, text, `"content":"one"`)
}
