package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/a2a"
	"github.com/seed-6f6f2c11/duly/core"
)

// asking is an API whose agent asks two questions before its task is done, and then returns the answers; the first one wants an approval if the text says so.
func asking(t *testing.T) *server {
	t.Helper()
	sv := serve(t, a2a.Door{Kind: "ask"}, core.Config{})
	core.Handle(sv.scheduler, "ask", func(_ context.Context, task *core.Task[struct{ Parts []struct{ Text string } }]) error {
		var answers []json.RawMessage
		if _, err := task.Checkpoint(&answers); err != nil {
			return err
		}
		if heard, ok := task.Heard(); ok {
			answers = append(answers, heard.Payload)
		}
		if len(answers) == 2 {
			return task.SetResult(answers)
		}
		s := core.Signal{Key: fmt.Sprint("q-", len(answers)), Timeout: time.Duration(len(answers)) * time.Hour, Question: fmt.Sprintf("Question %d?", len(answers))}
		if task.Payload.Parts[0].Text == "approve" {
			s.From, s.Question = core.FromApproval, ""
		}
		return core.Await(s, answers)
	})
	return sv
}

// to is a message to a task.
func to(id, task, part string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"taskId":%q,"role":"ROLE_USER","parts":[%s]},"configuration":{"returnImmediately":true}}`, id, task, part)
}

// A task that asks says so, and a message to it is the answer, once: sent again it answers no other question.
func TestAMessageToATaskIsAnAnswer(t *testing.T) {
	t.Parallel()
	sv := asking(t)
	id := sv.task(sv.call("SendMessage", said("m-1", "hello", ""))).ID
	refused := func(out answer, code int, why string) {
		t.Helper()
		require.NotNil(t, out.Error)
		assert.Equal(t, code, out.Error.Code, out.Error.Message)
		assert.Contains(t, out.Error.Message, why)
	}
	refused(sv.call("SendMessage", to("m-2", id, `{"text":"blue"}`)), -32004, "asks nothing now")
	sv.run()
	shown := sv.task(sv.call("GetTask", `{"id":"`+id+`"}`))
	assert.Equal(t, []string{"TASK_STATE_INPUT_REQUIRED", "Question 0?"}, []string{shown.Status.State, shown.Status.Message.Parts[0].Text})
	assert.Equal(t, "input-required", sv.task(sv.call("tasks/get", `{"id":"`+id+`"}`)).Status.State)
	refused(sv.call("SendMessage", to("m-2", id, `{"url":"https://a.example/"}`)), -32602, "parts must be texts")
	refused(sv.call("SendMessage", `{"message":{"messageId":"m-2","taskId":"`+id+`","contextId":"other","role":"ROLE_USER","parts":[{"text":"blue"}]}}`), -32602, "contextId must be")

	told := sv.task(sv.call("SendMessage", to("m-2", id, `{"text":"blue"}`)))
	assert.Equal(t, "TASK_STATE_SUBMITTED", told.Status.State)
	refused(sv.call("SendMessage", to("m-3", id, `{"text":"late"}`)), -32004, "")
	sv.run()
	again := sv.task(sv.call("SendMessage", to("m-2", id, `{"text":"blue"}`)))
	assert.Equal(t, "Question 1?", again.Status.Message.Parts[0].Text, "it is still open")
	refused(sv.call("SendMessage", to("m-2", id, `{"text":"red"}`)), -32602, "messageId was used")
	sv.task(sv.call("SendMessage", to("m-4", id, `{"data":{"n":1}}`)))
	sv.run()
	done := sv.task(sv.call("GetTask", `{"id":"`+id+`"}`))
	require.Equal(t, "TASK_STATE_COMPLETED", done.Status.State)
	assert.JSONEq(t, `[{"answer":"blue"},{"n":1}]`, done.Artifacts[0].Parts[0].Text)
	refused(sv.call("SendMessage", to("m-5", id, `{"text":"x"}`)), -32004, "has ended")
	refused(sv.call("SendMessage", to("m-6", "a2a-00000000000000000000000000000000-x", `{"text":"x"}`)), -32001, "")
}

// An approval is given by one who may approve, and in clear words.
func TestAnApprovalIsForThoseWhoMay(t *testing.T) {
	t.Parallel()
	sv := asking(t)
	id := sv.task(sv.call("SendMessage", said("m-1", "approve", ""))).ID
	sv.run()
	shown := sv.task(sv.call("GetTask", `{"id":"`+id+`"}`))
	assert.Equal(t, "The task waits for an approval.", shown.Status.Message.Parts[0].Text)
	body := func(id, text string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + to(id, shown.ID, `{"text":"`+text+`"}`) + `}`
	}
	for token, code := range map[string]int{"ada": -32000, "ada-reads": -32000, "bob": -32000} {
		_, out := sv.post(token, body("m-2", "approve"))
		require.NotNil(t, out.Error, token)
		assert.Equal(t, code, out.Error.Code, token)
	}
	_, out := sv.post("ada-approves", body("m-3", "well, maybe"))
	require.NotNil(t, out.Error)
	assert.Contains(t, out.Error.Message, `must say "approve" or "refuse"`)
	_, out = sv.post("ada-approves", body("m-3", " Approve "))
	require.Nil(t, out.Error, "the message that was refused is tried again")
	sv.run()
	task, err := sv.scheduler.Task(t.Context(), "ada", id)
	require.NoError(t, err)
	assert.JSONEq(t, `[{"decision":"approve"}]`, string(task.Checkpoint))
}

// An answer needs the right to send signals: one who may only look, or is for another agent, gives none.
func TestAnAnswerNeedsARight(t *testing.T) {
	t.Parallel()
	sv := asking(t)
	id := sv.task(sv.call("SendMessage", said("m-1", "hello", ""))).ID
	sv.run()
	for _, token := range []string{"ada-reads", "bob"} {
		before := sv.store.Calls()
		_, out := sv.post(token, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+to("m-2", id, `{"text":"blue"}`)+`}`)
		require.NotNil(t, out.Error, token)
		assert.Equal(t, -32000, out.Error.Code, token)
		assert.Equal(t, before, sv.store.Calls(), token)
	}
	_, out := sv.post("ada-writes", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+to("m-2", id, `{"text":"blue"}`)+`}`)
	require.Nil(t, out.Error)
	assert.NotContains(t, string(out.Result), "Question", "it may not read")
}
