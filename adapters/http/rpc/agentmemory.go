package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	pb "github.com/seed-6f6f2c11/duly/adapters/http/rpc/agentmemorypb"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// The scheduler calls of agent-memory, under its own name, so that its clients work unchanged. They name a job alone and no agent, so
// all is about the default agent.

// memoryService is the name of agent-memory's service. Its other calls are unimplemented here.
const memoryService = "memory.MemoryService"

// agentMemory answers these calls.
type agentMemory struct{ *service }

// mount adds the calls to a handler.
func (m agentMemory) mount(mux *http.ServeMux, options []connect.HandlerOption) {
	const prefix = "/" + memoryService + "/"
	mux.Handle(prefix+"GetSchedulerStatus", connect.NewUnaryHandler(prefix+"GetSchedulerStatus", m.GetSchedulerStatus, options...))
	mux.Handle(prefix+"PauseJob", connect.NewUnaryHandler(prefix+"PauseJob", m.PauseJob, options...))
	mux.Handle(prefix+"ResumeJob", connect.NewUnaryHandler(prefix+"ResumeJob", m.ResumeJob, options...))
}

// errNoAgent says that the calls need a setting. It is no fault of the request, which cannot name an agent.
var errNoAgent = errors.New("this server has no default agent: set default_agent")

// PauseJob keeps a job from being started, without an end.
func (m agentMemory) PauseJob(ctx context.Context, r *connect.Request[pb.PauseJobRequest]) (*connect.Response[pb.PauseJobResponse], error) {
	why, err := m.order(ctx, r.Spec().Procedure, r.Msg.GetJobName(), func(t core.Target) error { return m.scheduler.Pause(ctx, t, core.Pause{}) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.PauseJobResponse{Success: why == nil, Error: why}), nil
}

// ResumeJob ends the pause of a job.
func (m agentMemory) ResumeJob(ctx context.Context, r *connect.Request[pb.ResumeJobRequest]) (*connect.Response[pb.ResumeJobResponse], error) {
	why, err := m.order(ctx, r.Spec().Procedure, r.Msg.GetJobName(), func(t core.Target) error { return m.scheduler.Resume(ctx, t) })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.ResumeJobResponse{Success: why == nil, Error: why}), nil
}

// order carries out an order for one job. As agent-memory does, it answers why a job cannot be had; all else that goes wrong, such as a missing
// right or a store that is away, is an error with a code.
func (m agentMemory) order(ctx context.Context, procedure, job string, order func(t core.Target) error) (why *string, err error) {
	if m.config.DefaultAgent == "" {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errNoAgent)
	}
	t, err := m.job(ctx, model.ActionControl, &schedulerpb.PauseJobRequest{JobName: job})
	if err == nil {
		err = order(t)
	}
	if err == nil {
		return nil, nil //nolint:nilnil // neither a reason nor an error: it was done
	}
	switch p := problem.Of(err); p.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict:
		return new(p.Detail), nil
	}
	return nil, m.failed(ctx, procedure, err)
}

// GetSchedulerStatus returns whether this process can run tasks, and all jobs of the default agent: agent-memory has no pages.
func (m agentMemory) GetSchedulerStatus(
	ctx context.Context, r *connect.Request[pb.GetSchedulerStatusRequest],
) (*connect.Response[pb.GetSchedulerStatusResponse], error) {
	if m.config.DefaultAgent == "" {
		return nil, connect.NewError(connect.CodeFailedPrecondition, errNoAgent)
	}
	answer := &pb.GetSchedulerStatusResponse{SchedulerRunning: m.running(ctx)}
	l := core.List{Agent: m.config.DefaultAgent, Limit: inspect.MaxPage, Jobs: true}
	err := m.scheduler.Authorize(ctx, core.Access{Action: model.ActionRead, Agent: l.Agent})
	for more := true; more && err == nil; more = l.Cursor != "" {
		var page []core.TaskInfo
		page, l.Cursor, err = m.scheduler.Tasks(ctx, l)
		for i := range page {
			answer.Jobs = append(answer.Jobs, memoryJob(&page[i]))
		}
	}
	if err != nil {
		return nil, m.failed(ctx, r.Spec().Procedure, err)
	}
	return connect.NewResponse(answer), nil
}

// memoryJob is a task as agent-memory shows a job.
func memoryJob(t *core.TaskInfo) *pb.JobStatusProto {
	j := &pb.JobStatusProto{
		JobName: t.ID, CronExpr: t.Cron, LastRunMs: millis(t.LastRun), LastDurationMs: t.LastDuration.Milliseconds(), LastResult: memoryResult(t.LastOutcome),
		NextRunMs: millis(t.NextRun), RunCount: count(t.RunCount), ErrorCount: count(t.ErrorCount),
		IsRunning: t.Status == core.StatusInProgress, IsPaused: len(t.Pauses) > 0, LastRunMetadata: members(t.Result),
	}
	if t.LastError != "" {
		j.LastError = &t.LastError
	}
	return j
}

// memoryResult is agent-memory's word for an outcome. It has none for runs after which the same occurrence continues.
func memoryResult(o model.Outcome) pb.JobResultStatus {
	switch o {
	case model.OutcomeSuccess:
		return pb.JobResultStatus_JOB_RESULT_STATUS_SUCCESS
	case model.OutcomeFailed, model.OutcomeCrashed, model.OutcomeCancelled:
		return pb.JobResultStatus_JOB_RESULT_STATUS_FAILED
	case model.OutcomeSkipped:
		return pb.JobResultStatus_JOB_RESULT_STATUS_SKIPPED
	default:
		return pb.JobResultStatus_JOB_RESULT_STATUS_UNSPECIFIED
	}
}

// members are those of a JSON object, as texts: a string is its value, all else is its JSON. A result that is no object has none.
func members(result json.RawMessage) map[string]string {
	var object map[string]json.RawMessage
	if json.Unmarshal(result, &object) != nil {
		return nil
	}
	out := make(map[string]string, len(object))
	for name, value := range object {
		var text string
		if value[0] != '"' || json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		out[name] = text
	}
	return out
}

// millis is a time in milliseconds since 1970; zero for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
