package otel_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	oteladapter "github.com/seed-6f6f2c11/duly/adapters/otel"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A scheduler is traced by two lines. What a handler traces is within the span of its run, which links to the submit of its task.
func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in place of an exporter to a collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	oteladapter.New(oteladapter.Config{TracerProvider: provider}).Wrap(s)
	core.Handle(s, "digest", func(ctx context.Context, _ *core.Task[any]) error {
		_, span := provider.Tracer("mail").Start(ctx, "send mail")
		defer span.End()
		return nil
	})
	if _, err := s.Submit(ctx, core.NewTask{Agent: "ada", ID: "nightly", Kind: "digest"}); err != nil {
		panic(err)
	}
	if _, err := s.RunDue(ctx, core.Scope{}); err != nil {
		panic(err)
	}
	all := spans.GetSpans()
	for _, span := range all {
		fmt.Println(span.Name, span.SpanKind)
	}
	submit, mail, run := all[0], all[1], all[2]
	fmt.Println("the mail is of the run:", mail.Parent.SpanID() == run.SpanContext.SpanID())
	fmt.Println("the run links to the submit:", run.Links[0].SpanContext.SpanID() == submit.SpanContext.SpanID())
	// Output:
	// submit digest producer
	// send mail internal
	// run digest consumer
	// the mail is of the run: true
	// the run links to the submit: true
}
