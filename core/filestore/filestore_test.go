package filestore_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/core/storetest/equal"
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
		Dir: dir, Clock: clock, Reserve: 4096, Logger: slog.New(slog.DiscardHandler), Elsewhere: true,
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

// same drives a store in a folder and one in memory with the same calls. Then the calls are made again from the journal, twice, and each state is compared
// byte by byte, as is that which a snapshot gives.
func same(t *testing.T, o storetest.Options, data []byte) int {
	t.Helper()
	clock := storetest.NewClock()
	c := configOf(t.TempDir(), clock, o)
	mem := memstore.New(memstore.Config{
		Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes, Clock: clock,
	})
	s, err := filestore.Open(c)
	require.NoError(t, err)
	n := equal.Stores(t, clock, mem, s, data)
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

func TestEqualToMemory(t *testing.T) {
	t.Parallel()
	equal.Sequences(t, same)
}
