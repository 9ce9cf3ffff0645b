package core_test

// Tasks that wait for a signal.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// step is a run of a task that waits: what it found, and what it returns.
type step struct {
	checkpoint string
	heard      *core.Heard
	attempt    int
}

// waiter registers a handler that notes its runs, and returns what it is told to for each of them.
func (w *world) waiter(outcomes ...error) *[]step {
	var steps []step
	core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
		var now step
		_, _ = t.Checkpoint(&now.checkpoint)
		if heard, waited := t.Heard(); waited {
			now.heard = &heard
		}
		now.attempt = t.Attempt
		steps = append(steps, now)
		if len(steps) > len(outcomes) {
			return nil
		}
		return outcomes[len(steps)-1]
	})
	return &steps
}

// signal sends a signal for agent a.
func (w *world) signal(key, payload string) model.Signalled {
	w.Helper()
	out, err := w.s.Signal(w.Context(), "a", key, json.RawMessage(payload))
	require.NoError(w, err)
	return out
}

func heard(key, payload string) *core.Heard {
	host, _ := os.Hostname()
	return &core.Heard{Key: key, Told: true, Payload: json.RawMessage(payload), How: core.ByProcess, By: fmt.Sprint(host, ":", os.Getpid())}
}

// A task waits for a signal without anything that looks for it, and continues with what it is told.
func TestATaskWaitsForASignal(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes", Timeout: 48 * time.Hour}, "asked"), core.Await(core.Signal{Key: "more"}, "thanked"))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		report := w.run()
		assert.Equal(t, 48*time.Hour, report.NextDueAt.Sub(w.begun))
		info := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, info.Status)
		assert.Equal(t, "yes", info.Awaiting.Key)
		assert.Equal(t, 48*time.Hour, info.Awaiting.Until.Sub(w.begun))
		assert.Equal(t, model.OutcomeAwaiting, info.LastOutcome)
		why, err := w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseSignal, why.Reasons[0].Code)
		assert.Contains(t, why.Reasons[0].Text, `it waits for the signal "yes": duly signal "a" "yes"`)

		time.Sleep(time.Hour)
		assert.Zero(t, w.run().Ran)
		assert.Equal(t, model.Signalled{Resumed: 1}, w.signal("yes", ` {"by": "ann"} `))
		w.run()
		info = w.task("a", "1")
		assert.Equal(t, "more", info.Awaiting.Key)
		assert.Zero(t, info.NextRun, "for ever")
		assert.Equal(t, model.Signalled{Resumed: 1}, w.signal("more", ""))
		w.run()
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
		assert.Equal(t, []step{
			{attempt: 1},
			{checkpoint: "asked", heard: heard("yes", `{"by":"ann"}`), attempt: 1},
			{checkpoint: "thanked", heard: heard("more", "null"), attempt: 1},
		}, *steps)
		assert.Len(t, w.seen(model.EventSignal), 2)
	})
}

// Whoever is quicker than the run that asks is not missed; the second of two signals is refused while nobody has heard the first.
func TestASignalThatComesFirst(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes"}, nil))
		assert.Equal(t, model.Signalled{Kept: true}, w.signal("yes", "1"))
		_, err := w.s.Signal(w.Context(), "a", "yes", json.RawMessage("2"))
		var taken *model.SignalTakenError
		require.ErrorAs(t, err, &taken)
		assert.Equal(t, core.CodeConflict, core.CodeOf(err))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		require.Len(t, *steps, 2)
		assert.Equal(t, heard("yes", "1"), (*steps)[1].heard)
		w.signal("yes", "3")
		time.Sleep(core.SignalKept)
		assert.Equal(t, model.Signalled{Kept: true}, w.signal("yes", "4"), "the other was forgotten")
	})
}

// What a run was told stays with its occurrence while the run is repeated, whatever it did.
func TestWhatWasHeardIsNotLost(t *testing.T) {
	for name, outcome := range map[string]error{
		"failed": errBoom, "snoozed": core.Snooze(time.Minute), "told to come later": core.RetryAfter(time.Unix(0, 0), errBoom), "panicked": errors.New("panic"),
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				steps := w.waiter(core.Await(core.Signal{Key: "yes"}, nil), outcome, outcome, core.Yield(nil, 0))
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 9})
				w.run()
				w.signal("yes", "1")
				w.runUntil(24 * time.Hour)
				require.Len(t, *steps, 5)
				for i, s := range *steps {
					if i == 0 || i == 4 {
						assert.Nil(t, s.heard, "it has yielded: it does not wait any more")
					} else {
						assert.Equal(t, heard("yes", "1"), s.heard)
					}
				}
				assert.Equal(t, model.Signalled{Kept: true}, w.signal("yes", "2"))
			})
		})
	}
}

