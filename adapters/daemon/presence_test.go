package daemon_test

// A daemon is known while it lives.

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// counted counts what is announced.
type counted struct {
	*memstore.Store

	said int
}

func (c *counted) Announce(ctx context.Context, tag string, info []byte, keep time.Duration) (int, error) {
	c.said++
	return c.Store.Announce(ctx, tag, info, keep)
}

// An idle daemon is among the processes for as long as it lives, at three announcements a minute at most.
func TestAnIdleDaemonIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := &counted{Store: memstore.New(memstore.Config{Partitions: 1})}
		s, err := core.New(st, core.Config{Presence: st, Name: "idle"})
		require.NoError(t, err)
		core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
		d, err := daemon.New(s, daemon.Config{Waker: st, Patrol: -1})
		require.NoError(t, err)
		require.NoError(t, d.Start())
		operator, err := core.New(st, core.Config{Presence: st})
		require.NoError(t, err)
		for range 30 {
			time.Sleep(20 * time.Second)
			synctest.Wait()
			all, err := operator.Processes(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			assert.Equal(t, "idle", all[0].Name)
		}
		assert.LessOrEqual(t, st.said, 31)
		assert.GreaterOrEqual(t, st.said, 20)
		require.NoError(t, d.Stop(t.Context()))
		all, err := operator.Processes(t.Context())
		require.NoError(t, err)
		assert.Empty(t, all, "it has ended")
	})
}
