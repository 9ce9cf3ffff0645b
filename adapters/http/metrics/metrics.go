package metrics

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// The counters of this process, and of how they are registered.

// Defaults of Config.
// A scrape is every 15 s as a rule, so a second is fresh.
const (
	DefaultTimeout = 2 * time.Second
	DefaultFresh   = time.Second
)

// Config says how a scheduler is measured. Every zero is a good default.
type Config struct {
	// Version labels duly_build_info; the metric is omitted if it is empty.
	Version string
	// Timeout is how long the store has to answer a scrape: DefaultTimeout if zero. After that the scrape is answered
	// without the store's figures.
	Timeout time.Duration
	// Fresh is how old the store's figures may be, so that it is not asked for each of many scrapes: DefaultFresh if zero.
	Fresh time.Duration
	// Logger gets what is wrong with a scrape. Nothing is logged if nil.
	Logger *slog.Logger
	// Clock measures durations: core.SystemClock if nil.
	Clock core.Clock
}

// Metrics are the metrics of one scheduler. They are in a registry of their own: what else the program registers is not
// theirs. It is safe for concurrent use.
type Metrics struct {
	config   Config
	registry *prometheus.Registry
	kinds    kinds

	// What this process counts, as it happens:
	submitted  prometheus.Counter
	runs       *prometheus.CounterVec
	runSeconds *prometheus.HistogramVec
	lagSeconds *prometheus.HistogramVec
	ticks      prometheus.Counter
	tickTook   prometheus.Histogram
	lost       prometheus.Counter
	refused    *prometheus.CounterVec
	resets     prometheus.Counter
	held       prometheus.Counter
	recovered  prometheus.Counter
	faults     *prometheus.CounterVec
	audited    prometheus.Counter
	calls      *prometheus.CounterVec
	callTook   *prometheus.HistogramVec
}

// Upper ends of the buckets of histograms, in seconds: of what users wait for, and of calls to a store.
// Runs take from a millisecond to an hour, calls of a store from a tenth of one.
var (
	workBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	callBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

// New makes metrics that are all zero. They count what they are given: wrap the store with Store, give Event and Tick to
// core.Config, and serve Handler.
func New(config Config) *Metrics {
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	config.Fresh = cmp.Or(config.Fresh, DefaultFresh)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Clock == nil {
		config.Clock = core.SystemClock{}
	}
	// Names, help and labels are part of what users build dashboards on.
	m := &Metrics{
		config:    config,
		registry:  prometheus.NewRegistry(),
		submitted: counter("duly_submitted_total", "Tasks created."),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "duly_runs_total", Help: "Runs that ended, by outcome.",
		}, []string{"kind", "outcome"}),
		runSeconds: histograms("duly_run_seconds", "Duration of runs, whatever their outcome; each task of a batch counts with the duration of the whole batch.", workBuckets, "kind"),
		lagSeconds: histograms("duly_lag_seconds", "Time from the due time of runs to their start.", workBuckets, "kind"),
		ticks:      counter("duly_ticks_total", "Ticks that ended; a tick is everything that one pull runs for one agent."),
		tickTook: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "duly_tick_seconds", Help: "Duration of ticks.", Buckets: workBuckets,
		}),
		lost: counter("duly_leases_lost_total", "Runs that lost their lease: another process may have the task, or it was deleted while it ran."),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "duly_breaker_total", Help: "Submits of runs that were refused, as they were too deep or too many below their root.",
		}, []string{"code"}),
		resets:    counter("duly_store_reset_total", "How often this process found that the store had lost the limits, budgets and tasks that it had stored there, and applied them again."),
		held:      counter("duly_key_holds_total", "How often this process held the tasks of a limit key, as a run of one was told to retry later."),
		recovered: counter("duly_recovered_total", "Tasks of dead or frozen processes, with expired leases, that this process requeued."),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "duly_audit_faults_total", Help: "Faults found by the audits of a daemon: tasks that would have stopped silently. Repaired unless the fault is unreadable or gone.",
		}, []string{"fault"}),
		audited: counter("duly_audit_pages_total", "Pages of the store that this process has audited. A daemon audits one every few seconds."),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "duly_store_calls_total", Help: "Store calls, including those of scrapes.",
		}, []string{"verb"}),
		callTook: histograms("duly_store_seconds", "Duration of store calls.", callBuckets, "verb"),
	}
	m.register()
	return m
}

// counter is a counter without labels.
func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// histograms is a histogram with one label.
func histograms(name, help string, buckets []float64, label string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
}

// register puts everything into the registry. Series with labels that
// are known beforehand begin at zero.
func (m *Metrics) register() {
	m.registry.MustRegister(
		m.submitted, m.runs, m.runSeconds, m.lagSeconds, m.ticks, m.tickTook, m.lost, m.refused, m.resets, m.held, m.recovered, m.faults, m.audited, m.calls, m.callTook,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if m.config.Version != "" {
		build := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "duly_build_info", Help: "The running version; always 1.",
			ConstLabels: prometheus.Labels{"version": m.config.Version},
		})
		build.Set(1)
		m.registry.MustRegister(build)
	}
	for _, fault := range audit.Codes() {
		m.faults.WithLabelValues(string(fault))
	}
	for _, code := range []core.Code{core.CodeSpawnDepth, core.CodeSpawnRate, core.CodeQuota} {
		m.refused.WithLabelValues(string(code))
	}
	for _, verb := range verbs {
		m.calls.WithLabelValues(verb)
		m.callTook.WithLabelValues(verb)
	}
}