// A task that has heard its signal, and whose run has failed, waits for its next attempt.
func TestWhatWasHeardIsWaitedForNoMore(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.waiter(core.Await(core.Signal{Key: "yes"}, nil), errBoom)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", MaxAttempts: 3, Backoff: time.Hour})
		w.run()
		assert.NotNil(t, w.task("a", "1").Awaiting)
		w.signal("yes", `1`)
		_, err := w.s.RunDueTasks(w.Context(), []string{"a"})
		require.Error(t, err, "the run fails")
		assert.Nil(t, w.task("a", "1").Awaiting, "it waits for its second attempt, and for nobody")
		why, err := w.s.Explain(w.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, model.BecauseRetry, why.Reasons[0].Code)
	})
}

// A run that dies with what it was told loses nothing of it.
func TestWhatWasHeardSurvivesACrash(t *testing.T) {
	virtual(t, core.Config{Default: core.KindConfig{Lease: time.Minute}}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes"}, nil))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		w.signal("yes", "1")
		_, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute,
		}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		w.run()
		require.Len(t, *steps, 2)
		assert.Equal(t, heard("yes", "1"), (*steps)[1].heard)
	})
}

// A task that nobody has told anything in time does what it was told to do then.
func TestNobodyComes(t *testing.T) {
	for name, c := range map[string]struct {
		then   core.OnTimeout
		status core.Status
		runs   int
	}{
		"runs":      {"", core.StatusCompleted, 2},
		"fails":     {core.TimeoutFail, core.StatusFailed, 1},
		"cancelled": {core.TimeoutCancel, core.StatusCancelled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				steps := w.waiter(core.Await(core.Signal{Key: "yes", Timeout: time.Hour, OnTimeout: c.then}, nil))
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
				w.runUntil(2 * time.Hour)
				info := w.task("a", "1")
				assert.Equal(t, c.status, info.Status)
				require.Len(t, *steps, c.runs)
				if c.runs == 2 {
					assert.Equal(t, &core.Heard{Key: "yes", TimedOut: true}, (*steps)[1].heard)
				} else {
					assert.Equal(t, core.ErrNoSignal.Error(), info.LastError)
				}
				assert.Equal(t, model.Signalled{Kept: true}, w.signal("yes", "1"), "it is too late")
			})
		})
	}
}

// A recurring task waits within an occurrence, and goes on with the next one; a gate is not asked whether there is anything to do.
func TestARecurringTaskWaits(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes"}, nil))
		asked := w.watchGate("k", func(n int) bool { return n == 1 })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 * * * *"})
		w.runUntil(5*time.Hour + time.Minute)
		assert.Len(t, *steps, 1, "it waits, and misses nothing that it should catch up")
		w.signal("yes", "1")
		w.run()
		require.Len(t, *steps, 2)
		assert.Equal(t, heard("yes", "1"), (*steps)[1].heard)
		assert.Len(t, *asked, 1)
		assert.Equal(t, 6*time.Hour, w.task("a", "1").NextRun.Sub(w.begun))
	})
}

// An operator may run a task that waits: it was told nothing, and is not too late.
func TestATaskThatWaitsIsRunByHand(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes", Timeout: time.Hour}, nil))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		_, err := w.s.RunNow(w.Context(), "a", "1")
		require.NoError(t, err)
		w.run()
		assert.Equal(t, &core.Heard{Key: "yes"}, (*steps)[1].heard)
	})
}

// While the store does not say what a run was told, its task waits on, uncharged.
func TestARunThatCannotFindOutWhatItWasTold(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes"}, nil))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		w.signal("yes", "1")
		before, failed := w.store.Before, 0
		w.store.Before = func(ctx context.Context, verb string) error {
			if verb == "Heard" && failed < 3 {
				failed++
				return errBoom
			}
			return before(ctx, verb)
		}
		w.runUntil(time.Minute)
		require.Len(t, *steps, 2)
		assert.Equal(t, step{heard: heard("yes", "1"), attempt: 1}, (*steps)[1])
	})
}

