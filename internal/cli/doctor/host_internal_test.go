package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// A month is worked out from servers that have been up for a while, and their youngest says for how long.
func TestTheWindowOfAPrice(t *testing.T) {
	t.Parallel()
	for name := range hosts {
		h, err := hostOf(name)
		require.NoError(t, err)
		old := redisstore.Facts{Up: 48 * time.Hour, Commands: 1e6, Memory: 1e8}
		young := redisstore.Facts{Up: 2 * time.Hour, Commands: 1e6, Memory: 1e8}
		f := h.figures([]redisstore.Facts{old, young}, redisstore.Tick{Commands: 2})
		assert.EqualValues(t, 7200, f.Window)
		assert.Positive(t, f.Dollars, name)
		sum := 0.0
		for _, i := range f.Items {
			sum += i.Dollars
		}
		assert.InDelta(t, f.Dollars, sum, 1e-9)
		young.Up = 2 * time.Second
		f = h.figures([]redisstore.Facts{old, young}, redisstore.Tick{Commands: 2})
		assert.Zero(t, f.Dollars, name)
		assert.Empty(t, f.Items)
	}
}
