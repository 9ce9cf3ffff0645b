package mcp

import (
	"context"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// Orders: what changes a task that exists.

// target is one task. Without an id it would be the whole agent.
func target(agent, id string) (core.Target, error) {
	if id == "" {
		return core.Target{}, invalid("id", "is required: list_tasks has it")
	}
	return core.Target{Agent: agent, ID: id}, nil
}

// pause keeps a task from running, for a time or until it is resumed.
func (m *Server) pause(ctx context.Context, agent string, in *pauseArgs) (string, error) {
	t, err := target(agent, in.ID)
	if err != nil {
		return "", err
	}
	order := by(ctx, in.Reason)
	p := core.Pause{By: order.By, Reason: order.Reason}
	until := "until it is resumed"
	if in.For != "" {
		if p.For, err = inspect.ParseDuration(in.For); err != nil || p.For <= 0 {
			return "", invalid("for", "must be a duration such as 2h or 1d")
		}
		until = "for " + in.For
	}
	if err := m.scheduler.Pause(ctx, t, p); err != nil {
		return "", err
	}
	return fmt.Sprintf("Task %q is paused %s.", in.ID, until), nil
}

// resume ends the pause of a task.
func (m *Server) resume(ctx context.Context, agent string, in *taskArgs) (string, error) {
	t, err := target(agent, in.ID)
	if err == nil {
		err = m.scheduler.Resume(ctx, t)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Task %q is resumed.", in.ID), nil
}

// runNow makes a task due now.
func (m *Server) runNow(ctx context.Context, agent string, in *taskArgs) (string, error) {
	t, err := target(agent, in.ID)
	if err == nil {
		_, err = m.scheduler.RunNow(ctx, t.Agent, t.ID)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Task %q is due now; explain says how it goes.", in.ID), nil
}

// cancel ends a task for good.
func (m *Server) cancel(ctx context.Context, agent string, in *cancelArgs) (string, error) {
	t, err := target(agent, in.ID)
	if err != nil {
		return "", err
	}
	status, err := m.scheduler.Cancel(ctx, t.Agent, t.ID, by(ctx, in.Reason))
	switch {
	case err != nil:
		return "", err
	case status == core.StatusInProgress:
		return fmt.Sprintf("Task %q runs, and ends with this run.", in.ID), nil
	default:
		return fmt.Sprintf("Task %q is %s.", in.ID, status), nil
	}
}

// signal has the tasks of the agent continue that wait for a key.
func (m *Server) signal(ctx context.Context, agent string, in *signalArgs) (string, error) {
	out, err := m.scheduler.Signal(ctx, agent, in.Key, some(in.Payload))
	switch {
	case err != nil:
		return "", err
	case out.Kept:
		return fmt.Sprintf("No task waits for %q yet: the signal is kept for the first that does, for %d hours.", in.Key, int(core.SignalKept.Hours())), nil
	default:
		return fmt.Sprintf("%d %s on.", out.Resumed, map[bool]string{true: "task goes", false: "tasks go"}[out.Resumed == 1]), nil
	}
}
