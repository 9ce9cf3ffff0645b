package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
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
	enveloped := w.start(t, "events", "--server", url, "--agent", "ada", "--cloudevents")
	enveloped.line(t, "following")

	w.ok(t, "submit", "--agent", "bob", "--id", "b", "--kind", "note")
	w.ok(t, "submit", "--agent", "ada", "--id", "a", "--kind", "note")
	for _, agent := range []string{"ada a", "bob b"} {
		all.line(t, "start", "note "+agent)
		all.line(t, "finish", "note "+agent+" success after")
	}
	line := some.line(t, `"event":"finish"`)
	assert.Equal(t, "ada", parse[map[string]any](t, line)["agent_id"])
	assert.NotContains(t, some.log(), `"agent_id":"bob"`)
	e := parse[map[string]any](t, enveloped.line(t, `"type":"duly.task.completed"`))
	assert.Equal(t, []any{"1.0", "/v1/agents/ada", "a"}, []any{e["specversion"], e["source"], e["subject"]})
	assert.Equal(t, e["id"], e["data"].(map[string]any)["event_id"])
	code, _ := some.stop(t, syscall.SIGINT)
	assert.Equal(t, 0, code)
	code, _ = enveloped.stop(t, syscall.SIGINT)
	assert.Equal(t, 0, code)
	code, _ = d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	<-all.ended
	assert.Equal(t, 5, all.cmd.ProcessState.ExitCode())
	assert.Contains(t, all.log(), "duly: events: the server ended the stream; try again once it is back, with --since-id ")
}

func TestEventsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := noRedis()
	exits := map[int]int{401: 6, 404: 1, 503: 5}
	for status, want := range map[int]string{401: "set $DULY_TOKEN to one of its tokens", 404: "it has no event stream: name a duly daemon --http or duly serve with --server", 503: "100 clients are already listening"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, `{"code":"x","detail":"100 clients are already listening; retry later"}`)
		}))
		oneLine(t, w.duly(t, "events", "--server", server.URL), exits[status], want)
		server.Close()
		oneLine(t, w.duly(t, "events", "--server", server.URL), 5, " does not answer", "start duly daemon --http there")
	}
	oneLine(t, w.duly(t, "events", "--server", "127.0.0.1:8080"), 2, "--server must be a URL")
}

// stream is a server that sends a text as a stream of events, and ends it.
func stream(t *testing.T, mediaType, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Whatever a server sends, what is printed is events, and nothing that a terminal could take for more than a text.
func TestEventsAreOnlyEvents(t *testing.T) {
	t.Parallel()
	const events = ": duly\n\nevent: missed\ndata: {\"count\":7}\n\nevent: finish\n" +
		"data: {\"event\":\"finish\", \"agent_id\":\"a\\u001b[31m\u009b31m\xff\",\"id\":\"1\",\"kind\":\"k\"}\n\n"
	w := noRedis()
	url := stream(t, "text/event-stream; charset=utf-8", events)
	for _, format := range []string{"--json=false", "--json"} {
		r := w.duly(t, "events", "--server", url, format)
		assert.Contains(t, r.stderr, "7 events were missed: the store does not keep them any more, or nobody listened\n")
		assert.Contains(t, r.stderr, "the server ended the stream")
		assert.Equal(t, 5, r.code)
		assert.Equal(t, 1, strings.Count(r.stdout, "\n"), r.stdout)
		assert.NotContains(t, r.stdout, "\x1b")
		assert.NotContains(t, r.stdout, "\u009b")
		assert.NotContains(t, r.stdout, "\xff")
		assert.Contains(t, r.stdout, "finish")
		if format == "--json" {
			assert.Equal(t, "a\x1b[31m\u009b31m\uFFFD", parse[map[string]any](t, r.stdout)["agent_id"])
		}
	}
	for text, want := range map[string]string{
		"data: {\"event\":\"finish\"\n\n":                        "the server sent something that is not an event",
		"data: [1]\n\n":                                          "the server sent something that is not an event",
		"data: null\n\n":                                         "the server sent something that is not an event",
		"event: missed\ndata: many\n\n":                          "the server sent something that is not an event",
		"data: \x1b[31m\n\n":                                     "the server sent something that is not an event",
		"data: " + strings.Repeat("x", 2<<20) + "\n\n":           "a line that is longer than any event",
		"data: {\"event\":\"start\",\"time\":\"yesterday\"}\n\n": "the server sent something that is not an event",
	} {
		url := stream(t, "text/event-stream", text)
		for _, format := range []string{"--json=false", "--json"} {
			r := w.duly(t, "events", "--server", url, format)
			assert.Equal(t, 1, r.code)
			assert.Empty(t, r.stdout)
			if format == "--json" {
				assert.Equal(t, "failed", parse[said](t, r.stderr[strings.Index(r.stderr, "{"):]).Code, "after the line that says who is followed")
			} else {
				assert.Contains(t, r.stderr, "duly: events: ")
			}
			assert.Contains(t, r.stderr, want)
			for _, inner := range []string{"bufio", "json:", "unmarshal", "character", "\x1b"} {
				assert.NotContains(t, r.stderr, inner)
			}
		}
	}
	for _, mediaType := range []string{"text/html; charset=utf-8", "application/json", ""} {
		oneLine(t, w.duly(t, "events", "--server", stream(t, mediaType, events)), 1, "does not send events, but ", "name a duly daemon --http or a duly serve with --server")
	}
}
