package steps_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
	"github.com/seed-6f6f2c11/duly/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a scheduler in virtual time.
type world struct {
	*testing.T

	s     *core.Scheduler
	store *spy.Store
	did   []string
}

func virtual(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: &spy.Store{Store: memstore.New(memstore.Config{})}}
		s, err := core.New(w.store, core.Config{Concurrency: 50})
		require.NoError(t, err)
		w.s = s
		test(w)
	})
}

// do is a step that notes that it was done, and fails as often as it is told.
func do(ctx context.Context, w *world, run *steps.Run, name string, fails int) (string, error) {
	return steps.Do(ctx, run, name, func(context.Context) (string, error) {
		n := strings.Count(strings.Join(w.did, " ")+" ", name+" ")
		w.did = append(w.did, name)
		if n < fails {
			return "", errors.New(name + " fails")
		}
		return "result of " + name, nil
	})
}

func (w *world) submit(task core.NewTask) {
	w.Helper()
	task.Agent = "ada"
	_, err := w.s.Submit(w.Context(), task)
	require.NoError(w, err)
}

// runFor runs what is due, for a time.
func (w *world) runFor(d time.Duration) {
	w.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(max(100*time.Millisecond, d/300)) {
		_, err := w.s.RunDue(w.Context(), core.Scope{})
		if _, failed := errors.AsType[*core.RunsError](err); !failed {
			require.NoError(w, err)
		}
	}
}

func (w *world) task() core.TaskInfo {
	w.Helper()
	info, err := w.s.Task(w.Context(), "ada", "s")
	require.NoError(w, err)
	return info
}

// Each step is done once, whatever fails behind it, and what it has returned is there in the next attempt.
func TestStepsAreDoneOnce(t *testing.T) {
	virtual(t, func(w *world) {
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			run := steps.Begin(w.s, task.RunInfo)
			for i, name := range []string{"plan", "write", "check"} {
				said, err := do(ctx, w, run, name, i)
				if err != nil {
					return err
				}
				assert.Equal(w, "result of "+name, said)
			}
			return nil
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 5})
		w.runFor(time.Minute)
		assert.Equal(t, core.StatusCompleted, w.task().Status, w.task().LastError)
		assert.Equal(t, []string{"plan", "write", "write", "check", "check", "check"}, w.did)
	})
}

// Each occurrence begins a new log, and an idempotency key is of one step of one occurrence.
func TestOccurrencesHaveLogsOfTheirOwn(t *testing.T) {
	virtual(t, func(w *world) {
		keys := map[string]int{}
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			run := steps.Begin(nil, task.RunInfo)
			keys[run.Key("plan")]++
			if _, err := do(ctx, w, run, "plan", 0); err != nil {
				return err
			}
			if task.Attempt == 1 {
				return errors.New("once more")
			}
			return nil
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", Every: time.Hour, MaxAttempts: 3})
		w.runFor(61 * time.Minute)
		assert.Equal(t, []string{"plan", "plan"}, w.did)
		assert.Len(t, keys, 2)
		assert.Equal(t, 2, keys["ada/s/20000101T000000.000Z/plan"], keys)
	})
}

// A sleep ends the run, costs no attempt, and is over once; an operator may end it.
func TestARunSleeps(t *testing.T) {
	for name, byHand := range map[string]bool{"by itself": false, "by hand": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(w *world) {
				var at []time.Duration
				begun := time.Now()
				core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
					run := steps.Begin(w.s, task.RunInfo)
					for _, name := range []string{"one", "two"} {
						if _, err := do(ctx, w, run, name, 0); err != nil {
							return err
						}
						if err := run.Sleep("after "+name, time.Hour); err != nil {
							return err
						}
						at = append(at, time.Since(begun).Truncate(time.Minute))
					}
					return nil
				})
				w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 1})
				w.runFor(time.Minute)
				assert.Empty(t, at)
				if byHand {
					_, err := w.s.RunNow(w.Context(), "ada", "s")
					require.NoError(t, err)
				}
				w.runFor(2 * time.Hour)
				want := []time.Duration{time.Hour, 2 * time.Hour, 2 * time.Hour}
				if byHand {
					want = []time.Duration{time.Minute, 61 * time.Minute, 61 * time.Minute}
				}
				assert.Equal(t, want, at)
				assert.Equal(t, []string{"one", "two"}, w.did)
				assert.Equal(t, core.StatusCompleted, w.task().Status)
			})
		})
	}
}

