package equal

// The sequences of calls that each store is compared by.

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/storetest/given"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// Options are the settings under which sequences of calls are compared.
var Options = []given.Options{
	{Partitions: 1},
	{Partitions: 2, Retention: 2 * time.Minute},
	{Partitions: 1, Kept: 2, MaxTasks: 5},
	{Partitions: 4, Retention: time.Hour, MaxTasks: 12, Kept: 4},
	{Partitions: 1, Kept: 1},
	{Partitions: 1, Kept: 20, KeptBytes: 32 << 10, MaxBytes: 40 << 10},
}

// Sequences has sequences of calls compared, each by compare, which returns how many calls it was: at least 333 in each, and the same ones in each run.
// DULY_TEST_EQUAL_SEEDS sets how many; CI makes 72 without the race detector.
func Sequences(t *testing.T, compare func(t *testing.T, o given.Options, data []byte) int) {
	t.Helper()
	const choices = 17_000
	seeds := 12
	switch {
	case testing.Short():
		seeds = 1
	case race.Enabled:
		seeds = 3
	}
	if n, err := strconv.Atoi(os.Getenv("DULY_TEST_EQUAL_SEEDS")); err == nil {
		seeds = n
	}
	var total atomic.Int64
	t.Run("seeds", func(t *testing.T) { // the group waits for its parallel subtests
		for seed := range seeds {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				total.Add(int64(compare(t, Options[seed%len(Options)], Random(uint64(seed), choices))))
			})
		}
	})
	require.GreaterOrEqual(t, total.Load(), int64(333*seeds))
	t.Logf("figure: %d calls gave equal answers", total.Load())
}

// Random is data for Equal: n choices from a seed.
func Random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.UintN(256))
	}
	return data
}
