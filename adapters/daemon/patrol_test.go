package daemon_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A task that Redis has lost out of its queue runs all the same, as the daemon finds it by itself, and tells once that it did.
func TestTheDaemonFindsWhatWasLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Partitions: 4})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	// What was repaired may run before its repair is told.
	faults, ran := make(chan core.Event, 2), make(chan string, 2)
	s, err := core.New(st, core.Config{OnEvent: func(e core.Event) {
		if e.Type == model.EventFault {
			faults <- e
		}
	}})
	require.NoError(t, err)
	core.Handle(s, "work", func(_ context.Context, task *core.Task[any]) error {
		ran <- task.Agent
		return nil
	})
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "1", Kind: "work", Delay: time.Hour})
	require.NoError(t, err)
	client := srv.Client(t)
	agendas, err := client.Keys(t.Context(), "duly:*:agenda").Result()
	require.NoError(t, err)
	require.Len(t, agendas, 1)
	require.NoError(t, client.ZRem(t.Context(), agendas[0], "ada").Err())

	d, err := daemon.New(s, daemon.Config{Waker: st, Patrol: 100 * time.Millisecond}) // a page has as long, and one that is cut off tells nothing
	require.NoError(t, err)
	require.NoError(t, d.Start())
	t.Cleanup(func() { assert.NoError(t, d.Stop(context.Background())) })
	select {
	case agent := <-ran:
		assert.Equal(t, "ada", agent)
	case <-time.After(time.Minute):
		require.Fail(t, "it was not found")
	}
	var told core.Event
	select {
	case told = <-faults:
	case <-time.After(time.Minute):
		require.Fail(t, "nobody was told")
	}
	assert.Equal(t, [3]any{"ada", "1", audit.Lost}, [3]any{told.Agent, told.ID, told.Fault})
	assert.Equal(t, "lost: it was repaired", told.Error)
	assert.Empty(t, faults)
}

// What no repair mends is told once, not each time round.
func TestAFaultThatStaysIsToldOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Partitions: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	told := 0
	s, err := core.New(st, core.Config{OnEvent: func(e core.Event) {
		if e.Type == model.EventFault {
			told++
		}
	}})
	require.NoError(t, err)
	require.NoError(t, srv.Client(t).HSet(t.Context(), "duly:{0}:agents", "zoe", "?").Err())
	for range 20 { // several times round
		require.NoError(t, s.Patrol(t.Context(), nil))
	}
	assert.Equal(t, 1, told)
}
