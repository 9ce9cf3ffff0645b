package rpc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/rpc/schedulerpb"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Every call, by each protocol, does what it says to the task that it names and to no other.
func TestEachCall(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}})
	for name, client := range f.clients(t, "root") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, agent := t.Context(), "ann-"+name
			f.job(t, agent, "digest")
			f.job(t, agent, "other")
			_, err := f.scheduler.Submit(ctx, core.NewTask{Agent: agent, ID: "poll", Kind: "ok", Every: time.Hour})
			require.NoError(t, err)

			status, err := client.GetSchedulerStatus(ctx, ask(&schedulerpb.GetSchedulerStatusRequest{AgentId: agent}))
			require.NoError(t, err)
			assert.True(t, status.Msg.GetSchedulerRunning())
			require.Len(t, status.Msg.GetJobs(), 3)
			assert.Empty(t, status.Msg.GetNextCursor())
			i := slices.IndexFunc(status.Msg.GetJobs(), func(j *schedulerpb.JobStatus) bool { return j.GetJobName() == "digest" })
			digest := status.Msg.GetJobs()[i]
			assert.Equal(t, []string{agent, "ok", "waiting", "0 9 * * *", "Europe/Berlin"},
				[]string{digest.GetAgentId(), digest.GetKind(), digest.GetStatus(), digest.GetCronExpr(), digest.GetZone()})
			info, err := f.scheduler.Task(ctx, agent, "digest")
			require.NoError(t, err)
			assert.Equal(t, info.NextRun.UnixMilli(), digest.GetNextRun().AsTime().UnixMilli())
			assert.Nil(t, digest.GetLastRun())

			paused, err := client.PauseJob(ctx, ask(&schedulerpb.PauseJobRequest{AgentId: agent, JobName: "digest", Reason: "quiet", By: "ann", For: durationpb.New(time.Hour)}))
			require.NoError(t, err)
			assert.True(t, paused.Msg.GetSuccess())
			assert.True(t, paused.Msg.GetJob().GetIsPaused())
			info, err = f.scheduler.Task(ctx, agent, "digest")
			require.NoError(t, err)
			assert.Equal(t, core.Order{By: "a credential without a name", Reason: "quiet", Note: "ann"}, info.Pauses[0].Order)
			assert.False(t, info.Pauses[0].Until.IsZero())
			other, err := f.scheduler.Task(ctx, agent, "other")
			require.NoError(t, err)
			assert.Empty(t, other.Pauses)

			resumed, err := client.ResumeJob(ctx, ask(&schedulerpb.ResumeJobRequest{AgentId: agent, JobName: "digest"}))
			require.NoError(t, err)
			assert.True(t, resumed.Msg.GetSuccess())
			assert.False(t, resumed.Msg.GetJob().GetIsPaused())

			triggered, err := client.TriggerJob(ctx, ask(&schedulerpb.TriggerJobRequest{AgentId: agent, JobName: "digest"}))
			require.NoError(t, err)
			assert.True(t, triggered.Msg.GetSuccess())
			report, err := f.scheduler.RunDueTasks(ctx, []string{agent})
			require.NoError(t, err)
			assert.Equal(t, 2, report.Completed, "digest, and poll, which is due at once")

			list, err := client.ListJobs(ctx, ask(&schedulerpb.ListJobsRequest{AgentId: agent, Kind: "ok", Limit: 1000}))
			require.NoError(t, err)
			require.Len(t, list.Msg.GetJobs(), 3)
			for _, j := range list.Msg.GetJobs() {
				ran := j.GetJobName() != "other"
				assert.Equal(t, ran, j.GetRunCount() == 1, j)
				assert.Equal(t, ran, j.GetLastRun() != nil && j.GetLastResult() == "success", j)
				assert.Equal(t, j.GetJobName() == "poll", j.GetEvery().AsDuration() == time.Hour, j)
			}
		})
	}
}

