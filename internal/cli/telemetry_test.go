package cli_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed-6f6f2c11/duly/core"
)

// collector receives OTLP over HTTP, as a collector does.
type collector struct {
	url string

	mu       sync.Mutex
	spans    []*tracepb.Span
	metrics  map[string]*metricspb.Metric
	services map[string]bool // service.name of what came
	headers  map[string]bool // values of X-Key
	refuses  bool
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{metrics: map[string]*metricspb.Metric{}, services: map[string]bool{}, headers: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var request collectortrace.ExportTraceServiceRequest
		c.take(w, r, &request, func() {
			for _, of := range request.GetResourceSpans() {
				c.services[text(of.GetResource().GetAttributes(), "service.name")] = true
				for _, scope := range of.GetScopeSpans() {
					c.spans = append(c.spans, scope.GetSpans()...)
				}
			}
		})
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var request collectormetrics.ExportMetricsServiceRequest
		c.take(w, r, &request, func() {
			for _, of := range request.GetResourceMetrics() {
				c.services[text(of.GetResource().GetAttributes(), "service.name")] = true
				for _, scope := range of.GetScopeMetrics() {
					for _, m := range scope.GetMetrics() {
						c.metrics[m.GetName()] = m
					}
				}
			}
		})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// take reads a request, and keeps what it has.
func (c *collector) take(w http.ResponseWriter, r *http.Request, into proto.Message, keep func()) {
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(data, into)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.refuses {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	c.headers[r.Header.Get("X-Key")] = true
	keep()
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// span is one that has come with this name.
func (c *collector) span(t *testing.T, name string) *tracepb.Span {
	t.Helper()
	var found *tracepb.Span
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, span := range c.spans {
			if span.GetName() == name {
				found = span
			}
		}
		return found != nil
	}, 20*time.Second, 10*time.Millisecond, "no span %q", name)
	return found
}

// text is an attribute that is a string.
func text(all []*commonpb.KeyValue, key string) string {
	for _, pair := range all {
		if pair.GetKey() == key {
			return pair.GetValue().GetStringValue()
		}
	}
	return ""
}

// exporting is a world whose processes send to a collector, soon.
func exporting(t *testing.T, c *collector) *world {
	t.Helper()
	w := newWorld(t)
	w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url, "OTEL_EXPORTER_OTLP_HEADERS=x-key=collector-secret",
		"OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_METRIC_EXPORT_INTERVAL=100")
	return w
}

// A daemon sends its traces to a collector that the standard variables name: the trace of a request goes on through the submit and,
// by a link, to the run and to what the program of that is given. It sends the metrics that a scrape has, by the same names.
func TestADaemonSendsToACollector(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	w := exporting(t, c)
	w.env = append(w.env, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	d := w.start(t, "daemon", "-c", file(t, `
handlers:
  digest: { exec: ["/bin/sh", "-c", "printf '\"%s %s\"' \"$TRACEPARENT\" \"$OTEL_EXPORTER_OTLP_HEADERS\""] }
limits: [{ kind: digest, concurrency: 2 }]
budgets: [{ amount: 100, unit: tokens, per: day }]
`), "--http", "127.0.0.1:0")
	url := d.url(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/tasks", strings.NewReader(`{"agent_id":"ada","id":"one","kind":"digest","session_id":"s1"}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err)
	_ = res.Body.Close()
	require.Equal(t, http.StatusCreated, res.StatusCode)
	done := settled(t, w.scheduler(t), "ada", "one", core.StatusCompleted)

	submit, run := c.span(t, "submit digest"), c.span(t, "run digest")
	assert.Equal(t, "0af7651916cd43dd8448eb211c80319c", hexOf(submit.GetTraceId()))
	assert.Equal(t, "b7ad6b7169203331", hexOf(submit.GetParentSpanId()))
	assert.Equal(t, tracepb.Span_SPAN_KIND_PRODUCER, submit.GetKind())
	assert.Equal(t, tracepb.Span_SPAN_KIND_CONSUMER, run.GetKind())
	require.Len(t, run.GetLinks(), 1)
	assert.Equal(t, submit.GetSpanId(), run.GetLinks()[0].GetSpanId())
	assert.Equal(t, submit.GetTraceId(), run.GetLinks()[0].GetTraceId())
	assert.Equal(t, "s1", text(run.GetAttributes(), "duly.session_id"))
	assert.Equal(t, "success", text(run.GetAttributes(), "duly.outcome"))
	assert.Equal(t, `"00-`+hexOf(run.GetTraceId())+"-"+hexOf(run.GetSpanId())+`-01 "`, string(done.Result), "and a program does not get the credentials of the collector")

	_, page := scrape(t, url, "")
	names := map[string]string{} // with their types
	for line := range strings.Lines(page) {
		if name, kind, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE duly_") {
			names[name] = kind
		}
	}
	require.Greater(t, len(names), 25)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range c.metrics["duly_runs_total"].GetSum().GetDataPoints() {
			if text(p.GetAttributes(), "kind") == "digest" && text(p.GetAttributes(), "outcome") == "success" {
				return p.GetAsDouble() == 1
			}
		}
		return false
	}, 20*time.Second, 20*time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := map[string]string{}
	for name, m := range c.metrics {
		if !strings.HasPrefix(name, "duly_") {
			continue
		}
		switch m.GetData().(type) {
		case *metricspb.Metric_Sum:
			sent[name] = "counter"
			assert.True(t, m.GetSum().GetIsMonotonic(), name)
		case *metricspb.Metric_Gauge:
			sent[name] = "gauge"
		default:
			sent[name] = "histogram"
		}
	}
	assert.Equal(t, names, sent)
	assert.Equal(t, []string{"duly"}, slices.Sorted(maps.Keys(c.services)))
	assert.Equal(t, []string{"collector-secret"}, slices.Sorted(maps.Keys(c.headers)))
	assert.NotContains(t, d.log(), "collector-secret")
}

func hexOf(id []byte) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, one := range id {
		b.WriteByte(digits[one>>4])
		b.WriteByte(digits[one&15])
	}
	return b.String()
}

