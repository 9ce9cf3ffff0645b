package due

// OpenTelemetry: traces and metrics by OTLP, if the environment names an endpoint.

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	oteladapter "github.com/seed-6f6f2c11/duly/adapters/otel"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
)

// Variables of OpenTelemetry that duly reads itself, before its SDK reads them and others. They are those that all SDKs know.
const (
	otelDisabled        = "OTEL_SDK_DISABLED"
	otelEndpoint        = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelTracesEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelMetricsEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	otelTracesExporter  = "OTEL_TRACES_EXPORTER"
	otelMetricsExporter = "OTEL_METRICS_EXPORTER"
	otelProtocol        = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otelTracesProtocol  = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	otelMetricsProtocol = "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"
)

// traceErrors is duly's own: "none" leaves the texts of errors out of the traces.
const traceErrors = "DULY_TRACE_ERRORS"

// otelSecrets hold the credentials of a collector.
var otelSecrets = []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"}

const (
	lastExport  = 2 * time.Second // for what is left when a process ends: a collector that is away delays that by no more
	failedEvery = time.Minute     // how often an unreachable collector is logged
)

// telemetry is what a process sends by OTLP. It is nil if nothing is to be sent, and its methods accept that.
type telemetry struct {
	traces  *sdktrace.TracerProvider // nil for none
	meters  *sdkmetric.MeterProvider // nil for none
	metrics *metrics.Metrics
	version string
	logger  *slog.Logger
	export  sdkmetric.Exporter // nil for no metrics
	of      *resource.Resource
}

// wanted reports whether a signal is to be sent: an endpoint is named, for it or for all, and its exporter is not "none".
func wanted(exporter, endpoint, protocol string) (bool, error) {
	name, address := variableOf(endpoint, otelEndpoint)
	if off, _ := strconv.ParseBool(os.Getenv(otelDisabled)); off || address == "" {
		return false, nil
	}
	switch kind := strings.TrimSpace(os.Getenv(exporter)); kind {
	case "", "otlp":
	case "none":
		return false, nil
	default:
		return false, exit.Misuse("use otlp or none", "%s %q is unknown", exporter, kind)
	}
	if !httpURL(address) { // it is not shown, as it may contain a password
		return false, exit.Misuse("set it to one such as http://127.0.0.1:4318", "%s must be an http or https URL", name)
	}
	switch by, speaks := variableOf(protocol, otelProtocol); speaks {
	case "", "http/protobuf", "http/json":
		return true, nil
	default:
		return false, exit.Misuse("use http/protobuf, and the port of the collector for it, usually 4318", "%s %q is unknown", by, speaks)
	}
}

// variableOf is the first of two variables that has a value, and that.
func variableOf(own, all string) (name, value string) {
	if value = strings.TrimSpace(os.Getenv(own)); value != "" {
		return own, value
	}
	return all, strings.TrimSpace(os.Getenv(all))
}

func httpURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// newTelemetry prepares what the environment asks for; nil if nothing. It makes no call yet: an unreachable collector keeps no process
// from starting.
func newTelemetry(ctx context.Context, version string, logger *slog.Logger) (*telemetry, error) {
	traces, err := wanted(otelTracesExporter, otelTracesEndpoint, otelTracesProtocol)
	if err != nil {
		return nil, err
	}
	figures, err := wanted(otelMetricsExporter, otelMetricsEndpoint, otelMetricsProtocol)
	if err != nil || !traces && !figures {
		return nil, err
	}
	// What the SDK logs by itself may have the values of variables in it.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(&exportErrors{logger: logger, clock: core.SystemClock{}})
	t := &telemetry{version: version, logger: logger}
	// Later ones win: the operator may choose the name of the service.
	t.of, err = resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "duly"), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, exit.Misuse("see docs/tracing.md", "OTEL_RESOURCE_ATTRIBUTES cannot be read")
	}
	if text := os.Getenv(traceErrors); text != "" && text != "none" {
		return nil, exit.Misuse("use none, or leave it empty", "%s %q is unknown", traceErrors, text)
	}
	if traces {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, exit.Misuse("see docs/tracing.md", "traces cannot be sent: %w", plainly(err))
		}
		limits := sdktrace.NewSpanLimits()
		if os.Getenv("OTEL_SPAN_LINK_COUNT_LIMIT") == "" { // a batch links to all its tasks
			limits.LinkCountLimit = model.MaxBatch
		}
		t.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(t.of), sdktrace.WithRawSpanLimits(limits))
	}
	if figures {
		if t.export, err = otlpmetrichttp.New(ctx); err != nil {
			return nil, exit.Misuse("see docs/tracing.md", "metrics cannot be sent: %w", plainly(err))
		}
	}
	return t, nil
}