// What makes no sense, what does not exist and what the caller may not do are told apart, and the store is not asked about the first and
// the last.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		{Token: "reader", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}},
		{Token: "ticker", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}}},
		{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}},
	}})
	f.job(t, "ann", "digest")
	f.job(t, "bob", "digest")
	pause := func(m *schedulerpb.PauseJobRequest) func(schedulerpb.SchedulerServiceClient) error {
		return func(c schedulerpb.SchedulerServiceClient) error {
			_, err := c.PauseJob(t.Context(), ask(m))
			return err
		}
	}
	resume := func(agent, id string) func(schedulerpb.SchedulerServiceClient) error {
		return func(c schedulerpb.SchedulerServiceClient) error {
			_, err := c.ResumeJob(t.Context(), ask(&schedulerpb.ResumeJobRequest{AgentId: agent, JobName: id}))
			return err
		}
	}
	trigger := func(agent, id string) func(schedulerpb.SchedulerServiceClient) error {
		return func(c schedulerpb.SchedulerServiceClient) error {
			_, err := c.TriggerJob(t.Context(), ask(&schedulerpb.TriggerJobRequest{AgentId: agent, JobName: id}))
			return err
		}
	}
	list := func(m *schedulerpb.ListJobsRequest) func(schedulerpb.SchedulerServiceClient) error {
		return func(c schedulerpb.SchedulerServiceClient) error {
			_, err := c.ListJobs(t.Context(), ask(m))
			return err
		}
	}
	status := func(agent string) func(schedulerpb.SchedulerServiceClient) error {
		return func(c schedulerpb.SchedulerServiceClient) error {
			_, err := c.GetSchedulerStatus(t.Context(), ask(&schedulerpb.GetSchedulerStatusRequest{AgentId: agent}))
			return err
		}
	}
	for _, c := range []struct {
		token string
		call  func(schedulerpb.SchedulerServiceClient) error
		code  connect.Code
		says  string
		asks  bool // the store
	}{
		{"root", pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "none"}), connect.CodeNotFound, "not found", true},
		{"root", resume("ann", "none"), connect.CodeNotFound, "not found", true},
		{"root", trigger("none", "digest"), connect.CodeNotFound, "not found", true},
		{"root", pause(&schedulerpb.PauseJobRequest{JobName: "digest"}), connect.CodeInvalidArgument, "agent_id is required", false},
		{"root", pause(&schedulerpb.PauseJobRequest{AgentId: "ann"}), connect.CodeInvalidArgument, "job_name is required", false},
		{"root", resume("ann", ""), connect.CodeInvalidArgument, "job_name is required", false},
		{"root", trigger("ann", ""), connect.CodeInvalidArgument, "job_name is required", false},
		{"root", trigger("ann", "a\x00b"), connect.CodeInvalidArgument, "id ", false},
		{"root", pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "digest", For: &durationpb.Duration{}}), connect.CodeInvalidArgument, "for must be longer than 0s", false},
		{"root", pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "digest", For: durationpb.New(-day)}), connect.CodeInvalidArgument, "for must be longer than 0s", false},
		{"root", pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "digest", Until: timestamppb.New(time.Time{})}), connect.CodeInvalidArgument, "until must be", false},
		{"root", pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "digest", Reason: strings.Repeat("x", 2000)}), connect.CodeInvalidArgument, "reason", false},
		{"root", list(&schedulerpb.ListJobsRequest{Limit: 1001}), connect.CodeInvalidArgument, "limit must be at most 1000", false},
		{"root", list(&schedulerpb.ListJobsRequest{Cursor: "%"}), connect.CodeInvalidArgument, "cursor must be", false},
		{"root", list(&schedulerpb.ListJobsRequest{Cursor: "bm8"}), connect.CodeInvalidArgument, "cursor must be", false},
		{"root", list(&schedulerpb.ListJobsRequest{AgentId: strings.Repeat("a", 2000)}), connect.CodeInvalidArgument, "agent_id", false},
		{"reader", pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "digest"}), connect.CodePermissionDenied, `"write"`, false},
		{"reader", trigger("ann", "digest"), connect.CodePermissionDenied, `"write"`, false},
		{"ticker", resume("ann", "digest"), connect.CodePermissionDenied, `"write"`, false},
		{"ticker", status("ann"), connect.CodePermissionDenied, `"read"`, false},
		{"ann", pause(&schedulerpb.PauseJobRequest{AgentId: "bob", JobName: "digest"}), connect.CodePermissionDenied, "does not cover", false},
		{"ann", trigger("bob", "none"), connect.CodePermissionDenied, "does not cover", false},
		{"ann", list(&schedulerpb.ListJobsRequest{AgentId: "bob"}), connect.CodePermissionDenied, "does not cover", false},
		{"ann", list(&schedulerpb.ListJobsRequest{}), connect.CodePermissionDenied, "single agents only", false},
		{"ann", status(""), connect.CodePermissionDenied, "single agents only", false},
		{"guess", list(&schedulerpb.ListJobsRequest{}), connect.CodeUnauthenticated, "bearer token", false},
		{"", status("ann"), connect.CodeUnauthenticated, "bearer token", false},
	} {
		for name, client := range f.clients(t, c.token) {
			before := f.calls.Load()
			err := c.call(client)
			assert.Equal(t, c.code, connect.CodeOf(err), "%s %v: %v", name, c, err)
			assert.ErrorContains(t, err, c.says, name)
			assert.Equal(t, c.asks, f.calls.Load() > before, "%s: the store was asked: %v", name, err)
		}
	}
	for _, call := range []func(schedulerpb.SchedulerServiceClient) error{
		list(&schedulerpb.ListJobsRequest{AgentId: "ann"}), trigger("ann", "digest"), pause(&schedulerpb.PauseJobRequest{AgentId: "ann", JobName: "digest"}),
	} {
		require.NoError(t, call(f.grpc(t, "ann")))
	}
	bob, err := f.scheduler.Task(t.Context(), "bob", "digest")
	require.NoError(t, err)
	assert.Empty(t, bob.Pauses)
}

