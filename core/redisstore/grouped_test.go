package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// Tasks that a version has stored which did not keep their groups are counted in the group that they name themselves.
func TestGroupsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
	const group = "the {group}: \xc3\xa9"
	for _, id := range []string{"run", "cancelled", "deleted", "replaced", "kept"} {
		task := core.NewTask{
			Agent: "an agent", ID: id, Kind: "k", Group: group, Payload: "before it", LimitKey: "key", MaxAttempts: 7, TraceID: "behind it",
			Delay: time.Hour,
		}
		if id == "run" {
			task.Delay = 0
		}
		_, err := s.Submit(t.Context(), task)
		require.NoError(t, err)
	}
	require.NoError(t, srv.Client(t).Del(t.Context(), "duly:{0}:groups").Err())
	_, err = s.Cancel(t.Context(), "an agent", "cancelled", core.Order{})
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), "an agent", "deleted"))
	_, err = s.Submit(t.Context(), core.NewTask{
		Agent: "an agent", ID: "replaced", Kind: "k", Group: "other", Delay: time.Hour, OnConflict: core.OnConflictReplace,
	})
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	counts, err := s.Group(t.Context(), "an agent", group)
	require.NoError(t, err)
	assert.Equal(t, model.GroupCounts{Live: 1, Completed: 1, Cancelled: 1}, counts)
	counts, err = s.Group(t.Context(), "an agent", "other")
	require.NoError(t, err)
	assert.Equal(t, model.GroupCounts{Live: 1}, counts)
}
