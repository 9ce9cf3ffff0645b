package remote

// The whole store, and the server itself.

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Stats are the counters of the whole store.
func (c *Client) Stats(ctx context.Context) (inspect.Stats, error) {
	return get[inspect.Stats](ctx, c, nil, "stats")
}

// Window is what ran within the last time.
func (c *Client) Window(ctx context.Context, d time.Duration) (inspect.Window, error) {
	return get[inspect.Window](ctx, c, url.Values{"window": {d.String()}}, "stats")
}

// DescribeKinds are all kinds, as the server knows them.
func (c *Client) DescribeKinds(ctx context.Context) (inspect.KindList, error) {
	return get[inspect.KindList](ctx, c, nil, "kinds")
}

// Processes are those that have said lately what they run.
func (c *Client) Processes(ctx context.Context) ([]model.Process, error) {
	answer, err := get[struct{ Processes []model.Process }](ctx, c, nil, "processes")
	return answer.Processes, err
}

// Agents is a page of the agents that have live tasks.
func (c *Client) Agents(ctx context.Context, limit int, cursor string) ([]model.AgentStats, string, error) {
	page, err := get[struct {
		Agents []model.AgentStats
		Next   string `json:"next_cursor"`
	}](ctx, c, pageOf(limit, cursor), "agents")
	return page.Agents, page.Next, err
}

// Audit walks through all live tasks, step by step.
func (c *Client) Audit(ctx context.Context, o inspect.AuditOptions) (inspect.AuditReport, error) {
	var sum inspect.AuditReport
	body := fields{}
	if o.Repair {
		body["repair"] = true
	}
	for {
		step, err := post[struct {
			Tasks, Found, Repairable int
			Faults                   []store.Fault
			Next                     string `json:"next_cursor"`
		}](ctx, c, body, "audit")
		if err != nil {
			return sum, err
		}
		sum.Tasks, sum.Found, sum.Repairable = sum.Tasks+step.Tasks, sum.Found+step.Found, sum.Repairable+step.Repairable
		sum.Faults = append(sum.Faults, step.Faults[:min(len(step.Faults), inspect.MaxFaults-len(sum.Faults))]...)
		if o.Progress != nil {
			o.Progress(sum)
		}
		if step.Next == "" {
			return sum, nil
		}
		body["cursor"] = step.Next
	}
}

// Diagnose is what the server finds wrong with its store and with itself.
func (c *Client) Diagnose(ctx context.Context) ([]inspect.Finding, error) {
	answer, err := get[struct{ Checks []inspect.Finding }](ctx, c, nil, "doctor")
	return answer.Checks, err
}

// RunDue has the server run what is due, with its own handlers. Runs that failed are part of the report, and an error too.
func (c *Client) RunDue(ctx context.Context, scope core.Scope) (core.Report, error) {
	body := fields{}
	if scope.Agents == nil {
		body["all"] = true
	} else {
		body["agent_ids"] = scope.Agents
	}
	if scope.MaxTasks > 0 {
		body["max"] = scope.MaxTasks
	}
	if scope.MaxDuration > 0 {
		body["timeout_ms"] = scope.MaxDuration.Milliseconds()
	}
	out, err := send[core.Report](ctx, c, &call{method: http.MethodPost, path: []string{"run-due"}, body: body, within: workWithin})
	if err == nil && len(out.Failures) > 0 {
		err = &core.RunsError{Failures: out.Failures, Count: max(out.Failed+out.Retried, len(out.Failures))}
	}
	if err == nil && len(out.Away) > 0 {
		err = &core.AwayError{Partitions: out.Away, Err: errors.New("see the log of the server")}
	}
	return out, err
}