// Every task that waits for a key is told, however many there are; what all of them were told is for none that waits later.
func TestEveryWaiterIsTold(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter()
		var mu sync.Mutex
		core.Handle(w.s, "ask", func(_ context.Context, t *core.Task[note]) error {
			if h, waited := t.Heard(); waited {
				mu.Lock()
				defer mu.Unlock()
				*steps = append(*steps, step{heard: &h})
				return nil
			}
			return core.Await(core.Signal{Key: "yes"}, nil)
		})
		w.submit(numbered("a", "ask", 250)...)
		w.runUntil(time.Second)
		pages := 0
		w.store.Before = func(ctx context.Context, verb string) error {
			if verb == "Signal" {
				if pages++; pages == 3 { // whoever has not been told by then waits no more
					for i := range 250 {
						if info := w.task("a", fmt.Sprintf("%03d", i)); info.Status == core.StatusWaiting && info.NextRun.IsZero() {
							_, err := w.s.Cancel(ctx, "a", info.ID, core.Order{})
							require.NoError(w, err)
						}
					}
				}
			}
			return nil
		}
		assert.Equal(t, model.Signalled{Resumed: 200}, w.signal("yes", "1"), "and it is not kept, as others have heard it")
		w.runUntil(time.Second)
		require.Len(t, *steps, 200)
		for _, s := range *steps {
			assert.Equal(t, heard("yes", "1"), s.heard)
		}
		w.submit(core.NewTask{Agent: "a", ID: "next", Kind: "ask"})
		w.run()
		assert.NotNil(t, w.task("a", "next").Awaiting)
	})
}

// What an occurrence has heard is told to that one alone, also when it fails: the next waits for a signal of its own.
func TestWhatAFailedOccurrenceHeard(t *testing.T) {
	for name, outcome := range map[string]error{"failed": errBoom, "failed for good": core.SkipRetry(errBoom)} {
		t.Run(name, func(t *testing.T) {
			virtual(t, core.Config{}, func(w *world) {
				wait := core.Await(core.Signal{Key: "yes"}, "asked")
				steps := w.waiter(wait, outcome, nil, wait)
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour})
				w.run()
				w.signal("yes", "1")
				w.runFailing()
				w.runUntil(90 * time.Minute)
				assert.Equal(t, model.Signalled{Kept: true}, w.signal("yes", "2"), "it does not wait now")
				w.runUntil(time.Hour)
				require.GreaterOrEqual(t, len(*steps), 5)
				assert.Equal(t, []step{
					{attempt: 1},
					{checkpoint: "asked", heard: heard("yes", "1"), attempt: 1},
					{attempt: 1},
					{attempt: 1},
					{checkpoint: "asked", heard: heard("yes", "2"), attempt: 1},
				}, (*steps)[:5])
			})
		})
	}
}

// What makes no sense is refused before anything is written.
func TestSignalsThatMakeNoSense(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		for name, call := range map[string]struct{ agent, key, payload string }{
			"no agent": {"", "k", ""}, "no key": {"a", "", ""}, "no JSON": {"a", "k", "{"}, "two": {"a", "k", "1 2"},
			"a long key": {"a", strings.Repeat("k", 300), ""}, "large": {"a", "k", `"` + strings.Repeat("x", core.MaxSignalPayload) + `"`},
		} {
			_, err := w.s.Signal(w.Context(), call.agent, call.key, json.RawMessage(call.payload))
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err), name)
		}
		assert.Zero(t, w.store.Calls("Signal"))
		for name, outcome := range map[string]error{
			"no key": core.Await(core.Signal{}, nil), "past": core.Await(core.Signal{Key: "k", Timeout: -1}, nil),
			"whatever": core.Await(core.Signal{Key: "k", OnTimeout: "explode"}, nil), "no JSON": core.Await(core.Signal{Key: "k"}, make(chan int)),
		} {
			w.waiter(outcome)
			w.submit(core.NewTask{Agent: "a", ID: name, Kind: "k"})
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
			assert.Equal(t, core.StatusCancelled, w.task("a", name).Status, name)
			w.s.Unhandle("k")
		}
	})
}

// What a task waits for stays behind when its agent is moved: the copy is due at once, and asks again.
func TestACopyOfATaskThatWaitsAsksAgain(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		steps := w.waiter(core.Await(core.Signal{Key: "yes"}, "asked"), core.Await(core.Signal{Key: "yes"}, "asked again"))
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.run()
		time.Sleep(time.Hour)
		out := w.export()
		_, err := w.s.Import(w.Context(), "b", strings.NewReader(out))
		require.NoError(t, err)
		w.run()
		assert.Equal(t, []step{{attempt: 1}, {checkpoint: "asked", attempt: 1}}, *steps)
		assert.NotNil(t, w.task("b", "1").Awaiting)
		assert.NotNil(t, w.task("a", "1").Awaiting)
	})
}