// scheduler makes the API's scheduler, traced and measured. Without an API it is measured for OTLP alone.
func (t *telemetry) scheduler(a *api, st core.Store, settings core.Config) (*core.Scheduler, error) {
	if t == nil {
		return a.scheduler(st, settings)
	}
	if a != nil {
		t.metrics = a.metrics
	} else if t.export != nil {
		t.metrics = metrics.New(metrics.Config{Version: t.version, Logger: t.logger})
		log := settings.OnEvent
		settings.OnEvent = func(e core.Event) {
			log(e)
			t.metrics.Event(e)
		}
		settings.OnTick, st = t.metrics.Tick, t.metrics.Store(st)
	}
	s, err := a.scheduler(st, settings)
	if err == nil && t.traces != nil {
		oteladapter.New(oteladapter.Config{
			TracerProvider: t.traces, Name: settings.Name, WithoutErrorTexts: os.Getenv(traceErrors) != "",
		}).Wrap(s)
	}
	return s, err
}

// begin sends metrics from now on, once all handlers are registered: it makes their kinds known. What is gathered is what a scrape has.
func (t *telemetry) begin(ctx context.Context, s *core.Scheduler) {
	if t == nil || t.export == nil {
		return
	}
	from := prometheus.NewMetricProducer(prometheus.WithGatherer(t.metrics.Gatherer(context.WithoutCancel(ctx), s)))
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithResource(t.of), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(t.export, sdkmetric.WithProducer(from))))
}

// over lets requests of the API bring the trace that they belong to.
func (t *telemetry) over(server *http.Server) {
	if t != nil && t.traces != nil && server != nil {
		server.Handler = oteladapter.Requests(server.Handler)
	}
}

// end sends what is left, and stops. What cannot be sent in time is lost.
func (t *telemetry) end(ctx context.Context) {
	if t == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastExport)
	defer cancel()
	var ending sync.WaitGroup
	defer ending.Wait()
	if t.traces != nil {
		ending.Go(func() { report(t.traces.Shutdown(limited)) })
	}
	switch {
	case t.meters != nil:
		ending.Go(func() { report(t.meters.Shutdown(limited)) })
	case t.export != nil: // nothing was sent yet
		ending.Go(func() { report(t.export.Shutdown(limited)) })
	}
}

// report hands on what the last export says.
func report(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

// exportErrors logs that a collector cannot be reached, once a minute: it is asked every few seconds.
type exportErrors struct {
	logger *slog.Logger
	clock  core.Clock

	mu   sync.Mutex
	last time.Time
}

// Handle is called by the SDK, from any goroutine.
func (e *exportErrors) Handle(err error) {
	e.mu.Lock()
	now := e.clock.Now()
	quiet := !e.last.IsZero() && now.Sub(e.last) < failedEvery
	if !quiet {
		e.last = now
	}
	e.mu.Unlock()
	if !quiet {
		e.logger.Warn("OpenTelemetry: cannot send to the collector; tasks are not affected", slog.Any("err", plainly(err)))
	}
}

// plainly is an error without the URL that it is about, which may contain a secret.
func plainly(err error) error {
	if about, ok := errors.AsType[*url.Error](err); ok {
		return about.Err
	}
	return err
}
