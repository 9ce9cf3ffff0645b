package rpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Lists of jobs, as core pages them.

// list is a page of the jobs of one agent, or of all.
func (s *service) list(ctx context.Context, r *schedulerpb.ListJobsRequest) ([]*schedulerpb.JobStatus, string, error) {
	l := core.List{Agent: r.GetAgentId(), Kind: r.GetKind(), Limit: int(r.GetLimit()), Cursor: r.GetCursor(), Jobs: true}
	if l.Limit > inspect.MaxPage {
		return nil, "", &core.InvalidError{Field: "limit", Reason: "must be at most 1000"}
	}
	if err := s.scheduler.Authorize(ctx, core.Access{Action: model.ActionRead, Agent: l.Agent, Kind: l.Kind}); err != nil {
		return nil, "", err
	}
	tasks, next, err := s.scheduler.Tasks(ctx, l)
	return statuses(nil, tasks), next, err
}

// statuses adds tasks to a page.
func statuses(out []*schedulerpb.JobStatus, tasks []core.TaskInfo) []*schedulerpb.JobStatus {
	for i := range tasks {
		out = append(out, statusOf(&tasks[i]))
	}
	return out
}

// statusOf is a task as the service shows it.
func statusOf(t *core.TaskInfo) *schedulerpb.JobStatus {
	j := &schedulerpb.JobStatus{
		JobName: t.ID, AgentId: t.Agent, Kind: t.Kind, Status: string(t.Status), CronExpr: t.Cron, Zone: t.Zone,
		LastRun: stamp(t.LastRun), LastDurationMs: count(t.LastDuration.Milliseconds()), LastResult: string(t.LastOutcome), LastError: t.LastError,
		NextRun: stamp(t.NextRun), UpdatedAt: stamp(t.UpdatedAt), RunCount: count(t.RunCount), ErrorCount: count(t.ErrorCount), SkipCount: count(t.SkipCount),
		IsRunning: t.Status == core.StatusInProgress, IsPaused: len(t.Pauses) > 0,
		ConsecutiveFailures: uint32(min(max(t.ConsecutiveFailures, 0), 1<<31)),
	}
	if t.Every > 0 {
		j.Every = durationpb.New(t.Every)
	}
	return j
}

// stamp is a time; none if it is zero.
func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// count is a counter, which is never negative.
func count(n int64) uint64 { return uint64(max(n, 0)) }
