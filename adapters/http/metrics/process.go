package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-6f6f2c11/duly/core"
)

// The process's own state: its slots, and what it cannot reach.

// They are gauges: the state at the moment of the scrape.
var (
	slotsDesc     = prometheus.NewDesc("duly_slots", "Slots for runs. Those reserved for level 1 are free while no such task runs.", []string{"state"}, nil)
	oneAgentDesc  = prometheus.NewDesc("duly_slots_of_one_agent", "Slots that runs of one agent take: of the agent that takes the most in this process.", nil, nil)
	abandonedDesc = prometheus.NewDesc("duly_abandoned_handlers", "Handlers that still run after their context was cancelled: they hold no slot, but memory and connections; if there are too many, the process claims nothing.", nil, nil)
	suspectsDesc  = prometheus.NewDesc("duly_suspects", "Runs under way of tasks whose last run died with its process. A run that ends clears its task.", nil, nil)
	awayDesc      = prometheus.NewDesc("duly_partitions_away", "Partitions of the store that do not answer this process while others do.", nil, nil)
)

// processCollector makes metrics of what a scheduler says of its process. It calls no store.
// Unlike the store's figures these are of this process alone, and are to be added up.
type processCollector struct{ scheduler *core.Scheduler }

// Describe lists the metrics.
func (processCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{slotsDesc, oneAgentDesc, abandonedDesc, suspectsDesc, awayDesc} {
		descs <- d
	}
}

// Collect makes them.
func (c processCollector) Collect(out chan<- prometheus.Metric) {
	st, away := c.scheduler.Slots(), 0
	if e, ok := errors.AsType[*core.AwayError](c.scheduler.Ready()); ok {
		away = len(e.Partitions)
	}
	gauge(out, slotsDesc, float64(st.InUse), "in_use")
	gauge(out, slotsDesc, float64(st.Total-st.InUse), "free")
	gauge(out, oneAgentDesc, float64(st.OfOneAgent))
	gauge(out, abandonedDesc, float64(st.Abandoned))
	gauge(out, suspectsDesc, float64(st.Suspects))
	gauge(out, awayDesc, float64(away))
}

// gauge sends one value, made for this scrape only.
func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}
