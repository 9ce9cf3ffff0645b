package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// duly events shows what happens, until it is told to stop or the server ends.
func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=root")
	d := w.start(t, "daemon", "-c", file(t, handlersFile), "--http", "127.0.0.1:0")
	url := d.url(t)
	all := w.start(t, "events", "--server", url)
	all.line(t, "following")
	some := w.start(t, "events", "--server", url, "--agent", "ada", "--json")
	some.line(t, "following")

	w.ok(t, "submit", "--agent", "bob", "--id", "b", "--kind", "note")
	w.ok(t, "submit", "--agent", "ada", "--id", "a", "--kind", "note")
	for _, agent := range []string{"ada a", "bob b"} {
		all.line(t, "start", "note "+agent)
		all.line(t, "finish", "note "+agent+" success after")
	}
	line := some.line(t, `"event":"finish"`)
	assert.Equal(t, "ada", parse[map[string]any](t, line)["agent_id"])
	assert.NotContains(t, some.log(), `"agent_id":"bob"`)
	code, _ := some.stop(t, syscall.SIGINT)
	assert.Equal(t, 0, code)
	code, _ = d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	<-all.ended
	assert.Equal(t, 1, all.cmd.ProcessState.ExitCode())
	assert.Contains(t, all.log(), "duly: events: the server ended the stream; call again once it is back")
}

func TestEventsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := noRedis()
	for status, want := range map[int]string{401: "set $DULY_TOKEN to one of its tokens", 404: "is it duly daemon --http or duly serve?", 503: "100 others listen"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"code":"x","detail":"100 others listen already"}`)
		}))
		oneLine(t, w.duly(t, "events", "--server", server.URL), 1, want)
		server.Close()
		oneLine(t, w.duly(t, "events", "--server", server.URL), 1, "cannot reach", "start duly daemon --http there")
	}
	oneLine(t, w.duly(t, "events", "--server", "127.0.0.1:8080"), 2, "--server must be a URL")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, ": duly\n\nevent: missed\ndata: {\"count\":7}\n\nevent: finish\ndata: {\"event\":\"finish\",\"agent_id\":\"a\\u001b[31m\",\"id\":\"1\",\"kind\":\"k\"}\n\n")
	}))
	defer server.Close()
	r := w.duly(t, "events", "--server", server.URL)
	assert.Contains(t, r.stderr, "7 events were missed")
	assert.NotContains(t, r.stdout, "\x1b", "what a terminal could take for more than a text is escaped")
	assert.Contains(t, r.stdout, "finish")
}

// apply is the start of a daemon without the daemon.
func TestApplyMakesTheTasksThoseOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "handlers: { note: { log: {} } }\ntasks:\n  - { agent: ada, id: a, kind: note, every: %s }\n  - { agent: bob, id: b, kind: note, every: 1h }\n"
	hourly := file(t, fmt.Sprintf(text, "1h"))
	assert.Equal(t, "2 task(s) created, 0 changed, 0 as they were\n", w.ok(t, "apply", "-f", hourly))
	daily := file(t, fmt.Sprintf(text, "24h"))
	assert.Equal(t, map[string]any{"created": 0.0, "changed": 1.0, "unchanged": 1.0}, w.object(t, "apply", "-f", daily))
	assert.Equal(t, "24h0m0s", w.object(t, "status", "ada", "a")["every"])
	oneLine(t, w.duly(t, "apply"), 2, "needs a file with tasks", "name one with -f")
	bad := file(t, "handlers: { note: { log: {} } }\ntasks:\n  - { agent: ada, id: c, kind: note, every: 1h }\n  - { agent: ada, id: d, kind: note, every: soon }\n")
	oneLine(t, w.duly(t, "apply", "-f", bad), 2, ":4:")
	_, err := w.scheduler(t).Task(t.Context(), "ada", "c")
	require.Error(t, err, "nothing of a bad file is stored")
}
