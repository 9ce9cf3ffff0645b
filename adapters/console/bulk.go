package console

// Orders for many tasks: those that a form names, and all of a filter, step by step.

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// bulkPage is what one step of an order did, or how many tasks the next one is about.
type bulkPage struct {
	Step    operate.BulkStep
	Label   string // of the order
	Done    bool   // a step has been done
	Said    string // what has become of the tasks of the step
	Refused []refusedRow
	Next    string // the address of the next step; empty after the last one
	Count   int    // how many tasks that step is about
	Danger  bool   // the number has to be typed
	Chosen  []fact // the filter
	Back    string
	Live    string // the live tasks of the same choice, once some are due again
}

// refusedRow is a task that was not changed, and why.
type refusedRow struct{ Agent, ID, Why string }

// bulkStep is how many tasks a step changes at most.
const bulkStep = 100

// bulkVerb is an order for many tasks.
type bulkVerb struct {
	label, said string
	danger      bool // cannot be undone
}

// bulkVerbs are the orders for many tasks.
var bulkVerbs = map[operate.BulkVerb]bulkVerb{
	operate.BulkReplay: {label: "Replay", said: "are due again"},
	operate.BulkDelete: {label: "Delete", said: "are deleted", danger: true},
	operate.BulkCancel: {label: "Cancel", said: "are cancelled, or will be when their runs end", danger: true},
	operate.BulkRun:    {label: "Run now", said: "are due now"},
	operate.BulkPause:  {label: "Pause", said: "are paused"},
	operate.BulkResume: {label: "Resume", said: "are resumed"},
}

// named is a task as a field of a form has it.
func named(t core.TaskInfo) string { return url.Values{"agent": {t.Agent}, "id": {t.ID}}.Encode() }

// replay replays the tasks that a form names, up to a page of them. It reports those that have changed meanwhile.
func (c *console) replay(v *visit) (*page, error) {
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	names := v.r.PostForm["task"]
	switch {
	case len(names) == 0:
		return nil, &core.InvalidError{Field: "task", Reason: "is required: tick the tasks to replay"}
	case len(names) > tasksShown:
		return nil, &core.InvalidError{Field: "task", Reason: "names more tasks than a page has"}
	}
	p := bulkPage{Step: operate.BulkStep{Matched: len(names)}, Label: "Replay", Done: true, Said: bulkVerbs[operate.BulkReplay].said, Back: Path + "/dead"}
	for _, name := range names {
		q, err := url.ParseQuery(name)
		if err != nil {
			return nil, &core.InvalidError{Field: "task", Reason: "cannot be read"}
		}
		agent, id := q.Get("agent"), q.Get("id")
		if err := v.may(model.ActionControl, agent); err != nil {
			return nil, err
		}
		_, err = c.scheduler.Replay(v.r.Context(), agent, id)
		switch core.CodeOf(err) {
		case "":
			p.Step.Changed++
		case core.CodeNotFound, core.CodeConflict, core.CodeForbidden, core.CodeInvalid:
			p.Refused = append(p.Refused, refusedRow{agent, id, err.Error()})
		default:
			return nil, err
		}
	}
	if len(p.Refused) == 0 {
		to := cmp.Or(v.sameReferer(), Path+"/dead")
		return &page{to: withSaid(to, "bulk")}, nil
	}
	return &page{name: "bulk", title: "Replayed", body: &p}, nil
}

// bulk carries out an order for the tasks of a filter, one step at a time: the page shows how many tasks the next step covers, and its form sends
// that count, so that no more are changed than were shown.
func (c *console) bulk(v *visit) (*page, error) {
	do, f := operate.BulkVerb(v.q.Get("do")), filterOf(v.q)
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	if err := v.may(model.ActionControl, f["agent"]); err != nil {
		return nil, err
	}
	verb := bulkVerbs[do]
	if !slices.Contains(verbsFor(f), do) {
		return nil, &core.InvalidError{Field: "do", Reason: "is nothing that can be done to all such tasks: choose them on the list of tasks"}
	}
	l, err := f.list(v)
	if err != nil {
		return nil, err
	}
	l.Limit, l.Cursor = bulkStep, v.q.Get("cursor")
	p := bulkPage{Label: verb.label, Said: verb.said, Danger: verb.danger, Chosen: f.facts(), Back: f.at("/tasks")}
	if f["status"] == "failed" && v.may(model.ActionRead, "") == nil {
		p.Back = f.with("status", "").with("cause", "").at("/dead")
	}
	b := operate.Bulk{Do: do, List: l, Order: core.Order{By: v.by(), Reason: v.reason()}}
	if b.Count, err = v.countGiven(verb.danger); err != nil {
		return nil, err
	}
	if b.Count > 0 {
		p.Step, err = c.scheduler.Bulk(v.r.Context(), b)
		p.Done = err == nil
		if err != nil && !errors.Is(err, model.ErrCount) { // more have come since: the page asks again
			return nil, err
		}
	}
	if do == operate.BulkReplay && p.Step.Changed > 0 {
		p.Live = f.with("status", "").with("cause", "").with("text", "").with("since", "").with("until", "").at("/tasks")
	}
	for _, r := range p.Step.Refused {
		p.Refused = append(p.Refused, refusedRow{r.Agent, r.ID, r.Error})
	}
	return &page{name: "bulk", title: verb.label, body: &p}, c.count(v, &p, b, f)
}

// countGiven is the number of tasks that the form confirms; zero if it does not yet. Where nothing can be undone the user has typed it.
func (v *visit) countGiven(danger bool) (int, error) {
	text := strings.TrimSpace(v.r.PostForm.Get("count"))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, &core.InvalidError{Field: "count", Reason: "must be a whole number from 1 on"}
	}
	if typed := strings.ReplaceAll(strings.TrimSpace(v.r.PostForm.Get("typed")), ",", ""); danger && typed != text {
		return 0, &core.InvalidError{Field: "typed", Reason: "is not the number of tasks: type " + count(n)}
	}
	return n, nil
}

// count adds to a page how many tasks its next step covers. If it finds none yet, the next page looks further.
func (c *console) count(v *visit, p *bulkPage, b operate.Bulk, f filter) error {
	if p.Done {
		b.List.Cursor = p.Step.Next
	}
	if p.Done && p.Step.Next == "" {
		return nil
	}
	b.DryRun, b.Count = true, 0
	next, err := c.scheduler.Bulk(v.r.Context(), b)
	switch p.Count = next.Matched; {
	case p.Count > 0:
		p.Next = f.at("/bulk", "do", string(b.Do), "cursor", b.List.Cursor)
	case next.Next != "":
		p.Next = f.at("/bulk", "do", string(b.Do), "cursor", next.Next)
	}
	return err
}

// facts are the parts of a filter in words.
func (f filter) facts() []fact {
	var out []fact
	if status := f["status"]; status != "" {
		out = append(out, fact{Name: "Status", Text: statusWord(status)})
	}
	for _, one := range f.fields(append(firstFilters, restFilters...)...) {
		if one.Value != "" {
			out = append(out, fact{Name: one.Label, Text: one.Value})
		}
	}
	if f["cause"] != "" {
		out = append(out, fact{Name: "Errors like", Text: f["cause"]})
	}
	return out
}

// statusWord is the word that pages have for a status.
func statusWord(status string) string {
	switch status {
	case "failed":
		return "dead"
	case "in_progress":
		return "running"
	case overdue:
		return "due now"
	default:
		return status
	}
}
