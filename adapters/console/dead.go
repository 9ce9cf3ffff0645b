package console

// The page of dead letters: those of all agents, the last ones first, by what went wrong; and how they are replayed.

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// deadPage is a page of dead letters.
type deadPage struct {
	Kind   string
	Groups []deadGroup
	Shown  int
	More   string
	Begun  bool
	Steers bool
	Bulk   string // the address that replays all, step by step
	Step   int
}

// deadGroup are dead letters that failed alike.
type deadGroup struct {
	Error string // the error of the first of them
	Kinds string
	Tasks []core.TaskInfo
}

// bulkPage is what one step of a replay of all did, or how many tasks the next one is about.
type bulkPage struct {
	Step    operate.BulkStep
	Kind    string
	Done    bool // a step has been done
	Refused []refusedRow
	Next    string // the address of the next step; empty after the last one
	Count   int    // how many tasks that step is about
}

// refusedRow is a task that was not replayed, and why.
type refusedRow struct{ Agent, ID, Why string }

// Sizes of a page of dead letters, and of a step that replays all.
const (
	deadShown = 40
	bulkStep  = 100
)

// dead is the page of dead letters.
func (c *console) dead(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return nil, err
	}
	p := deadPage{Kind: v.q.Get("kind"), Begun: v.q.Get("cursor") != "", Steers: v.steers(""), Step: bulkStep}
	l := deadList(p.Kind, v.q.Get("cursor"))
	l.Limit = deadShown
	tasks, next, err := c.scheduler.Tasks(v.r.Context(), l)
	if err != nil {
		return nil, err
	}
	p.Groups, p.Shown = grouped(tasks), len(tasks)
	if next != "" {
		p.More = Path + "/dead?" + url.Values{"kind": {p.Kind}, "cursor": {next}}.Encode()
	}
	p.Bulk = bulkURL(p.Kind, "")
	return &page{name: "dead", title: "Dead letters", body: p}, nil
}

// bulkURL is the address of a step that replays the dead letters of a kind, or of any.
func bulkURL(kind, cursor string) string {
	return Path + "/bulk?" + url.Values{"kind": {kind}, "cursor": {cursor}}.Encode()
}

// deadList are the dead letters of all agents, of one kind or of any.
func deadList(kind, cursor string) core.List {
	return core.List{Status: []core.Status{core.StatusFailed}, Kind: kind, Cursor: cursor}
}

// grouped puts tasks together that failed alike, the largest group first.
func grouped(tasks []core.TaskInfo) []deadGroup {
	at := map[string]int{}
	var out []deadGroup
	for i := range tasks {
		text := cmp.Or(tasks[i].LastError, tasks[i].Reason, "no error is kept")
		key := alike(text)
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, deadGroup{Error: short(text)})
		}
		out[n].Tasks = append(out[n].Tasks, tasks[i])
	}
	for i := range out {
		var kinds []string
		for k := range out[i].Tasks {
			kinds = append(kinds, out[i].Tasks[k].Kind)
		}
		slices.Sort(kinds)
		kinds = slices.Compact(kinds)
		out[i].Kinds = short(strings.Join(kinds, ", "))
	}
	slices.SortStableFunc(out, func(a, b deadGroup) int { return len(b.Tasks) - len(a.Tasks) })
	return out
}

// alike is a text without what differs between errors of the same cause: numbers, and words that have one, such as ids and addresses.
func alike(text string) string {
	words := strings.Fields(short(text))
	for i, word := range words {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
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
	case len(names) > deadShown:
		return nil, &core.InvalidError{Field: "task", Reason: "names more tasks than a page has"}
	}
	p := bulkPage{Step: operate.BulkStep{Matched: len(names)}, Done: true}
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
	return &page{name: "bulk", title: "Replayed", body: p}, nil
}

// bulk replays the dead letters of a kind, or of all, one step at a time: the page shows how many tasks the next step covers, and its form sends
// that count, so that no more are replayed than were shown.
func (c *console) bulk(v *visit) (*page, error) {
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	if err := v.may(model.ActionControl, ""); err != nil {
		return nil, err
	}
	p := bulkPage{Kind: v.q.Get("kind")}
	b := operate.Bulk{Do: operate.BulkReplay, List: deadList(p.Kind, v.q.Get("cursor")), Order: core.Order{By: v.by()}}
	b.List.Limit = bulkStep
	if text := v.r.PostForm.Get("count"); text != "" {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return nil, &core.InvalidError{Field: "count", Reason: "must be a whole number from 1 on"}
		}
		b.Count = count
		p.Step, err = c.scheduler.Bulk(v.r.Context(), b)
		p.Done = err == nil
		if err != nil && !errors.Is(err, model.ErrCount) { // more have failed since: the page asks again
			return nil, err
		}
	}
	for _, r := range p.Step.Refused {
		p.Refused = append(p.Refused, refusedRow{r.Agent, r.ID, r.Error})
	}
	return &page{name: "bulk", title: "Replay", body: &p}, c.count(v, &p, b)
}

// count adds to a page how many dead letters its next step covers. If it finds none yet, the next page looks further.
func (c *console) count(v *visit, p *bulkPage, b operate.Bulk) error {
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
		p.Next = bulkURL(p.Kind, b.List.Cursor)
	case next.Next != "":
		p.Next = bulkURL(p.Kind, next.Next)
	}
	return err
}
