package core_test

// Tasks of level 1 that start in the call that submits them.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// immediateWorld is a world in which urgent tasks start at once, and run until they are let go.
func immediateWorld(t *testing.T, config core.Config, o core.AtOnce, test func(w *world, ran chan string, let chan struct{}, end func())) {
	t.Helper()
	virtual(t, config, func(w *world) {
		ran, let := make(chan string, 100), make(chan struct{})
		core.Handle(w.s, "ask", func(ctx context.Context, task *core.Task[any]) error {
			ran <- task.Agent + "/" + task.ID
			select {
			case <-let:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		end := w.s.AtOnce(w.Context(), o)
		test(w, ran, let, end)
		end()
	})
}

// An urgent task runs although nobody pulls, in order of its events, and end waits for it.
func TestAnUrgentTaskStartsWhereItIsSubmitted(t *testing.T) {
	var done core.Report
	o := core.AtOnce{Done: func(r core.Report, _ error) { done = r }}
	immediateWorld(t, core.Config{}, o, func(w *world, ran chan string, let chan struct{}, end func()) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "ask", Level: core.LevelHigh})
		assert.Equal(t, "a/1", <-ran)
		assert.Equal(t, core.StatusInProgress, w.task("a", "1").Status)
		time.Sleep(10 * time.Minute) // its lease is kept
		close(let)
		end()
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status)
		assert.Equal(t, 1, done.Completed)
		var order []model.EventType
		for _, e := range w.events {
			order = append(order, e.Type)
		}
		assert.Equal(t, []model.EventType{model.EventEnqueue, model.EventDequeue, model.EventStart, model.EventFinish}, order)
	})
}

// The level of a kind is that of its tasks that name none; what is not urgent or not due waits for a pull.
func TestWhatDoesNotStartAtOnceWaits(t *testing.T) {
	config := core.Config{Kinds: map[string]core.KindConfig{"ask": {Level: core.LevelHigh}}}
	immediateWorld(t, config, core.AtOnce{Agents: func(agent string) bool { return agent != "elsewhere" }}, func(w *world, ran chan string, let chan struct{}, end func()) {
		close(let)
		w.submit(core.NewTask{Agent: "a", ID: "urgent", Kind: "ask"})
		assert.Equal(t, "a/urgent", <-ran)
		w.submit(core.NewTask{Agent: "b", Kind: "ask", Level: core.LevelLow})
		w.submit(core.NewTask{Agent: "c", Kind: "ask", Delay: time.Minute})
		w.submit(core.NewTask{Agent: "f", Kind: "other", Level: core.LevelHigh})
		w.submit(core.NewTask{Agent: "elsewhere", Kind: "ask"})
		w.submit(core.NewTask{Agent: "paused", Kind: "ask", Delay: time.Hour})
		require.NoError(t, w.s.Pause(w.Context(), core.Target{Agent: "paused"}, core.Pause{}))
		w.submit(core.NewTask{Agent: "paused", Kind: "ask"})
		end()
		w.submit(core.NewTask{Agent: "late", Kind: "ask"})
		synctest.Wait()
		assert.Empty(t, ran)
		assert.Equal(t, 3, w.run().Ran, "b, elsewhere, late")
	})
}

// With all slots taken an urgent task has to wait, but for those that are kept for such tasks; pulls that wait come first.
func TestAtOnceNeedsAFreeSlot(t *testing.T) {
	immediateWorld(t, core.Config{Concurrency: 5, Urgent: 2}, core.AtOnce{}, func(w *world, ran chan string, let chan struct{}, _ func()) {
		for i := range 6 {
			w.submit(core.NewTask{Agent: fmt.Sprint("usual", i), Kind: "ask"})
		}
		go func() { _, _ = w.s.RunDue(w.Context(), core.Scope{}) }()
		synctest.Wait()
		require.Len(t, ran, 3)
		for i := range 4 {
			w.submit(core.NewTask{Agent: fmt.Sprint("urgent", i), Kind: "ask", Level: core.LevelHigh})
		}
		synctest.Wait()
		assert.Len(t, ran, 5, "two slots are kept for them")
		close(let)
		synctest.Wait()
		w.run()
		assert.Len(t, ran, 10, "the others are stored")
	})
}

