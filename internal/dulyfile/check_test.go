package dulyfile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// Settings that a flag has changed are checked together with those of the file, and named by their keys.
func TestCheckNamesTheKey(t *testing.T) {
	t.Parallel()
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte("urgent_slots: 3\nconcurrency: 10\n"), dulyfile.Defaults{})
	require.NoError(t, err)
	require.NoError(t, f.Check())
	f.Concurrency = 3 // as by --concurrency
	err = f.Check()
	require.ErrorAs(t, err, new(*dulyfile.Error))
	assert.EqualError(t, err, "urgent_slots: must be less than the concurrency (3), not 3")
	f.Concurrency = -1
	assert.EqualError(t, f.Check(), "concurrency: must be between 1 and 100000, not -1")
}
