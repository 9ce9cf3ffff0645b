package console

// Forms that change a task, and budgets.

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// editField is a field of a task in a form, with its current value.
type editField struct {
	Name, Label, Value, Hint string
	Long                     bool // it has lines of its own
}

// editsOf are the fields of a task that a form changes; none if it cannot be edited now.
func editsOf(t *core.TaskInfo) []editField {
	if t.Status != core.StatusWaiting || t.Schedule == store.ScheduleActivity {
		return nil
	}
	every := ""
	if t.Every > 0 {
		every = t.Every.String()
	}
	fields := []editField{
		{Name: "level", Label: "Level", Value: strconv.Itoa(int(t.Level)), Hint: "1, 2 or 3"},
		{Name: "every", Label: "Every", Value: every, Hint: "such as 10m; takes the place of other schedules"},
		{Name: "cron", Label: "Cron", Value: t.Cron, Hint: "such as 0 9 * * MON-FRI"},
		{Name: "zone", Label: "Zone of the cron expression", Value: t.Zone, Hint: "such as Europe/Berlin"},
		{Name: "limit_key", Label: "Limit key", Value: t.LimitKey},
	}
	if len(t.Payload) <= mostEdited {
		fields = append(fields, editField{Name: "payload", Label: "Payload", Value: string(t.Payload), Hint: "JSON", Long: true})
	}
	return fields
}

// mostEdited is the largest payload that a form has, in bytes: it is in the page, and in what comes back, twice.
const mostEdited = 8 << 10

// edit changes those fields of a task that differ from what the form showed: what others have changed meanwhile stays.
func (c *console) edit(v *visit) (*page, error) {
	agent, id, form := v.q.Get("agent"), v.q.Get("id"), v.r.PostForm
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	if err := v.may(model.ActionControl, agent); err != nil {
		return nil, err
	}
	change := map[string]any{}
	for _, f := range editsOf(&core.TaskInfo{Status: core.StatusWaiting}) {
		is, was := strings.TrimSpace(form.Get(f.Name)), strings.TrimSpace(form.Get("was_"+f.Name))
		switch {
		case strings.ReplaceAll(is, "\r\n", "\n") == strings.ReplaceAll(was, "\r\n", "\n"):
		case is == "":
			change[f.Name] = nil
		case f.Name == "level", f.Name == "payload":
			if !json.Valid([]byte(is)) {
				return nil, &core.InvalidError{Field: f.Name, Reason: "must be JSON: texts stand in quotes"}
			}
			change[f.Name] = json.RawMessage(is)
		default:
			change[f.Name] = is
		}
	}
	if len(change) == 0 {
		return nil, &core.InvalidError{Field: "change", Reason: "is none: all fields are as they were"}
	}
	data, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("edit: %w", err)
	}
	if _, err := c.scheduler.Edit(v.r.Context(), agent, id, data); err != nil {
		return nil, err
	}
	return &page{to: withSaid(taskURL(agent, id), "edited")}, nil
}

// again replays a dead task with the payload of a form, in one step: with its own if that was not changed.
func (c *console) again(v *visit) (*page, error) {
	agent, id, form := v.q.Get("agent"), v.q.Get("id"), v.r.PostForm
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	if err := v.may(model.ActionControl, agent); err != nil {
		return nil, err
	}
	lines := func(name string) string { return strings.TrimSpace(strings.ReplaceAll(form.Get(name), "\r\n", "\n")) }
	is, said := lines("payload"), "replayed"
	var payload json.RawMessage
	if is != lines("was_payload") {
		if is != "" && !json.Valid([]byte(is)) {
			return nil, &core.InvalidError{Field: "payload", Reason: "must be JSON: texts stand in quotes"}
		}
		payload, said = json.RawMessage(is), "replaced"
	}
	if _, err := c.scheduler.ReplayWith(v.r.Context(), agent, id, payload); err != nil {
		return nil, err
	}
	return &page{to: withSaid(taskURL(agent, id), said)}, nil
}

// setBudget sets a budget, or lifts it: as the form says.
func (c *console) setBudget(v *visit) (*page, error) {
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	if err := v.may(model.ActionControl, ""); err != nil {
		return nil, err
	}
	form, ctx := v.r.PostForm, v.r.Context()
	about := core.BudgetTarget{
		LimitTarget: core.LimitTarget{Kind: form.Get("kind"), Key: form.Get("key"), Each: bound.Each(form.Get("each"))},
		Unit:        form.Get("unit"), Per: bound.Period(form.Get("per")),
	}
	if form.Get("lift") != "" {
		if err := c.scheduler.LiftBudget(ctx, about); err != nil {
			return nil, err
		}
		return &page{to: Path + "/kinds?said=unbudgeted"}, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(form.Get("amount")), 64)
	if err != nil {
		return nil, &core.InvalidError{Field: "amount", Reason: "must be a number"}
	}
	amount, err := core.ParseAmount(n)
	if err != nil {
		return nil, err
	}
	if err := c.scheduler.SetBudgets(ctx, core.Budget{About: about, Amount: amount, Then: bound.Then(form.Get("then"))}); err != nil {
		return nil, err
	}
	return &page{to: Path + "/kinds?said=budgeted"}, nil
}
