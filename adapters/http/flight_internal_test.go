package http

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A key is forgotten once nobody runs or waits for its pull: keys are made of what callers send.
func TestFlightsAreForgotten(t *testing.T) {
	t.Parallel()
	var f flights
	nothing := func(func()) (core.Report, error) { return core.Report{}, nil }
	_, err := f.do(t.Context(), "a", nothing)
	require.NoError(t, err)
	assert.Empty(t, f.open)

	gone, goAway := context.WithCancel(t.Context())
	goAway()
	_, err = f.do(t.Context(), "a", func(claimed func()) (core.Report, error) {
		for range 2 { // they come while it claims, and go away
			_, err := f.do(gone, "a", nothing)
			require.ErrorIs(t, err, errCutOff)
		}
		assert.Nil(t, f.open["a"].next)
		waits := f.join("a")
		claimed()
		assert.Same(t, waits, f.open["a"], "it is next")
		f.leave("a", waits)
		assert.Empty(t, f.open)
		return core.Report{}, nil
	})
	require.NoError(t, err)
	assert.Empty(t, f.open)
}

// A pull that was cut off, as its own caller went away, answers nobody else: one of those who wait does it anew.
func TestAPullThatWasCutOffIsDoneAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f flights
		first := make(chan struct{})
		go func() {
			_, _ = f.do(t.Context(), "a", func(func()) (core.Report, error) { <-first; return core.Report{}, nil })
		}()
		synctest.Wait()
		leads := make(chan context.CancelFunc, 2)
		reports := make(chan int, 2)
		var led atomic.Int64
		for range 2 {
			ctx, goAway := context.WithCancel(t.Context())
			go func() {
				report, _ := f.do(ctx, "a", func(func()) (core.Report, error) {
					if led.Add(1) == 1 {
						leads <- goAway
						<-ctx.Done()
						return core.Report{}, nil
					}
					return core.Report{Ran: 7}, nil
				})
				reports <- report.Ran
			}()
		}
		synctest.Wait()
		close(first)
		(<-leads)()
		assert.ElementsMatch(t, []int{0, 7}, []int{<-reports, <-reports})
	})
}
