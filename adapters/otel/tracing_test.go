package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	oteladapter "github.com/seed-6f6f2c11/duly/adapters/otel"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// A traceparent of somebody else.
const (
	foreign      = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	foreignTrace = "0af7651916cd43dd8448eb211c80319c"
	foreignSpan  = "b7ad6b7169203331"
)

// A submit and a run each have a span: the run is in a trace of its own, linked to the submit, and what the handler does is within it.
func TestARunLinksToItsSubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	tracer := w.provider.Tracer("test")
	core.Handle(w.s, "digest", func(ctx context.Context, task *core.Task[string]) error {
		_, span := tracer.Start(ctx, "of the handler")
		span.End()
		assert.Equal(t, traceparent(trace.SpanContextFromContext(ctx)), task.Traceparent)
		return nil
	})
	ctx, caller := tracer.Start(t.Context(), "caller")
	w.submit(ctx, core.NewTask{
		Agent: "ada", ID: "nightly", Kind: "digest", Payload: "secret", Group: "g", SessionID: "s1", Level: 2, Labels: map[string]string{"mem_cube_id": "cube"},
	})
	caller.End()
	stored, err := w.s.Task(t.Context(), "ada", "nightly")
	require.NoError(t, err)
	w.run()

	submit, run := w.span("submit digest"), w.span("run digest")
	assert.Equal(t, trace.SpanKindProducer, submit.SpanKind)
	assert.Equal(t, caller.SpanContext().SpanID(), submit.Parent.SpanID())
	assert.Equal(t, traceparent(submit.SpanContext), stored.Traceparent)
	assert.Equal(t, oteladapter.Scope, submit.InstrumentationScope.Name)
	both := map[string]any{
		"messaging.system": "duly", "messaging.destination.name": "digest", "messaging.message.id": "nightly", "messaging.client.id": "worker-7",
		"duly.agent_id": "ada", "duly.group": "g", "duly.session_id": "s1", "duly.mem_cube_id": "cube", "messaging.batch.message_count": nil, "error.type": nil,
	}
	has(t, submit, both)
	has(t, submit, map[string]any{"messaging.operation.type": "send", "messaging.operation.name": "submit", "duly.created": int64(1)})
	assert.Equal(t, codes.Unset, submit.Status.Code)

	assert.Equal(t, trace.SpanKindConsumer, run.SpanKind)
	assert.False(t, run.Parent.IsValid(), "a link, and no parent")
	assert.NotEqual(t, submit.SpanContext.TraceID(), run.SpanContext.TraceID())
	require.Len(t, run.Links, 1)
	assert.Equal(t, submit.SpanContext.SpanID(), run.Links[0].SpanContext.SpanID())
	assert.Equal(t, submit.SpanContext.TraceID(), run.Links[0].SpanContext.TraceID())
	has(t, run, both)
	has(t, run, map[string]any{
		"messaging.operation.type": "process", "messaging.operation.name": "run", "duly.outcome": "success", "duly.attempt": int64(1), "duly.level": int64(2), "duly.failed": nil,
	})
	assert.Contains(t, attributes(run.Attributes), "duly.fence")
	assert.Contains(t, attributes(run.Attributes), "duly.due_at")
	assert.Contains(t, attributes(run.Attributes), "duly.queue_wait_ms")
	assert.Equal(t, codes.Unset, run.Status.Code)
	child := w.span("of the handler")
	assert.Equal(t, run.SpanContext.SpanID(), child.Parent.SpanID())
	for _, span := range w.spans.GetSpans() {
		for key, value := range attributes(span.Attributes) {
			assert.NotContains(t, fmt.Sprint(value), "secret", key)
		}
	}
}

// What a handler submits is a child of its run, and the run of that links to it.
func TestWhatARunSubmitsIsInItsTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	core.Handle(w.s, "parent", func(ctx context.Context, _ *core.Task[any]) error {
		_, err := w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "child", Kind: "child"})
		return err
	})
	core.Handle(w.s, "child", func(context.Context, *core.Task[any]) error { return nil })
	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "parent", Kind: "parent"})
	w.run()
	w.run()
	assert.Equal(t, w.span("run parent").SpanContext.SpanID(), w.span("submit child").Parent.SpanID())
	assert.Equal(t, w.span("submit child").SpanContext.SpanID(), w.span("run child").Links[0].SpanContext.SpanID())
	has(t, w.span("submit child"), map[string]any{"messaging.message.id": "child"})
}