// A process that ends sends what it has, metrics without an API as well, and under the name that the variables say.
func TestWhatIsLeftIsSentAtTheEnd(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	w := exporting(t, c)
	w.env = append(w.env, "OTEL_SERVICE_NAME=agents", "OTEL_BSP_SCHEDULE_DELAY=3600000", "OTEL_METRIC_EXPORT_INTERVAL=3600000")
	d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: ada, id: first, kind: note }\n"))
	settled(t, w.scheduler(t), "ada", "first", core.StatusCompleted)
	d.line(t, "run kind=note", "task=first")
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
	c.span(t, "run note")
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Equal(t, 1.0, c.metrics["duly_submitted_total"].GetSum().GetDataPoints()[0].GetAsDouble())
	assert.Equal(t, 1.0, c.metrics["duly_store_up"].GetGauge().GetDataPoints()[0].GetAsDouble())
	assert.Equal(t, []string{"agents"}, slices.Sorted(maps.Keys(c.services)))
}

// A collector that is away, or refuses what it gets, delays nothing, is told of once, and no secret is.
func TestACollectorThatIsAwayHarmsNothing(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.refuses = true
	for name, endpoint := range map[string]string{"away": "http://someone:password@127.0.0.1:1", "refuses": c.url} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := exporting(t, c)
			w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=200")
			d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: ada, id: first, kind: note }\n"))
			settled(t, w.scheduler(t), "ada", "first", core.StatusCompleted)
			d.line(t, "OpenTelemetry: cannot send to the collector")
			begun := time.Now()
			code, _ := d.stop(t, syscall.SIGTERM)
			assert.Equal(t, 0, code)
			assert.Less(t, time.Since(begun), 10*time.Second)
			assert.Equal(t, 1, strings.Count(d.log(), "OpenTelemetry:"), d.log())
			for _, secret := range []string{"collector-secret", "password", "127.0.0.1:1/"} {
				assert.NotContains(t, d.log(), secret)
			}
		})
	}
}

// Variables that make no sense are refused at the start, with what to do; some switch everything off.
func TestTheVariablesOfOpenTelemetry(t *testing.T) {
	t.Parallel()
	for variable, says := range map[string][]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc":                  {`OTEL_EXPORTER_OTLP_PROTOCOL "grpc" is unknown`, "use http/protobuf", "4318"},
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=x":             {`OTEL_EXPORTER_OTLP_METRICS_PROTOCOL "x" is unknown`},
		"DULY_TRACE_ERRORS=some":                            {`DULY_TRACE_ERRORS "some" is unknown`, "use none"},
		"OTEL_TRACES_EXPORTER=zipkin":                       {`OTEL_TRACES_EXPORTER "zipkin" is unknown`, "use otlp or none"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=localhost:4317": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http or https URL"},
	} {
		w := noRedis()
		w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", variable)
		oneLine(t, w.duly(t, "daemon", "-c", file(t, handlersFile)), 2, says...)
	}
	for _, off := range []string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none"} {
		c := newCollector(t)
		w := exporting(t, c)
		w.env = append(w.env, off, "OTEL_METRICS_EXPORTER=none")
		d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: ada, id: first, kind: note }\n"))
		task := settled(t, w.scheduler(t), "ada", "first", core.StatusCompleted)
		code, _ := d.stop(t, syscall.SIGTERM)
		assert.Equal(t, 0, code)
		assert.Empty(t, task.Traceparent)
		c.mu.Lock()
		assert.Empty(t, c.services, off)
		c.mu.Unlock()
	}
}

// A daemon that starts again changes no task of its file, although its submits are of another trace.
func TestATracedDaemonChangesNoTaskAtItsStart(t *testing.T) {
	t.Parallel()
	w := exporting(t, newCollector(t))
	path := file(t, handlersFile+"tasks:\n  - { agent: ada, id: nightly, kind: note, cron: \"0 3 1 1 *\" }\n")
	for _, says := range []string{"new=1", "changed=0"} {
		d := w.start(t, "daemon", "-c", path)
		d.line(t, "duly is running", says)
		code, _ := d.stop(t, syscall.SIGTERM)
		require.Equal(t, 0, code)
	}
	info, err := w.scheduler(t).Task(context.WithoutCancel(t.Context()), "ada", "nightly")
	require.NoError(t, err)
	assert.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", info.Traceparent)
}
