package main_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
)

// A tick that finds nothing due, beside a function that says hello, by the same loop: the first invocation starts the
// process, the others find it warm.
func BenchmarkInvoke(b *testing.B) {
	for _, c := range []struct {
		name string
		vars []string
	}{{"hello", []string{"DULY_TEST_HELLO=1"}}, {"tick", nil}} {
		b.Run(c.name+"/cold", func(b *testing.B) {
			w := newWorld(b, c.vars...)
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				e := w.environment(20 * time.Second)
				begun := time.Now()
				invoke(b, e)
				times = append(times, time.Since(begun))
				e.Close()
			}
			percentiles(b, times)
		})
		b.Run(c.name+"/warm", func(b *testing.B) {
			w := newWorld(b, c.vars...)
			e := w.environment(20 * time.Second)
			invoke(b, e)
			times := make([]time.Duration, 0, b.N)
			for b.Loop() {
				times = append(times, invoke(b, e).Took)
			}
			percentiles(b, times)
			e.Close()
		})
	}
}

func invoke(b *testing.B, e *runtimeapi.Environment) runtimeapi.Result {
	b.Helper()
	r, err := e.Invoke(b.Context(), []byte(tick))
	require.NoError(b, err)
	require.False(b, r.Failed, "%s", r.Payload)
	return r
}

func percentiles(b *testing.B, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(times[len(times)*95/100].Seconds()*1000, "p95-ms")
}