// When the host's context is done its handlers are cancelled after the grace, and the tasks released.
func TestAtOnceEnds(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		end := w.s.AtOnce(ctx, core.AtOnce{Grace: time.Minute})
		started := make(chan struct{}, 1)
		core.Handle(w.s, "ask", func(ctx context.Context, _ *core.Task[any]) error {
			started <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "ask", Level: core.LevelHigh})
		<-started
		begun := time.Now()
		cancel()
		end()
		assert.Equal(t, time.Minute, time.Since(begun))
		got := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, got.Status)
		assert.Equal(t, 1, got.Attempt)
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "ask", Level: core.LevelHigh})
		synctest.Wait()
		assert.Empty(t, started)
	})
}

// An urgent task starts at once in quiet hours only if the profile of its agent lets urgent tasks pass; else it is due when they end.
func TestAtOnceKeepsQuietHours(t *testing.T) {
	immediateWorld(t, core.Config{}, core.AtOnce{}, func(w *world, ran chan string, let chan struct{}, _ func()) {
		close(let)
		quiet := []core.QuietHours{{From: "00:00", To: "12:00"}} // virtual time begins at midnight UTC
		for agent, urgent := range map[string]bool{"sleeps": false, "wakes": true} {
			_, err := w.s.SetProfile(w.Context(), core.Profile{Agent: agent, Zone: "UTC", Quiet: quiet, Urgent: urgent})
			require.NoError(t, err)
			w.submit(core.NewTask{Agent: agent, ID: "1", Kind: "ask", Level: core.LevelHigh})
		}
		assert.Equal(t, "wakes/1", <-ran)
		synctest.Wait()
		assert.Empty(t, ran)
		got := w.task("sleeps", "1")
		assert.Equal(t, core.StatusWaiting, got.Status)
		assert.Equal(t, w.begun.UTC().Truncate(24*time.Hour).Add(12*time.Hour), got.NextRun.UTC())
	})
}

// Urgent tasks of a list start at once too, as many as there are slots, but where a pull follows by itself.
func TestUrgentTasksOfAListStartAtOnce(t *testing.T) {
	list := []core.NewTask{
		{Agent: "a", ID: "1", Kind: "ask", Level: core.LevelHigh},
		{Agent: "a", ID: "2", Kind: "ask", Level: core.LevelHigh},
		{Agent: "b", ID: "1", Kind: "ask", Level: core.LevelHigh},
		{Agent: "c", ID: "1", Kind: "ask", Level: core.LevelLow},
		{Agent: "d", ID: "1", Kind: "ask", Level: core.LevelHigh, Delay: time.Minute},
		{Agent: "e", ID: "1", Kind: "ask", Level: core.LevelHigh},
	}
	for _, c := range []struct {
		name  string
		slots int
		alone bool
		want  []string
	}{{"all", 10, false, []string{"a/1", "a/2", "b/1", "e/1"}}, {"slots", 2, false, []string{"a/1", "a/2"}}, {"alone", 10, true, nil}} {
		t.Run(c.name, func(t *testing.T) {
			immediateWorld(t, core.Config{Concurrency: c.slots}, core.AtOnce{Alone: c.alone}, func(w *world, ran chan string, let chan struct{}, end func()) {
				w.submit(list...)
				w.submit(list...) // again: they are there
				synctest.Wait()
				var got []string
				for range len(ran) {
					got = append(got, <-ran)
				}
				slices.Sort(got)
				assert.Equal(t, c.want, got)
				time.Sleep(10 * time.Minute) // their leases are kept
				close(let)
				end()
				w.run()
				assert.Equal(t, 6, len(w.seen(model.EventFinish)))
				assert.Zero(t, w.s.Slots().InUse)
			})
		})
	}
}
