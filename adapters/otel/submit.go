package otel

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-6f6f2c11/duly/core"
)

// The span of a submit.

// Submit is the middleware for [core.Scheduler.UseSubmit]; Wrap adds it. The span is a child of the caller's. If the caller has none,
// it is a child of the one that the tasks name, and if they name several it begins a trace.
//
// Tasks get the span's context as their traceparent, but for those that name another trace: these keep theirs, and the span links to
// it.
func (t *Tracing) Submit(next core.Submitter) core.Submitter {
	return func(ctx context.Context, tasks []core.NewTask) ([]core.Submitted, error) {
		ctx, links := within(ctx, tasks)
		ctx, span := t.tracer.Start(ctx, "submit"+ofKind(tasks), trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(t.submitted(tasks)...), trace.WithLinks(links...))
		defer span.End()
		stamp(ctx, tasks)
		out, err := next(ctx, tasks)
		if err != nil {
			span.SetAttributes(semconv.ErrorTypeKey.String(string(core.CodeOf(err))))
			t.failed(span, err)
			return out, err
		}
		created := 0
		for i := range out {
			if out[i].Created {
				created++
			}
		}
		span.SetAttributes(keyCreated.Int(created))
		if len(out) == 1 { // the id may have been made by the scheduler
			span.SetAttributes(semconv.MessagingMessageID(out[0].ID))
		}
		return out, nil
	}
}

// within is the context of a submit, with the span that it belongs to, and links to what some tasks name instead.
func within(ctx context.Context, tasks []core.NewTask) (context.Context, []trace.Link) {
	own := trace.SpanContextFromContext(ctx)
	var first trace.SpanContext
	var named []trace.SpanContext
	several := false
	for i := range tasks {
		if is := remote(ctx, tasks[i].Traceparent); is.IsValid() {
			several = several || first.IsValid() && first.TraceID() != is.TraceID()
			if !first.IsValid() {
				first = is
			}
			named = append(named, is)
		}
	}
	if !own.IsValid() && first.IsValid() && !several {
		return trace.ContextWithRemoteSpanContext(ctx, first), nil
	}
	var links []trace.Link
	for _, is := range named {
		if is.TraceID() != own.TraceID() {
			links = append(links, trace.Link{SpanContext: is})
		}
	}
	return ctx, links
}

// stamp gives tasks the context of the span as their own, unless they name another trace, or nothing is traced. A text that is no
// traceparent names none, and is replaced.
func stamp(ctx context.Context, tasks []core.NewTask) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return
	}
	text := written(ctx)
	for i := range tasks {
		if is := remote(ctx, tasks[i].Traceparent); !is.IsValid() || is.TraceID() == span.TraceID() {
			tasks[i].Traceparent = text
		}
	}
}

// submitted are the attributes of a submit: what all its tasks share.
func (t *Tracing) submitted(tasks []core.NewTask) []attribute.KeyValue {
	attrs := append(slices.Clip(t.common),
		semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("submit"))
	if len(tasks) > 1 {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(len(tasks)))
	}
	return named(attrs,
		semconv.MessagingDestinationName(shared(tasks, func(t *core.NewTask) string { return t.Kind })),
		keyAgent.String(shared(tasks, func(t *core.NewTask) string { return t.Agent })),
		keyGroup.String(shared(tasks, func(t *core.NewTask) string { return t.Group })),
		keySession.String(shared(tasks, func(t *core.NewTask) string { return t.SessionID })),
		keyCube.String(shared(tasks, func(t *core.NewTask) string { return t.Labels[labelOfCube] })),
	)
}

// ofKind is the end of a span's name: the kind, if all tasks are of one.
func ofKind(tasks []core.NewTask) string {
	if kind := shared(tasks, func(t *core.NewTask) string { return t.Kind }); kind != "" {
		return " " + kind
	}
	return ""
}

// shared is what all of some have in common; empty if they differ.
func shared[T any](all []T, of func(*T) string) string {
	first := of(&all[0])
	for i := range all {
		if of(&all[i]) != first {
			return ""
		}
	}
	return first
}
