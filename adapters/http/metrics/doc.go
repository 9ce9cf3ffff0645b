// Package metrics counts what a scheduler and its store do, for Prometheus. docs/reference/metrics.md lists what there is. It is a
// package of its own so that only programs that are scraped link what it takes.
//
//	m := metrics.New(metrics.Config{})
//	s, err := core.New(m.Store(store), core.Config{OnEvent: m.Event, OnTick: m.Tick})
//	core.Handle(s, ...)
//	api := httpadapter.New(s, httpadapter.Config{Metrics: m.Handler(s)})
package metrics
