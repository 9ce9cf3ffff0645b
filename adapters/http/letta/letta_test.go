package letta_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/letta"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is the API on a store in memory, as a function that sends a request, and what its tasks have posted.
func serve(t *testing.T) (call func(method, path, body string) (int, string), s *core.Scheduler, posted *[]string) {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{})
	require.NoError(t, err)
	posted = new([]string)
	core.Handle(s, letta.Kind, func(_ context.Context, task *core.Task[json.RawMessage]) error {
		path, body, err := letta.Messages{}.Request(task)
		if err == nil {
			*posted = append(*posted, path+" "+string(body))
		}
		return err
	})
	h := httpadapter.New(s, httpadapter.Config{Doors: []httpadapter.Door{letta.Door{}}})
	return func(method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code, rec.Body.String()
	}, s, posted
}

// A message is sent at its time, in seconds or milliseconds, and one that recurs again and again.
func TestMessagesAreSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		call, s, posted := serve(t)
		const path = "/v1/agents/agent-1/schedule"
		for _, body := range []string{
			`{"messages":[{"role":"user","content":"ms"}],"schedule":{"type":"one-time","scheduled_at":946688400000}}`, // 01:00
			`{"messages":[{"role":"user","content":"s"}],"schedule":{"scheduled_at":946692000},"max_steps":2,"callback_url":null}`,
			`{"messages":[{"role":"user","content":"cron"}],"schedule":{"type":"recurring","cron_expression":"30 * * * *"}}`,
		} {
			status, answer := call("POST", path, body)
			require.Equal(t, 200, status, answer)
			time.Sleep(time.Second)
		}
		_, answer := call("GET", path, "")
		var list struct {
			More     bool `json:"has_next_page"`
			Messages []struct {
				Next     string         `json:"next_scheduled_time"`
				Schedule map[string]any `json:"schedule"`
			} `json:"scheduled_messages"`
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &list))
		require.Len(t, list.Messages, 3, answer)
		assert.Equal(t, map[string]any{"type": "one-time", "scheduled_at": 946692000000.0}, list.Messages[1].Schedule)
		assert.Equal(t, "2000-01-01T00:30:00Z", list.Messages[2].Next)
		for range 4 {
			time.Sleep(30 * time.Minute)
			_, err := s.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		}
		assert.Equal(t, []string{
			`/v1/agents/agent-1/messages/async {"messages":[{"role":"user","content":"cron"}]}`,
			`/v1/agents/agent-1/messages/async {"messages":[{"role":"user","content":"ms"}]}`,
			`/v1/agents/agent-1/messages/async {"messages":[{"role":"user","content":"cron"}]}`,
			`/v1/agents/agent-1/messages/async {"max_steps":2,"messages":[{"role":"user","content":"s"}]}`,
		}, *posted)
		_, answer = call("GET", path, "")
		assert.Equal(t, 1, strings.Count(answer, `"agent_id"`), "what was sent once is gone")
	})
}

// What cannot be is refused with the names that the client has sent.
func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	call, s, _ := serve(t)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "other", Kind: "else", Delay: time.Hour}, core.NewTask{Agent: "a", ID: "bare", Kind: letta.Kind, Delay: time.Hour})
	require.NoError(t, err)
	for _, c := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}]}`, 422, "schedule is required"},
		{"POST", "/v1/agents/a/schedule", `{"schedule":{"cron_expression":"* * * * *"}}`, 422, "messages must be"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[],"schedule":{"cron_expression":"* * * * *"}}`, 422, "messages must be"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":{"type":"recurring"}}`, 422, "cron_expression is required"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":{"cron_expression":"x"}}`, 422, "cron_expression "},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":{"cron_expression":"0 0 * * * *"}}`, 422, "cron_expression must have five"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":{"type":"weekly"}}`, 422, "type must be"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":{"type":"one-time"}}`, 422, "scheduled_at must be"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":{"scheduled_at":1e300}}`, 422, "scheduled_at must be"},
		{"POST", "/v1/agents/a/schedule", `{"messages":[{}],"schedule":7}`, 422, "schedule must be"},
		{"POST", "/v1/agents/a%2Fb/schedule", `{"messages":[{}],"schedule":{"cron_expression":"* * * * *"}}`, 422, "agent_id must be"},
		{"GET", "/v1/agents/a/schedule?limit=0", "", 422, "limit must be"},
		{"GET", "/v1/agents/a/schedule/other", "", 404, "there is no such scheduled message"},
		{"GET", "/v1/agents/a/schedule/bare", "", 404, "there is no such scheduled message"},
		{"DELETE", "/v1/agents/a/schedule/other", "", 404, "there is no such scheduled message"},
		{"DELETE", "/v1/agents/a/schedule/none", "", 404, ""},
	} {
		status, body := call(c.method, c.path, c.body)
		assert.Equal(t, c.status, status, "%s %s: %s", c.path, c.body, body)
		assert.Contains(t, body, `"detail":"`+c.detail, "%s %s", c.path, c.body)
	}
	_, answer := call("GET", "/v1/agents/a/schedule", "")
	assert.JSONEq(t, `{"scheduled_messages":[],"has_next_page":false}`, answer)
}
