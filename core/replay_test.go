package core_test

// Dead tasks that live again, whatever they died of.

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Whatever a task died of, it can be replayed: with its body, all of its attempts, and without the crashes that it had.
func TestWhateverATaskDiedOfItIsReplayed(t *testing.T) {
	for name, c := range map[string]struct {
		outcome error
		reason  string
		crashes int
	}{
		"attempts":                    {outcome: errBoom, reason: "attempts"},
		"no retry":                    {outcome: core.SkipRetry(errBoom), reason: "no_retry"},
		"crashes":                     {reason: "crashed", crashes: 2},
		"no signal":                   {outcome: core.Await(core.Signal{Key: "yes", Timeout: time.Second, OnTimeout: core.TimeoutFail}, nil), reason: "no_retry"},
		"too often told to come back": {outcome: core.RetryAfter(time.Unix(0, 0), errBoom), reason: "attempts"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{MaxCrashes: 1, Default: core.KindConfig{MaxAttempts: 2, MaxRetryAfters: -1}}, func(w *world) {
				dies := c.outcome
				var seen []core.Task[note]
				core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error { seen = append(seen, *t); return dies })
				w.submit(core.NewTask{
					Agent: "a", ID: "1", Kind: "k", Payload: note{Text: "as submitted"}, LimitKey: "key", Group: "g", Labels: map[string]string{"l": "1"}, Level: core.LevelHigh,
				})
				for range c.crashes {
					w.dies("a", "k")
				}
				w.runUntil(time.Hour)
				was := w.task("a", "1")
				require.Equal(t, core.StatusFailed, was.Status)
				require.Equal(t, c.reason, was.Reason)
				dies, seen = nil, nil
				_, err := w.s.Replay(w.Context(), "a", "1")
				require.NoError(t, err)
				info := w.task("a", "1")
				assert.JSONEq(t, `{"text":"as submitted"}`, string(info.Payload))
				assert.Equal(t, 1, w.run().Completed)
				require.Len(t, seen, 1)
				assert.Equal(t, "as submitted", seen[0].Payload.Text)
				assert.Equal(t, 1, seen[0].Attempt)
				assert.Zero(t, seen[0].Crashes)
				assert.Equal(t, map[string]string{"l": "1"}, seen[0].Labels)
				assert.Equal(t, core.LevelHigh, seen[0].Level)
				assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
			})
		})
	}
}

// A payload that its handler could not read is there for one that can.
func TestATaskThatDiedOfItsPayloadIsReplayed(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: json.RawMessage(`[1]`)})
		w.runFailing()
		require.Equal(t, "payload", w.task("a", "1").Reason)
		w.s.Unhandle("k")
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[[]int]) error {
			assert.Equal(w, []int{1}, t.Payload)
			return nil
		})
		_, err := w.s.Replay(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, 1, w.run().Completed)
	})
}

// A dead task is replayed with another payload in one step; everything else of it stays. Who may not submit it may not give it another payload.
func TestReplayWith(t *testing.T) {
	allowed := true
	virtual(t, core.Config{Authorizer: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, a core.Access) error {
		if a.Action == model.ActionSubmit && !allowed {
			return errBoom
		}
		return nil
	})}, func(w *world) {
		var seen []string
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[json.RawMessage]) error {
			if seen = append(seen, string(t.Payload)); len(seen) == 1 || len(t.Payload) == 0 {
				return core.SkipRetry(errBoom)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: note{Text: "wrong"}, LimitKey: "key", Labels: map[string]string{"l": "1"}})
		_, _ = w.s.RunDue(w.Context(), core.Scope{}) // it names the run that failed
		_, err := w.s.ReplayWith(w.Context(), "a", "1", json.RawMessage("{"))
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
		allowed = false
		_, err = w.s.ReplayWith(w.Context(), "a", "1", json.RawMessage(`{"text":"stolen"}`))
		assert.Equal(t, core.CodeForbidden, core.CodeOf(err))
		assert.Equal(t, core.StatusFailed, w.task("a", "1").Status)
		allowed = true
		_, err = w.s.ReplayWith(w.Context(), "a", "1", json.RawMessage{})
		require.NoError(t, err)
		_, _ = w.s.RunDue(w.Context(), core.Scope{}) // it names the run that failed
		_, err = w.s.ReplayWith(w.Context(), "a", "1", json.RawMessage(`{"text":"right"}`))
		require.NoError(t, err)
		info := w.task("a", "1")
		assert.JSONEq(t, `{"text":"right"}`, string(info.Payload))
		assert.Equal(t, "key", info.LimitKey)
		assert.Equal(t, map[string]string{"l": "1"}, info.Labels)
		assert.Equal(t, 1, w.run().Completed)
		assert.Equal(t, []string{`{"text":"wrong"}`, "", `{"text":"right"}`}, seen)
		_, err = w.s.ReplayWith(w.Context(), "a", "1", json.RawMessage(`1`))
		assert.Equal(t, core.CodeConflict, core.CodeOf(err), "it has completed")
	})
}
