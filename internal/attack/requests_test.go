package attack_test

// Requests that are not what they seem: paths, queries, headers and bodies that somebody reads in two ways, or that are too much.

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// writes are the verbs that change something.
var writes = []string{"Submit", "Touch", "Claim", "Settle", "Extend", "Replay", "RunNow", "Cancel", "Delete", "Hold", "Unhold", "Signal", "Profile", "Replan", "Forget", "Limit", "Budget", "Receive", "Stamp"}

// mostWork is what a request may cost a processor, by the race detector's measure.
const mostWork = 5 * time.Second

// send makes a request as it is, with hostile paths unchanged. The answer has to be whole, and has to have cost little.
func (a *target) send(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	assert.Less(t, processorTime(t, func() { a.handler.ServeHTTP(w, r) }), mostWork, "%.80q", r.URL.String())
	assert.True(t, json.Valid(w.Body.Bytes()), "%.80q: %.200q", r.URL.String(), w.Body)
	assert.Less(t, w.Code, 500, "%.80q: %.200q", r.URL.String(), w.Body)
	return w
}

// noisy is the API with all credentials, and what it logs above info: panics and failures of this side.
func noisy(t *testing.T) *target {
	t.Helper()
	c, log := config(), &strings.Builder{}
	c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	a := newTarget(t, c)
	t.Cleanup(func() { assert.Empty(t, log.String(), "nothing that a caller sends is a fault of this side") })
	return a
}

// paths lead to bob's task if somebody normalizes them, or to nobody.
func paths() []string {
	all := []string{
		"/v1/agents/bob/tasks/i", "/v1/agents/%62ob/tasks/i", "/v1/agents/%62%6f%62/tasks/%69", "/v1/agents/ann/../bob/tasks/i", "/v1/agents/ann/%2e%2e/bob/tasks/i",
		"/v1/agents/ann%2f..%2fbob/tasks/i", "/v1/agents/ann%2F%2E%2E%2Fbob/tasks/i", "/v1/agents/ann%252f..%252fbob/tasks/i", "/v1/agents/ann%5c..%5cbob/tasks/i",
		"/v1/agents/ann/tasks/../../bob/tasks/i", "/v1/agents/ann/tasks/%2e%2e%2f%2e%2e%2fbob%2ftasks%2fi", "/v1/agents/ann/tasks/%252e%252e", "/v1//agents/bob/tasks/i",
		"//v1/agents/bob/tasks/i", "/v1/agents//bob/tasks/i", "/v1/agents/bob//tasks/i", "/v1/agents/bob/tasks//i", "/v1/agents/bob/tasks/i/", "/V1/agents/bob/tasks/i",
		"/v1/AGENTS/bob/tasks/i", "/v1/agents/BOB/tasks/i", "/v1/agents/bob%20/tasks/i", "/v1/agents/%20bob/tasks/i", "/v1/agents/bob%00/tasks/i", "/v1/agents/bob%00ann/tasks/i",
		"/v1/agents/ann%00bob/tasks/i", "/v1/agents/bob;x=ann/tasks/i", "/v1/agents/bob%3bann/tasks/i", "/v1/agents/bob%0a/tasks/i", "/v1/agents/b%d0%beb/tasks/i",
		"/v1/agents/%ef%bd%82ob/tasks/i", "/v1/agents/bo%cc%81b/tasks/i", "/v1/agents/bob%e2%80%8b/tasks/i", "/v1/agents/bob%ff/tasks/i", "/v1/agents/bob%ed%a0%80/tasks/i",
		"/v1/agents/bob%c0%af/tasks/i", "/v1/agents/%2a/tasks/i", "/v1/agents/*/tasks/i", "/v1/agents/./tasks/i", "/v1/agents/../tasks/i", "/v1/agents/%2e/tasks/i", "/v1/agents/%2e%2e/tasks/i",
		"/v1/./agents/bob/tasks/i", "/./v1/agents/bob/tasks/i", "/v1/agents/bob/tasks/i%2fexplain", "/v1/agents/bob%2ftasks%2fi", "/v1/%61gents/bob/tasks/i", "/%761/agents/bob/tasks/i",
		"/healthz/../v1/agents/bob/tasks/i", "/healthz/%2e%2e/v1/agents/bob/tasks/i", "/healthz%2f..%2fv1/agents/bob/tasks/i", "/openapi.json/v1/agents/bob/tasks/i",
	}
	for _, n := range []int{257, 4096, 60_000} {
		long := strings.Repeat("b", n)
		all = append(all, "/v1/agents/"+long+"/tasks/i", "/v1/agents/bob/tasks/"+long, "/"+long, strings.Repeat("/b", n), "/v1/agents/bob"+strings.Repeat("/tasks/i", n/8), "/v1/kinds/"+long+"/pause")
	}
	return all
}

