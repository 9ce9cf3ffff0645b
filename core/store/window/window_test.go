package window_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// A lag is told by the end of its step: never less than it was, and 41 % more at most, up to a day.
func TestLagsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for lag := time.Millisecond; lag < 24*time.Hour; lag += lag/7 + time.Millisecond/3 {
		k := window.Kind{}
		k.Lags[window.LagStep(lag)]++
		assert.GreaterOrEqual(t, k.Lag(0.95), lag.Truncate(time.Millisecond), lag)
		assert.LessOrEqual(t, k.Lag(0.95).Seconds(), 1.42*lag.Seconds()+0.001, lag)
	}
	k := window.Kind{}
	assert.Zero(t, k.Lag(0.5))
	k.Lags[window.LagStep(time.Millisecond)] = 94
	k.Lags[window.LagStep(1000*time.Hour)] = 6
	assert.Equal(t, 2*time.Millisecond, k.Lag(0.5))
	assert.Equal(t, 2*time.Millisecond, k.Lag(0.94))
	assert.Greater(t, k.Lag(0.95), 24*time.Hour)
}
