package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var prefixes atomic.Int64

// still opens a store under a prefix of its own, at the time of a clock.
func still(t *testing.T, c redisstore.Config, clock *storetest.Clock, strict bool, o storetest.Options) *redisstore.Store {
	t.Helper()
	c.Prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
	c.Partitions, c.Retention, c.Kept, c.KeptBytes, c.MaxTasks = o.Partitions, o.Retention, o.Kept, o.KeptBytes, o.MaxTasks
	c.MaxBytes = o.MaxBytes
	ctx := t.Context()
	st, set, err := redisstore.OpenAt(ctx, c, strict, true)
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	clock.OnSet(func(now time.Time) { require.NoError(t, set(now)) })
	return st
}

func TestContract(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock, o storetest.Options) store.Store {
		t.Helper()
		return still(t, redisstore.Config{URL: srv.URL}, clock, false, o)
	})
}

// Every script is loaded with a #!lua line, so that Redis refuses a key of a slot that KEYS does not name.
func TestContractOnCluster(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the contract on one server is enough for a first look: make check runs it")
	}
	srv := redistest.StartCluster(t)
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock, o storetest.Options) store.Store {
		t.Helper()
		c := redisstore.Config{Options: &redis.UniversalOptions{Addrs: []string{srv.Addr}, IsClusterMode: true}}
		return still(t, c, clock, true, o)
	})
}