// However a path is written, a credential for ann sees and changes nothing of bob, and without one nothing at all is done.
func TestPathsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	a := noisy(t)
	for _, token := range []string{"ann", "guessed", "reads"} {
		for _, path := range paths() {
			for _, method := range []string{"GET", "DELETE", "HEAD", "POST"} {
				r := httptest.NewRequest(method, "/", nil)
				u, err := r.URL.Parse("http://localhost" + path)
				if err != nil {
					continue // no server hands it over
				}
				r.URL = u
				r.Header.Set("Authorization", "Bearer "+token)
				before, calls := a.spy.Calls(writes...), a.spy.Calls()
				w := a.send(t, r)
				assert.Equal(t, before, a.spy.Calls(writes...), "%s %.80q as %s", method, path, token)
				if token != "reads" {
					assert.NotContains(t, w.Body.String(), "payload of bob", "%s %.80q as %s", method, path, token)
					assert.Contains(t, []int{400, 401, 403, 404, 405}, w.Code, "%s %.80q as %s: %.200s", method, path, token, w.Body)
				}
				if token == "guessed" {
					assert.Equal(t, 401, w.Code)
					assert.Equal(t, calls, a.spy.Calls())
				}
			}
		}
	}
	w := a.call(t, "root", "GET", "/v1/agents/bob/tasks/i", "")
	assert.Contains(t, w.Body.String(), "payload of bob", "it is still there")
}

// bodies are read by a lenient reader as something that a strict one refuses: ann and bob at once, two ids that become one, more than
// there is room for. AGENT stands for the member that names the agent.
func bodies() []string {
	deep := strings.Repeat("[", 100_000)
	million := strings.TrimSuffix(strings.Repeat("1,", 400_000), ",")
	return []string{
		`{"AGENT":"bob"}`, `{"AGENT":"ann","AGENT":"bob"}`, `{"AGENT":"bob","AGENT":"ann"}`, `{"AGENT":"ann","agent_Id":"bob"}`, `{"AGENT":"ann","\u0061gent_id":"bob"}`,
		`{"AGENT":"ann\ud800","kind":"ok"}`, `{"AGENT":"ann\udc00\ud800","kind":"ok"}`, "{\"AGENT\":\"ann\xff\",\"kind\":\"ok\"}", "{\"AGENT\":\"ann\xed\xa0\x80\",\"kind\":\"ok\"}",
		`{"AGENT":"ann\u0000","kind":"ok"}`, `{"AGENT":"ann\u009b","kind":"ok"}`, `{"AGENT":["ann"],"kind":"ok"}`, `{"AGENT":{"$ne":1},"kind":"ok"}`, `{"AGENT":1e400,"kind":"ok"}`, `{"AGENT":null,"kind":"ok"}`,
		`{"AGENT":"` + strings.Repeat("a", 257) + `","kind":"ok"}`, `{"AGENT":"` + strings.Repeat("a", 900_000) + `","kind":"ok"}`, `{"` + strings.Repeat("k", 900_000) + `":1}`,
		"", " ", "null", "true", "0", `""`, "[]", "[[]]", `[null]`, "{", "}", `{"`, `{"AGENT"`, `{"AGENT":`, `{"AGENT":"ann"`, `{"AGENT":"ann"}{"AGENT":"bob"}`, `{"AGENT":"ann"}]`, "\ufeff{}", "{}\x00", "\x00",
		deep, "{\"AGENT\":" + deep, strings.Repeat(`{"a":`, 100_000), `{"payload":` + deep + strings.Repeat("]", 100_000) + `,"AGENT":"ann","kind":"ok"}`,
		"[" + million + "]", `{"tasks":[` + million + `]}`, `{"agent_ids":[` + million + `]}`, `{"tasks":[` + strings.TrimSuffix(strings.Repeat("{},", 300_000), ",") + `]}`,
		`{"agent_ids":["` + strings.Repeat(`a","`, 200_000) + `"]}`, `{"tags":[` + million + `],"AGENT":"ann","kind":"ok"}`, `{` + strings.Repeat(`"a":1,`, 150_000) + `"b":1}`,
		`{"all":true,"max":-1}`, `{"all":true,"max":1e400}`, `{"all":true,"max":99999999999999999999}`, `{"all":true,"timeout_ms":-1}`, `{"all":true,"timeout_ms":1e19}`, `{"all":1}`, `{"all":"true"}`, `{"all":true,"agent_ids":["ann"]}`,
		`{"AGENT":"ann","kind":"ok","level":1e999}`, `{"AGENT":"ann","kind":"ok","delay":"9999999999h"}`, `{"AGENT":"ann","kind":"ok","every":"-1s"}`, `{"AGENT":"ann","kind":"ok","every":"1ns"}`, `{"AGENT":"ann","kind":"ok","at":"9999-99-99"}`,
		`{"AGENT":"ann","kind":"ok","at":"+292277026596-12-04T15:30:07Z"}`, `{"AGENT":"ann","kind":"ok","cron":"TZ=x"}`, `{"AGENT":"ann","kind":"ok","cron":"* * 31 2 *"}`, `{"AGENT":"ann","kind":"ok","cron":"` + strings.Repeat("1,", 5000) + `1 * * * *"}`,
		`{"AGENT":"ann","kind":"ok","cron":"* * * * *","zone":"../../etc/passwd"}`, `{"AGENT":"ann","kind":"ok","cron":"* * * * *","zone":"Local"}`, `{"AGENT":"ann","kind":"ok","max_attempts":1e99}`, `{"AGENT":"ann","kind":"../ok"}`, `{"AGENT":"ann","kind":"ok\n"}`,
		`{"AGENT":"ann","kind":"ok","payload":` + strings.Repeat("9", 300_000) + `}`, `{"AGENT":"ann","kind":"ok","payload":"` + strings.Repeat(`\ud800`, 60_000) + `"}`,
	}
}

