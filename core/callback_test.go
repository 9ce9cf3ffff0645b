package core_test

// Callbacks: who is told how a task has ended, and what becomes of the delivery.

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store"
)

const hook = "https://hooks.example.com/duly"

// receiver is who is told of ends. It allows the URLs below hooks.example.com.
type receiver struct {
	mu    sync.Mutex
	fails int // how many messages it refuses first
	got   []delivered
}

// delivered is a message that was taken.
type delivered struct {
	URL, ID string
	Task    map[string]any
}

func (*receiver) Check(url string) error {
	if !strings.HasPrefix(url, "https://hooks.example.com/") {
		return errors.New("must begin with https://hooks.example.com/")
	}
	return nil
}

func (r *receiver) Deliver(_ context.Context, url, id string, message []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails > 0 {
		r.fails--
		return errors.New("503 Service Unavailable")
	}
	d := delivered{URL: url, ID: id}
	if err := json.Unmarshal(message, &d.Task); err != nil {
		return err
	}
	r.got = append(r.got, d)
	return nil
}

// ends are the statuses that were told of a task.
func (r *receiver) ends(id string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, d := range r.got {
		if d.Task["id"] == id {
			out = append(out, d.Task["status"].(string))
		}
	}
	return out
}

// tellTo is a world whose ends are told.
func tellTo(t *testing.T, config core.Config, test func(w *world, r *receiver)) {
	t.Helper()
	r := &receiver{}
	config.Callbacks = r
	virtual(t, config, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, t *core.Task[note]) error {
			if err := t.SetResult(map[string]string{"said": t.Payload.Text}); err != nil {
				return err
			}
			switch t.Payload.Text {
			case "fail":
				return errors.New("boom")
			case "never":
				return core.SkipRetry(errors.New("no use"))
			case "cancel":
				return core.Cancel(errors.New("not any more"))
			case "panic":
				panic("oops")
			default:
				return nil
			}
		})
		test(w, r)
	})
}

func TestTheEndOfATaskIsTold(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		w.submit(core.NewTask{
			Agent: "a", ID: "1", Kind: "k", Payload: note{"hi"}, Callback: hook, Labels: map[string]string{"order": "7"}, Tags: []string{"x"},
			TraceID: "tr", Group: "g", Level: 2,
		}, core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		w.run()
		require.Len(w, r.got, 1)
		got := r.got[0]
		assert.Equal(w, hook, got.URL)
		assert.Regexp(w, "^msg_[0-9a-f]{32}$", got.ID)
		for name, want := range map[string]any{
			"agent_id": "a", "id": "1", "kind": "k", "status": "completed", "result": map[string]any{"said": "hi"}, "labels": map[string]any{"order": "7"},
			"tags": []any{"x"}, "trace_id": "tr", "group": "g", "level": 2.0, "run_count": 1.0, "last_result": "success",
		} {
			assert.Equal(w, want, got.Task[name], name)
		}
		info := w.task("a", "1")
		assert.Equal(w, info.Finished.UTC().Format("2006-01-02T15:04:05.000Z"), got.Task["finished_at"])
		assert.NotContains(w, got.Task, "callback", "it may have a secret")
		assert.Equal(w, info.CallbackTask, got.Task["callback_task"])
		delivery := w.task("a", info.CallbackTask)
		assert.Equal(w, model.KindCallback, delivery.Kind)
		assert.Equal(w, core.StatusCompleted, delivery.Status)
		assert.Equal(w, core.Level(2), delivery.Level)
		assert.Nil(w, delivery.Origin, "no run has submitted it")
		assert.Empty(w, delivery.Group, "it is none of the group's tasks")
		assert.Empty(w, w.task("a", "2").CallbackTask)
	})
}

