package attack_test

// Terminals and logs: nothing of an id, a payload, an error or a header reaches one as more than text.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// Texts that a terminal, or a reader of a log, could take for more than text.
const (
	// ofIDs are characters that an id may have: it has no control characters, and these are none.
	ofIDs = "\u202e\u2066\u2028\u2029\u200b\ufeff\U000e0041"
	// ofTexts are all others too: a new title, cleared screens, an answer that is typed, 8-bit controls and line breaks.
	ofTexts = "\x1b]0;owned\x07\x1b[2J\x1b[6n\x9b31m\u009b31m\u0085\r\nlevel=ERROR msg=forged\x00\x7f\v\f\x08" + ofIDs
)

// raw is the first character of a text that may not be written to a terminal; empty if there is none.
func raw(text string) string {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 || r != '\n' && !unicode.IsPrint(r) {
			return fmt.Sprintf("%q at byte %d, in %q", text[i:i+n], i, text[max(0, i-40):min(len(text), i+40)])
		}
		i += n
	}
	return ""
}

// hostileTasks puts tasks into a Redis whose every text is hostile, one of them failed with a hostile error, one paused.
func hostileTasks(t *testing.T, url string) (agent, id string) {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	require.NoError(t, err)
	defer st.Close()
	s, err := core.New(st, core.Config{Name: "process" + ofIDs})
	require.NoError(t, err)
	core.Handle(s, "bad", func(context.Context, *core.Task[json.RawMessage]) error {
		return core.SkipRetry(errors.New("boom " + ofTexts))
	})
	core.Handle(s, "good", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		return task.SetResult("result " + ofTexts)
	})
	agent, id = "agent"+ofIDs, "id"+ofIDs
	for i, kind := range []string{"bad", "good", "none", "good"} {
		task := core.NewTask{
			Agent: agent, ID: id + fmt.Sprint(i), Kind: kind, Payload: ofTexts, Group: "group" + ofIDs, LimitKey: "key" + ofIDs, TraceID: "trace" + ofIDs,
			SessionID: "session" + ofIDs, Tags: []string{"tag" + ofIDs},
		}
		if i == 3 {
			task.Every = time.Hour
		}
		_, err = s.Submit(t.Context(), task)
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.Equal(t, core.CodeRunsFailed, core.CodeOf(err), err)
	for _, target := range []core.Target{{Agent: agent, ID: id + "2"}, {Agent: "other" + ofIDs}, {Key: "key" + ofIDs}} {
		require.NoError(t, s.Pause(t.Context(), target, core.Pause{Reason: "reason " + ofIDs, By: "by " + ofIDs, Ahead: target.ID == ""}))
	}
	return agent, id
}

// Every command shows hostile tasks, and refuses hostile arguments, as plain text.
func TestCommandsWritePlainText(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	p := newProgram(t, "DULY_REDIS_URL="+redis.URL)
	agent, id := hostileTasks(t, redis.URL)
	config := file(t, "handlers: { none: { log: {} } }\n")
	var commands [][]string
	for _, one := range []string{"status", "explain", "runs"} {
		for i := range 4 {
			commands = append(commands, []string{one, agent, id + fmt.Sprint(i)})
		}
	}
	commands = append(commands, [][]string{
		{"list", "--agent", agent},
		{"jobs", agent},
		{"agents"},
		{"pauses"},
		{"processes"},
		{"queue"},
		{"queue", "bad"},
		{"stats"},
		{"doctor"},
		{"audit"},
		{"pause", agent, id + "0"},
		{"run", agent, id + "0"},
		{"replay", agent, id + "0"},
		{"resume", agent},
		{"cancel", agent, id + "3", "--reason", "x"},
		{"run-due", "--all", "-c", config},
		{"run-due", "--agents", agent, "-c", config},
		{"delete", agent, id + "1"},
	}...)
	shown := strings.Builder{}
	for _, args := range commands {
		out := p.run(t, args...)
		assert.Empty(t, raw(out), "duly %q", args)
		shown.WriteString(out)
		switch args[0] {
		case "pause", "run", "replay", "resume", "cancel", "run-due", "delete": // they change something
		default:
			assert.Empty(t, raw(p.run(t, append(args, "--json")...)), "duly %q --json", args)
		}
	}
	assert.Contains(t, shown.String(), "forged", "the texts were shown")
	assert.Contains(t, shown.String(), "boom", "the errors were shown")
	bad := strings.ReplaceAll(ofTexts, "\x00", "") // no argument has one
	for _, args := range [][]string{
		{"status", bad, bad},
		{"status", bad},
		{"list", "--agent", bad},
		{"list", "--agent", "a", "--status", bad},
		{"list", "--agent", "a", "--cursor", bad},
		{bad},
		{"--" + bad},
		{"status", "--" + bad},
		{"next", bad},
		{"next", "* * * * *", "--zone", bad},
		{"next", "* * * * *", "--from", bad},
		{"submit", "--agent", bad, "--kind", bad},
		{"submit", "--agent", "a", "--kind", bad},
		{"submit", "--agent", "a", "--kind", "k", "--payload", bad},
		{"submit", "--agent", "a", "--kind", "k", "--every", bad},
		{"submit", "-f", bad},
		{"apply", "-f", bad},
		{"daemon", "-c", bad},
		{"daemon", "--http", bad},
		{"daemon", "--log", bad},
		{"stats", "--redis", bad},
		{"stats", "--redis", "redis://" + bad},
		{"stats", "--redis", "redis://127.0.0.1:1/" + bad},
		{"stats", "--prefix", bad},
		{"stats", "--redis-ca", bad, "--redis", "rediss://127.0.0.1:1"},
		{"activity", bad, "--user", bad},
		{"queue", bad},
		{"pause", bad, "--reason", bad},
		{"pause", "--for", bad},
		{"events", "--server", bad},
		{"events", "--server", "http://127.0.0.1:1/" + bad},
		{"run-due", "--agents", bad},
		{"completion", bad},
		{"help", bad},
		{"daemon", "-c", file(t, "handlers: { \""+`\e]0;x\a`+"\": { log: {} } }\n")},
		{"daemon", "-c", file(t, bad)},
		{"apply", "-f", file(t, bad)},
		{"submit", "-f", file(t, bad)},
		{"daemon", "-c", file(t, "\""+`\e[2J`+"\": 1\n")},
		{"submit", "-f", file(t, `[{"agent_id":"\u001b[2J","kind":"\u009b","\u001b":1}]`)},
	} {
		out := p.run(t, args...)
		assert.Empty(t, raw(out), "duly %q", args)
		assert.NotEmpty(t, out)
	}
}