// No body is a fault of this side, none takes long or much, and one that is refused has changed nothing.
func TestBodiesAreRefusedWhole(t *testing.T) {
	t.Parallel()
	a, refused := noisy(t), 0
	for _, path := range []string{
		"/v1/run-due", "/v1/tasks", "/v1/activity", "/v1/pause", "/v1/resume", "/v1/tasks/cancel", "/v1/agents/ann/pause", "/v1/agents/ann/tasks/i/cancel", "/v1/agents/ann/tasks/i/run", "/product/scheduler/submit",
	} {
		for _, body := range bodies() {
			if len(body) > 100_000 && !strings.HasSuffix(path, "tasks") && !strings.HasSuffix(path, "run-due") && !strings.HasSuffix(path, "submit") {
				continue // the others read their bodies as run-due does
			}
			body = strings.ReplaceAll(body, "AGENT", "agent_id")
			for _, token := range []string{"ann", "root"} {
				if token == "root" && (strings.Contains(path, "ann") || len(body) > 100_000) {
					continue // the body names nobody, or is as large for everybody
				}
				r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				before := a.spy.Calls(writes...)
				w := a.send(t, r)
				if w.Code >= 300 {
					refused++
					assert.Equal(t, before, a.spy.Calls(writes...), "%s %.100q: %s", path, body, w.Body)
					assert.Less(t, w.Body.Len(), 4000, "an error does not repeat all that was sent: %s %.100q", path, body)
				}
				if token == "ann" {
					assert.NotContains(t, w.Body.String(), `"agent_id":"bob"`)
				}
			}
		}
	}
	assert.Greater(t, refused, 700)
}

// Two ids that a lenient reader of JSON makes one are no ids: whoever may act for one of them would act for both.
func TestIDsThatAReaderWouldMakeOneAreRefused(t *testing.T) {
	t.Parallel()
	a := noisy(t)
	for _, id := range []string{`x\ud800`, `x\udfff`, `x\ud800\ud800`, "x\xff", "x\xfe", "x\xed\xa0\x80", `\ud800x`} {
		for path, body := range map[string]string{
			"/v1/tasks":                      `{"agent_id":"ID","kind":"ok"}`,
			"/v1/run-due":                    `{"agent_ids":["ID"]}`,
			"/v1/activity":                   `{"kind":"seen","user_id":"ID"}`,
			"/product/scheduler/submit":      `{"user_id":"ID","label":"ok","content":""}`,
			"/v1/agents/a/pause":             `{"reason":"ID"}`,
			"/v1/agents/ann/tasks/i/cancel":  `{"reason":"ID"}`,
			"/v1/agents/ann/tasks/i/pause":   `{"by":"ID"}`,
			"/v1/tasks?":                     `{"agent_id":"a","id":"ID","kind":"ok"}`,
			"/v1/tasks?&":                    `{"agent_id":"a","group":"ID","kind":"ok"}`,
			"/product/scheduler/submit?item": `{"user_id":"a","label":"ok","content":"","item_id":"ID"}`,
		} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(strings.ReplaceAll(body, "ID", id)))
			r.Header.Set("Authorization", "Bearer root")
			r.Header.Set("Content-Type", "application/json")
			before := a.spy.Calls(writes...)
			w := a.send(t, r)
			assert.Contains(t, []int{400, 422}, w.Code, "%s %q: %s", path, id, w.Body)
			assert.Equal(t, before, a.spy.Calls(writes...), "%s %q", path, id)
		}
	}
}

