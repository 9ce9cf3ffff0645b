package filestore_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

var ctx = context.Background()

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

// configOf is a store in a folder with the options of the contract.
func configOf(dir string, clock memstore.Clock, o storetest.Options) filestore.Config {
	return filestore.Config{
		Dir: dir, Clock: clock, Reserve: 4096, Logger: slog.New(slog.DiscardHandler),
		Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes,
	}
}

// open opens a store that is closed at the end of the test.
func open(tb testing.TB, c filestore.Config) *filestore.Store {
	tb.Helper()
	s, err := filestore.Open(c)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, s.Close()) })
	return s
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock, o storetest.Options) store.Store {
		t.Helper()
		return open(t, configOf(t.TempDir(), clock, o))
	})
}

var equalOptions = []storetest.Options{
	{Partitions: 1},
	{Partitions: 2, Retention: 2 * time.Minute},
	{Partitions: 1, Kept: 2, MaxTasks: 5},
	{Partitions: 4, Retention: time.Hour, MaxTasks: 12, Kept: 4},
	{Partitions: 1, Kept: 1},
	{Partitions: 1, Kept: 20, KeptBytes: 32 << 10, MaxBytes: 40 << 10},
}

// equal drives a store in a folder and one in memory with the same calls. Then the calls are made again from the journal, twice, and each state is compared
// byte by byte, as is that which a snapshot gives.
func equal(t *testing.T, o storetest.Options, data []byte) int {
	t.Helper()
	clock := storetest.NewClock()
	c := configOf(t.TempDir(), clock, o)
	mem := memstore.New(memstore.Config{
		Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes, Clock: clock,
	})
	s, err := filestore.Open(c)
	require.NoError(t, err)
	n := storetest.Equal(t, clock, mem, s, data)
	state := filestore.State(s)
	filestore.Abandon(s)
	for range 2 {
		s, err = filestore.Open(c)
		require.NoError(t, err)
		require.Equal(t, state, filestore.State(s), "made again")
		filestore.Abandon(s)
	}
	s, err = filestore.Open(c)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s, err = filestore.Open(c)
	require.NoError(t, err)
	require.Equal(t, state, filestore.State(s), "from a snapshot")
	require.NoError(t, s.Close())
	return n
}

// At least 333 calls in each sequence, the same ones in each run; DULY_EQUAL_SEEDS sets how many sequences.
func TestEqualToMemory(t *testing.T) { //nolint:tparallel // the group waits for its parallel subtests
	t.Parallel()
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
				total.Add(int64(equal(t, equalOptions[seed%len(equalOptions)], storetest.Random(uint64(seed), choices))))
			})
		}
	})
	require.GreaterOrEqual(t, total.Load(), int64(333*seeds))
	t.Logf("figure: %d calls gave equal answers", total.Load())
}