// What the store says is logged, and never sent; nor is a panic.
func TestFaultsOfThisSide(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Ready: func(context.Context) error { return errors.New("hunter2") }})
	status, err := f.grpc(t, "").GetSchedulerStatus(t.Context(), ask(&schedulerpb.GetSchedulerStatusRequest{}))
	require.NoError(t, err)
	assert.False(t, status.Msg.GetSchedulerRunning())
	failure := error(&store.Error{Verb: "read", Err: errors.New("dial 10.1.2.3: hunter2")})
	f.fail.Store(&failure)
	for _, c := range []struct {
		panics bool
		code   connect.Code
	}{{false, connect.CodeUnavailable}, {true, connect.CodeInternal}} {
		f.panics.Store(c.panics)
		for name, client := range f.clients(t, "") {
			_, err := client.TriggerJob(t.Context(), ask(&schedulerpb.TriggerJobRequest{AgentId: "ann", JobName: "digest"}))
			assert.Equal(t, c.code, connect.CodeOf(err), "%s: %v", name, err)
			assert.NotContains(t, err.Error(), "hunter2", name)
			assert.NotContains(t, err.Error(), "10.1.2.3", name)
		}
	}
	assert.Contains(t, f.logs.String(), "hunter2")
}

// A request that is too long is refused, also one that becomes so when it is decompressed.
func TestLongRequests(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	long := &schedulerpb.TriggerJobRequest{AgentId: strings.Repeat("a", 100_000), JobName: "x"}
	for _, options := range [][]connect.ClientOption{{}, {connect.WithSendGzip()}} {
		client := schedulerpb.NewSchedulerServiceClient(web(t, "", false), f.url, options...)
		_, err := client.TriggerJob(t.Context(), ask(long))
		assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), err)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, err := z.Write(bytes.Repeat([]byte(" "), 8<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+schedulerpb.SchedulerServiceListJobsProcedure, &bomb)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	res, err := web(t, "", false).Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusTooManyRequests, res.StatusCode, "Connect's status of resource_exhausted")
}

// Paths that no protocol knows are answered as all others of the port are, and the routes beside them work.
func TestOtherPaths(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}})
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", "/healthz", "", 200},
		{"GET", "/v1/stats", "root", 200},
		{"GET", "/v1/stats", "", 401},
		{"POST", "/duly.scheduler.v1.Other/ListJobs", "root", 404},
		{"POST", schedulerpb.SchedulerServiceListJobsProcedure, "root", 415},
		{"GET", schedulerpb.SchedulerServiceListJobsProcedure, "root", 405},
		{"GET", schedulerpb.SchedulerServiceListJobsProcedure, "", 401},
		{"POST", "/duly.scheduler.v1.SchedulerService/DropAll", "root", 404},
	} {
		for _, second := range []bool{false, true} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, f.url+c.path, http.NoBody)
			require.NoError(t, err)
			res, err := web(t, c.token, second).Do(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Equal(t, c.status, res.StatusCode, "%v", c)
		}
	}
}

// Over all agents each job comes once, however small the pages are.
func TestJobsOfAllAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	want := map[string]bool{}
	var tasks []core.NewTask
	for i := range 70 {
		agent := fmt.Sprintf("agent-%02d", i)
		for j := range i%4 + i/69*20 { // some without jobs, one with many
			tasks = append(tasks, core.NewTask{Agent: agent, ID: fmt.Sprint("job-", j), Kind: "ok", Every: time.Hour})
			want[agent+fmt.Sprint("/job-", j)] = true
		}
		tasks = append(tasks, core.NewTask{Agent: agent, ID: "once", Kind: "ok"})
	}
	_, err := f.scheduler.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	for _, limit := range []uint32{1, 7, 100, 0} {
		got, m := map[string]bool{}, &schedulerpb.ListJobsRequest{Limit: limit}
		for pages := 0; ; pages++ {
			require.Less(t, pages, 1000)
			page, err := f.grpc(t, "").ListJobs(t.Context(), ask(m))
			require.NoError(t, err)
			if limit > 0 {
				assert.LessOrEqual(t, len(page.Msg.GetJobs()), int(limit))
			}
			for _, j := range page.Msg.GetJobs() {
				name := j.GetAgentId() + "/" + j.GetJobName()
				assert.False(t, got[name], name)
				got[name] = true
			}
			if m.Cursor = page.Msg.GetNextCursor(); m.Cursor == "" {
				break
			}
		}
		assert.Equal(t, want, got)
	}
}

