package core_test

// Answers of people: who may give them, and what they are for.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A task that waits for an approval is told by whoever may approve, and by nobody else: not by a credential that may only control tasks, and not by
// a run. It hears who it was.
func TestOnlyAnApprovalCounts(t *testing.T) {
	virtual(t, core.Config{Name: "node"}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "ok", From: core.FromApproval}, nil))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		assert.Equal(w, core.FromApproval, w.task("a", "1").Awaiting.From)
		as := func(name string, actions ...model.Action) context.Context {
			return core.WithPrincipal(w.Context(), core.Principal{Name: name, Rights: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
				if slices.Contains(actions, what.Action) {
					return nil
				}
				return errors.New("no")
			})})
		}
		_, err := w.s.Signal(as("agent", model.ActionControl, model.ActionSubmit, model.ActionRun), "a", "ok", nil)
		require.ErrorIs(w, err, model.ErrUnapproved)
		assert.Equal(w, core.CodeForbidden, core.CodeOf(err))
		var inRun error
		core.Handle(w.s, "sneaky", func(ctx context.Context, _ *core.Task[note]) error {
			_, inRun = w.s.Signal(ctx, "a", "ok", nil)
			_, err := w.s.Signal(ctx, "a", "plain", json.RawMessage("1"))
			return err
		})
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "sneaky"})
		w.run()
		require.ErrorIs(w, inRun, model.ErrUnapproved)
		assert.NotNil(w, w.task("a", "1").Awaiting)

		_, err = w.s.Signal(as("ann", model.ActionApprove), "a", "ok", json.RawMessage("2"))
		require.NoError(w, err)
		w.run()
		assert.Equal(w, &core.Heard{Key: "ok", Told: true, Payload: json.RawMessage("2"), How: core.ByCredential, By: "ann"}, (*steps)[1].heard)

		var plain []core.Heard
		core.Handle(w.s, "plain", func(_ context.Context, t *core.Task[note]) error {
			if h, waited := t.Heard(); waited {
				plain = append(plain, h)
				return nil
			}
			return core.Await(core.Signal{Key: "plain"}, nil)
		})
		w.submit(core.NewTask{Agent: "a", ID: "3", Kind: "plain"})
		w.run()
		w.run()
		assert.Equal(w, []core.Heard{{Key: "plain", Told: true, Payload: json.RawMessage("1"), How: core.ByHandler, By: "a/2"}}, plain)
	})
}

// The answer to a question is told to the wait that it was asked for: not before, not after, and to no other task that waits for the same key.
func TestAnAnswerIsForOneWait(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var asked []core.Question
		var heard core.Heard
		core.Handle(w.s, "refund", func(ctx context.Context, t *core.Task[note]) error {
			if h, waited := t.Heard(); waited {
				heard = h
				return nil
			}
			q := core.Question{Agent: t.Agent, ID: t.ID, Key: "ok", Fence: t.Fence, Text: "Pay " + t.ID + "?"}
			asked = append(asked, q)
			require.ErrorIs(w, w.s.Answer(ctx, q, nil, core.ByPage), model.ErrNotOpen)
			return core.Await(core.Signal{Key: "ok", Timeout: time.Hour, OnTimeout: core.TimeoutCancel, From: core.FromApproval}, nil)
		})
		for _, id := range []string{"1", "2"} {
			w.submit(core.NewTask{Agent: "a", ID: id, Kind: "refund"})
			w.run()
			require.NoError(w, w.s.Open(w.Context(), asked[len(asked)-1]))
			if id == "1" {
				time.Sleep(2 * time.Hour)
				w.run()
				assert.Equal(w, core.StatusCancelled, w.task("a", "1").Status)
			}
		}
		require.ErrorIs(w, w.s.Open(w.Context(), asked[0]), model.ErrClosed)
		require.ErrorIs(w, w.s.Answer(w.Context(), asked[0], json.RawMessage("1"), core.ByPage), model.ErrClosed)
		assert.NotNil(w, w.task("a", "2").Awaiting, "the late answer was for another task")
		require.NoError(w, w.s.Answer(w.Context(), asked[1], json.RawMessage("2"), core.ByPage))
		require.ErrorIs(w, w.s.Open(w.Context(), asked[1]), model.ErrClosed)
		require.ErrorIs(w, w.s.Answer(w.Context(), asked[1], json.RawMessage("2"), core.ByPage), model.ErrClosed, "once")
		w.run()
		assert.Equal(w, core.Heard{Key: "ok", Told: true, Payload: json.RawMessage("2"), How: core.ByPage, Question: "Pay 2?"}, heard)
		require.ErrorIs(w, w.s.Open(w.Context(), asked[1]), model.ErrClosed)
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "refund", OnConflict: core.OnConflictReplace})
		w.run()
		require.ErrorIs(w, w.s.Answer(w.Context(), asked[1], nil, core.ByPage), model.ErrClosed, "another wait of the same task")
	})
}