// A server that is followed may be anybody's: what it answers is shown as plain text too.
func TestEventsOfAHostileServerArePlainText(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	event, err := json.Marshal(map[string]any{"event": "start" + ofTexts, "kind": ofTexts, "id": ofTexts, "agent_id": ofTexts, "outcome": ofTexts, "error": ofTexts})
	require.NoError(t, err)
	for name, answer := range map[string]http.HandlerFunc{
		"events": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: start\ndata: %s\n\nevent: %s\ndata: %s\n\n", event, strings.ReplaceAll(ofTexts, "\n", ""), ofTexts)
		},
		"an error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_ = json.NewEncoder(w).Encode(map[string]string{"code": ofTexts, "detail": ofTexts})
		},
		"something else": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/"+ofIDs) },
		"a status": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			fmt.Fprintf(conn, "HTTP/1.1 500 %s\r\n\r\n", strings.NewReplacer("\r", "", "\n", "").Replace(ofTexts))
			_ = conn.Close()
		},
	} {
		server := httptest.NewServer(answer)
		for _, args := range [][]string{{"events", "--server", server.URL}, {"events", "--json", "--server", server.URL}} {
			out := p.run(t, args...)
			assert.Empty(t, raw(out), "%s: duly %q", name, args)
			assert.NotEmpty(t, out)
		}
		server.Close()
	}
}

// What callers send and handlers return is logged as plain text: paths, ids, errors, outputs of programs.
func TestLogsArePlainText(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, "DULY_TOKEN=secret")
			config := file(t, `handlers: { note: { log: {} }, bad: { exec: [sh, -c, "printf '\\033]0;owned\\007\\233\\302\\205\\r\\nlevel=ERROR msg=forged'; exit 65"] } }`+"\n")
			s := p.start(t, "daemon", "-c", config, "--log", format)
			send := func(token, method, path, body string) int {
				r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
				require.NoError(t, err)
				r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "User-Agent": {ofIDs}}
				res, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				defer res.Body.Close()
				return res.StatusCode
			}
			for _, odd := range []string{ // each alone: what is quoted because of one would hide another
				"%1b", "%07", "%9b", "%ff", "%c2%9b", "%c2%85", "%0d", "%0a", "%0d%0alevel=ERROR%20msg=forged", "%00", "%7f", "%e2%80%ae", "%e2%81%a6", "%f3%a0%81%81", "last",
			} {
				require.Equal(t, 401, send("guessed", http.MethodGet, "/x"+odd+"x", ""))
			}
			for _, kind := range []string{"note", "bad"} {
				task, err := json.Marshal(map[string]any{
					"agent_id": "agent" + ofIDs, "id": kind + ofIDs, "kind": kind, "payload": strings.ToValidUTF8(ofTexts, "") + "payload", "group": "g" + ofIDs,
				})
				require.NoError(t, err)
				require.Equal(t, 201, send("secret", http.MethodPost, "/v1/tasks", string(task)))
			}
			s.waitFor(t, "/xlastx")
			s.waitFor(t, "failed for good")
			s.waitFor(t, "payload")
			assert.Empty(t, raw(s.log()))
			for line := range strings.SplitSeq(strings.TrimSpace(s.log()), "\n") {
				assert.False(t, strings.HasPrefix(line, "level="), "a line was forged: %q", line)
			}
		})
	}
}
