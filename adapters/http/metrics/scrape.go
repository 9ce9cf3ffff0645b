package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-6f6f2c11/duly/core"
)

// A scrape: it answers with what it has, as a page without the store's figures still shows that the process lives.

// Handler answers scrapes: what was counted, and the store's figures as they are now. If the store does not answer in time
// the scrape does all the same, with duly_store_up at 0 and without the store's figures. It asks for no credential: give it to
// httpadapter.Config, which does, or guard it.
//
// It also makes the kinds that s has handlers for known, so call it before tasks run: until then all kinds are counted as
// "other". A Metrics is for one scheduler.
func (m *Metrics) Handler(s *core.Scheduler) http.Handler {
	m.watch(s)
	f := newFigures(m, s)
	logger := errorLog{m.config.Logger}
	// Each scrape has a registry for what is true now, beside the one that counts.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said, err := f.read(r.Context())
		if err != nil && r.Context().Err() == nil {
			m.config.Logger.WarnContext(r.Context(), "the store's figures are missing from a scrape", slog.Any("err", err))
		}
		now := prometheus.NewRegistry()
		now.MustRegister(storeCollector{answer: said, up: err == nil}, processCollector{s})
		// One collector that fails does not take the others with it.
		promhttp.HandlerFor(prometheus.Gatherers{m.registry, now}, promhttp.HandlerOpts{
			ErrorLog: logger, ErrorHandling: promhttp.ContinueOnError,
		}).ServeHTTP(w, r)
	})
}

// Gatherer gathers what a scrape of Handler has, for a program that sends its metrics by itself, such as by OTLP with the bridge of
// OpenTelemetry for Prometheus. Reading the store's figures ends with ctx. As Handler does, it makes the kinds known that s has handlers for.
func (m *Metrics) Gatherer(ctx context.Context, s *core.Scheduler) prometheus.Gatherer {
	m.watch(s)
	f := newFigures(m, s)
	now := prometheus.NewRegistry()
	now.MustRegister(liveCollector{read: func() (answer, error) {
		said, err := f.read(ctx)
		if err != nil && ctx.Err() == nil {
			m.config.Logger.WarnContext(ctx, "the store's figures are missing from what is gathered", slog.Any("err", err))
		}
		return said, err
	}}, processCollector{s})
	return prometheus.Gatherers{m.registry, now}
}

// liveCollector reads the store's figures each time that it is asked for them.
type liveCollector struct {
	storeCollector

	read func() (answer, error)
}

// Collect makes the metrics of what the store says now.
func (c liveCollector) Collect(out chan<- prometheus.Metric) {
	said, err := c.read()
	storeCollector{answer: said, up: err == nil}.Collect(out)
}

// errorLog hands on what is wrong with a scrape.
// promhttp takes a logger of this shape.
type errorLog struct{ *slog.Logger }

// Println logs.
func (l errorLog) Println(v ...any) {
	l.Warn("a scrape is incomplete", slog.String("err", fmt.Sprint(v...)))
}
