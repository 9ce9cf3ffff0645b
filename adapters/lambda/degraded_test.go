package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/adaptertest"
	lambdaadapter "github.com/seed-6f6f2c11/duly/adapters/lambda"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A tick that could not serve some partitions fails, so that alarms see it; what it did for the others is done, and logged.
func TestATickWithoutSomePartitionsFails(t *testing.T) {
	t.Parallel()
	store := &adaptertest.Partly{Store: memstore.New(memstore.Config{Partitions: 8})}
	s, err := core.New(store, core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	logs := new(bytes.Buffer)
	f, err := lambdaadapter.New(s, lambdaadapter.Config{Logger: slog.New(slog.NewTextHandler(logs, nil))})
	require.NoError(t, err)
	for p := range store.Partitions() {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: adaptertest.AgentOf(p, store.Partitions()), Kind: "ok"})
		require.NoError(t, err)
	}
	store.SetAway(3)
	_, err = f.Invoke(t.Context(), json.RawMessage(known(t, "tick")))
	var away *core.AwayError
	require.ErrorAs(t, err, &away)
	assert.ErrorContains(t, err, "partitions [3] of the store did not answer")
	assert.Contains(t, logs.String(), "completed=7")
	assert.Contains(t, logs.String(), "away=[3]")
	store.SetAway()
	require.Eventually(t, func() bool { // the same occasion is not taken for served
		_, err := f.Invoke(t.Context(), json.RawMessage(known(t, "tick")))
		return err == nil
	}, 10*time.Second, time.Millisecond)
	counts, err := s.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 8, counts.Completed, logs.String())
}

// A tick of an environment whose handlers are stuck fails.
func TestATickWithStuckHandlersFails(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), adaptertest.Stuck)
	require.NoError(t, err)
	f, err := lambdaadapter.New(s, lambdaadapter.Config{})
	require.NoError(t, err)
	adaptertest.Stick(t, s)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", Kind: "stuck"})
	require.NoError(t, err)
	_, err = f.Invoke(t.Context(), json.RawMessage(known(t, "tick")))
	assert.Equal(t, core.CodeAbandoned, core.CodeOf(err))
}
