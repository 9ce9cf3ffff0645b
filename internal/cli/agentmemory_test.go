package cli_test

import (
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/seed-6f6f2c11/duly/core"
)

// A client of agent-memory: it knows agent-memory's description, and nothing of duly.

// memoryProto is the part of agent-memory's memory.proto that its scheduler calls need, as a descriptor.
const memoryProto = `
name: "memory.proto" package: "memory" syntax: "proto3"
enum_type { name: "JobResultStatus"
  value { name: "JOB_RESULT_STATUS_UNSPECIFIED" number: 0 } value { name: "JOB_RESULT_STATUS_SUCCESS" number: 1 }
  value { name: "JOB_RESULT_STATUS_FAILED" number: 2 } value { name: "JOB_RESULT_STATUS_SKIPPED" number: 3 } }
message_type { name: "JobStatusProto"
  field { name: "job_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "cron_expr" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "last_run_ms" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "last_duration_ms" number: 4 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "last_result" number: 5 type: TYPE_ENUM type_name: ".memory.JobResultStatus" label: LABEL_OPTIONAL }
  field { name: "last_error" number: 6 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "next_run_ms" number: 7 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "run_count" number: 8 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "error_count" number: 9 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "is_running" number: 10 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "is_paused" number: 11 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "last_run_metadata" number: 12 type: TYPE_MESSAGE type_name: ".memory.JobStatusProto.LastRunMetadataEntry" label: LABEL_REPEATED }
  nested_type { name: "LastRunMetadataEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }
  oneof_decl { name: "_last_error" } }
message_type { name: "GetSchedulerStatusRequest" }
message_type { name: "GetSchedulerStatusResponse"
  field { name: "scheduler_running" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "jobs" number: 2 type: TYPE_MESSAGE type_name: ".memory.JobStatusProto" label: LABEL_REPEATED } }
message_type { name: "PauseJobRequest" field { name: "job_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "PauseJobResponse"
  field { name: "success" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "error" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  oneof_decl { name: "_error" } }
message_type { name: "ResumeJobRequest" field { name: "job_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
message_type { name: "ResumeJobResponse"
  field { name: "success" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "error" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  oneof_decl { name: "_error" } }
service { name: "MemoryService"
  method { name: "GetSchedulerStatus" input_type: ".memory.GetSchedulerStatusRequest" output_type: ".memory.GetSchedulerStatusResponse" }
  method { name: "PauseJob" input_type: ".memory.PauseJobRequest" output_type: ".memory.PauseJobResponse" }
  method { name: "ResumeJob" input_type: ".memory.ResumeJobRequest" output_type: ".memory.ResumeJobResponse" } }`

// memoryClient calls a server as agent-memory's clients do: by gRPC, without a credential. It returns the answer as JSON-like values.
type memoryClient struct {
	service protoreflect.ServiceDescriptor
	http    *http.Client
	url     string
}

func newMemoryClient(t *testing.T, url string) *memoryClient {
	t.Helper()
	described := new(descriptorpb.FileDescriptorProto)
	require.NoError(t, prototext.Unmarshal([]byte(memoryProto), described))
	file, err := protodesc.NewFile(described, nil)
	require.NoError(t, err)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &memoryClient{service: file.Services().ByName("MemoryService"), http: &http.Client{Transport: transport}, url: url}
}

// call calls a method, about a job if it has a name.
func (c *memoryClient) call(t *testing.T, name, job string) protoreflect.Message {
	t.Helper()
	method := c.service.Methods().ByName(protoreflect.Name(name))
	client := connect.NewClient[dynamicpb.Message, dynamicpb.Message](c.http, c.url+"/"+string(c.service.FullName())+"/"+name, connect.WithGRPC(),
		connect.WithSchema(method), connect.WithResponseInitializer(func(_ connect.Spec, m any) error {
			*m.(*dynamicpb.Message) = *dynamicpb.NewMessage(method.Output())
			return nil
		}))
	request := dynamicpb.NewMessage(method.Input())
	if field := method.Input().Fields().ByName("job_name"); field != nil {
		request.Set(field, protoreflect.ValueOfString(job))
	}
	answer, err := client.CallUnary(t.Context(), connect.NewRequest(request))
	require.NoError(t, err)
	assert.Empty(t, answer.Msg.GetUnknown(), "all that it is sent is described")
	return answer.Msg
}

// field is a field of a message, as Go has it; nil for an optional one that is missing.
func field(m protoreflect.Message, name protoreflect.Name) any {
	f := m.Descriptor().Fields().ByName(name)
	if f.HasPresence() && !m.Has(f) {
		return nil
	}
	return m.Get(f).Interface()
}

// jobs are the jobs that the server shows, by name.
func (c *memoryClient) jobs(t *testing.T) map[string]protoreflect.Message {
	t.Helper()
	status := c.call(t, "GetSchedulerStatus", "")
	assert.Equal(t, true, field(status, "scheduler_running"))
	out := map[string]protoreflect.Message{}
	list := field(status, "jobs").(protoreflect.List)
	for i := range list.Len() {
		assert.Empty(t, list.Get(i).Message().GetUnknown())
		out[field(list.Get(i).Message(), "job_name").(string)] = list.Get(i).Message()
	}
	return out
}