// Whatever ends a task, one delivery follows.
func TestEveryEndIsTold(t *testing.T) {
	tellTo(t, core.Config{Default: core.KindConfig{MaxAttempts: 2, Backoff: -1}}, func(w *world, r *receiver) {
		for _, what := range []string{"ok", "fail", "never", "cancel", "panic"} {
			w.submit(core.NewTask{Agent: "a", ID: what, Kind: "k", Payload: note{what}, Callback: hook})
		}
		w.submit(
			core.NewTask{Agent: "a", ID: "waits", Kind: "k", Delay: time.Hour, Callback: hook},
			core.NewTask{Agent: "a", ID: "recurs", Kind: "k", Every: time.Minute, Callback: hook},
			core.NewTask{Agent: "a", ID: "overlaps", Kind: "k", Every: time.Minute, From: core.FromStart, Overlap: core.OverlapAllow, Callback: hook},
			core.NewTask{Agent: "a", ID: "deleted", Kind: "k", Delay: time.Hour, Callback: hook},
			core.NewTask{Agent: "a", ID: "payload", Kind: "k", Payload: 7, Callback: hook},
			core.NewTask{Agent: "a", ID: "snoozes", Kind: "k", Payload: note{"ok"}, Delay: 3 * time.Minute, Callback: hook},
		)
		w.runUntil(2 * time.Minute)
		assert.Empty(w, r.ends("recurs"), "a run is no end of it")
		for _, id := range []string{"waits", "recurs", "overlaps"} {
			_, err := w.s.Cancel(w.Context(), "a", id, core.Order{By: "ann"})
			require.NoError(w, err)
		}
		require.NoError(w, w.s.Delete(w.Context(), "a", "deleted"))
		w.runUntil(10 * time.Minute)
		for id, status := range map[string]string{
			"ok": "completed", "fail": "failed", "never": "failed", "cancel": "cancelled", "panic": "failed", "waits": "cancelled",
			"recurs": "cancelled", "overlaps": "cancelled", "payload": "failed", "snoozes": "completed",
		} {
			assert.Equal(w, []string{status}, r.ends(id), id)
		}
		assert.Empty(w, r.ends("deleted"))
		assert.Len(w, r.got, 10, "the occurrences of a task that overlaps have none of their own")
	})
}

// A task that is cancelled while it runs ends with its run, and is told once.
func TestACancelledRunIsToldOnce(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		core.Handle(w.s, "slow", func(ctx context.Context, task *core.Task[note]) error {
			_, err := w.s.Cancel(ctx, "a", task.ID, core.Order{By: "ann"})
			return err
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "slow", Callback: hook})
		w.runUntil(time.Hour)
		assert.Equal(w, []string{"cancelled"}, r.ends("1"))
		assert.Equal(w, core.StatusCancelled, w.task("a", "1").Status)
	})
}

// A delivery is tried again, and is dead when all attempts have failed; the end is told again by a replay, under the same id.
func TestADeliveryIsRetriedAndDies(t *testing.T) {
	kinds := map[string]core.KindConfig{model.KindCallback: {MaxAttempts: 3}}
	tellTo(t, core.Config{Kinds: kinds}, func(w *world, r *receiver) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: hook}, core.NewTask{Agent: "b", ID: "2", Kind: "k", Callback: hook})
		r.fails = 2
		w.runUntil(time.Hour)
		assert.Equal(w, []string{"completed"}, r.ends("1"))
		assert.Equal(w, []string{"completed"}, r.ends("2"))

		r.fails = 3
		w.submit(core.NewTask{Agent: "a", ID: "3", Kind: "k", Callback: hook})
		w.runUntil(time.Hour)
		assert.Empty(w, r.ends("3"))
		delivery := w.task("a", w.task("a", "3").CallbackTask)
		assert.Equal(w, core.StatusFailed, delivery.Status)
		assert.Equal(w, 3, delivery.Attempt)
		require.NoError(w, w.s.Delete(w.Context(), "a", "3"))
		_, err := w.s.Replay(w.Context(), "a", delivery.ID)
		require.NoError(w, err)
		w.run()
		assert.Equal(w, []string{"completed"}, r.ends("3"), "although its task is forgotten")
	})
}

// Each life of a task has an end of its own, which is told.
func TestEachEndOfATaskIsTold(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Payload: note{"never"}, Callback: hook, OnConflict: core.OnConflictReplace}
		w.submit(task)
		w.runFailing()
		_, err := w.s.Replay(w.Context(), "a", "1")
		require.NoError(w, err)
		w.runFailing()
		task.Payload = note{"ok"}
		w.submit(task)
		w.run()
		w.submit(task)
		_, err = w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(w, err)
		w.submit(task)
		_, err = w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(w, err)
		w.run()
		assert.Equal(w, []string{"failed", "failed", "completed", "cancelled", "cancelled"}, r.ends("1"))
		ids := map[string]bool{}
		for _, d := range r.got {
			ids[d.ID] = true
		}
		assert.Len(w, ids, 5, "no receiver takes one for another")
	})
}

// The pause of an agent holds its callbacks, and so do its quiet hours; what is urgent passes these.
func TestAPauseHoldsCallbacks(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, Callback: hook})
		require.NoError(w, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		_, err := w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(w, err)
		w.runUntil(time.Hour)
		assert.Empty(w, r.got)
		require.NoError(w, w.s.Resume(w.Context(), core.Target{Agent: "a"}))
		w.run()
		assert.Equal(w, []string{"cancelled"}, r.ends("1"))
	})
}

