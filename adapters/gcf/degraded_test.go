package gcf_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/adaptertest"
	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A tick that could not serve some partitions fails, so that alarms see it; its answer has the report of the others.
func TestATickWithoutSomePartitionsFails(t *testing.T) {
	t.Parallel()
	store := &adaptertest.Partly{Store: memstore.New(memstore.Config{Partitions: 8})}
	s, err := core.New(store, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	function, err := gcf.New(s, gcf.Config{Verify: gcf.Private})
	require.NoError(t, err)
	for p := range store.Partitions() {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: adaptertest.AgentOf(p, store.Partitions()), Kind: "ok"})
		require.NoError(t, err)
	}
	store.SetAway(3)
	f := &fixture{function: function}
	status, answer := f.scheduled(t, "", "duly", at)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "unavailable", answer["code"])
	assert.Equal(t, "partitions [3] of the store do not answer; the others were served", answer["detail"])
	report, _ := answer["report"].(map[string]any)
	assert.EqualValues(t, 7, report["completed"])
	assert.Equal(t, []any{3.0}, report["away"])
}

// A tick of an instance whose handlers are stuck fails, and says why.
func TestATickWithStuckHandlersFails(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), adaptertest.Stuck)
	require.NoError(t, err)
	function, err := gcf.New(s, gcf.Config{Verify: gcf.Private})
	require.NoError(t, err)
	adaptertest.Stick(t, s)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "stuck"})
	require.NoError(t, err)
	status, answer := (&fixture{function: function}).scheduled(t, "", "duly", at)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Equal(t, "abandoned", answer["code"])
	assert.Contains(t, answer["detail"], "restart it")
}