// An unchanged client of agent-memory sees, pauses and resumes the jobs of a daemon by their names alone: those of the default agent.
func TestAClientOfAgentMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
default_agent: platform
handlers:
  prune: { exec: ["sh", "-c", "echo '{\"prune_count\":\"3\",\"items\":7}'"] }
  bad: { exec: ["sh", "-c", "echo broken >&2; exit 3"], max_attempts: 1 }
tasks:
  - { agent: platform, id: bm25_prune, kind: prune, cron: "0 0 3 * * *" }
  - { agent: platform, id: toc_rollup_day, kind: bad, cron: "0 0 1 * * *" }
  - { agent: ann, id: of_ann, kind: prune, cron: "0 0 3 * * *" }
`)
	d := w.start(t, "daemon", "-c", config, "--http", "127.0.0.1:0")
	c, s := newMemoryClient(t, d.url(t)), w.scheduler(t)
	// A daemon listens before its first pull has announced it.
	require.Eventually(t, func() bool { return field(c.call(t, "GetSchedulerStatus", ""), "scheduler_running") == true }, 10*time.Second, 10*time.Millisecond)

	jobs := c.jobs(t)
	require.Len(t, jobs, 2, "those of another agent are not among them")
	prune := jobs["bm25_prune"]
	assert.Equal(t, "0 0 3 * * *", field(prune, "cron_expr"))
	info, err := s.Task(t.Context(), "platform", "bm25_prune")
	require.NoError(t, err)
	assert.Equal(t, info.NextRun.UnixMilli(), field(prune, "next_run_ms"))
	assert.Equal(t, []any{int64(0), protoreflect.EnumNumber(0), nil, uint64(0), false},
		[]any{field(prune, "last_run_ms"), field(prune, "last_result"), field(prune, "last_error"), field(prune, "run_count"), field(prune, "is_paused")})

	for _, name := range []string{"bm25_prune", "toc_rollup_day"} {
		_, err := s.RunNow(t.Context(), "platform", name)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		jobs = c.jobs(t)
		return field(jobs["bm25_prune"], "run_count") == uint64(1) && field(jobs["toc_rollup_day"], "run_count") == uint64(1)
	}, 20*time.Second, 20*time.Millisecond)
	prune, rollup := jobs["bm25_prune"], jobs["toc_rollup_day"]
	info, err = s.Task(t.Context(), "platform", "bm25_prune")
	require.NoError(t, err)
	assert.Equal(t, []any{info.LastRun.UnixMilli(), info.LastDuration.Milliseconds(), protoreflect.EnumNumber(1), nil, uint64(0)},
		[]any{field(prune, "last_run_ms"), field(prune, "last_duration_ms"), field(prune, "last_result"), field(prune, "last_error"), field(prune, "error_count")})
	metadata := map[string]string{}
	field(prune, "last_run_metadata").(protoreflect.Map).Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		metadata[k.String()] = v.String()
		return true
	})
	assert.Equal(t, map[string]string{"prune_count": "3", "items": "7"}, metadata)
	assert.Equal(t, protoreflect.EnumNumber(2), field(rollup, "last_result"))
	assert.Contains(t, field(rollup, "last_error"), "broken")
	assert.Equal(t, uint64(1), field(rollup, "error_count"))

	c.orders(t, s)
}

// orders pauses and resumes a job of the default agent, and asks for one that it does not have.
func (c *memoryClient) orders(t *testing.T, s *core.Scheduler) {
	t.Helper()
	for _, o := range []struct {
		call   string
		paused bool
	}{{"PauseJob", true}, {"ResumeJob", false}} {
		answer := c.call(t, o.call, "bm25_prune")
		assert.Equal(t, []any{true, nil}, []any{field(answer, "success"), field(answer, "error")}, o.call)
		assert.Equal(t, o.paused, field(c.jobs(t)["bm25_prune"], "is_paused"))
		info, err := s.Task(t.Context(), "platform", "bm25_prune")
		require.NoError(t, err)
		assert.Equal(t, o.paused, len(info.Pauses) > 0)
		for _, name := range []string{"none", "of_ann", ""} {
			answer = c.call(t, o.call, name)
			assert.Equal(t, false, field(answer, "success"), "%s %s", o.call, name)
			assert.NotEmpty(t, field(answer, "error"), "%s %s: as agent-memory says it, without a code", o.call, name)
		}
	}
}

// A program may link clients of agent-memory beside duly: the names that these register are free.
func TestTheNamesOfAgentMemoryAreFree(t *testing.T) {
	t.Parallel()
	described := new(descriptorpb.FileDescriptorProto)
	require.NoError(t, prototext.Unmarshal([]byte(memoryProto), described))
	for _, m := range described.GetMessageType() {
		_, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("memory." + m.GetName()))
		require.ErrorIs(t, err, protoregistry.NotFound)
	}
	_, err := protoregistry.GlobalFiles.FindFileByPath(described.GetName())
	require.ErrorIs(t, err, protoregistry.NotFound)
}
