package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
)

// A chain of five tasks, each of which the one before has submitted, runs to its end; each knows where it comes from, also when it
// has ended and its body is gone.
func TestOriginsAreKept(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		var seen []*core.Origin
		core.Handle(w.s, "k", func(ctx context.Context, t *core.Task[int]) error {
			seen = append(seen, t.Origin())
			if t.Payload == 5 {
				return core.SkipRetry(errBoom)
			}
			wrapped, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			_, err := w.s.Submit(wrapped, core.NewTask{Agent: "a/ä", ID: fmt.Sprint(t.Payload + 1), Kind: "k", Payload: t.Payload + 1})
			return err
		})
		w.submit(core.NewTask{Agent: "first", ID: "0", Kind: "k", Payload: 0})
		w.runUntil(time.Minute)
		require.Len(t, seen, 6)
		assert.Nil(t, seen[0])
		assert.Nil(t, w.task("first", "0").Origin)
		by := model.TaskName{Agent: "first", ID: "0"}
		for depth := 1; depth <= 5; depth++ {
			want := &core.Origin{By: by, Root: model.TaskName{Agent: "first", ID: "0"}, Depth: depth}
			info := w.task("a/ä", fmt.Sprint(depth))
			assert.Equal(t, want, info.Origin)
			assert.Equal(t, want, seen[depth])
			by = model.TaskName{Agent: "a/ä", ID: fmt.Sprint(depth)}
		}
		failed := w.task("a/ä", "5")
		assert.Equal(t, core.StatusFailed, failed.Status)
		data, err := json.Marshal(failed)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"submitted_by":{"agent_id":"a/ä","id":"4"},"root":{"agent_id":"first","id":"0"},"depth":5`)
		cancelled := core.NewTask{Agent: "a/ä", ID: "c", Kind: "k", Delay: time.Hour}
		ctx, err := w.s.WithParent(w.Context(), "a%2F%C3%A4/5")
		require.NoError(t, err)
		_, err = w.s.Submit(ctx, cancelled)
		require.NoError(t, err)
		_, err = w.s.Cancel(w.Context(), "a/ä", "c", core.Order{})
		require.NoError(t, err)
		assert.Equal(t, 6, w.task("a/ä", "c").Origin.Depth)
	})
}

// bomb is an agent whose handler submits two tasks each time, three schedulers that run it, and a quiet agent beside it.
type bomb struct {
	*world

	runs   atomic.Int64
	quiet  []time.Duration // how long the quiet agent's runs have waited
	refuse atomic.Int64
}

const bombTakes = 200 * time.Millisecond

// explode runs for so long; without a bomb only the quiet agent does.
func explode(t *testing.T, config core.Config, lit bool, last time.Duration) *bomb {
	t.Helper()
	st := memstore.New(memstore.Config{})
	b := &bomb{}
	var mu sync.Mutex
	var running sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), last)
	defer stop()
	for range 3 {
		w := newWorldOn(t, st, config)
		if b.world == nil {
			b.world = w
		}
		core.Handle(w.s, "bomb", func(ctx context.Context, t *core.Task[struct{}]) error {
			b.runs.Add(1)
			time.Sleep(bombTakes)
			next := core.NewTask{Agent: t.Agent, Kind: "bomb", MaxAttempts: 2}
			_, err := w.s.Submit(ctx, next, next)
			if err != nil {
				b.refuse.Add(1)
			}
			return err
		})
		core.Handle(w.s, "quiet", func(_ context.Context, t *core.Task[struct{}]) error {
			mu.Lock()
			defer mu.Unlock()
			b.quiet = append(b.quiet, t.Claimed.Sub(t.Due))
			return nil
		})
		running.Go(func() {
			for ctx.Err() == nil {
				_, _ = w.s.RunDue(ctx, core.Scope{})
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	if lit {
		b.submit(core.NewTask{Agent: "wild", ID: "root", Kind: "bomb"})
	}
	b.submit(core.NewTask{Agent: "calm", ID: "tick", Kind: "quiet", Every: time.Second, From: core.FromStart})
	running.Wait()
	return b
}

// tasks are those of the agent that explodes, by status, and the greatest depth.
func (b *bomb) tasks() (all []core.TaskInfo, deepest int) {
	b.Helper()
	for cursor := ""; ; {
		page, next, err := b.s.Tasks(context.WithoutCancel(b.Context()), core.List{Agent: "wild", Limit: inspect.MaxPage, Cursor: cursor})
		require.NoError(b, err)
		for i := range page {
			if page[i].Origin != nil {
				deepest = max(deepest, page[i].Origin.Depth)
			}
		}
		if all = append(all, page...); next == "" {
			return all, deepest
		}
		cursor = next
	}
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(max(len(all), 1))
}

// A fork bomb stops at the default bounds, by its depth or by its number, and says so; nobody else notices.
func TestForkBombsStop(t *testing.T) {
	t.Parallel()
	var before time.Duration
	synctest.Test(t, func(t *testing.T) { before = mean(explode(t, core.Config{}, false, time.Minute).quiet) })
	for name, c := range map[string]struct {
		config  core.Config
		tasks   int // besides the root
		deepest int // or more, where it is 9
		code    core.Code
		text    string
	}{
		"depth": {core.Config{}, 510, 8, core.CodeSpawnDepth, `have come to depth 9 below task "root" of agent "wild", and the limit is 8`},
		"number": {
			core.Config{MaxDepth: -1},
			1000, 9, core.CodeSpawnRate,
			`the runs of task "root" of agent "wild" and of the tasks below it have submitted 1000 tasks within an hour, which is the limit: there is room again at 2000-01-01T01:05:00.000Z`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := explode(t, c.config, true, 2*time.Minute)
				all, deepest := b.tasks()
				assert.Len(t, all, 1+c.tasks)
				assert.Equal(t, c.deepest, min(deepest, 9))
				failed := 0
				for i := range all {
					require.True(t, all[i].Status.Finished(), "nothing goes on: %s", all[i].Status)
					if all[i].Status == core.StatusFailed {
						failed++
						assert.Contains(t, all[i].LastError, c.text)
					}
				}
				assert.Positive(t, failed)
				b.explains(all, c.text)
				assert.EqualValues(t, 2*failed, b.refuse.Load(), "two attempts each")
				assert.EqualValues(t, len(all)+failed, b.runs.Load())
				b.tellsOfBreaks(c.code, c.text)
				assert.InDelta(t, 120, len(b.quiet), 2)
				t.Logf("figure: the quiet agent waited for %s on average beside the bomb, %s without it", mean(b.quiet), before)
				assert.LessOrEqual(t, mean(b.quiet), before+bombTakes/2, "the others run on undisturbed")
			})
		})
	}
}

// explains requires that the explanation of a task whose run was refused says so.
func (b *bomb) explains(all []core.TaskInfo, text string) {
	b.Helper()
	for i := range all {
		if all[i].Status == core.StatusFailed {
			e, err := b.s.Explain(context.WithoutCancel(b.Context()), "wild", all[i].ID)
			require.NoError(b, err)
			assert.Contains(b, e.Reasons[0].Text, text)
			return
		}
	}
}

// tellsOfBreaks requires that the events of the first scheduler tell of what was refused there.
func (b *bomb) tellsOfBreaks(code core.Code, text string) {
	b.Helper()
	n := 0
	for _, e := range b.events {
		if e.Type == model.EventBreaker {
			n++
			assert.Equal(b, "wild", e.Agent)
			assert.NotEmpty(b, e.ID)
			assert.Equal(b, 2, e.Count)
			assert.Equal(b, code, e.Code)
			assert.Contains(b, e.Error, text)
		}
	}
	assert.Positive(b, n)
}

// The bounds are those of the settings, a retry with the same ids counts once, and there is room again after the hour.
func TestBreakerBounds(t *testing.T) {
	virtual(t, core.Config{MaxSpawned: 3}, func(w *world) {
		var got []error
		var next []core.NewTask
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[struct{}]) error {
			_, err := w.s.Submit(ctx, next...)
			got = append(got, err)
			return nil
		})
		task := func(id string) core.NewTask {
			return core.NewTask{Agent: "a", ID: id, Kind: "none", Delay: time.Hour}
		}
		w.submit(core.NewTask{Agent: "a", ID: "root", Kind: "k", Every: time.Minute})
		turn := func(tasks ...core.NewTask) error {
			next = tasks
			w.run()
			time.Sleep(time.Minute)
			return got[len(got)-1]
		}
		require.NoError(t, turn(task("1"), task("2")))
		require.NoError(t, turn(task("1"), task("2")))
		require.NoError(t, turn(task("2"), task("3")))
		err := turn(task("3"), task("4"))
		assert.Equal(t, core.CodeSpawnRate, core.CodeOf(err))
		var broken *breaker.Error
		require.ErrorAs(t, err, &broken)
		assert.Equal(t, w.begun.Add(65*time.Minute).UnixMilli(), broken.Until.Time().UnixMilli())
		w.submit(task("free")) // by no run
		for time.Now().Before(w.begun.Add(65 * time.Minute)) {
			require.Error(t, turn(task("4")))
		}
		require.NoError(t, turn(task("4"), task("5"), task("6")))
	})
}

// Without bounds a chain of any length goes on.
func TestBreakerWithoutBounds(t *testing.T) {
	virtual(t, core.Config{MaxDepth: -1, MaxSpawned: -1}, func(w *world) {
		n := 0
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[struct{}]) error {
			if n++; n == 1500 {
				return nil
			}
			_, err := w.s.Submit(ctx, core.NewTask{Agent: "a", Kind: "k"})
			return err
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		w.runUntil(10 * time.Minute)
		assert.Equal(t, 1500, n)
	})
}

// What a batch submits counts as submitted by the deepest of its runs, unless its handler says by which.
func TestOriginsOfBatches(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.HandleBatch(w.s, "batch", func(ctx context.Context, ts []*core.Task[struct{}]) []error {
			_, err := w.s.Submit(ctx, core.NewTask{Agent: "b", ID: "of the deepest", Kind: "none"})
			errs := []error{err}
			for _, t := range ts {
				_, err := w.s.Submit(core.InRun(ctx, t.RunInfo), core.NewTask{Agent: "b", ID: "of " + t.ID, Kind: "none"})
				errs = append(errs, err)
			}
			return []error{errors.Join(errs...), nil}
		})
		w.submit(core.NewTask{Agent: "a", ID: "root", Kind: "batch"}, core.NewTask{Agent: "r", ID: "x", Kind: "none"})
		ctx, err := w.s.WithParent(w.Context(), "r/x")
		require.NoError(t, err)
		_, err = w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "deep", Kind: "batch"})
		require.NoError(t, err)
		w.run()
		deep := &core.Origin{By: model.TaskName{Agent: "a", ID: "deep"}, Root: model.TaskName{Agent: "r", ID: "x"}, Depth: 2}
		assert.Equal(t, deep, w.task("b", "of the deepest").Origin)
		assert.Equal(t, deep, w.task("b", "of deep").Origin)
		root := model.TaskName{Agent: "a", ID: "root"}
		assert.Equal(t, &core.Origin{By: root, Root: root, Depth: 1}, w.task("b", "of root").Origin)
	})
}

// The occurrences of a recurring task that are tasks of their own share its root, and what a run submits by itself again is the same.
func TestOriginsOfOccurrences(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(ctx context.Context, t *core.Task[struct{}]) error {
			out, err := w.s.Submit(ctx, core.NewTask{Agent: "b", ID: "x", Kind: "none", Delay: time.Hour})
			if err == nil {
				assert.False(w, out[0].Differs, "another run has submitted it, and it is the same all the same")
			}
			_, err = w.s.Submit(ctx, core.NewTask{Agent: "b", ID: "of " + t.ID, Kind: "none", Delay: time.Hour})
			return err
		})
		w.submit(core.NewTask{Agent: "a", ID: "job", Kind: "k", Cron: "* * * * *", Overlap: core.OverlapAllow})
		w.runUntil(3 * time.Minute)
		found := 0
		tasks, _, err := w.s.Tasks(w.Context(), core.List{Agent: "b"})
		require.NoError(t, err)
		for i := range tasks {
			found++
			assert.Equal(t, model.TaskName{Agent: "a", ID: "job"}, tasks[i].Origin.Root)
			assert.NotEqual(t, "job", tasks[i].Origin.By.ID)
			assert.Equal(t, 1, tasks[i].Origin.Depth)
		}
		assert.GreaterOrEqual(t, found, 3)
	})
}

// A parent that is named from outside cannot make a task less deep than it is, and must be known.
func TestWithParent(t *testing.T) {
	denied := core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Agent == "secret" {
			return errBoom
		}
		return nil
	})
	virtual(t, core.Config{MaxDepth: 1, Authorizer: denied}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "r 1", Kind: "none"})
		ctx, err := w.s.WithParent(w.Context(), model.TaskName{Agent: "a", ID: "r 1"}.String())
		require.NoError(t, err)
		assert.Equal(t, "a/r%201", core.ParentOf(ctx))
		assert.Empty(t, core.ParentOf(w.Context()))
		_, err = w.s.Submit(ctx, core.NewTask{Agent: "b", ID: "1", Kind: "none"})
		require.NoError(t, err)
		ctx, err = w.s.WithParent(w.Context(), "b/1")
		require.NoError(t, err)
		_, err = w.s.Submit(ctx, core.NewTask{Agent: "c", ID: "1", Kind: "none"}, core.NewTask{Agent: "c", ID: "2", Kind: "none"})
		assert.Equal(t, core.CodeSpawnDepth, core.CodeOf(err))
		assert.Empty(t, w.all("c"), "nothing is stored")
		for _, parent := range []string{"", "a", "/", "a/", "/1", "a/b/c", "a/%", "a/%zz", "%00/1", "a/unknown", "no/1", "a/\xff"} {
			_, err = w.s.WithParent(w.Context(), parent)
			assert.Equal(t, core.CodeInvalid, core.CodeOf(err), parent)
			assert.ErrorContains(t, err, "parent ")
		}
		_, err = w.s.WithParent(w.Context(), "secret/1")
		assert.Equal(t, core.CodeForbidden, core.CodeOf(err), "nor does it tell whether the task exists")
	})
}
