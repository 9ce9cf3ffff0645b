package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// approvers are those of the API, and bea, who may look and approve, and cid, who may look and control.
func approvers() func(r *http.Request) (core.Principal, error) {
	scoped := func(name string, scopes ...httpadapter.Scope) httpadapter.Token {
		return httpadapter.Token{Token: name, Grant: httpadapter.Grant{Name: name, Scopes: scopes}}
	}
	return (&httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		scoped("bea", httpadapter.ScopeRead, httpadapter.ScopeApprove), scoped("cid", httpadapter.ScopeRead, httpadapter.ScopeWrite), scoped("reader", httpadapter.ScopeRead),
	}}).Callers()
}

var answerForm = regexp.MustCompile(`action="(/ui/answer[^"]*)"`)

// answers are where the forms of a page send answers.
func answers(a answer) []string {
	var out []string
	for _, found := range answerForm.FindAllStringSubmatch(a.body, -1) {
		out = append(out, strings.ReplaceAll(found[1], "&amp;", "&"))
	}
	return out
}

// asking is a console with a task that waits for an approval, one that asks a question, and one that waits for a program.
func asking(t *testing.T) *fixture {
	t.Helper()
	f := setup(t, console.Options{Callers: approvers()})
	core.Handle(f.scheduler, "refund", asks(core.Signal{Key: "approval", From: core.FromApproval, Question: "Refund 40 EUR?", Timeout: time.Hour}))
	core.Handle(f.scheduler, "name", asks(core.Signal{Key: "name", Question: "Which name?"}))
	core.Handle(f.scheduler, "form", asks(core.Signal{Key: "form", Question: "How many?", Answer: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}))
	core.Handle(f.scheduler, "program", asks(core.Signal{Key: "program"}))
	f.submit(
		core.NewTask{Agent: "ann", ID: "refund:17/x", Kind: "refund", Payload: map[string]string{"to": "bob"}}, core.NewTask{Agent: "bob", ID: "n", Kind: "name"},
		core.NewTask{Agent: "bob", ID: "f", Kind: "form"}, core.NewTask{Agent: "cleo", ID: "p", Kind: "program"},
	)
	f.run()
	return f
}

// What waits for a person is shown with its question, to who may see it, and answered by who may: on the page of all, and on that of the task.
func TestApprovals(t *testing.T) {
	t.Parallel()
	f := asking(t)
	signed := func(name string) *fixture { return f.with(console.Options{Callers: approvers()}).signIn(name) }
	root, bea, cid := signed("root"), signed("bea"), signed("cid")
	result := func(agent, id string) string {
		f.run()
		info, err := f.scheduler.Task(t.Context(), agent, id)
		require.NoError(t, err)
		return string(info.Status) + " " + string(info.Result)
	}
	all := root.get("/ui/approvals")
	for _, says := range []string{"Refund 40 EUR?", "Which name?", "How many?", "refund:17/x", "&#34;to&#34;: &#34;bob&#34;", "by worker", "open until it is answered", "closes ", "kind refund"} {
		all.says(t, says)
	}
	all.lacks(t, ">p<", "it waits for a program")
	assert.Len(t, answers(all), 3)
	root.get("/ui").says(t, `<a href="/ui/approvals">Approvals</a></span><strong>3</strong>`)
	assert.Len(t, answers(bea.get("/ui/approvals")), 3, "who may approve may answer all")
	assert.Len(t, answers(cid.get("/ui/approvals")), 2, "who may control may answer what wants no approval")
	assert.Empty(t, answers(signed("reader").get("/ui/approvals")))
	assert.Empty(t, answers(f.with(console.Options{Callers: approvers(), ReadOnly: true}).signIn("root").get("/ui/approvals")))

	refund := answers(bea.get("/ui/task", "agent", "ann", "id", "refund:17/x"))
	require.Len(t, refund, 1)
	bea.get("/ui/task", "agent", "ann", "id", "refund:17/x").says(t, `<button disabled="disabled" hidden="hidden"></button><label>Comment`, "the return key in a comment must not approve")
	assert.Equal(t, 403, cid.post(refund[0], "decision", "approve").status)
	assert.Equal(t, 403, signed("reader").post(refund[0], "decision", "approve").status)
	assert.Equal(t, 400, bea.post(refund[0], "decision", "maybe").status)
	assert.Equal(t, 400, bea.post(refund[0]).status)
	assert.Equal(t, 400, bea.post("/ui/answer?agent=ann&id=refund:17/x&key=approval&fence=x", "decision", "approve").status)
	assert.Equal(t, 409, bea.post("/ui/answer?agent=ann&id=refund:17/x&key=approval&fence=1", "decision", "approve").status, "another wait of the task")
	a := bea.post(refund[0], "decision", "approve", "comment", "he is right")
	assert.Equal(t, 303, a.status)
	assert.Contains(t, a.header.Get("Location"), "said=answered")
	bea.get("/ui/approvals").lacks(t, "Refund 40 EUR?", "it is answered, and has not run yet")
	assert.Equal(t, `completed {"comment":"he is right","decision":"approve"}`, result("ann", "refund:17/x"))
	assert.Equal(t, 409, bea.post(refund[0], "decision", "refuse").status)

	for i, to := range answers(cid.get("/ui/approvals", "agent", "bob")) {
		assert.Equal(t, 400, cid.post(to).status)
		assert.Equal(t, 400, cid.post(to, "json", "[1]").status)
		assert.Equal(t, 303, cid.post(to, "answer", "Otto", "json", []string{`{"n": 3}`, ""}[map[bool]int{true: 0, false: 1}[strings.Contains(to, "key=form")]]).status, i)
	}
	assert.Equal(t, `completed {"answer":"Otto"}`, result("bob", "n"))
	assert.Equal(t, `completed {"n":3}`, result("bob", "f"))
	root.get("/ui/approvals").says(t, "Nothing waits for a person.")
	root.get("/ui").says(t, `<strong>0</strong><span class="muted">wait for a person</span>`)
}

// The page has pages, and finds what waits for a person however many other tasks there are.
func TestApprovalsAreFoundAmongManyTasks(t *testing.T) {
	t.Parallel()
	f := setup(t, console.Options{})
	core.Handle(f.scheduler, "refund", asks(core.Signal{Key: "approval", From: core.FromApproval}))
	var tasks []core.NewTask
	for i := range 60 {
		tasks = append(tasks, core.NewTask{Agent: fmt.Sprintf("a%02d", i), ID: "later", Kind: "ok", Delay: time.Hour}, core.NewTask{Agent: fmt.Sprintf("a%02d", i), ID: fmt.Sprintf("refund-%02d", i), Kind: "refund", Payload: strings.Repeat("x", 2000)})
	}
	f.submit(tasks...)
	f.run()
	seen, at := map[string]bool{}, "/ui/approvals"
	for at != "" {
		before := f.calls.Load()
		a := f.get(at)
		require.Equal(t, 200, a.status)
		assert.LessOrEqual(t, f.calls.Load()-before, int64(12))
		assert.LessOrEqual(t, len(a.body), 60<<10)
		for _, found := range regexp.MustCompile(`title="(refund-\d+)"`).FindAllStringSubmatch(a.body, -1) {
			seen[found[1]] = true
		}
		_, rest, more := strings.Cut(a.body, `<a class="button" href="/ui/approvals?cursor=`)
		if at = ""; more {
			rest, _, _ = strings.Cut(rest, `"`)
			at = "/ui/approvals?cursor=" + rest
		}
	}
	assert.Len(t, seen, 60)
	f.get("/ui").says(t, `<strong>60</strong><span class="muted">wait for a person</span>`)
}
