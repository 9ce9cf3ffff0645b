package a2a_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/a2a"
	"github.com/seed-6f6f2c11/duly/core"
)

// What is wrong with a request is answered by the code of the protocol, and asks no store.
func TestWhatIsWrongIsRefused(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	send := func(message string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":` + message + `}}`
	}
	old := func(message string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"message":` + message + `}}`
	}
	for _, c := range []struct {
		body string
		code int
		why  string
	}{
		{"{", -32700, "not valid JSON"},
		{"", -32600, "body is required"},
		{"[]", -32600, "request "},
		{`[{"jsonrpc":"2.0","id":7,"method":"GetTask"}]`, -32600, "request "},
		{`{"jsonrpc":"1.0","id":7,"method":"GetTask"}`, -32600, "jsonrpc must be"},
		{`{"jsonrpc":"2.0","id":7,"id":8,"method":"GetTask"}`, -32600, "id"},
		{`{"jsonrpc":"2.0","id":{},"method":"GetTask"}`, -32600, "id must be"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"GetTask"}`, -32600, "id must be"},
		{`{"jsonrpc":"2.0","id":7}`, -32600, "method must be"},
		{`{"jsonrpc":"2.0","id":7,"method":1}`, -32600, "method must be"},
		{`{"jsonrpc":"2.0","id":7,"method":"tasks/steal"}`, -32601, "no such method"},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[]}`, -32602, "params "},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask"}`, -32602, "id is required"},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":5}}`, -32602, "id must be"},
		{`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x","tenant":"y"}}`, -32602, "tenant must be left out"},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{}}`, -32602, "message is required"},
		{send(`7`), -32602, "message "},
		{send(`{}`), -32602, "messageId is required"},
		{send(`{"messageId":"","role":"ROLE_USER","parts":[{"text":"x"}]}`), -32602, "messageId must not be empty"},
		{send(`{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}`), -32602, "role must be"},
		{send(`{"messageId":"m","role":"user","parts":[{"text":"x"}]}`), -32602, "role must be"},
		{send(`{"messageId":"m","role":"ROLE_USER"}`), -32602, "parts is required"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[]}`), -32602, "parts must have"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[7]}`), -32602, "parts[0] "},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[{}]}`), -32602, "parts[0] must have exactly one"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x","url":"y"}]}`), -32602, "parts[0] must have exactly one"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"contextId":"a\u0000b"}`), -32602, "contextId must have"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"contextId":"` + strings.Repeat("x", 201) + `"}`), -32602, "contextId must have"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"\ud800"}]}`), -32600, "surrogate"},
		{send(`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"messageId":"n"}`), -32602, "messageId"},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"metadata":7}}`, -32602, "metadata "},
		{`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":1}}}`, -32602, "returnImmediately must be"},
		{old(`{"messageId":"m","role":"user","parts":[{"text":"x"}]}`), -32602, "parts[0].kind must be"},
		{old(`{"messageId":"m","role":"user","parts":[{"kind":"song","song":"x"}]}`), -32602, "parts[0].kind must be"},
		{old(`{"messageId":"m","role":"user","parts":[{"kind":"text","data":{}}]}`), -32602, "parts[0] must have exactly one"},
		{`{"jsonrpc":"2.0","id":7,"method":"SendStreamingMessage","params":{}}`, -32004, "streams nothing"},
		{`{"jsonrpc":"2.0","id":7,"method":"tasks/resubscribe","params":{}}`, -32004, "streams nothing"},
		{`{"jsonrpc":"2.0","id":7,"method":"GetExtendedAgentCard"}`, -32007, "no card"},
	} {
		before := sv.store.Calls()
		status, out := sv.post("ada", c.body)
		require.NotNil(t, out.Error, c.body)
		assert.Equal(t, []int{200, c.code}, []int{status, out.Error.Code}, "%s: %s", c.body, out.Error.Message)
		assert.Contains(t, out.Error.Message, c.why, c.body)
		assert.Equal(t, before, sv.store.Calls(), c.body)
	}
	rec := sv.handler("POST", "/a2a/ada", "ada", `{}`, "Content-Type", "text/plain")
	assert.Equal(t, 415, rec.Code, "a page in a browser may send that anywhere")
	rec = sv.handler("POST", "/a2a/ada", "ada", strings.Repeat(" ", 2<<20))
	assert.Equal(t, 413, rec.Code)
	assert.Contains(t, rec.Body.String(), `"code":-32600`)
}

