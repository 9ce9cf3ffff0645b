package core_test

// Gates: what they hand on and keep, and what becomes of a run whose gate hangs, fails or crashes.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

func TestAGateHandsOnInputAndKeepsItsTag(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var tags, inputs []string
		core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (core.GateAnswer, error) {
			tags = append(tags, t.GateTag())
			assert.JSONEq(w, `{"text":"p"}`, string(t.RawPayload()))
			return core.GateAnswer{Open: true, Input: fmt.Appendf(nil, `{"n":%d}`, len(tags)), Tag: fmt.Sprint("v", len(tags))}, nil
		})
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			inputs = append(inputs, string(t.GateInput()))
			if len(inputs) == 2 {
				return errors.New("boom")
			}
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute, Payload: note{Text: "p"}})
		w.runUntil(5 * time.Minute)
		require.GreaterOrEqual(t, len(tags), 4)
		assert.Equal(t, []string{"", "v1", "v1", "v3"}, tags[:4], "the tag of a run that failed is not kept: its input has not been dealt with")
		assert.Equal(t, []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}, inputs[:4])
	})
}

func TestTheTagOfAClosedGateIsKeptAtOnce(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var tags []string
		answers := []core.GateAnswer{{Tag: "v1"}, {}, {Open: true}, {}}
		core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (core.GateAnswer, error) {
			tags = append(tags, t.GateTag())
			return answers[min(len(tags), len(answers))-1], nil
		})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Second})
		w.runUntil(time.Minute)
		assert.Equal(t, []string{"", "v1", "v1", ""}, tags[:4], "an empty tag of a closed gate leaves it; that of an open one does not")
	})
}

// A batch has an input for each of its tasks.
func TestAGateOfABatch(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (core.GateAnswer, error) {
			return core.GateAnswer{Open: t.ID != "001", Input: json.RawMessage(`"` + t.ID + `"`), Tag: t.ID}, nil
		})
		got := map[string]string{}
		core.HandleBatch(w.s, "k", func(_ context.Context, ts []*core.Task[note]) []error {
			for _, t := range ts {
				got[t.ID] = string(t.GateInput())
			}
			return nil
		})
		w.submit(numbered("a", "k", 3)...)
		w.run()
		assert.Equal(t, map[string]string{"000": `"000"`, "002": `"002"`}, got)
	})
}

func TestAnswersOfAGateAreBounded(t *testing.T) {
	for want, answer := range map[string]core.GateAnswer{
		"gate: the input is 65537 bytes long: the limit is 65536": {Open: true, Input: json.RawMessage(`"` + strings.Repeat("x", model.MaxGateInput-1) + `"`)},
		"gate: the tag is 1025 bytes long: the limit is 1024":     {Tag: strings.Repeat("x", model.MaxGateTag+1)},
		`gate: the input must be JSON, not "hello"`:               {Open: true, Input: json.RawMessage(`hello`)},
		`gate: the input must be JSON, not "\"\xff\""`:            {Open: true, Input: json.RawMessage("\"\xff\"")},
	} {
		t.Run(want, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (core.GateAnswer, error) { return answer, nil })
				core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
					assert.Fail(w, "it was let through")
					return nil
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 1})
				w.runFailing()
				info := w.task("a", "1")
				assert.Equal(w, core.StatusFailed, info.Status)
				assert.Equal(w, want, info.LastError)
			})
		})
	}
	virtual(t, core.Config{}, func(w *world) {
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (core.GateAnswer, error) {
			return core.GateAnswer{Open: true, Input: json.RawMessage(`"` + strings.Repeat("x", model.MaxGateInput-2) + `"`), Tag: strings.Repeat("x", model.MaxGateTag)}, nil
		})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
	})
}

// A gate that hangs is ended with the run's timeout; one that fails is asked again, and neither ends the idle back-off.
func TestAGateThatHangsOrFails(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Timeout: 10 * time.Second, Backoff: time.Second}}, func(w *world) {
		asked := 0
		core.Gate(w.s, "k", func(ctx context.Context, _ *core.RunInfo) (bool, error) {
			switch asked++; asked {
			case 3:
				<-ctx.Done()
				return false, ctx.Err()
			case 4:
				return false, errors.New("boom")
			default:
				return false, nil
			}
		})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error {
			assert.Fail(w, "it was let through")
			return nil
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Second, MaxAttempts: 3})
		w.runUntil(time.Minute)
		info := w.task("a", "1")
		require.GreaterOrEqual(t, len(info.Runs), 5)
		assert.Equal(t, model.OutcomeFailed, info.Runs[2].Outcome)
		assert.ErrorContains(t, errors.New(info.Runs[2].Error), core.ErrTimeout.Error())
		assert.Equal(t, "gate: boom", info.Runs[3].Error)
		assert.Equal(t, model.OutcomeSkipped, info.Runs[4].Outcome)
		assert.Equal(t, len(info.Runs)-2, info.GateClosed, "a gate that could not tell has not opened")
	})
}