// A wait gets the payload of its signal, also in attempts after that; the second wait does not get the first one's.
func TestARunWaits(t *testing.T) {
	virtual(t, func(w *world) {
		var got []string
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			run := steps.Begin(w.s, task.RunInfo)
			first, err := steps.Wait[string](run, "first", time.Hour)
			if err != nil {
				return err
			}
			if _, err := do(ctx, w, run, "between", 1); err != nil {
				return err
			}
			second, err := steps.Wait[int](run, "second", 0)
			if err != nil {
				return err
			}
			_, err = steps.Wait[int](run, "never", time.Minute)
			require.True(w, errors.Is(err, steps.ErrTimeout) || run.Log().Waits != nil, err)
			if !errors.Is(err, steps.ErrTimeout) {
				return err
			}
			got = append(got, fmt.Sprint(first, second))
			return nil
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 3})
		w.runFor(time.Second)
		assert.Equal(t, "s/first", w.task().Awaiting.Key)
		_, err := w.s.Signal(w.Context(), "ada", "s/first", []byte(`"yes"`))
		require.NoError(t, err)
		w.runFor(10 * time.Second)
		_, err = w.s.Signal(w.Context(), "ada", "s/second", []byte(`2`))
		require.NoError(t, err)
		w.runFor(2 * time.Minute)
		assert.Equal(t, []string{"yes2"}, got)
		assert.Equal(t, []string{"between", "between"}, w.did)
		assert.Equal(t, core.StatusCompleted, w.task().Status, w.task().LastError)
	})
}

// The results of tasks are in their order; a task that has failed fails the step, and runs again with the next attempt. Nothing polls.
func TestTasksOfARun(t *testing.T) {
	virtual(t, func(w *world) {
		var mu sync.Mutex
		ran, parents := map[int]int{}, 0
		core.Handle(w.s, "part", func(_ context.Context, task *core.Task[int]) error {
			mu.Lock()
			defer mu.Unlock()
			ran[task.Payload]++
			if task.Payload == 2 && ran[2] == 1 {
				return core.SkipRetry(errors.New("no"))
			}
			return task.SetResult(10 * task.Payload)
		})
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			parents++
			run := steps.Begin(w.s, task.RunInfo)
			var tasks []core.NewTask
			for i := range 5 {
				tasks = append(tasks, core.NewTask{Kind: "part", Payload: i, Delay: time.Duration(i) * 20 * time.Second})
			}
			got, err := steps.All[int](ctx, run, "parts", tasks...)
			if err != nil {
				return err
			}
			more, err := steps.Each[int](ctx, run, "more", "part", 2, []int{7, 8, 9})
			if err != nil {
				return err
			}
			return task.SetResult(append(got, more...))
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 3})
		w.runFor(5 * time.Minute)
		assert.Equal(t, core.StatusCompleted, w.task().Status, w.task().LastError)
		assert.JSONEq(t, `[0,10,20,30,40,70,80,90]`, string(w.task().Result))
		assert.Equal(t, map[int]int{0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 7: 1, 8: 1, 9: 1}, ran)
		assert.LessOrEqual(t, parents, 8, "it is woken, and does not look")
	})
}

// A task that is deleted ends without being told: the run finds that out by itself, and fails by name.
func TestATaskOfARunIsDeleted(t *testing.T) {
	virtual(t, func(w *world) {
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			_, err := steps.All[int](ctx, steps.Begin(w.s, task.RunInfo), "parts", core.NewTask{ID: "gone", Kind: "part", Delay: time.Hour})
			return err
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 1})
		w.runFor(time.Second)
		require.NoError(t, w.s.Delete(w.Context(), "ada", "gone"))
		w.runFor(2 * time.Minute)
		assert.Equal(t, core.StatusFailed, w.task().Status)
		assert.Contains(t, w.task().LastError, "step parts: 1 of 1 tasks have not completed: gone is deleted")
	})
}

