package core_test

// Fields of a task that waits are changed, and all else of it stays.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// edit changes a task of agent a.
func (w *world) edit(id, change string) core.TaskInfo {
	w.Helper()
	out, err := w.s.Edit(w.Context(), "a", id, json.RawMessage(change))
	require.NoError(w, err)
	require.True(w, out.Replaced)
	return w.task("a", id)
}

func TestEdit(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[any]) error { return nil })
		w.submit(
			core.NewTask{Agent: "a", ID: "once", Kind: "k", Delay: time.Hour, Payload: map[string]int{"n": 1}, Labels: map[string]string{"tier": "gold"}, Group: "g"},
			core.NewTask{Agent: "a", ID: "every", Kind: "k", Every: time.Hour, LimitKey: "x"},
			core.NewTask{Agent: "a", ID: "cron", Kind: "k", Cron: "0 9 * * *", Zone: "Europe/Berlin"},
			core.NewTask{Agent: "a", ID: "hand", Kind: "k", Manual: true},
		)
		w.run()
		time.Sleep(10 * time.Minute)
		before := w.task("a", "once")
		after := w.edit("once", `{"payload":{"n":2},"level":1,"max_attempts":7}`)
		assert.JSONEq(w, `{"n":2}`, string(after.Payload))
		assert.Equal(w, []any{core.Level(1), 7, before.NextRun, "g", "gold"}, []any{after.Level, after.MaxAttempts, after.NextRun, after.Group, after.Labels["tier"]})

		before = w.task("a", "every")
		after = w.edit("every", `{"limit_key":"y"}`)
		assert.Equal(w, []any{before.NextRun, int64(1), "y", time.Hour}, []any{after.NextRun, after.RunCount, after.LimitKey, after.Every}, "its next run and its history stay")
		after = w.edit("every", `{"limit_key":null,"every":"2h"}`)
		assert.Equal(w, []any{"", 2 * time.Hour}, []any{after.LimitKey, after.Every})
		after = w.edit("every", `{"cron":"0 0 12 * * *"}`)
		assert.Equal(w, []any{time.Duration(0), "0 0 12 * * *"}, []any{after.Every, after.Cron}, "a schedule takes the place of the other")
		after = w.edit("cron", `{"zone":"UTC"}`)
		assert.Equal(w, 9, after.NextRun.UTC().Hour())
		assert.True(w, w.edit("cron", `{"manual":true}`).Manual)
		assert.Equal(w, store.ScheduleEvery, w.edit("hand", `{"every":"1d"}`).Schedule)
		soon := time.Now().Add(5 * time.Minute)
		assert.Equal(w, soon.Unix(), w.edit("once", `{"delay":"PT5M"}`).NextRun.Unix())
		assert.Equal(w, w.begun.Add(24*time.Hour).Unix(), w.edit("once", fmt.Sprintf(`{"at":%q}`, w.begun.Add(24*time.Hour).Format(time.RFC3339))).NextRun.Unix())
	})
}

func TestEditRefuses(t *testing.T) {
	seen := map[string]core.KindConfig{"seen": {Activity: &core.Activity{Delay: time.Hour}}}
	virtual(t, core.Config{Kinds: seen}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[any]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		core.Handle(w.s, "done", func(context.Context, *core.Task[any]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "done", Kind: "done"})
		w.run()
		_, err := w.s.Notice(w.Context(), "seen", core.Subject{Agent: "a", User: "u"})
		require.NoError(w, err)
		w.submit(core.NewTask{Agent: "a", ID: "waits", Kind: "k", Delay: time.Hour}, core.NewTask{Agent: "a", ID: "runs", Kind: "k", Timeout: time.Minute})
		over := make(chan struct{})
		go func() {
			_, _ = w.s.RunDue(w.Context(), core.Scope{})
			close(over)
		}()
		time.Sleep(time.Second)
		for _, c := range [][3]string{
			{"waits", `{}`, "change has no field"},
			{"waits", `[]`, "change must be"},
			{"waits", `{"agent_id":"b"}`, "agent_id cannot be edited"},
			{"waits", `{"nope":1}`, "nope is not a field"},
			{"waits", `{"level":9}`, "level must be 1, 2 or 3"},
			{"waits", `{"kind":null}`, "kind is required"},
			{"waits", `{"cron":"x"}`, "cron"},
			{"waits", `{"level":1,"level":2}`, "level"},
			{"runs", `{"level":1}`, "is running: edit it when its run has ended"},
			{"done", `{"level":1}`, "is completed: submit it again"},
			{"none", `{"level":1}`, "not found"},
		} {
			_, err := w.s.Edit(w.Context(), "a", c[0], json.RawMessage(c[1]))
			require.ErrorContains(w, err, c[2], "%v", c)
		}
		tasks, _, err := w.s.Tasks(w.Context(), core.List{Agent: "a", Kind: "seen"})
		require.NoError(w, err)
		_, err = w.s.Edit(w.Context(), "a", tasks[0].ID, json.RawMessage(`{"level":1}`))
		require.ErrorContains(w, err, "is an activity task")
		<-over
	})
}

// Of many that edit one task at once nobody undoes what another has done.
func TestEditsLoseNothing(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "t", Kind: "k", Delay: time.Hour})
		changes := []string{`{"level":1}`, `{"payload":"x"}`, `{"limit_key":"y"}`, `{"max_attempts":9}`, `{"group":"g"}`, `{"tags":["z"]}`}
		var all sync.WaitGroup
		for _, change := range changes {
			all.Go(func() {
				for {
					_, err := w.s.Edit(w.Context(), "a", "t", json.RawMessage(change))
					if err == nil || !errors.Is(err, store.ErrChanged) {
						assert.NoError(w, err)
						return
					}
				}
			})
		}
		all.Wait()
		task := w.task("a", "t")
		assert.Equal(w, []any{core.Level(1), `"x"`, "y", 9, "g", []string{"z"}}, []any{task.Level, string(task.Payload), task.LimitKey, task.MaxAttempts, task.Group, task.Tags})
	})
}
