package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/a2a"
	"github.com/seed-6f6f2c11/duly/core"
)

// posts are callbacks that are written as push notifications.
type posts struct {
	mu  sync.Mutex
	got []string
}

func (*posts) Check(text string) error {
	if !strings.HasPrefix(text, "https://hooks.example/") {
		return fmt.Errorf("must begin with https://hooks.example/")
	}
	return nil
}

func (p *posts) Deliver(_ context.Context, to, _ string, message []byte) error {
	plain, fragment, _ := strings.Cut(to, "#")
	said, err := url.ParseQuery(fragment)
	if err != nil {
		return err
	}
	media, header, body, err := a2a.Notices{}.Write(said, message)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, strings.Join([]string{plain, media, header.Get("X-A2A-Notification-Token"), string(body)}, " "))
	return err
}

// pushed are the parameters of a send with a receiver.
func pushed(id, push string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","contextId":"talk","parts":[{"text":"hello"}]},"configuration":{"returnImmediately":true,"taskPushNotificationConfig":%s}}`, id, push)
}

// A client is notified of the end of its task, in its version, with the token that it has given.
func TestTheEndIsPosted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &posts{}
		sv := serve(t, a2a.Door{Push: true}, core.Config{Callbacks: p})
		one := sv.task(sv.call("SendMessage", pushed("m-1", `{"url":"https://hooks.example/a?x=1","token":"t&k#n"}`))).ID
		two := sv.task(sv.call("message/send", `{"message":{"messageId":"m-2","role":"user","contextId":"talk","parts":[{"kind":"text","text":"fail"}]},"configuration":{"blocking":false,"pushNotificationConfig":{"url":"https://hooks.example/b","id":"mine"}}}`)).ID
		three := sv.task(sv.call("SendMessage", pushed("m-3", `{"url":"https://hooks.example/c","token":"t"}`))).ID
		sv.task(sv.call("CancelTask", `{"id":"`+three+`"}`))
		for range 3 {
			sv.run()
			time.Sleep(time.Minute)
		}
		require.Len(t, p.got, 3)
		all := strings.Join(p.got, "\n")
		assert.Contains(t, all, `https://hooks.example/a?x=1 application/a2a+json t&k#n {"task":{"id":"`+one+`","contextId":"talk","status":{"state":"TASK_STATE_COMPLETED","timestamp":"`)
		assert.Contains(t, all, `"artifacts":[{"artifactId":"result","name":"result","parts":[{"text":"you said hello"}]}]}}`)
		assert.Contains(t, all, `https://hooks.example/b application/json  {"kind":"task","id":"`+two+`","contextId":"talk","status":{"state":"failed","message":{"kind":"message",`)
		assert.Contains(t, all, `https://hooks.example/c application/a2a+json t {"task":{"id":"`+three+`","contextId":"talk","status":{"state":"TASK_STATE_CANCELED"`)
	})
}

// What a receiver may not be is refused, before any store is called.
func TestReceiversAreChecked(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{Push: true}, core.Config{Callbacks: &posts{}})
	for push, why := range map[string]string{
		`{}`: "url is required", `7`: "taskPushNotificationConfig ", `{"url":"https://hooks.example/#x"}`: "url must have no fragment",
		`{"url":"https://hooks.example/","token":"a\r\nX-Evil: b"}`:                                            "token must be",
		`{"url":"https://hooks.example/","authentication":{"scheme":"Bearer","credentials":"hunter2-of-ada"}}`: "authentication must be left out",
		`{"url":"https://evil.example/"}`:                                                                      "the url for push notifications must begin with",
	} {
		before := sv.store.Calls()
		out := sv.call("SendMessage", pushed("m-1", push))
		require.NotNil(t, out.Error, push)
		assert.Equal(t, -32602, out.Error.Code, push)
		assert.Contains(t, out.Error.Message, why)
		assert.NotContains(t, out.Error.Message, "evil")
		assert.NotContains(t, out.Error.Message, "hunter2")
		assert.Equal(t, before, sv.store.Calls(), push)
	}
	deaf := serve(t, a2a.Door{}, core.Config{})
	for method, params := range map[string]string{
		"SendMessage":                      pushed("m-1", `{"url":"https://hooks.example/"}`),
		"CreateTaskPushNotificationConfig": `{"taskId":"x","url":"https://hooks.example/"}`, "GetTaskPushNotificationConfig": `{"taskId":"x"}`,
		"tasks/pushNotificationConfig/set": `{"taskId":"x","pushNotificationConfig":{"url":"https://hooks.example/"}}`, "tasks/pushNotificationConfig/list": `{"id":"x"}`,
	} {
		out := deaf.call(method, params)
		require.NotNil(t, out.Error, method)
		assert.Equal(t, -32003, out.Error.Code, method)
	}
}

// A task that waits gets a receiver, shows it and loses it, in both versions; one that has ended does not change.
func TestReceiversOfTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ create, get, list, remove, given, named, other string }{
		{
			"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig",
			`{"taskId":%q,"id":"mine","url":"https://hooks.example/a","token":"t"}`, `{"taskId":%q,"id":"mine"}`, `{"taskId":%q,"id":"other","url":"https://hooks.example/a"}`,
		},
		{
			"tasks/pushNotificationConfig/set", "tasks/pushNotificationConfig/get", "tasks/pushNotificationConfig/list", "tasks/pushNotificationConfig/delete",
			`{"taskId":%q,"pushNotificationConfig":{"id":"mine","url":"https://hooks.example/a","token":"t"}}`, `{"id":%q,"pushNotificationConfigId":"mine"}`,
			`{"taskId":%q,"pushNotificationConfig":{"id":"other","url":"https://hooks.example/a"}}`,
		},
	} {
		sv := serve(t, a2a.Door{Push: true}, core.Config{Callbacks: &posts{}})
		id := sv.task(sv.call("SendMessage", said("m-1", "hello", ""))).ID
		with := func(params string) string { return fmt.Sprintf(params, id) }
		code := func(out answer) int {
			require.NotNil(t, out.Error)
			return out.Error.Code
		}
		assert.Equal(t, -32001, code(sv.call(c.get, with(c.named))))
		set := sv.call(c.create, with(c.given))
		require.Nil(t, set.Error)
		again := sv.call(c.create, with(c.given))
		assert.JSONEq(t, string(set.Result), string(again.Result), "the same one, sent again")
		assert.Equal(t, -32004, code(sv.call(c.create, with(c.other))))
		got := sv.call(c.get, with(c.named))
		assert.JSONEq(t, string(set.Result), string(got.Result))
		assert.Contains(t, string(got.Result), `"token":"t"`)
		assert.Contains(t, string(sv.call(c.list, with(c.named)).Result), "https://hooks.example/a")
		assert.Equal(t, -32001, code(sv.call(c.remove, strings.Replace(with(c.named), "mine", "other", 1))))
		assert.Equal(t, "null", string(sv.call(c.remove, with(c.named)).Result))
		assert.NotContains(t, string(sv.call(c.list, with(c.named)).Result), "https://hooks.example/a")
		task, err := sv.scheduler.Task(t.Context(), "ada", id)
		require.NoError(t, err)
		assert.Empty(t, task.Callback)
		sv.run()
		assert.Equal(t, -32004, code(sv.call(c.create, with(c.given))))
		_, denied := sv.post("ada-reads", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, c.create, with(c.given)))
		assert.Equal(t, -32000, code(denied))
		assert.True(t, json.Valid(got.Result))
	}
}
