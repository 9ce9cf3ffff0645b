package redisstore_test

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// equal drives a store on Redis and one in memory with the same calls.
func equal(t *testing.T, url string, o storetest.Options, data []byte) int {
	t.Helper()
	clock := storetest.NewClock()
	mem := memstore.New(memstore.Config{
		Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes, Clock: clock,
	})
	return storetest.Equal(t, clock, mem, still(t, redisstore.Config{URL: url}, clock, false, o), data)
}

var equalOptions = []storetest.Options{
	{Partitions: 1},
	{Partitions: 2, Retention: 2 * time.Minute},
	{Partitions: 1, Kept: 2, MaxTasks: 5},
	{Partitions: 4, Retention: time.Hour, MaxTasks: 12, Kept: 4},
	{Partitions: 1, Kept: 1},
	{Partitions: 1, Kept: 20, KeptBytes: 32 << 10, MaxBytes: 40 << 10},
}

// At least 333 calls in each sequence, the same ones in each run; DULY_EQUAL_SEEDS sets how many sequences. CI makes 72 without the race detector.
func TestEqualToMemory(t *testing.T) { //nolint:tparallel // the group waits for its parallel subtests
	t.Parallel()
	srv := redistest.Start(t)
	const choices = 13_500
	seeds := 12
	if testing.Short() {
		seeds = 1
	}
	if n, err := strconv.Atoi(os.Getenv("DULY_EQUAL_SEEDS")); err == nil {
		seeds = n
	}
	var total atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				n := equal(t, srv.URL, equalOptions[seed%len(equalOptions)], storetest.Random(uint64(seed), choices))
				total.Add(int64(n))
			})
		}
	})
	require.GreaterOrEqual(t, total.Load(), int64(333*seeds))
	t.Logf("figure: %d calls gave equal answers", total.Load())
}

func FuzzEqualToMemory(f *testing.F) {
	srv := redistest.Start(f)
	for seed := range uint64(8) {
		f.Add(byte(seed), storetest.Random(seed, 400))
	}
	f.Fuzz(func(t *testing.T, options byte, data []byte) {
		if len(data) > 4000 {
			return
		}
		equal(t, srv.URL, equalOptions[int(options)%len(equalOptions)], data)
	})
}
