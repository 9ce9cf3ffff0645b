package otel

import (
	"context"
	"net/http"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-6f6f2c11/duly/core"
)

// Scope is the name of the tracer, by which a collector tells these spans from others.
const Scope = "github.com/seed-6f6f2c11/duly/adapters/otel"

// The attributes of duly's own. They have the names that the HTTP API has for the same, and one the name of a label that MemOS gives tasks.
const (
	keyAgent    = attribute.Key("duly.agent_id")
	keyGroup    = attribute.Key("duly.group")
	keySession  = attribute.Key("duly.session_id")
	keyCube     = attribute.Key("duly.mem_cube_id")
	keyLevel    = attribute.Key("duly.level")
	keyAttempt  = attribute.Key("duly.attempt")
	keyFence    = attribute.Key("duly.fence")
	keyDue      = attribute.Key("duly.due_at")
	keyWait     = attribute.Key("duly.queue_wait_ms")
	keyOutcome  = attribute.Key("duly.outcome")
	keyFailed   = attribute.Key("duly.failed")
	keyCreated  = attribute.Key("duly.created")
	labelOfCube = "mem_cube_id" // the label of a task
)

// mostError bounds the description of a status, in bytes, as core bounds the errors that it keeps.
const mostError = 1 << 10

// traceparent is the name of the one header that travels with a task.
const traceparent = "traceparent"

// format is the W3C's, even if a program also propagates others: tasks, programs and servers get this one.
var format propagation.TraceContext

// Config says how a scheduler is traced. Every zero is a good default.
type Config struct {
	// TracerProvider makes the spans: the one that the program has registered for all if nil.
	TracerProvider trace.TracerProvider
	// Name is the name of this process, core.Config.Name, for messaging.client.id, which is missing if it is empty.
	Name string
	// WithoutErrorTexts omits the texts of errors from the status of spans: they come from handlers and programs, and may contain more
	// than traces should hold. error.type is set in any case.
	WithoutErrorTexts bool
}

// Tracing makes the spans of schedulers. It is safe for concurrent use.
type Tracing struct {
	tracer trace.Tracer
	common []attribute.KeyValue // of every span
	silent bool                 // statuses have no texts of errors
}

// New is a Tracing. Nothing is traced before a scheduler is given to Wrap.
func New(config Config) *Tracing {
	provider := config.TracerProvider
	if provider == nil {
		provider = otelapi.GetTracerProvider()
	}
	common := []attribute.KeyValue{semconv.MessagingSystemKey.String("duly")}
	if config.Name != "" {
		common = append(common, semconv.MessagingClientID(config.Name))
	}
	return &Tracing{tracer: provider.Tracer(Scope, trace.WithSchemaURL(semconv.SchemaURL)), common: common, silent: config.WithoutErrorTexts}
}

// Wrap traces the submits and the runs of a scheduler, from now on. Call it before other middleware is added, so that the spans are
// around that too.
func (t *Tracing) Wrap(s *core.Scheduler) {
	s.Use(t.Run)
	s.UseSubmit(t.Submit)
}

// Requests hands the trace context of each request's headers to next, so that what a request submits belongs to the trace of its
// caller. It makes no span. A program whose server does this already, as otelhttp does, needs no second one.
func Requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(traceparent) != "" {
			r = r.WithContext(format.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		next.ServeHTTP(w, r)
	})
}

// remote is the span that a traceparent names; not valid for one that names none.
func remote(ctx context.Context, text string) trace.SpanContext {
	if text == "" { // nearly always, where nothing is traced
		return trace.SpanContext{}
	}
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{}) // else a text that names none would be the span of the context
	return trace.SpanContextFromContext(format.Extract(ctx, propagation.MapCarrier{traceparent: text}))
}

// written is the traceparent of the span of a context; empty if it has none.
func written(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	format.Inject(ctx, carrier)
	return carrier[traceparent]
}

// named adds attributes that have a value.
func named(to []attribute.KeyValue, pairs ...attribute.KeyValue) []attribute.KeyValue {
	for _, pair := range pairs {
		if pair.Value.AsString() != "" {
			to = append(to, pair)
		}
	}
	return to
}

// failed marks a span as failed with an error.
func (t *Tracing) failed(span trace.Span, err error) {
	text := ""
	if !t.silent {
		text = clipped(err.Error())
	}
	span.SetStatus(codes.Error, text)
}

// clipped is the beginning of a text, for the description of a status. It does not end within a character.
func clipped(text string) string {
	if len(text) <= mostError {
		return text
	}
	end := mostError
	for end > 0 && text[end]&0xC0 == 0x80 { // within a character of UTF-8
		end--
	}
	return text[:end]
}