// A batch has one span, with a link for each of its tasks, also for those that were submitted together.
func TestABatchLinksToAllItsTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{Kinds: map[string]core.KindConfig{"mail": {Batch: 3, MaxAttempts: 1}}})
	core.HandleBatch(w.s, "mail", func(_ context.Context, tasks []*core.Task[any]) []error {
		out := make([]error, len(tasks))
		for i, task := range tasks {
			if task.ID == "2" {
				out[i] = errors.New("no such address")
			}
		}
		return out
	})
	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "mail"}, core.NewTask{Agent: "a", ID: "2", Kind: "mail"})
	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "3", Kind: "mail"})
	w.run()

	submits, run := w.named("submit mail"), w.span("run mail")
	require.Len(t, submits, 2)
	has(t, submits[0], map[string]any{"messaging.batch.message_count": int64(2), "messaging.message.id": nil, "duly.created": int64(2), "duly.agent_id": "a"})
	linked := map[any]trace.SpanID{}
	for _, link := range run.Links {
		linked[attributes(link.Attributes)["messaging.message.id"]] = link.SpanContext.SpanID()
	}
	assert.Equal(t, map[any]trace.SpanID{
		"1": submits[0].SpanContext.SpanID(), "2": submits[0].SpanContext.SpanID(), "3": submits[1].SpanContext.SpanID(),
	}, linked)
	has(t, run, map[string]any{
		"messaging.batch.message_count": int64(3), "messaging.message.id": nil, "duly.outcome": "mixed", "duly.failed": int64(1), "error.type": "*errors.errorString",
	})
	assert.Equal(t, codes.Error, run.Status.Code)
	assert.Equal(t, "no such address", run.Status.Description)
}

// The status of a span says whether its run failed, and error.type by what.
func TestTheStatusIsThatOfTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler       func(ctx context.Context) error
		outcome, kind string // of error.type; empty for none
		says          string
	}{
		"fails":   {func(context.Context) error { return errors.New("broken") }, "failed", "*errors.errorString", "broken"},
		"long":    {func(context.Context) error { return errors.New(strings.Repeat("é", 1000)) }, "failed", "*errors.errorString", strings.Repeat("é", 512)},
		"panics":  {func(context.Context) error { panic("secret") }, "failed", "panic", "the handler panicked, or ended its goroutine"},
		"dawdles": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "failed", "timeout", "context canceled"},
		"snoozes": {func(context.Context) error { return core.Snooze(time.Hour) }, "snoozed", "", ""},
		"yields":  {func(context.Context) error { return core.Yield(1, time.Hour) }, "yielded", "", ""},
		"cancels": {func(context.Context) error { return core.Cancel(errors.New("obsolete")) }, "cancelled", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.Config{Default: core.KindConfig{MaxAttempts: 1}})
			core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[any]) error { return c.handler(ctx) })
			task := core.NewTask{Agent: "a", ID: "1", Kind: "k"}
			if name == "dawdles" {
				task.Timeout = 100 * time.Millisecond
			}
			w.submit(t.Context(), task)
			w.run()
			run := w.span("run k")
			assert.Equal(t, c.outcome, attributes(run.Attributes)["duly.outcome"])
			assert.Equal(t, c.says, run.Status.Description)
			if name == "snoozes" {
				info, err := w.s.Task(t.Context(), "a", "1")
				require.NoError(t, err)
				assert.Equal(t, traceparent(w.span("submit k").SpanContext), info.Traceparent, "a run changes nothing of its task")
			}
			if c.kind == "" {
				assert.Equal(t, codes.Unset, run.Status.Code)
				assert.NotContains(t, attributes(run.Attributes), "error.type")
				return
			}
			assert.Equal(t, codes.Error, run.Status.Code)
			has(t, run, map[string]any{"error.type": c.kind})
		})
	}
}