// While the store is away a step that is done waits until it is stored: what comes next does not begin.
func TestAStepWaitsForTheStore(t *testing.T) {
	virtual(t, func(w *world) {
		begun := time.Now()
		w.store.Before = func(_ context.Context, verb string) error {
			if verb == "Extend" && time.Since(begun) < 10*time.Second {
				return errors.New("away")
			}
			return nil
		}
		var next time.Duration
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			run := steps.Begin(w.s, task.RunInfo)
			if _, err := do(ctx, w, run, "one", 0); err != nil {
				return err
			}
			next = time.Since(begun)
			return nil
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 1})
		w.runFor(20 * time.Second)
		assert.GreaterOrEqual(t, next, 10*time.Second)
		assert.LessOrEqual(t, next, 13*time.Second)
		assert.Equal(t, core.StatusCompleted, w.task().Status)
	})
}

// Steps of several goroutines are all stored.
func TestStepsSideBySide(t *testing.T) {
	virtual(t, func(w *world) {
		core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
			run := steps.Begin(w.s, task.RunInfo)
			if log := run.Log(); len(log.Done) > 0 {
				assert.Len(w, log.Done, 20)
				return nil
			}
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					_, err := steps.Do(ctx, run, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil })
					assert.NoError(w, err)
				})
			}
			all.Wait()
			return errors.New("once more")
		})
		w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 2})
		w.runFor(10 * time.Second)
		assert.Equal(t, core.StatusCompleted, w.task().Status, w.task().LastError)
	})
}

// What makes no sense fails the task for good, and says what to do.
func TestStepsAreBounded(t *testing.T) {
	for why, handler := range map[string]func(ctx context.Context, w *world, run *steps.Run) error{
		`step "a" comes twice in one run: steps are known by their names`: func(ctx context.Context, w *world, run *steps.Run) error {
			_, _ = do(ctx, w, run, "a", 0)
			_, err := do(ctx, w, run, "a", 0)
			return err
		},
		"step needs a name": func(ctx context.Context, w *world, run *steps.Run) error {
			_, err := do(ctx, w, run, "", 0)
			return err
		},
		`so keep what step "large" returns (300002 bytes) elsewhere, and return where it is`: func(ctx context.Context, w *world, run *steps.Run) error {
			_, _ = do(ctx, w, run, "small", 0)
			_, err := steps.Do(ctx, run, "large", func(context.Context) (string, error) { return strings.Repeat("x", 300_000), nil })
			return err
		},
		"the log of steps has 1001 steps: the limit is 1000": func(ctx context.Context, _ *world, run *steps.Run) error {
			for i := range steps.MaxSteps + 1 {
				if _, err := steps.Do(ctx, run, fmt.Sprint(i), func(context.Context) (bool, error) { return true, nil }); err != nil {
					return err
				}
			}
			return nil
		},
		`has a task of agent "bob"`: func(ctx context.Context, _ *world, run *steps.Run) error {
			_, err := steps.All[int](ctx, run, "parts", core.NewTask{Agent: "bob", Kind: "part"})
			return err
		},
		"has a task that recurs": func(ctx context.Context, _ *world, run *steps.Run) error {
			_, err := steps.All[int](ctx, run, "parts", core.NewTask{Kind: "part", Every: time.Hour})
			return err
		},
		"must be at least 1, not 0": func(ctx context.Context, _ *world, run *steps.Run) error {
			_, err := steps.Each[int](ctx, run, "parts", "part", 0, []int{1})
			return err
		},
		"step a has returned something else before": func(ctx context.Context, w *world, run *steps.Run) error {
			if len(w.did) == 0 {
				_, _ = do(ctx, w, run, "a", 0)
				return core.Snooze(time.Second)
			}
			_, err := steps.Do(ctx, run, "a", func(context.Context) (int, error) { return 0, nil })
			return err
		},
		"is no log of steps": func(_ context.Context, w *world, run *steps.Run) error {
			if len(w.did) == 0 {
				w.did = []string{"yielded"}
				return core.Yield(map[string]int{"page": 1}, 0)
			}
			return run.Sleep("rest", time.Hour)
		},
	} {
		t.Run(why, func(t *testing.T) {
			virtual(t, func(w *world) {
				core.Handle(w.s, "story", func(ctx context.Context, task *core.Task[any]) error {
					return handler(ctx, w, steps.Begin(w.s, task.RunInfo))
				})
				w.submit(core.NewTask{ID: "s", Kind: "story", MaxAttempts: 5})
				w.runFor(5 * time.Second)
				assert.Equal(t, core.StatusFailed, w.task().Status)
				assert.Contains(t, w.task().LastError, why)
			})
		})
	}
}
