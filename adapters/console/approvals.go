package console

// What waits for a person: the page of all of it, the form beside a task, and the answers.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// approvalsPage is a page of what waits for a person.
type approvalsPage struct {
	Agent     string
	Questions []question
	More      string
	Begun     string
}

// question is a task that waits for a person.
type question struct {
	Agent, ID, Kind string
	Text            string // what is asked
	Key             string
	Approval        bool // only an approval counts
	Since, Until    time.Time
	By              string // the process whose run has asked
	For             string // the task whose run has submitted it, if one has
	ForTo           string
	Payload         string
	Cut             bool
	To              string // where the answer goes; empty if the visitor may not answer
	Token           string
	Schema          string // what the answer has to be, if the run has said
}

// Sizes of the page of what waits for a person.
const (
	questionsShown = 20
	questionReads  = 4
	payloadShown   = 1200 // bytes of a payload on it
	mostAnswer     = 8 << 10
)

// approvals is a page of what waits for a person.
func (c *console) approvals(v *visit) (*page, error) {
	p := approvalsPage{Agent: v.q.Get("agent")}
	if err := v.may(model.ActionRead, p.Agent); err != nil {
		return nil, err
	}
	l := core.List{Agent: p.Agent, Asking: true, Limit: questionsShown, Reads: questionReads, Cursor: v.q.Get("cursor")}
	tasks, next, err := c.scheduler.Tasks(v.r.Context(), l)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		p.Questions = append(p.Questions, v.questionOf(&tasks[i], payloadShown))
	}
	address := func(cursor string) string {
		q := url.Values{}
		for name, value := range map[string]string{"agent": p.Agent, "cursor": cursor} {
			if value != "" {
				q.Set(name, value)
			}
		}
		return strings.TrimSuffix(Path+"/approvals?"+q.Encode(), "?")
	}
	if next != "" {
		p.More = address(next)
	}
	if l.Cursor != "" {
		p.Begun = address("")
	}
	return &page{name: "approvals", title: "Approvals", body: p}, nil
}

// questionOf is what a task asks, and where the visitor answers, with so much of its payload.
func (v *visit) questionOf(t *core.TaskInfo, payload int) question {
	w := t.Awaiting
	q := question{
		Agent: t.Agent, ID: t.ID, Kind: t.Kind, Key: w.Key, Approval: w.From == core.FromApproval, Since: t.UpdatedAt, Until: w.Until, Token: v.session.formToken(),
		Text: cmp.Or(w.Question, fmt.Sprintf("The task waits for %q.", w.Key)),
	}
	if n := len(t.Runs); n > 0 {
		q.By, q.Since = t.Runs[n-1].Process, t.Runs[n-1].Started.Add(t.Runs[n-1].Duration)
	}
	if t.Origin != nil {
		q.For, q.ForTo = t.Origin.By.Agent+" / "+t.Origin.By.ID, taskURL(t.Origin.By.Agent, t.Origin.By.ID)
	}
	if q.Payload, q.Cut = jsonText(t.Payload); len(q.Payload) > payload {
		q.Payload, q.Cut = strings.ToValidUTF8(q.Payload[:payload], "")+"…", true
	}
	q.Schema, _ = jsonText(w.Answer)
	if v.mayAnswer(t.Agent, q.Approval) == nil {
		q.To = Path + "/answer?" + url.Values{"agent": {t.Agent}, "id": {t.ID}, "key": {w.Key}, "fence": {strconv.FormatInt(int64(w.Fence), 10)}}.Encode()
	}
	return q
}

// mayAnswer reports whether the visitor may answer a question of an agent's task: with the right to approve, or, if no approval is wanted, to control.
func (v *visit) mayAnswer(agent string, approval bool) error {
	if v.options.ReadOnly {
		return errReadOnly
	}
	err := v.may(model.ActionApprove, agent)
	if err != nil && !approval {
		err = v.may(model.ActionControl, agent)
	}
	return err
}

// answer sends what a form answers to the wait that its page has shown, and to no other.
func (c *console) answer(v *visit) (*page, error) {
	q := core.Question{Agent: v.q.Get("agent"), ID: v.q.Get("id"), Key: v.q.Get("key")}
	fence, err := strconv.ParseInt(v.q.Get("fence"), 10, 64)
	if err != nil || q.Agent == "" || q.ID == "" || q.Key == "" {
		return nil, &core.InvalidError{Field: "fence", Reason: "and agent, id and key are those of the question: answer it on its page"}
	}
	q.Fence = store.Fence(fence)
	if err := v.mayAnswer(q.Agent, false); err != nil {
		return nil, err
	}
	t, err := c.scheduler.Task(v.r.Context(), q.Agent, q.ID)
	if err != nil {
		return nil, err
	}
	if t.Awaiting != nil && t.Awaiting.Fence == q.Fence {
		q.Text = t.Awaiting.Question
		if err := v.mayAnswer(q.Agent, t.Awaiting.From == core.FromApproval); err != nil {
			return nil, err
		}
	}
	payload, err := v.answerGiven()
	if err != nil {
		return nil, err
	}
	if err := c.scheduler.Answer(v.r.Context(), q, payload, ""); err != nil {
		return nil, err
	}
	return &page{to: withSaid(cmp.Or(v.sameReferer(), Path+"/approvals"), "answered")}, nil
}

// answerGiven is what the form answers: a decision, with a comment if there is one, or what the run wants as JSON, or a text.
func (v *visit) answerGiven() (json.RawMessage, error) {
	form := v.r.PostForm
	decision, text, data := form.Get("decision"), strings.TrimSpace(form.Get("answer")), strings.TrimSpace(form.Get("json"))
	content := map[string]any{}
	switch {
	case len(data) > mostAnswer || len(text) > mostAnswer:
		return nil, &core.InvalidError{Field: "answer", Reason: "is too long"}
	case decision == "refuse":
		content["decision"] = decision
	case data != "":
		if json.Unmarshal([]byte(data), &content) != nil {
			return nil, &core.InvalidError{Field: "json", Reason: `must be a JSON object, such as {"amount": 40}`}
		}
		if decision == "approve" {
			content["decision"] = decision
		}
	case decision == "approve":
		content["decision"] = decision
	case decision != "":
		return nil, &core.InvalidError{Field: "decision", Reason: "must be approve or refuse"}
	case text != "":
		content["answer"] = text
	default:
		return nil, &core.InvalidError{Field: "answer", Reason: "must not be empty"}
	}
	if comment := strings.TrimSpace(form.Get("comment")); comment != "" {
		content["comment"] = comment
	}
	payload, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return payload, nil
}

// asking is the tile of what waits for a person: of so many tasks that wait for signals as one page has.
func (c *console) asking(v *visit) (tile, error) {
	t := tile{Name: "Approvals", Value: "0", Note: "wait for a person", To: Path + "/approvals"}
	tasks, next, err := c.scheduler.Tasks(v.r.Context(), core.List{Asking: true, Limit: inspect.DefaultPage, Reads: 2})
	if t.Value = count(len(tasks)); next != "" {
		t.Value += "+"
	}
	if len(tasks) > 0 || next != "" {
		t.Class = "warn"
	}
	return t, err
}