// What is given twice has no meaning: a proxy may look at the first and the API at the last.
func TestWhatIsGivenTwiceIsRefused(t *testing.T) {
	t.Parallel()
	a := noisy(t)
	for _, path := range []string{
		"/v1/tasks?agent_id=ann&agent_id=bob", "/v1/tasks?agent_id=bob&agent_id=ann", "/v1/tasks?agent_id=ann;agent_id=bob", "/v1/tasks?agent_id=ann&agent%5fid=bob",
		"/v1/tasks?agent_id=ann&AGENT_ID=bob", "/v1/tasks?agent_id[]=bob&agent_id=ann", "/v1/tasks?agent_id=ann&limit=1&limit=2", "/v1/tasks?agent_id=ann%00bob", "/v1/tasks?agent_id=%zz",
		"/v1/jobs?agent_id=ann&agent_id=bob", "/v1/events?agent_id=ann&agent_id=bob", "/v1/tasks?agent_id=ann&limit=1e9", "/v1/tasks?agent_id=ann&limit=-1", "/v1/tasks?agent_id=ann&cursor=" + strings.Repeat("x", 50_000),
		"/product/scheduler/status?user_id=bob&user_id=ann", "/product/scheduler/task_queue_status?user_id=bob&user_id=ann", "/product/scheduler/status?user_id=ann;user_id=bob",
	} {
		w := a.call(t, "ann", http.MethodGet, path, "")
		assert.Contains(t, []int{400, 403, 404, 422}, w.Code, "%.80s: %s", path, w.Body)
		assert.NotContains(t, w.Body.String(), "payload of bob", path)
	}
	for _, tokens := range [][]string{{"Bearer guessed", "Bearer root"}, {"Basic cm9vdDo=", "Bearer root"}, {"", "Bearer root"}, {"Bearer guessed, Bearer root"}, {"Bearer root\x00"}, {"Bearer root,"}} {
		r := httptest.NewRequest(http.MethodGet, "/v1/stats", nil)
		r.Header["Authorization"] = tokens
		assert.Equal(t, 401, a.send(t, r).Code, "%q: the first one counts, whole", tokens)
	}
	for name, values := range map[string][]string{
		"Content-Type": {"text/plain", "application/json"}, "Content-Encoding": {"gzip"}, "Idempotency-Key": {"a", "b"}, "X-Http-Method-Override": {"DELETE"}, "X-Original-Url": {"/v1/stats"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader("\x1f\x8b\x08"))
		r.Header.Set("Authorization", "Bearer root")
		r.Header.Set("Content-Type", "application/json")
		r.Header[name] = values
		before := a.spy.Calls(writes...)
		w := a.send(t, r)
		assert.Contains(t, []int{400, 415}, w.Code, "%s: %s", name, w.Body)
		assert.Equal(t, before, a.spy.Calls(writes...))
	}
}

// endless is a body that never ends. It counts what is taken of it.
type endless struct{ read int64 }

func (e *endless) Read(data []byte) (int, error) {
	for i := range data {
		data[i] = ' '
	}
	e.read += int64(len(data))
	return len(data), nil
}

// A body without an end costs its bound, and none without a credential.
func TestABodyWithoutEndIsCutOff(t *testing.T) {
	t.Parallel()
	a := noisy(t)
	for token, most := range map[string]int64{"root": httpadapter.DefaultMaxBody + 64<<10, "guessed": 0, "reads": 0} {
		for _, path := range []string{"/v1/tasks", "/v1/run-due", "/v1/activity", "/v1/pause", "/v1/agents/a/tasks/i/run", "/product/scheduler/submit", "/product/scheduler/wait?user_name=u&timeout_seconds=0"} {
			body := &endless{}
			r := httptest.NewRequest(http.MethodPost, path, io.NopCloser(body))
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			w := a.send(t, r)
			if token == "reads" && strings.HasSuffix(path, "=0") {
				most = httpadapter.DefaultMaxBody + 64<<10 // it may wait
			}
			assert.Contains(t, []int{401, 403, 413}, w.Code, path)
			assert.LessOrEqual(t, body.read, most, path)
		}
	}
}