// A run whose lease is lost says so: its task is another process's by now.
func TestARunThatLosesItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{Default: core.KindConfig{Lease: 200 * time.Millisecond}})
	core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[any]) error {
		assert.NoError(t, w.s.Delete(context.WithoutCancel(ctx), "a", "1"))
		<-ctx.Done()
		return ctx.Err()
	})
	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	w.run()
	run := w.span("run k")
	has(t, run, map[string]any{"duly.outcome": "lost", "error.type": "lease_lost"})
	assert.Equal(t, codes.Error, run.Status.Code)
}

// A submit that is refused has a span that says why, and an id that the scheduler made is in that of one that is not.
func TestTheSpanOfASubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{Kinds: map[string]core.KindConfig{"old": {Disabled: true}}})
	_, err := w.s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "old"})
	require.Error(t, err)
	refused := w.span("submit old")
	has(t, refused, map[string]any{"error.type": "kind_disabled", "duly.created": nil})
	assert.Equal(t, codes.Error, refused.Status.Code)
	assert.Equal(t, err.Error(), refused.Status.Description)

	out := w.submit(t.Context(), core.NewTask{Agent: "a", Kind: "k"})
	has(t, w.span("submit k"), map[string]any{"messaging.message.id": out[0].ID})
	w.submit(t.Context(), core.NewTask{Agent: "a", Kind: "x"}, core.NewTask{Agent: "b", Kind: "y"})
	has(t, w.span("submit"), map[string]any{"messaging.destination.name": nil, "duly.agent_id": nil, "messaging.batch.message_count": int64(2)})

	before := len(w.spans.GetSpans())
	again := core.NewTask{Agent: "a", ID: "same", Kind: "k"}
	w.submit(t.Context(), again)
	assert.Equal(t, core.Submitted{Agent: "a", ID: "same", Kind: "k", Status: core.StatusWaiting, Due: w.submit(t.Context(), again)[0].Due}, w.submit(t.Context(), again)[0],
		"the same task, in another trace")
	has(t, w.spans.GetSpans()[before+1], map[string]any{"duly.created": int64(0)})
}

// A trace that a task names goes on: through the span of its submit where there is no other, else beside it.
func TestATaskMayNameItsTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	kept := func(ctx context.Context, id, given string) string {
		w.submit(ctx, core.NewTask{Agent: "a", ID: id, Kind: id, Traceparent: given})
		info, err := w.s.Task(ctx, "a", id)
		require.NoError(t, err)
		return info.Traceparent
	}
	got := kept(t.Context(), "alone", foreign)
	alone := w.span("submit alone")
	assert.Equal(t, foreignTrace, alone.SpanContext.TraceID().String())
	assert.Equal(t, foreignSpan, alone.Parent.SpanID().String())
	assert.Equal(t, traceparent(alone.SpanContext), got)

	ctx, caller := w.provider.Tracer("test").Start(t.Context(), "caller")
	assert.Equal(t, foreign, kept(ctx, "beside", foreign))
	beside := w.span("submit beside")
	assert.Equal(t, caller.SpanContext().SpanID(), beside.Parent.SpanID())
	require.Len(t, beside.Links, 1)
	assert.Equal(t, foreignSpan, beside.Links[0].SpanContext.SpanID().String())
	caller.End()

	got = kept(t.Context(), "nonsense", "not a traceparent")
	assert.Equal(t, traceparent(w.span("submit nonsense").SpanContext), got)

	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "x", Kind: "two", Traceparent: foreign}, core.NewTask{
		Agent: "a", ID: "y", Kind: "two", Traceparent: strings.Replace(foreign, "0af7", "0af8", 1),
	})
	two := w.span("submit two")
	assert.False(t, two.Parent.IsValid())
	assert.Len(t, two.Links, 2)
}

