package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// told keeps the ticks that it is told of.
type told struct {
	mu    sync.Mutex
	ticks []core.Tick
}

func (t *told) tick(tick core.Tick) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ticks = append(t.ticks, tick)
}

func (t *told) of(agent string) []core.Tick {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []core.Tick
	for _, tick := range t.ticks {
		if tick.Agent == agent {
			out = append(out, tick)
		}
	}
	return out
}

// A host hears of each agent's tick when it begins and when its last run is stored, whichever pull it belongs to; one pull
// can be listened to by itself.
func TestTicksAreTold(t *testing.T) {
	var all, one told
	virtual(t, core.Config{Concurrency: 10, OnTick: all.tick}, func(w *world) {
		sleep := func(task *core.Task[time.Duration]) error { time.Sleep(task.Payload); return nil }
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[time.Duration]) error { return sleep(task) })
		core.HandleBatch(w.s, "many", func(_ context.Context, tasks []*core.Task[time.Duration]) []error {
			return []error{sleep(tasks[0]), nil}
		})
		w.submit(core.NewTask{Agent: "a", Kind: "k", Payload: time.Second}, core.NewTask{Agent: "a", Kind: "k", Payload: 3 * time.Second},
			core.NewTask{Agent: "a", Kind: "many", Payload: 2 * time.Second}, core.NewTask{Agent: "a", Kind: "many", Payload: 2 * time.Second},
			core.NewTask{Agent: "b", Kind: "k"}, core.NewTask{Agent: "b", Kind: "k"})
		_, err := w.s.RunDue(w.Context(), core.Scope{OnTick: one.tick})
		require.NoError(t, err)
		for _, told := range []*told{&all, &one} {
			assert.Equal(t, []core.Tick{
				{Agent: "a", Tasks: 4}, {Agent: "a", Ended: true, Tasks: 4, Duration: 3 * time.Second},
			}, told.of("a"))
			assert.Equal(t, []core.Tick{{Agent: "b", Tasks: 2}, {Agent: "b", Ended: true, Tasks: 2}}, told.of("b"))
		}
		w.submit(core.NewTask{Agent: "c", Kind: "k"})
		w.run()
		assert.Len(t, all.of("c"), 2)
		assert.Empty(t, one.of("c"), "that was another pull")
	})
}

// A tick that is run by itself is one, though there are fewer slots than tasks, and whatever becomes of them.
func TestRunTickIsOneTick(t *testing.T) {
	var all told
	virtual(t, core.Config{Concurrency: 1, OnTick: all.tick}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			if task.ID == "001" {
				return core.SkipRetry(errors.New("no"))
			}
			return nil
		})
		w.submit(numbered("a", "k", 3)...)
		w.submit(core.NewTask{Agent: "a", ID: "other", Kind: "elsewhere"})
		claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", 8), Nonce: "0123456789abcdef", Kinds: []string{"k", "elsewhere"}, Limit: 4, Lease: time.Minute,
		}})
		require.NoError(t, err)
		report, _ := w.s.RunTick(w.Context(), "a", claims[0].Tasks)
		assert.Equal(t, []int{2, 1, 1}, []int{report.Completed, report.Failed, report.Released})
		assert.Equal(t, []core.Tick{{Agent: "a", Tasks: 4}, {Agent: "a", Ended: true, Tasks: 4}}, all.of("a"))
	})
}

// How a run ended is told in full: whether it is repeated, and that a task has ended without one.
func TestAFinishTellsHow(t *testing.T) {
	virtual(t, core.Config{MaxCrashes: 1}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return errors.New("no") })
		w.submit(core.NewTask{Agent: "a", ID: "again", Kind: "k", MaxAttempts: 2}, core.NewTask{Agent: "a", ID: "hourly", Kind: "k", Every: hours(1)},
			core.NewTask{Agent: "a", ID: "crashed", Kind: "k"}, core.NewTask{Agent: "a", ID: "malformed", Kind: "k"})
		w.store.alter = func(claims []store.Claim) {
			for _, c := range claims {
				for i := range c.Tasks {
					switch c.Tasks[i].ID {
					case "crashed":
						c.Tasks[i].Crashes = 2
					case "malformed":
						c.Tasks[i].Body = []byte("?")
					}
				}
			}
		}
		w.runFailing()
		for _, e := range w.seen(model.EventFinish) {
			want := map[string]core.Event{
				"again":   {Outcome: model.OutcomeFailed, Retried: true, Status: core.StatusWaiting},
				"hourly":  {Outcome: model.OutcomeFailed, Status: core.StatusWaiting},
				"crashed": {Outcome: model.OutcomeCrashed, Status: core.StatusFailed}, "malformed": {Outcome: model.OutcomeFailed, Status: core.StatusFailed},
			}[e.ID]
			assert.Equal(t, want, core.Event{Outcome: e.Outcome, Retried: e.Retried, Status: e.Status}, e.ID)
		}
		assert.Len(t, w.seen(model.EventFinish), 4)
		assert.Equal(t, []string{"k"}, w.s.Kinds())
	})
}
