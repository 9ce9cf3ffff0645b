package remote

// What is wider than a task: pauses, signals, activity, limits and budgets.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// pathOf is the path of what is paused or resumed.
func pathOf(t core.Target, verb string) []string {
	switch {
	case t.ID != "":
		return []string{"agents", t.Agent, "tasks", t.ID, verb}
	case t.Agent != "":
		return []string{"agents", t.Agent, verb}
	case t.Kind != "":
		return []string{"kinds", t.Kind, verb}
	case t.Key != "":
		return []string{"keys", t.Key, verb}
	default:
		return []string{verb}
	}
}

// Pause keeps tasks from being started.
func (c *Client) Pause(ctx context.Context, t core.Target, p core.Pause) error {
	body := fields{}.with("reason", p.Reason).with("by", p.By).with("until", timeText(p.Until))
	if p.For != 0 {
		body["for"] = p.For.String()
	}
	_, err := post[struct{}](ctx, c, body.mark("ahead", p.Ahead).mark("all", t == core.Target{}), pathOf(t, "pause")...)
	return unknownTarget(err, t)
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, t core.Target) error {
	_, err := post[struct{}](ctx, c, fields{}.mark("all", t == core.Target{}), pathOf(t, "resume")...)
	return unknownTarget(err, t)
}

// unknownTarget is core's error about an agent or a kind that does not exist.
func unknownTarget(err error, t core.Target) error {
	if t.ID == "" && core.CodeOf(err) == core.CodeNotFound {
		return &operate.UnknownTargetError{Target: t}
	}
	return err
}

// Pauses is a page of all that is paused.
func (c *Client) Pauses(ctx context.Context, limit int, cursor string) ([]model.PauseInfo, string, error) {
	page, err := get[struct {
		Pauses []model.PauseInfo
		Next   string `json:"next_cursor"`
	}](ctx, c, pageOf(limit, cursor), "pauses")
	return page.Pauses, page.Next, err
}

// pageOf are the parameters of a page.
func pageOf(limit int, cursor string) url.Values {
	q := url.Values{}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return q
}

// Signal tells the tasks of an agent that wait for a key to continue.
func (c *Client) Signal(ctx context.Context, agent, key string, payload json.RawMessage) (model.Signalled, error) {
	body := fields{}
	if len(payload) > 0 {
		body["payload"] = payload
	}
	return post[model.Signalled](ctx, c, body, "signals", agent, key)
}

// Notice says that a subject was active.
func (c *Client) Notice(ctx context.Context, kind string, s core.Subject) (model.Noticed, error) {
	return post[model.Noticed](ctx, c, fields{}.with("kind", kind).with("user_id", s.User).with("device_id", s.Device).with("agent_id", s.Agent), "activity")
}

// Limits are all limits.
func (c *Client) Limits(ctx context.Context) ([]store.LimitUse, error) {
	answer, err := get[struct{ Limits []store.LimitUse }](ctx, c, nil, "limits")
	return answer.Limits, err
}

// SetLimits sets limits, each as a whole, one after the other.
func (c *Client) SetLimits(ctx context.Context, limits ...core.Limit) error {
	for i := range limits {
		if _, err := send[struct{}](ctx, c, &call{method: http.MethodPut, path: []string{"limits"}, body: ofLimit(&limits[i])}); err != nil {
			return err
		}
	}
	return nil
}

// ofLimit are the fields of a limit.
func ofLimit(l *core.Limit) fields {
	body := about(l.About).with("rate", l.RateText())
	if l.Concurrency != 0 {
		body["concurrency"] = l.Concurrency
	}
	if l.Adaptive {
		body["adaptive"] = true
	}
	if l.Burst != 0 { // core's -1 is a burst of none
		body["burst"] = max(l.Burst, 0)
	}
	return body
}

// about are the fields that name what a limit or a budget is about.
func about(t core.LimitTarget) fields {
	return fields{}.with("kind", t.Kind).with("limit_key", t.Key).with("each", string(t.Each))
}

// query are fields as parameters.
func (f fields) query() url.Values {
	q := url.Values{}
	for name, value := range f {
		q.Set(name, fmt.Sprint(value))
	}
	return q
}

// LimitOn is the limit on a target.
func (c *Client) LimitOn(ctx context.Context, on core.LimitTarget) (store.LimitUse, error) {
	all, err := c.Limits(ctx)
	for i := range all {
		if all[i].About == on {
			return all[i], nil
		}
	}
	if err == nil {
		err = core.ErrNotFound
	}
	return store.LimitUse{}, err
}

// LiftLimit lifts a limit.
func (c *Client) LiftLimit(ctx context.Context, on core.LimitTarget) error {
	_, err := send[struct{}](ctx, c, &call{method: http.MethodDelete, path: []string{"limits"}, query: about(on).query()})
	return err
}

// Budgets are all budgets.
func (c *Client) Budgets(ctx context.Context) ([]store.BudgetUse, error) {
	answer, err := get[struct{ Budgets []store.BudgetUse }](ctx, c, nil, "budgets")
	return answer.Budgets, err
}

// SetBudgets sets budgets, each as a whole, one after the other.
func (c *Client) SetBudgets(ctx context.Context, budgets ...core.Budget) error {
	for i := range budgets {
		if _, err := send[struct{}](ctx, c, &call{method: http.MethodPut, path: []string{"budgets"}, body: allOfBudget(&budgets[i])}); err != nil {
			return err
		}
	}
	return nil
}

// allOfBudget are the fields of a budget.
func allOfBudget(b *core.Budget) fields {
	body := ofBudget(b.About).with("zone", b.Zone).with("then", string(b.Then))
	body["amount"] = b.Amount
	return body
}

// ofBudget are the fields that name a budget.
func ofBudget(t core.BudgetTarget) fields {
	return about(t.LimitTarget).with("unit", t.Unit).with("per", string(t.Per))
}

// BudgetOn is the budget of a target.
func (c *Client) BudgetOn(ctx context.Context, on core.BudgetTarget) (store.BudgetUse, error) {
	all, err := c.Budgets(ctx)
	for i := range all {
		if all[i].About == on {
			return all[i], nil
		}
	}
	if err == nil {
		err = core.ErrNotFound
	}
	return store.BudgetUse{}, err
}

// LiftBudget lifts a budget.
func (c *Client) LiftBudget(ctx context.Context, on core.BudgetTarget) error {
	_, err := send[struct{}](ctx, c, &call{method: http.MethodDelete, path: []string{"budgets"}, query: ofBudget(on).query()})
	return err
}
