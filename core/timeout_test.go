package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A run without a timeout that shares a call with runs that have one keeps the call from ending.
func TestATimeoutOfZeroCountsInABatch(t *testing.T) {
	virtual(t, core.Config{Kinds: map[string]core.KindConfig{"k": {Timeout: time.Second}}}, func(w *world) {
		var ended time.Duration
		core.HandleBatch(w.s, "k", func(ctx context.Context, tasks []*core.Task[note]) []error {
			begun := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			ended = time.Since(begun)
			return make([]error, len(tasks))
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Timeout: -1}, core.NewTask{Agent: "a", ID: "2", Kind: "k", Timeout: time.Second})
		report, err := w.s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 2, report.Completed)
		assert.Equal(t, 10*time.Second, ended)
	})
}
