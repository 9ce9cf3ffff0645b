package core_test

// Signals that the end of a task sends.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// waits makes a kind whose tasks wait for a signal, and returns what they have heard.
func (w *world) waits(key string) *[]string {
	heard := &[]string{}
	core.Handle(w.s, "waits", func(_ context.Context, task *core.Task[note]) error {
		got, ok := task.Heard()
		if !ok {
			return core.Await(core.Signal{Key: key}, nil)
		}
		*heard = append(*heard, string(got.Payload))
		return nil
	})
	return heard
}

func TestTheEndOfATaskSendsASignal(t *testing.T) {
	for name, c := range map[string]struct {
		returns func(t *core.Task[note]) error
		want    string
	}{
		"completed": {func(t *core.Task[note]) error { return t.SetResult(7) }, `{"id":"child","status":"completed","result":7}`},
		"failed":    {func(*core.Task[note]) error { return errors.New("no") }, `{"id":"child","status":"failed","error":"no"}`},
		"cancelled": {func(*core.Task[note]) error { return core.Cancel(errors.New("enough")) }, `{"id":"child","status":"cancelled","error":"enough"}`},
		"large":     {func(t *core.Task[note]) error { return t.SetResult(strings.Repeat("x", 9000)) }, `{"id":"child","status":"completed","truncated":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				heard := w.waits("over")
				core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error { return c.returns(task) })
				w.submit(core.NewTask{Agent: "a", ID: "parent", Kind: "waits"})
				w.run()
				w.submit(core.NewTask{Agent: "a", ID: "child", Kind: "k", MaxAttempts: 1, Callback: "signal:over"})
				w.runUntil(time.Second)
				require.Len(t, *heard, 1)
				assert.JSONEq(t, c.want, (*heard)[0])
				assert.Equal(t, core.StatusCompleted, w.task("a", "parent").Status)
			})
		})
	}
}

// Two ends with one key are two signals: the second comes once the first was heard.
func TestTwoEndsAreTwoSignals(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var heard []string
		core.Handle(w.s, "waits", func(_ context.Context, task *core.Task[note]) error {
			if got, ok := task.Heard(); ok {
				heard = append(heard, string(got.Payload))
			}
			if len(heard) == 2 {
				return nil
			}
			return core.Await(core.Signal{Key: "over"}, nil)
		})
		core.Handle(w.s, "k", nothing)
		for _, id := range []string{"1", "2"} {
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "k", Callback: "signal:over"})
		}
		w.runUntil(time.Second)
		w.submit(core.NewTask{Agent: "a", ID: "parent", Kind: "waits"})
		w.runUntil(2 * time.Minute)
		assert.ElementsMatch(t, []string{`{"id":"1","status":"completed"}`, `{"id":"2","status":"completed"}`}, heard)
		assert.Equal(t, core.StatusCompleted, w.task("a", "parent").Status)
	})
}

// A group is told of once, when its last task has ended.
func TestTheEndOfAGroupSendsASignal(t *testing.T) {
	virtual(t, core.Config{Concurrency: 10}, func(w *world) {
		heard := w.waits("over")
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			if task.ID == "3" {
				return core.SkipRetry(errors.New("no"))
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "parent", Kind: "waits"})
		for i := range 5 {
			w.submit(core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "k", Group: "g", Callback: "signal-group:over", Delay: time.Duration(i) * time.Minute})
		}
		w.runUntil(3*time.Minute + 30*time.Second)
		assert.Empty(t, *heard, "one has not ended")
		w.runUntil(time.Minute)
		require.Len(t, *heard, 1)
		assert.JSONEq(t, `{"group":"g","completed":4,"failed":1}`, (*heard)[0])
	})
}

// A signal is sent however many processes die with it: it runs no code that could end them, and whoever waits for it would wait for ever.
func TestATellOutlivesItsProcesses(t *testing.T) {
	virtual(t, core.Config{MaxCrashes: 2}, func(w *world) {
		heard := w.waits("over")
		w.submit(core.NewTask{Agent: "a", ID: "parent", Kind: "waits"})
		w.run()
		w.submit(core.NewTask{Agent: "a", ID: "child", Kind: "k", Delay: time.Hour, Callback: "signal:over"})
		_, err := w.s.Cancel(w.Context(), "a", "child", core.Order{})
		require.NoError(w, err)
		for range 6 {
			w.dies("a", "duly.tell")
		}
		w.runUntil(time.Minute)
		assert.Len(w, *heard, 1)
	})
}

// A callback whose delivery ends its processes is a dead letter: programs may deliver by code of their own.
func TestACallbackThatEndsItsProcessesIsDead(t *testing.T) {
	to := &receiver{}
	virtual(t, core.Config{MaxCrashes: 2, Callbacks: to}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "child", Kind: "k", Delay: time.Hour, Callback: "https://hooks.example.com/x"})
		_, err := w.s.Cancel(w.Context(), "a", "child", core.Order{})
		require.NoError(w, err)
		for range 3 {
			w.dies("a", model.KindCallback)
		}
		w.runFailing()
		ended, _, err := w.s.Tasks(w.Context(), core.List{Agent: "a", Kind: model.KindCallback})
		require.NoError(w, err)
		require.Len(w, ended, 1)
		assert.Equal(w, core.StatusFailed, ended[0].Status)
		assert.Equal(w, "crashed", ended[0].Reason)
	})
}

// What makes no sense is refused, and needs no permission as no address is called.
func TestTellingIsChecked(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for callback, why := range map[string]string{
			"signal-group:over":                  "needs a task that has a group",
			"signal:\x00":                        "has the control character",
			"signal:" + strings.Repeat("x", 300): "300 bytes long",
			"https://hooks.example.com":          "is not enabled",
			"signal:":                            "needs the key of a signal",
		} {
			_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "k", Callback: callback})
			require.ErrorContains(t, err, why, callback)
		}
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", Kind: "duly.tell"})
		require.ErrorContains(t, err, "is duly's own")
	})
}

// The end of a task approves nothing.
func TestTheEndOfATaskIsNoApproval(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var heard []core.Heard
		core.Handle(w.s, "refund", func(_ context.Context, task *core.Task[note]) error {
			got, ok := task.Heard()
			if !ok {
				return core.Await(core.Signal{Key: "approval", From: core.FromApproval}, nil)
			}
			heard = append(heard, got)
			return nil
		})
		core.Handle(w.s, "k", nothing)
		w.submit(core.NewTask{Agent: "a", ID: "early", Kind: "k", Callback: "signal:approval"})
		w.runUntil(time.Second)
		w.submit(core.NewTask{Agent: "a", ID: "refund", Kind: "refund"})
		w.runUntil(time.Second)
		w.submit(core.NewTask{Agent: "a", ID: "late", Kind: "k", Callback: "signal:approval"})
		w.runUntil(time.Minute)
		assert.Empty(t, heard)
		assert.Equal(t, core.StatusWaiting, w.task("a", "refund").Status)
	})
}
