package remote

// Agents: their profiles, and all of an agent at once.

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// Profile is the profile of an agent.
func (c *Client) Profile(ctx context.Context, agent string) (core.Profile, error) {
	return get[core.Profile](ctx, c, nil, "agents", agent)
}

// Profiles is a page of the profiles of all agents.
func (c *Client) Profiles(ctx context.Context, cursor string, limit int) ([]core.Profile, string, error) {
	page, err := get[struct {
		Profiles []core.Profile
		Next     string `json:"next_cursor"`
	}](ctx, c, pageOf(limit, cursor), "profiles")
	return page.Profiles, page.Next, err
}

// SetProfile sets the profile of an agent as a whole.
func (c *Client) SetProfile(ctx context.Context, p core.Profile) (core.Profile, error) {
	body := fields{}.with("zone", p.Zone)
	maps.Copy(body, fields{"quiet": p.Quiet, "urgent": p.Urgent, "labels": p.Labels})
	var limits, budgets []fields
	for i := range p.Limits {
		limits = append(limits, ofLimit(&p.Limits[i]))
	}
	for i := range p.Budgets {
		budgets = append(budgets, allOfBudget(&p.Budgets[i]))
	}
	body["limits"], body["budgets"] = limits, budgets
	return send[core.Profile](ctx, c, &call{method: http.MethodPut, path: []string{"agents", p.Agent}, body: body, within: workWithin})
}

// DeleteProfile deletes the profile of an agent.
func (c *Client) DeleteProfile(ctx context.Context, agent string) error {
	_, err := send[struct{}](ctx, c, &call{method: http.MethodDelete, path: []string{"agents", agent, "profile"}, within: workWithin})
	return err
}

// Forget deletes all of an agent. The server does not say how far it is meanwhile.
func (c *Client) Forget(ctx context.Context, agent string, _ func(operate.Forgotten)) (operate.Forgotten, error) {
	return c.forget(ctx, agent, nil)
}

// CountForget counts what Forget would delete.
func (c *Client) CountForget(ctx context.Context, agent string) (operate.Forgotten, error) {
	return c.forget(ctx, agent, url.Values{"dry_run": {"true"}})
}

func (c *Client) forget(ctx context.Context, agent string, query url.Values) (operate.Forgotten, error) {
	return send[operate.Forgotten](ctx, c, &call{method: http.MethodDelete, path: []string{"agents", agent}, query: query, within: workWithin})
}

// Export writes all of an agent as lines of JSON. What it returns has no number of tasks, as the lines are not looked at.
func (c *Client) Export(ctx context.Context, agent string, w io.Writer) (int, error) {
	return 0, c.exchange(ctx, &call{method: http.MethodGet, path: []string{"agents", agent, "export"}, within: workWithin}, func(res *http.Response) error {
		_, err := io.Copy(w, res.Body)
		return err
	})
}
