package remote

// The whole store, and the server itself.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// state is the calls about the whole store.
type state struct{ *connection }

// Stats are the counters of the whole store.
func (c state) Stats(ctx context.Context) (inspect.Stats, error) {
	return send(ctx, c.connection, operation.Stats, operation.Window{})
}

// Window is what ran within the last time.
func (c state) Window(ctx context.Context, d time.Duration) (inspect.Window, error) {
	return send(ctx, c.connection, operation.WindowStats, operation.Window{Window: d.String()})
}

// DescribeKinds are all kinds, as the server knows them.
func (c state) DescribeKinds(ctx context.Context) (inspect.KindList, error) {
	return send(ctx, c.connection, operation.Kinds, operation.Empty{})
}

// Processes are those that have said lately what they run.
func (c state) Processes(ctx context.Context) ([]model.Process, error) {
	answer, err := send(ctx, c.connection, operation.ListProcesses, operation.Empty{})
	return answer.Processes, err
}

// Agents is a page of the agents that have live tasks.
func (c state) Agents(ctx context.Context, limit int, cursor string) ([]model.AgentStats, string, error) {
	page, err := send(ctx, c.connection, operation.ListAgents, operation.Page{Limit: limit, Cursor: cursor})
	return page.Agents, page.Next, err
}

// Audit walks through all live tasks, step by step.
func (c state) Audit(ctx context.Context, o inspect.AuditOptions) (inspect.AuditReport, error) {
	var sum inspect.AuditReport
	for from := ""; ; {
		step, err := send(ctx, c.connection, operation.AuditStep, operation.Audit{Repair: o.Repair, Cursor: from})
		if err != nil {
			return sum, err
		}
		sum.Tasks, sum.Found, sum.Repairable = sum.Tasks+step.Tasks, sum.Found+step.Found, sum.Repairable+step.Repairable
		sum.Faults = append(sum.Faults, step.Faults[:min(len(step.Faults), inspect.MaxFaults-len(sum.Faults))]...)
		if o.Progress != nil {
			o.Progress(sum)
		}
		if from = step.Next; from == "" {
			return sum, nil
		}
	}
}

// Diagnose is what the server finds wrong with its store and with itself.
func (c state) Diagnose(ctx context.Context) ([]inspect.Finding, error) {
	answer, err := send(ctx, c.connection, operation.Doctor, operation.Empty{})
	return answer.Checks, err
}

// RunDue has the server run what is due, with its own handlers. Runs that failed are part of the report, and an error too.
func (c state) RunDue(ctx context.Context, scope core.Scope) (core.Report, error) {
	out, err := send(ctx, c.connection, operation.RunDue, operation.Run{
		All: scope.Agents == nil, Agents: scope.Agents, Max: scope.MaxTasks, Timeout: scope.MaxDuration.Milliseconds(),
	})
	if err == nil && len(out.Failures) > 0 {
		err = &core.RunsError{Failures: out.Failures, Count: max(out.Failed+out.Retried, len(out.Failures))}
	}
	if err == nil && len(out.Away) > 0 {
		err = &core.AwayError{Partitions: out.Away, Err: errors.New("see the log of the server")}
	}
	return out, err
}
