// Package otel traces a scheduler with OpenTelemetry: a span for each submit, and one for each run, which links to the submit of its
// task. Import it as oteladapter. It needs the API of OpenTelemetry alone: a program chooses its own SDK, exporter and sampler.
//
//	oteladapter.New(oteladapter.Config{TracerProvider: provider}).Wrap(s)
//
// The submit's context travels with the task as its traceparent, in the format of the W3C: 55 bytes of the stored task, and none
// where nothing is traced. A run is no child of its submit but linked to it, as it may come weeks later, once for each occurrence, and
// a batch has the tasks of many submits. docs/tracing.md has the attributes.
package otel
