package daemon_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/adaptertest"
	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A daemon that serves what it can reach is ready: no other one could serve more.
func TestADaemonIsReadyWithoutSomePartitions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &adaptertest.Partly{Store: memstore.New(memstore.Config{Partitions: 8})}
		s, err := core.New(store, core.Config{})
		require.NoError(t, err)
		ran := countRuns(s)
		d, err := daemon.New(s, daemon.Config{})
		require.NoError(t, err)
		here, there := adaptertest.AgentOf(1, 8), adaptertest.AgentOf(2, 8)
		_, err = s.Submit(t.Context(), core.NewTask{Agent: here, Kind: "note", Every: time.Second}, core.NewTask{Agent: there, Kind: "note", Every: time.Second})
		require.NoError(t, err)
		require.NoError(t, d.Start())
		store.SetAway(2)
		time.Sleep(time.Minute + 500*time.Millisecond)
		assert.NoError(t, d.Ready())
		require.ErrorAs(t, s.Ready(), new(*core.AwayError))
		assert.InDelta(t, 60, ran(here), 2)
		assert.LessOrEqual(t, ran(there), 2)
		store.SetAway()
		time.Sleep(10 * time.Second)
		assert.NoError(t, s.Ready())
		assert.Greater(t, ran(there), 5)
		require.NoError(t, d.Stop(context.Background()))
	})
}

// A daemon whose handlers are stuck is not ready, says so once, and goes on when they have returned.
func TestADaemonWithStuckHandlersIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		var err error
		f.scheduler, err = core.New(f.store, adaptertest.Stuck)
		require.NoError(t, err)
		f.daemon, err = daemon.New(f.scheduler, daemon.Config{Waker: f.store, Logger: slog.New(slog.NewTextHandler(f.logs, nil))})
		require.NoError(t, err)
		letGo := adaptertest.Stick(t, f.scheduler)
		ran := countRuns(f.scheduler)
		f.submit(t, core.NewTask{Agent: "a", Kind: "note", Every: time.Second})
		f.start(t)
		time.Sleep(time.Minute)
		var stuck *model.AbandonedError
		require.ErrorAs(t, f.daemon.Ready(), &stuck)
		assert.Zero(t, ran("a"))
		assert.Equal(t, 1, strings.Count(f.logs.String(), "\n"), f.logs.String())
		assert.Contains(t, f.logs.String(), "claiming has stopped")
		assert.Contains(t, f.logs.String(), "restart it")
		letGo()
		time.Sleep(10 * time.Second)
		assert.NoError(t, f.daemon.Ready())
		assert.Positive(t, ran("a"))
		assert.Equal(t, 2, strings.Count(f.logs.String(), "\n"), f.logs.String())
		assert.Contains(t, f.logs.String(), "claiming again")
	})
}
