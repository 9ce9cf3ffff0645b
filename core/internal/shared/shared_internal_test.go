package shared

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// A key is forgotten once nobody runs or waits for its pull: keys are made of what callers send.
func TestSharedPullsAreForgotten(t *testing.T) {
	t.Parallel()
	var f Pulls
	nothing := func(func()) (model.Report, error) { return model.Report{}, nil }
	_, err := f.Do(t.Context(), "a", nothing)
	require.NoError(t, err)
	assert.Empty(t, f.open)

	gone, goAway := context.WithCancel(t.Context())
	goAway()
	_, err = f.Do(t.Context(), "a", func(claimed func()) (model.Report, error) {
		for range 2 { // they come while it claims, and go away
			report, err := f.Do(gone, "a", nothing)
			require.NoError(t, err)
			assert.Equal(t, model.Report{More: true}, report, "nothing is known")
		}
		assert.Nil(t, f.open["a"].next)
		waits := f.join("a")
		claimed()
		assert.Same(t, waits, f.open["a"], "it is next")
		f.leave("a", waits)
		assert.Empty(t, f.open)
		return model.Report{}, nil
	})
	require.NoError(t, err)
	assert.Empty(t, f.open)
}

// A pull that was cut off, as its own caller went away, answers nobody else: one of those who wait does it anew.
func TestAPullThatWasCutOffIsDoneAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f Pulls
		first := make(chan struct{})
		go func() {
			_, _ = f.Do(t.Context(), "a", func(func()) (model.Report, error) { <-first; return model.Report{}, nil })
		}()
		synctest.Wait()
		leads := make(chan context.CancelFunc, 2)
		reports := make(chan int, 2)
		var led atomic.Int64
		for range 2 {
			ctx, goAway := context.WithCancel(t.Context())
			go func() {
				report, _ := f.Do(ctx, "a", func(func()) (model.Report, error) {
					if led.Add(1) == 1 {
						leads <- goAway
						<-ctx.Done()
						return model.Report{}, nil
					}
					return model.Report{Ran: 7}, nil
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
