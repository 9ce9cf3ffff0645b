package http

import (
	"context"
	"testing"

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
