package rpc

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"connectrpc.com/connect"

	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// The calls. Each is checked, then authorized, and only then asks the store.

// service answers the calls of SchedulerService.
type service struct {
	scheduler *core.Scheduler
	config    Config
}

// A call that the description gains shows here.
var _ schedulerpb.SchedulerServiceHandler = (*service)(nil)

// failed is an error for the client. One of this side is logged, unless the client has gone away or its time is over.
func (s *service) failed(ctx context.Context, procedure string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return connect.NewError(connect.CodeCanceled, ctx.Err())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, ctx.Err())
	}
	if problem.Of(err).Status >= http.StatusInternalServerError {
		s.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a call failed", slog.String("procedure", procedure), slog.Any("err", err))
	}
	return coded(err)
}

// named is what the requests about one job have.
type named interface {
	GetAgentId() string
	GetJobName() string
}

// job is the target of a request. Without a name it would be the whole agent.
func (s *service) job(ctx context.Context, action model.Action, r named) (core.Target, error) {
	t := core.Target{Agent: cmp.Or(r.GetAgentId(), s.config.DefaultAgent), ID: r.GetJobName()}
	switch {
	case t.Agent == "":
		return t, &core.InvalidError{Field: "agent_id", Reason: "is required: this server has no default agent"}
	case t.ID == "":
		return t, &core.InvalidError{Field: "job_name", Reason: "is required: it is the id of the task"}
	}
	return t, s.scheduler.Authorize(ctx, core.Access{Action: action, Agent: t.Agent, ID: t.ID})
}

// control applies an order to one job, and returns the job after it.
func (s *service) control(ctx context.Context, procedure string, r named, order func(t core.Target) error) (*schedulerpb.JobStatus, error) {
	t, err := s.job(ctx, model.ActionControl, r)
	if err == nil {
		err = order(t)
	}
	var info core.TaskInfo
	if err == nil {
		info, err = s.scheduler.Task(ctx, t.Agent, t.ID)
	}
	if err != nil {
		return nil, s.failed(ctx, procedure, err)
	}
	return statusOf(&info), nil
}

// PauseJob keeps a job from being started.
func (s *service) PauseJob(ctx context.Context, r *connect.Request[schedulerpb.PauseJobRequest]) (*connect.Response[schedulerpb.PauseJobResponse], error) {
	job, err := s.control(ctx, r.Spec().Procedure, r.Msg, func(t core.Target) error {
		p, err := pauseOf(r.Msg)
		if err != nil {
			return err
		}
		return s.scheduler.Pause(ctx, t, p)
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&schedulerpb.PauseJobResponse{Success: true, Job: job}), nil
}

// pauseOf is the pause of a request. A duration of zero would be a pause without an end.
func pauseOf(m *schedulerpb.PauseJobRequest) (core.Pause, error) {
	p := core.Pause{By: m.GetBy(), Reason: m.GetReason()}
	if m.GetUntil() != nil {
		// The first moment of the year 1 is core's word for never.
		if err := m.GetUntil().CheckValid(); err != nil || m.GetUntil().AsTime().IsZero() {
			return p, &core.InvalidError{Field: "until", Reason: "must be a time between the years 1 and 9999"}
		}
		p.Until = m.GetUntil().AsTime()
	}
	if m.GetFor() != nil {
		if err := m.GetFor().CheckValid(); err != nil || m.GetFor().AsDuration() <= 0 {
			return p, &core.InvalidError{Field: "for", Reason: "must be longer than 0s: leave it out for a pause without an end"}
		}
		p.For = m.GetFor().AsDuration()
	}
	return p, nil
}

// ResumeJob ends the pause of a job.
func (s *service) ResumeJob(ctx context.Context, r *connect.Request[schedulerpb.ResumeJobRequest]) (*connect.Response[schedulerpb.ResumeJobResponse], error) {
	job, err := s.control(ctx, r.Spec().Procedure, r.Msg, func(t core.Target) error { return s.scheduler.Resume(ctx, t) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&schedulerpb.ResumeJobResponse{Success: true, Job: job}), nil
}

// TriggerJob makes a job due now.
func (s *service) TriggerJob(ctx context.Context, r *connect.Request[schedulerpb.TriggerJobRequest]) (*connect.Response[schedulerpb.TriggerJobResponse], error) {
	job, err := s.control(ctx, r.Spec().Procedure, r.Msg, func(t core.Target) error {
		_, err := s.scheduler.RunNow(ctx, t.Agent, t.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&schedulerpb.TriggerJobResponse{Success: true, Job: job}), nil
}

// ListJobs returns a page of jobs.
func (s *service) ListJobs(ctx context.Context, r *connect.Request[schedulerpb.ListJobsRequest]) (*connect.Response[schedulerpb.ListJobsResponse], error) {
	jobs, next, err := s.list(ctx, r.Msg)
	if err != nil {
		return nil, s.failed(ctx, r.Spec().Procedure, err)
	}
	return connect.NewResponse(&schedulerpb.ListJobsResponse{Jobs: jobs, NextCursor: next}), nil
}

// GetSchedulerStatus returns whether this process can run tasks, and the first page of jobs.
func (s *service) GetSchedulerStatus(
	ctx context.Context, r *connect.Request[schedulerpb.GetSchedulerStatusRequest],
) (*connect.Response[schedulerpb.GetSchedulerStatusResponse], error) {
	jobs, next, err := s.list(ctx, &schedulerpb.ListJobsRequest{AgentId: r.Msg.GetAgentId()})
	if err != nil {
		return nil, s.failed(ctx, r.Spec().Procedure, err)
	}
	return connect.NewResponse(&schedulerpb.GetSchedulerStatusResponse{SchedulerRunning: s.running(ctx), Jobs: jobs, NextCursor: next}), nil
}

// running reports whether this process can run tasks.
func (s *service) running(ctx context.Context) bool {
	own := s.scheduler.Ready()
	// Some partitions away stop the tasks of these alone.
	if _, away := errors.AsType[*core.AwayError](own); away {
		own = nil
	}
	return own == nil && s.config.Ready(ctx) == nil
}