// A client without the description finds the calls, if it has a credential.
func TestReflection(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}})
	ask := func(token string) ([]string, error) {
		stream := grpcreflect.NewClient(web(t, token, true), f.url, connect.WithGRPC()).NewStream(t.Context())
		defer func() { _, _ = stream.Close() }()
		services, err := stream.ListServices()
		if err != nil {
			return nil, err
		}
		files, err := stream.FileContainingSymbol(services[0])
		if err != nil {
			return nil, err
		}
		var names []string
		for _, s := range files[0].GetService() {
			for _, m := range s.GetMethod() {
				names = append(names, files[0].GetPackage()+"."+s.GetName()+"/"+m.GetName())
			}
		}
		return names, nil
	}
	names, err := ask("root")
	require.NoError(t, err)
	slices.Sort(names)
	assert.Equal(t, []string{
		"duly.scheduler.v1.SchedulerService/GetSchedulerStatus", "duly.scheduler.v1.SchedulerService/ListJobs",
		"duly.scheduler.v1.SchedulerService/PauseJob", "duly.scheduler.v1.SchedulerService/ResumeJob",
		"duly.scheduler.v1.SchedulerService/TriggerJob", "duly.scheduler.v1.WorkerService/Claim", "duly.scheduler.v1.WorkerService/Keep",
		"duly.scheduler.v1.WorkerService/Return",
	}, names)
	_, err = ask("guess")
	assert.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
}

// An agent that disappears between two pages does not hide the jobs of the next.
func TestAnAgentDisappears(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for _, agent := range []string{"cid", "bob", "ann"} {
		for i := range 4 {
			f.job(t, agent, fmt.Sprint("job-", i))
		}
	}
	page, err := f.grpc(t, "").ListJobs(t.Context(), ask(&schedulerpb.ListJobsRequest{Limit: 2}))
	require.NoError(t, err)
	gone := page.Msg.GetJobs()[0].GetAgentId()
	for i := range 4 {
		require.NoError(t, f.scheduler.Delete(t.Context(), gone, fmt.Sprint("job-", i)))
	}
	page, err = f.grpc(t, "").ListJobs(t.Context(), ask(&schedulerpb.ListJobsRequest{Cursor: page.Msg.GetNextCursor()}))
	require.NoError(t, err)
	assert.Len(t, page.Msg.GetJobs(), 8)
}

// A field that a message does not have is refused by name, and nothing is done.
func TestUnknownFieldsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "a", ID: "digest", Kind: "ok", Every: time.Hour, Delay: time.Hour})
	require.NoError(t, err)
	before := f.calls.Load()
	for body, want := range map[string]string{
		`{"agentId":"a","jobName":"digest","fro":"1h"}`: "fro", `{"agent_id":"a","job_name":"digest","unknown":null}`: "unknown", `{"agentId":7}`: "agentId", `{`: "", `[]`: "", `"x"`: "", ``: "",
	} {
		for _, media := range []string{"application/json", "application/json; charset=utf-8"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/"+schedulerpb.SchedulerServiceName+"/PauseJob", strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("Content-Type", media)
			res, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			answer, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%s: %s", body, answer)
			assert.Contains(t, string(answer), "invalid_argument")
			assert.Contains(t, string(answer), want)
		}
	}
	assert.Equal(t, before, f.calls.Load())
}

// A job that is named alone is one of the default agent, for whoever may control that agent's tasks.
func TestAJobAloneIsOfTheDefaultAgent(t *testing.T) {
	t.Parallel()
	f := setupAs(t, httpadapter.Config{Scoped: []httpadapter.Token{
		{Token: "ops", Grant: httpadapter.Grant{Name: "ops", Agents: []string{"platform"}}}, {Token: "ann", Grant: httpadapter.Grant{Name: "ann", Agents: []string{"ann"}}},
	}}, "platform")
	f.job(t, "platform", "digest")
	f.job(t, "ann", "digest")
	paused := func(agent string) bool {
		info, err := f.scheduler.Task(t.Context(), agent, "digest")
		require.NoError(t, err)
		return len(info.Pauses) > 0
	}
	for name, client := range f.clients(t, "ann") {
		_, err := client.PauseJob(t.Context(), ask(&schedulerpb.PauseJobRequest{JobName: "digest"}))
		require.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err), name)
	}
	for name, client := range f.clients(t, "ops") {
		_, err := client.PauseJob(t.Context(), ask(&schedulerpb.PauseJobRequest{JobName: "digest"}))
		require.NoError(t, err, name)
		assert.True(t, paused("platform"))
		_, err = client.ResumeJob(t.Context(), ask(&schedulerpb.ResumeJobRequest{JobName: "digest"}))
		require.NoError(t, err, name)
		assert.False(t, paused("platform") || paused("ann"))
	}
}