// A cancel is about the definition of its time: it is that one's callback which is told, and not that of the definition whose run it ends.
func TestACancelTellsWhoItsDefinitionNames(t *testing.T) {
	for name, c := range map[string]struct{ was, is string }{"added": {"", hook}, "dropped": {hook, ""}, "another": {hook + "/old", hook + "/new"}} {
		t.Run(name, func(t *testing.T) {
			r := &receiver{}
			virtual(t, core.Config{Callbacks: r}, func(w *world) {
				core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error { <-ctx.Done(); return ctx.Err() })
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: c.was})
				ended := make(chan struct{})
				go func() { defer close(ended); _, _ = w.s.RunDue(w.Context(), core.Scope{}) }()
				synctest.Wait()
				w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: c.is, OnConflict: core.OnConflictReplace})
				_, err := w.s.Cancel(w.Context(), "a", "1", core.Order{})
				require.NoError(w, err)
				<-ended
				w.runUntil(time.Hour)
				var urls []string
				for _, d := range r.got {
					urls = append(urls, d.URL)
				}
				if c.is == "" {
					assert.Empty(w, urls)
				} else {
					assert.Equal(w, []string{c.is}, urls)
				}
				assert.Equal(w, c.is != "", w.task("a", "1").CallbackTask != "")
			})
		})
	}
}

func TestWhatMayNotBeCalledIsRefused(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		_, err := w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: "https://evil.example/?secret=7"})
		assert.EqualError(w, err, "callback must begin with https://hooks.example.com/")
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: model.KindCallback, Payload: map[string]string{"url": hook}})
		assert.ErrorContains(w, err, `"duly.callback" is duly's own`)
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: hook + strings.Repeat("x", base.MaxCallbackLen)})
		assert.ErrorContains(w, err, "callback is 2078 bytes long: the limit is 2048")
		assert.Zero(w, w.store.total(), "nothing was asked")
		assert.Panics(w, func() {
			core.Handle(w.s, model.KindCallback, func(context.Context, *core.Task[note]) error { return nil })
		})

		other, err := core.New(w.store, core.Config{})
		require.NoError(w, err)
		_, err = other.Submit(w.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: hook})
		assert.ErrorContains(w, err, "callback is not enabled")
		assert.Zero(w, w.store.total())
		assert.Equal(w, core.CodeInvalid, core.CodeOf(err))

		// What was allowed once is looked at again when it is delivered.
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k", Callback: hook})
		_, err = other.Cancel(w.Context(), "a", "2", core.Order{})
		require.NoError(w, err, "every process tells of ends")
		strict, err := core.New(w.store, core.Config{Callbacks: refusing{r}})
		require.NoError(w, err)
		_, err = strict.RunDue(w.Context(), core.Scope{})
		assert.ErrorContains(w, err, "the callback may not be called any more")
		assert.Empty(w, r.got)
		assert.Equal(w, core.StatusFailed, w.task("a", w.task("a", "2").CallbackTask).Status)
	})
}

// refusing allows nothing.
type refusing struct{ *receiver }

func (refusing) Check(string) error { return errors.New("may not be called any more") }

// A task without a callback costs no call of the store more, nor does one with a callback until it ends.
func TestOnlyCallbacksCost(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, _ *receiver) {
		calls := func(task core.NewTask) int {
			w.submit(task)
			before := w.store.count("submit") + w.store.count("read") + w.store.count("replan")
			w.run()
			return w.store.count("submit") + w.store.count("read") + w.store.count("replan") - before
		}
		assert.Zero(w, calls(core.NewTask{Agent: "a", ID: "1", Kind: "k"}))
		assert.Zero(w, calls(core.NewTask{Agent: "a", ID: "2", Kind: "k", Every: time.Hour, Callback: hook}))
		assert.Equal(w, 3, calls(core.NewTask{Agent: "a", ID: "3", Kind: "k", Callback: hook}))
	})
}

