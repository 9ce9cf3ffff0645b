package memstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// The same calls at the same times give the same bytes: a store that is read from its journal is the one that has written it.
func TestTheSameCallsGiveTheSameBytes(t *testing.T) {
	t.Parallel()
	var first []byte
	for range 10 {
		st := memstore.New(memstore.Config{Partitions: 1, Clock: storetest.NewClock()})
		for i := range 12 {
			for _, agent := range []string{"a", "b"} {
				_, err := st.Submit(t.Context(), []store.Submission{{Agent: agent, ID: fmt.Sprint(i), Kind: "k", Level: store.LevelLow}})
				require.NoError(t, err)
			}
		}
		_, err := st.Submit(t.Context(), []store.Submission{{Agent: "a", ID: "urgent", Kind: "k", Level: store.LevelHigh}}) // a gets queues, and leaves the agenda
		require.NoError(t, err)
		var written []byte
		require.NoError(t, memstore.StateOf(st).Write(func(piece []byte) error {
			written = append(written, piece...)
			return nil
		}))
		if first == nil {
			first = written
		}
		require.Equal(t, first, written)
	}
}
