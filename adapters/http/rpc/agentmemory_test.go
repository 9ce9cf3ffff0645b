package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	pb "github.com/seed-6f6f2c11/duly/adapters/http/rpc/agentmemorypb"
	"github.com/seed-6f6f2c11/duly/core"
)

// The calls of agent-memory: who may make them, and what they answer where they cannot. internal/cli has a client that knows agent-memory's description alone.

// memory calls agent-memory's service.
func memory[In, Out any](t *testing.T, f *fixture, token, call string, m *In) (*Out, error) {
	t.Helper()
	client := connect.NewClient[In, Out](web(t, token, true), f.url+"/memory.MemoryService/"+call, connect.WithGRPC())
	answer, err := client.CallUnary(t.Context(), ask(m))
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// each makes every call, and returns their errors.
func each(t *testing.T, f *fixture, token string) map[string]error {
	t.Helper()
	out := map[string]error{}
	_, out["status"] = memory[pb.GetSchedulerStatusRequest, pb.GetSchedulerStatusResponse](t, f, token, "GetSchedulerStatus", &pb.GetSchedulerStatusRequest{})
	_, out["pause"] = memory[pb.PauseJobRequest, pb.PauseJobResponse](t, f, token, "PauseJob", &pb.PauseJobRequest{JobName: "digest"})
	_, out["resume"] = memory[pb.ResumeJobRequest, pb.ResumeJobResponse](t, f, token, "ResumeJob", &pb.ResumeJobRequest{JobName: "digest"})
	return out
}

// What is no matter of a job has a code: no credential, no right to the default agent, none set, a store that fails, another call of the service.
func TestCallsOfAgentMemoryThatAreRefused(t *testing.T) {
	t.Parallel()
	tokens := httpadapter.Config{Scoped: []httpadapter.Token{
		{Token: "ops", Grant: httpadapter.Grant{Name: "ops", Agents: []string{"platform"}}}, {Token: "ann", Grant: httpadapter.Grant{Name: "ann", Agents: []string{"ann"}}},
	}}
	f := setupAs(t, tokens, "platform")
	f.job(t, "platform", "digest")
	expect := func(f *fixture, token string, code connect.Code) {
		t.Helper()
		for call, err := range each(t, f, token) {
			assert.Equal(t, code, connect.CodeOf(err), "%s: %v", call, err)
		}
	}
	before := f.calls.Load()
	expect(f, "", connect.CodeUnauthenticated)
	expect(f, "ann", connect.CodePermissionDenied)
	assert.Equal(t, before, f.calls.Load(), "the store is not asked")
	for call, err := range each(t, f, "ops") {
		require.NoError(t, err, call)
	}
	down := errors.New("hunter2")
	f.fail.Store(&down)
	expect(f, "ops", connect.CodeInternal)
	f.fail.Store(nil)
	_, err := memory[pb.PauseJobRequest, pb.PauseJobResponse](t, f, "ops", "IngestEvent", &pb.PauseJobRequest{})
	assert.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err))

	f = setup(t, httpadapter.Config{})
	expect(f, "", connect.CodeFailedPrecondition)
	assert.Zero(t, f.calls.Load())
}

// All jobs are in one answer, however many, and outcomes have agent-memory's words.
func TestStatusOfAgentMemory(t *testing.T) {
	t.Parallel()
	f := setupAs(t, httpadapter.Config{}, "platform")
	results := map[string]pb.JobResultStatus{
		"ok": pb.JobResultStatus_JOB_RESULT_STATUS_SUCCESS, "bad": pb.JobResultStatus_JOB_RESULT_STATUS_FAILED,
		"later": pb.JobResultStatus_JOB_RESULT_STATUS_UNSPECIFIED,
	}
	core.Handle(f.scheduler, "bad", func(context.Context, *core.Task[any]) error { return core.SkipRetry(errors.New("broken")) })
	core.Handle(f.scheduler, "later", func(context.Context, *core.Task[any]) error { return core.Snooze(time.Hour) })
	tasks := make([]core.NewTask, 0, 1203)
	for i := range cap(tasks) - len(results) {
		tasks = append(tasks, core.NewTask{Agent: "platform", ID: fmt.Sprint("job-", i), Kind: "ok", Every: time.Hour, Delay: time.Hour})
	}
	for kind := range results {
		tasks = append(tasks, core.NewTask{Agent: "platform", ID: kind, Kind: kind, Every: time.Hour})
	}
	for chunk := range slices.Chunk(tasks, 1000) {
		_, err := f.scheduler.Submit(t.Context(), chunk...)
		require.NoError(t, err)
	}
	_, err := f.scheduler.RunDueTasks(t.Context(), []string{"platform"})
	require.ErrorContains(t, err, "broken")
	status, err := memory[pb.GetSchedulerStatusRequest, pb.GetSchedulerStatusResponse](t, f, "", "GetSchedulerStatus", &pb.GetSchedulerStatusRequest{})
	require.NoError(t, err)
	assert.True(t, status.GetSchedulerRunning())
	jobs := map[string]*pb.JobStatusProto{}
	for _, j := range status.GetJobs() {
		jobs[j.GetJobName()] = j
	}
	require.Len(t, jobs, len(tasks))
	require.Len(t, status.GetJobs(), len(tasks))
	for name, want := range results {
		assert.Equal(t, want, jobs[name].GetLastResult(), name)
		assert.EqualValues(t, 1, jobs[name].GetRunCount(), name)
		assert.Equal(t, name == "bad", jobs[name].LastError != nil, name)
	}
}