// Programs get the span of their run as TRACEPARENT, servers as a header, so that what they trace is within it.
func TestProgramsAndServersGetTheSpan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	header := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header <- r.Header.Get("Traceparent") }))
	defer server.Close()
	program, err := exec.New(exec.Config{Argv: []string{"/bin/sh", "-c", `printf '"%s %s"' "$TRACEPARENT" "$DULY_TRACEPARENT"`}, Children: new(exec.Children)})
	require.NoError(t, err)
	core.Handle(w.s, "program", program.Run)
	hook, err := webhook.New(webhook.Config{URL: server.URL, AllowLoopback: true})
	require.NoError(t, err)
	core.Handle(w.s, "server", hook.Run)
	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "program"}, core.NewTask{Agent: "a", ID: "2", Kind: "server"})
	w.run()

	want := traceparent(w.span("run program").SpanContext)
	info, err := w.s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	var said string
	require.NoError(t, json.Unmarshal(info.Result, &said), string(info.Result))
	assert.Equal(t, want+" "+want, said)
	assert.Equal(t, traceparent(w.span("run server").SpanContext), <-header)

	// A batch has one span, which all its tasks share.
	program, err = exec.New(exec.Config{Argv: []string{"/bin/sh", "-c", `echo "$TRACEPARENT" >&2; exit 1`}})
	require.NoError(t, err)
	core.HandleBatch(w.s, "programs", program.RunBatch)
	core.HandleBatch(w.s, "servers", hook.RunBatch)
	for _, kind := range []string{"programs", "servers"} {
		w.submit(t.Context(), core.NewTask{Agent: "b", ID: kind + "1", Kind: kind}, core.NewTask{Agent: "b", ID: kind + "2", Kind: kind})
	}
	w.run()
	info, err = w.s.Task(t.Context(), "b", "programs1")
	require.NoError(t, err)
	assert.Contains(t, info.LastError, traceparent(w.span("run programs").SpanContext))
	assert.Equal(t, traceparent(w.span("run servers").SpanContext), <-header)
}

// Where nothing is traced nothing is stored, and a trace that is not sampled is still told on.
func TestWithoutSpansNothingTravels(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	oteladapter.New(oteladapter.Config{TracerProvider: noop.NewTracerProvider()}).Wrap(s)
	core.Handle(s, "k", func(_ context.Context, task *core.Task[any]) error {
		assert.Empty(t, task.Traceparent)
		return nil
	})
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	require.NoError(t, err)
	report, err := s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	info, err := s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.Empty(t, info.Traceparent)

	w := newWorld(t, core.Config{}, sdktrace.WithSampler(sdktrace.NeverSample()))
	w.submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	info, err = w.s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-00$`, info.Traceparent)
	assert.Empty(t, w.spans.GetSpans())
}

// Requests belong to the trace that their headers name.
func TestRequestsBringTheirTrace(t *testing.T) {
	t.Parallel()
	var got trace.SpanContext
	h := oteladapter.Requests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = trace.SpanContextFromContext(r.Context()) }))
	for header, want := range map[string]bool{foreign: true, "nonsense": false, "": false} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if header != "" {
			r.Header.Set("Traceparent", header)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		assert.Equal(t, want, got.IsValid(), header)
		if want {
			assert.Equal(t, foreign, traceparent(got))
			assert.True(t, got.IsRemote())
		}
	}
}

// A task that was stored before it was traced links to nothing, whatever its traceparent says, and its run is within the span of whoever asked for it.
func TestATaskThatIsNotTracedLinksToNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{})
	core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
	plain, err := core.New(w.store, core.Config{})
	require.NoError(t, err)
	_, err = plain.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Traceparent: "not a traceparent"})
	require.NoError(t, err)
	ctx, caller := w.provider.Tracer("test").Start(t.Context(), "caller")
	_, err = w.s.RunDue(ctx, core.Scope{})
	require.NoError(t, err)
	caller.End()
	run := w.span("run k")
	assert.Empty(t, run.Links)
	assert.Equal(t, caller.SpanContext().SpanID(), run.Parent.SpanID())
}

// Where texts of errors are not wanted, spans of submits and of runs have none, and still say what sort of error it was.
func TestErrorsCanBeLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.Config{Default: core.KindConfig{MaxAttempts: 1}})
	s, err := core.New(w.store, core.Config{Default: core.KindConfig{MaxAttempts: 1}})
	require.NoError(t, err)
	oteladapter.New(oteladapter.Config{TracerProvider: w.provider, WithoutErrorTexts: true}).Wrap(s)
	core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return errors.New("a secret") })
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.Equal(t, core.CodeRunsFailed, core.CodeOf(err))
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "k", Level: 9})
	require.Error(t, err)
	for _, span := range w.spans.GetSpans() {
		assert.Empty(t, span.Status.Description, span.Name)
	}
	run := w.span("run k")
	assert.Equal(t, codes.Error, run.Status.Code)
	has(t, run, map[string]any{"error.type": "*errors.errorString"})
}
