package otel_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	oteladapter "github.com/seed-6f6f2c11/duly/adapters/otel"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // as the programs do
	goleak.VerifyTestMain(m)
}

// world is a scheduler on a Redis of its own that is traced, with the spans that have ended.
type world struct {
	*testing.T

	s        *core.Scheduler
	store    core.Store
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

func newWorld(t *testing.T, config core.Config, options ...sdktrace.TracerProviderOption) *world {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: redistest.Start(t).URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	w := &world{T: t, store: st, spans: tracetest.NewInMemoryExporter()}
	w.provider = sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(w.spans))...)
	t.Cleanup(func() { _ = w.provider.Shutdown(context.WithoutCancel(t.Context())) })
	w.s, err = core.New(st, config)
	require.NoError(t, err)
	oteladapter.New(oteladapter.Config{TracerProvider: w.provider, Name: "worker-7"}).Wrap(w.s)
	return w
}

func (w *world) submit(ctx context.Context, tasks ...core.NewTask) []core.Submitted {
	w.Helper()
	out, err := w.s.Submit(ctx, tasks...)
	require.NoError(w, err)
	return out
}

func (w *world) run() {
	w.Helper()
	_, err := w.s.RunDue(w.Context(), core.Scope{})
	if core.CodeOf(err) != core.CodeRunsFailed {
		require.NoError(w, err)
	}
}

// span is the one that has ended with this name.
func (w *world) span(name string) tracetest.SpanStub {
	w.Helper()
	found := w.named(name)
	require.Len(w, found, 1, name)
	return found[0]
}

func (w *world) named(name string) []tracetest.SpanStub {
	var out []tracetest.SpanStub
	for _, span := range w.spans.GetSpans() {
		if span.Name == name {
			out = append(out, span)
		}
	}
	return out
}

// traceparent is how a span is written.
func traceparent(c trace.SpanContext) string {
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// attributes of a span as plain values.
func attributes(all []attribute.KeyValue) map[string]any {
	out := map[string]any{}
	for _, pair := range all {
		out[string(pair.Key)] = pair.Value.AsInterface()
	}
	return out
}

// has checks that a span has these attributes, and none of others that are named with a nil.
func has(t *testing.T, span tracetest.SpanStub, want map[string]any) {
	t.Helper()
	got := attributes(span.Attributes)
	for key, value := range want {
		if value == nil {
			assert.NotContains(t, got, key)
		} else {
			assert.Equal(t, value, got[key], key)
		}
	}
}