// The name of a method says which version its caller speaks; a header that says another one is wrong.
func TestTheVersionOfACaller(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	for _, c := range []struct {
		method, path, header string
		code                 int
	}{
		{"GetTask", "", "", -32001},
		{"GetTask", "", "1.0", -32001},
		{"GetTask", "?A2A-Version=1.0", "", -32001},
		{"GetTask", "", "0.3", -32601},
		{"tasks/get", "", "", -32001},
		{"tasks/get", "", "0.3", -32001},
		{"tasks/get", "?A2A-Version=1.0", "", -32601},
		{"GetTask", "", "2.0", -32009},
		{"tasks/get", "", "0.2", -32009},
	} {
		var header []string
		if c.header != "" {
			header = []string{"A2A-Version", c.header}
		}
		rec := sv.handler("POST", "/a2a/ada"+c.path, "ada", fmt.Sprintf(`{"jsonrpc":"2.0","id":"x","method":%q,"params":{"id":"x"}}`, c.method), header...)
		var out answer
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &out))
		require.NotNil(t, out.Error)
		assert.Equal(t, c.code, out.Error.Code, "%+v", c)
		assert.Equal(t, "x", out.ID)
	}
}

// The card is for everyone, and shows nothing that only some may see.
func TestTheCard(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{Description: "Answers.", Secured: true}, core.Config{})
	before := sv.store.Calls()
	for path, url := range map[string]string{"ada": "http://example.com/a2a/ada", "a%2Fb": "http://example.com/a2a/a%2Fb"} {
		rec := sv.handler("GET", "/a2a/"+path+"/.well-known/agent-card.json", "nobody", "")
		require.Equal(t, 200, rec.Code)
		var card struct {
			Description, URL    string
			PreferredTransport  string
			SupportedInterfaces []struct{ URL, ProtocolBinding, ProtocolVersion string }
			Capabilities        struct{ Streaming, PushNotifications bool }
			SecuritySchemes     map[string]map[string]any
		}
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &card))
		assert.Equal(t, url, card.URL)
		assert.Equal(t, url, card.SupportedInterfaces[0].URL)
		assert.Equal(t, "JSONRPC", card.PreferredTransport)
		assert.Equal(t, "http", card.SecuritySchemes["bearer"]["type"])
		assert.Equal(t, "Answers.", card.Description)
		assert.False(t, card.Capabilities.Streaming || card.Capabilities.PushNotifications)
	}
	rec := sv.handler("GET", "/a2a/a%00b/.well-known/agent-card.json", "nobody", "")
	assert.Equal(t, 404, rec.Code)
	assert.Equal(t, before, sv.store.Calls())
	open := serve(t, a2a.Door{URL: "https://duly.example/api/"}, core.Config{}).handler("GET", "/a2a/ada/.well-known/agent-card.json", "", "")
	assert.Contains(t, open.Body.String(), `"url":"https://duly.example/api/a2a/ada"`)
	assert.NotContains(t, open.Body.String(), "securitySchemes")
}

// However a body is made, it is answered, never with a fault of this side, and whatever it asks for is of the one agent.
func FuzzABodyIsAnswered(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":` + said("m", "x", `,"contextId":"c"`) + `}`,
		`{"jsonrpc":"2.0","id":"x","method":"message/send","params":` + said03("m", "x") + `}`,
		`{"jsonrpc":"2.0","id":null,"method":"GetTask","params":{"id":"a2a-00000000000000000000000000000000-c"}}`,
		`{"jsonrpc":"2.0","method":"ListTasks","params":{"pageSize":3,"contextId":"c"}}`, `[]`, `{`, `null`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		sv := serve(t, a2a.Door{}, core.Config{})
		rec := sv.handler("POST", "/a2a/ada", "ada", strings.Replace(body, `"params":{`, `"params":{"configuration":{"returnImmediately":true,"blocking":false},`, 1))
		assert.Less(t, rec.Code, 500, body)
		check(t, rec, body)
	})
}

// check checks that an answer has a result or an error, and not both.
func check(t *testing.T, rec *httptest.ResponseRecorder, body string) {
	t.Helper()
	var out map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &out), body)
	assert.NotEqual(t, out["result"] == nil, out["error"] == nil, "%s: %s", body, rec.Body)
	assert.Contains(t, out, "id")
}
