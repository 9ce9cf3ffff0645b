package otel

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// The span of a run, or of a batch of them.

// What duly.outcome says besides the outcomes of core.
const (
	outcomeLost  = "lost"  // another process may have the task
	outcomeMixed = "mixed" // the runs of a batch ended differently
)

// Run is the middleware for [core.Scheduler.Use]; Wrap adds it. Handlers find the span in their context, programs and servers its
// context as their traceparent. The span ends when the handler returns, also if the run was abandoned before.
func (t *Tracing) Run(next core.Handler) core.Handler {
	return func(ctx context.Context, runs []*core.RunInfo) []error {
		ctx, span := t.tracer.Start(ctx, "run "+runs[0].Kind, trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(t.running(runs)...), trace.WithLinks(links(ctx, runs)...))
		returned := false
		defer func() { // a panic passes by: core makes an outcome of it
			if !returned {
				span.SetAttributes(keyOutcome.String(string(model.OutcomeFailed)), semconv.ErrorTypeKey.String("panic"))
				span.SetStatus(codes.Error, "the handler panicked, or ended its goroutine")
			}
			span.End()
		}()
		if text := written(ctx); text != "" {
			for _, run := range runs {
				run.Traceparent = text
			}
		}
		outcomes := next(ctx, runs)
		returned = true
		if span.IsRecording() {
			t.conclude(ctx, span, len(runs), outcomes)
		}
		return outcomes
	}
}

// links are to the submits of some runs. Those of a batch say which task they are of.
func links(ctx context.Context, runs []*core.RunInfo) []trace.Link {
	var out []trace.Link
	for _, run := range runs {
		is := remote(ctx, run.Traceparent)
		if !is.IsValid() {
			continue
		}
		link := trace.Link{SpanContext: is}
		if len(runs) > 1 {
			link.Attributes = []attribute.KeyValue{semconv.MessagingMessageID(run.ID)}
		}
		out = append(out, link)
	}
	return out
}

// running are the attributes of a run that starts. A batch has those that its runs share.
func (t *Tracing) running(runs []*core.RunInfo) []attribute.KeyValue {
	run := runs[0]
	attrs := append(slices.Clip(t.common),
		semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("run"), semconv.MessagingDestinationName(run.Kind),
		keyAgent.String(run.Agent), keyLevel.Int(int(run.Level)))
	if len(runs) > 1 {
		attrs = append(attrs, semconv.MessagingBatchMessageCount(len(runs)))
	} else {
		attrs = append(attrs, semconv.MessagingMessageID(run.ID), keyAttempt.Int(run.Attempt), keyFence.Int64(int64(run.Fence)),
			keyDue.String(run.Due.UTC().Format(time.RFC3339Nano)), keyWait.Int64(run.Claimed.Sub(run.Due).Milliseconds()))
	}
	return named(attrs,
		keyGroup.String(shared(runs, func(r **core.RunInfo) string { return (*r).Group })),
		keySession.String(shared(runs, func(r **core.RunInfo) string { return (*r).SessionID })),
		keyCube.String(shared(runs, func(r **core.RunInfo) string { return (*r).Labels[labelOfCube] })),
	)
}

// conclude says in a span how its runs have ended. Outcomes are nil if all have succeeded.
func (t *Tracing) conclude(ctx context.Context, span trace.Span, runs int, outcomes []error) {
	failed, outcome := 0, ""
	var first error
	for i := range max(len(outcomes), 1) {
		var err error
		if i < len(outcomes) {
			err = outcomes[i]
		}
		is := outcomeOf(ctx, err)
		if is == string(model.OutcomeFailed) || is == outcomeLost {
			if failed++; failed == 1 {
				first = err
			}
		}
		switch outcome {
		case "", is:
			outcome = is
		default:
			outcome = outcomeMixed
		}
	}
	span.SetAttributes(keyOutcome.String(outcome))
	if failed == 0 {
		return
	}
	if runs > 1 {
		span.SetAttributes(keyFailed.Int(failed))
	}
	span.SetAttributes(errorType(ctx, first))
	t.failed(span, first)
}

// outcomeOf is the outcome of a run, with the context of its handler.
func outcomeOf(ctx context.Context, err error) string {
	is := core.OutcomeOf(ctx, err)
	if is == model.OutcomeFailed && errors.Is(context.Cause(ctx), core.ErrLeaseLost) {
		return outcomeLost
	}
	return string(is)
}

// errorType is a short name of what a run failed by: few values, which can be counted.
func errorType(ctx context.Context, err error) attribute.KeyValue {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, core.ErrLeaseLost):
		return semconv.ErrorTypeKey.String(string(core.CodeLeaseLost))
	case errors.Is(cause, core.ErrTimeout):
		return semconv.ErrorTypeKey.String("timeout")
	case errors.As(err, new(*core.PanicError)):
		return semconv.ErrorTypeKey.String("panic")
	default:
		return semconv.ErrorType(err)
	}
}
