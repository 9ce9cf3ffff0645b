package memstore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(_ *testing.T, clock *storetest.Clock, o storetest.Options) store.Store {
		return memstore.New(memstore.Config{
			Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes, Clock: clock,
		})
	})
}

func TestPartitionsMustBeAPowerOfTwo(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { memstore.New(memstore.Config{Partitions: 3}) })
}