// Quiet hours put a delivery off, unless the task was urgent and the profile lets that pass.
func TestQuietHoursPutCallbacksOff(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		begun := time.Now().UTC()
		_, err := w.s.SetProfile(w.Context(), core.Profile{
			Agent: "a", Urgent: true, Quiet: []core.QuietHours{{From: begun.Format("15:04"), To: begun.Add(2 * time.Hour).Format("15:04")}},
		})
		require.NoError(w, err)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: hook}, core.NewTask{Agent: "a", ID: "2", Kind: "k", Callback: hook, Urgent: true})
		_, err = w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(w, err)
		w.runUntil(time.Hour)
		assert.Empty(w, r.ends("1"))
		assert.Equal(w, []string{"completed"}, r.ends("2"))
		w.runUntil(time.Hour + time.Minute)
		assert.Equal(w, []string{"cancelled"}, r.ends("1"))
	})
}

// An agent that has as many tasks as it may have is told of their ends all the same.
func TestAFullAgentIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		w := newWorldOn(t, memstore.New(memstore.Config{MaxTasks: 2}), core.Config{Callbacks: r})
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: hook}, core.NewTask{Agent: "a", ID: "2", Kind: "k", Delay: time.Hour, Callback: hook})
		_, err := w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "3", Kind: "k"})
		assert.Equal(t, core.CodeLimit, core.CodeOf(err))
		w.run()
		assert.Equal(t, []string{"completed"}, r.ends("1"))
		_, err = w.s.Cancel(t.Context(), "a", "2", core.Order{})
		require.NoError(t, err)
		w.run()
		assert.Equal(t, []string{"cancelled"}, r.ends("2"))
	})
}

// An end whose delivery cannot be stored is not stored either, and is tried again; other ends do not wait for it.
func TestNoEndIsStoredBeforeItsCallback(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Callback: hook}, core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		var waits []core.Status
		w.store.failing(func(verb string, n int) error {
			if verb != "submit" || n > 3 {
				return nil
			}
			return &store.Error{Verb: verb, Err: errors.New("away")}
		})
		seen := func() {
			time.Sleep(100 * time.Millisecond)
			waits = append(waits, w.task("a", "1").Status, w.task("a", "2").Status)
		}
		done := make(chan struct{})
		go func() { defer close(done); seen() }()
		w.run()
		<-done
		assert.Equal(w, []core.Status{core.StatusInProgress, core.StatusCompleted}, waits)
		assert.Equal(w, core.StatusCompleted, w.task("a", "1").Status)
		assert.Equal(w, []string{"completed"}, r.ends("1"))
		assert.EqualValues(w, 1, w.task("a", "1").RunCount, "it did not run again")
	})
}

// Who runs a delivery by hand while the command that has announced it is under way keeps nobody from being told, also if that command cannot
// look after it.
func TestADeliveryByHandWaitsForItsCommand(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, Callback: hook})
		reads, cancels := 0, 0
		w.store.Before = func(ctx context.Context, verb string) error {
			switch {
			case verb == "Get" && cancels > 0: // the one that looks for the end, and that after it
				if reads++; reads > 1 {
					return &store.Error{Verb: verb, Err: errors.New("away")}
				}
			case verb == "Cancel":
				_, err := w.s.Bulk(ctx, operate.Bulk{Do: operate.BulkRun, List: core.List{Agent: "a", Kind: model.KindCallback}, Confirm: true})
				assert.NoError(t, err)
				cancels++
				w.run()
			}
			return nil
		}
		_, err := w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(t, err)
		assert.Equal(t, 2, reads)
		w.store.Before = nil
		w.runUntil(2 * time.Minute)
		assert.Equal(t, []string{"cancelled"}, r.ends("1"))
	})
}

// A delivery that was told to run in spite of a pause is made sure of before its task has another life, as any other.
func TestADeliveryWithAnOrderIsMadeSureOf(t *testing.T) {
	tellTo(t, core.Config{}, func(w *world, r *receiver) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, Callback: hook})
		reads := 0
		w.store.Before = func(_ context.Context, verb string) error {
			if verb == "Get" {
				if reads++; reads == 2 { // the first is of the cancel, and this one would confirm the delivery
					return &store.Error{Verb: verb, Err: errors.New("away")}
				}
			}
			return nil
		}
		_, err := w.s.Cancel(w.Context(), "a", "1", core.Order{})
		require.NoError(t, err)
		w.store.Before = nil
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "a"}, core.Pause{}))
		_, err = w.s.RunNow(w.Context(), "a", w.task("a", "1").CallbackTask)
		require.NoError(t, err)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, OnConflict: core.OnConflictReplace})
		require.NoError(t, w.s.Resume(w.Context(), core.Target{Agent: "a"}))
		w.runUntil(2 * time.Minute)
		assert.Equal(t, []string{"cancelled"}, r.ends("1"))
	})
}