// The error of a gate may steer the run as that of a handler does.
func TestAGateThatSnoozes(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		asked := 0
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (bool, error) {
			if asked++; asked == 1 {
				return false, core.Snooze(time.Hour)
			}
			return true, nil
		})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		assert.WithinDuration(t, time.Now().Add(time.Hour), w.task("a", "1").NextRun, time.Second)
		w.runUntil(2 * time.Hour)
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
	})
}

// A process that dies between the answer of a gate and the record of the run loses nothing: the gate is asked again, with the tag that
// it was asked with before.
func TestACrashBetweenGateAndSettle(t *testing.T) {
	for _, open := range []bool{true, false} {
		t.Run(fmt.Sprint("open ", open), func(t *testing.T) {
			virtual(t, core.Config{Default: core.KindConfig{Lease: time.Second}}, func(w *world) {
				var tags []string
				ran := 0
				core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (core.GateAnswer, error) {
					tags = append(tags, t.GateTag())
					return core.GateAnswer{Open: open, Input: json.RawMessage(`1`), Tag: fmt.Sprint("v", len(tags))}, nil
				})
				core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
					ran++
					assert.JSONEq(w, `1`, string(t.GateInput()))
					return nil
				})
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute})
				w.store.failing(func(verb string, _ int) error {
					if verb == "settle" || verb == "extend" { // nothing of this process arrives any more
						return &store.Error{Verb: verb, Err: errors.New("gone")}
					}
					return nil
				})
				_, _ = w.s.RunDue(w.Context(), core.Scope{MaxTasks: 1, MaxDuration: 5 * time.Second})
				time.Sleep(5 * time.Second)
				w.store.failing(nil)
				w.runUntil(5 * time.Second)
				assert.Equal(t, []string{"", ""}, tags)
				info := w.task("a", "1")
				if open {
					assert.Equal(t, 2, ran)
					assert.Equal(t, model.OutcomeSuccess, info.LastOutcome)
				} else {
					assert.Zero(t, ran)
					assert.Equal(t, 1, info.GateClosed)
				}
				w.runUntil(5 * time.Minute)
				assert.Equal(t, "v2", tags[2])
			})
		})
	}
}

// A gate that ignores its context is given up with its run, whatever it says in the end.
func TestAGateThatIgnoresItsContext(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Timeout: time.Second, Backoff: -1}}, func(w *world) {
		var asked atomic.Int64 // it is asked while another question of it is not answered
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (core.GateAnswer, error) {
			if asked.Add(1) == 1 {
				time.Sleep(time.Hour)
			}
			return core.GateAnswer{Open: true, Tag: "late"}, nil
		})
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: 10 * time.Minute})
		w.runUntil(time.Minute)
		assert.Equal(t, model.OutcomeFailed, w.task("a", "1").LastOutcome)
		w.runUntil(2 * time.Hour)
		assert.Equal(t, model.OutcomeSuccess, w.task("a", "1").LastOutcome)
	})
}

// A task whose occurrences are tasks of their own backs off from its own interval each time.
func TestTheBackOffOfATaskThatMakesTasksEnds(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		begun := time.Now()
		var asked []time.Duration
		core.Gate(w.s, "k", func(_ context.Context, t *core.RunInfo) (core.GateAnswer, error) {
			if t.Parent != "" {
				assert.Empty(w, t.GateTag())
				return core.GateAnswer{Open: true}, nil
			}
			asked = append(asked, time.Since(begun))
			return core.GateAnswer{Open: len(asked) == 4, Tag: fmt.Sprint(t.GateTag(), len(asked))}, nil
		})
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Second, From: core.FromStart, Overlap: core.OverlapAllow})
		w.runUntil(20 * time.Second)
		require.GreaterOrEqual(t, len(asked), 6)
		s := time.Second
		assert.Equal(t, []time.Duration{0, 2 * s, 6 * s, 14 * s, 15 * s, 17 * s}, asked[:6])
		assert.Equal(t, 1, ran)
	})
}

// Whoever asks why a task has not run hears of its gate.
func TestExplainAClosedGate(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Gate(w.s, "k", func(context.Context, *core.RunInfo) (bool, error) { return false, nil })
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute})
		w.run()
		e, err := w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseGate, e.Reasons[0].Code)
		assert.Contains(t, e.Reasons[0].Text, "its gate said once that there is nothing to do; it is asked next at ")
		w.runUntil(2 * time.Minute)
		e, err = w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Contains(t, e.Reasons[0].Text, "its gate said 2 times in a row that there is nothing to do")
		assert.Contains(t, e.Reasons[0].Text, " (in 4m0s)")
		assert.Equal(t, e.Task.NextRun, e.Reasons[0].Until)
		assert.Equal(t, 2, e.Task.GateClosed)
		assert.Equal(t, "gate", e.Task.Runs[0].Error)
		data, err := json.Marshal(e.Task)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"gate_closed":2`)
	})
}
