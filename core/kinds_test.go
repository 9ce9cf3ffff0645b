package core_test

// What is known of kinds, and handlers that are taken out.

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Each kind that has a handler, settings, tasks, a limit or a pause is listed once, with all of them.
func TestKindsAreDescribed(t *testing.T) {
	config := core.Config{Kinds: map[string]core.KindConfig{
		"handled": {Slots: 3, Timeout: time.Minute, PauseAfter: -1}, "set": {Batch: 5, BatchWait: time.Second}, "elsewhere": {Disabled: true},
	}}
	virtual(t, config, func(w *world) {
		core.Handle(w.s, "handled", func(context.Context, *core.Task[any]) error { return nil })
		core.Gate(w.s, "handled", func(context.Context, *core.RunInfo) (bool, error) { return true, nil })
		w.submit(core.NewTask{Agent: "a", Kind: "handled"}, core.NewTask{Agent: "a", Kind: "stored", Delay: time.Hour})
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Kind: "paused"}, core.Pause{Reason: "why", Ahead: true}))
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		list, err := w.s.DescribeKinds(w.Context())
		require.NoError(t, err)
		assert.False(t, list.Cut)
		var names []string
		kinds := map[string]inspect.KindInfo{}
		for _, k := range list.Kinds {
			names = append(names, k.Kind)
			kinds[k.Kind] = k
		}
		assert.Equal(t, []string{"elsewhere", "handled", "paused", "set", "stored"}, names)
		h := kinds["handled"]
		assert.True(t, h.Handled && h.Gated && !h.Batches)
		assert.Equal(t, model.KindSlots{Total: 3}, h.Slots)
		assert.Equal(t, 1, h.Processes)
		assert.Equal(t, int64(1), h.Counters.Live)
		assert.Equal(t, time.Minute, h.Settings.Timeout)
		assert.Nil(t, h.Pause, "the agent is paused, not the kind")
		assert.Equal(t, "why", kinds["paused"].Pause.Reason)
		assert.Equal(t, int64(1), kinds["stored"].Counters.Live)
		assert.True(t, kinds["elsewhere"].Settings.Disabled)
		said, err := json.Marshal(kinds["set"])
		require.NoError(t, err)
		assert.JSONEq(t, `{"kind": "set", "handled": false, "gated": false, "processes": 0, "live": 0, "depth": 0, "resting": 0, "running": 0, "slots": null, "pause": null,
			"limits": [], "settings": {"level": 3, "timeout": "0s", "lease": "30s", "max_attempts": 5, "backoff": "1s", "max_backoff": "5m0s", "max_retry_afters": 100,
			"pause_after_failures": 5, "grace": "1m0s", "spread": "1m0s", "catch_up": 100, "disabled": false, "activity": false, "batch": 5, "batch_wait": "1s",
			"batch_by": ["agent"]}}`, string(said))
		said, err = json.Marshal(inspect.KindList{Cut: true})
		require.NoError(t, err)
		assert.JSONEq(t, `{"kinds": [], "pauses_cut": true}`, string(said))
	})
}

// A kind whose handler is taken out runs no more here. What runs ends, its tasks are left for others, and it can be handled again.
func TestUnhandle(t *testing.T) {
	config := batchConfig(50, 30*time.Second)
	virtual(t, config, func(w *world) {
		var ended, other int
		handle := func() {
			core.Handle(w.s, "slow", func(context.Context, *core.Task[any]) error { time.Sleep(5 * time.Second); ended++; return nil })
		}
		handle()
		core.Handle(w.s, "other", func(context.Context, *core.Task[any]) error { other++; return nil })
		var b batched
		b.handle(w, 0)
		wake, end := w.inSeries(w.Context())
		w.submit(core.NewTask{Agent: "a", Kind: "slow"}, core.NewTask{Agent: "b", Kind: "k"})
		wake()
		time.Sleep(time.Second)
		assert.True(t, w.s.Unhandle("slow"))
		assert.True(t, w.s.Unhandle("k"))
		assert.False(t, w.s.Unhandle("k"))
		assert.Equal(t, []string{"other"}, w.s.Kinds())
		w.submit(core.NewTask{Agent: "a", ID: "left", Kind: "slow"}, core.NewTask{Agent: "a", Kind: "other"})
		wake()
		time.Sleep(40 * time.Second)
		assert.Equal(t, []int{1, 1}, []int{ended, other})
		assert.Empty(t, b.seen(), "the batch that waited was released")
		assert.Equal(t, core.StatusWaiting, w.task("a", "left").Status)
		assert.Zero(t, w.s.Slots().InUse)
		handle()
		wake()
		time.Sleep(10 * time.Second)
		end()
		assert.Equal(t, 2, ended)
		assert.Equal(t, core.StatusCompleted, w.task("a", "left").Status)
	})
}
