package core_test

// Policies: what they see and what they change, and that hot agents rise by one.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// byHeat lets the tasks of agents that submit a lot go first, and those of others later while many wait.
type byHeat struct{ core.NoPolicy }

func (byHeat) Place(f core.Figures, _ core.NewTask) core.Placement {
	switch {
	case f.Agent.Submitted > 3:
		return core.Placement{Level: core.LevelHigh}
	case f.Kind.Depth() > 10:
		return core.Placement{Delay: 5 * time.Second}
	default:
		return core.Placement{}
	}
}

func ExamplePolicy() {
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Policy: byHeat{}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, id := range []string{"1", "2", "3", "4"} {
		_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", ID: id, Kind: "digest"})
		task, _ := s.Task(ctx, "ada", id)
		fmt.Print(task.Level, " ")
	}
	// Output: 3 3 3 1
}

// waits are how long the tasks of a hot agent, from the fifth on, and of cold ones wait on average: a hundred cold ones have a task each
// that takes a second, and the hot one submits one every second or so.
func waits(t *testing.T, policy core.Policy) (hot, cold time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{Policy: policy})
		require.NoError(t, err)
		var mu sync.Mutex
		sums, n := map[bool]time.Duration{}, map[bool]int{}
		core.Handle(s, "k", func(_ context.Context, task *core.Task[note]) error {
			mu.Lock()
			if task.Group != "first" {
				sums[task.Agent == "hot"] += time.Since(task.Submitted)
				n[task.Agent == "hot"]++
			}
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		})
		ctx := t.Context()
		for i := range 100 {
			_, err := s.Submit(ctx, core.NewTask{Agent: fmt.Sprint("cold", i), Kind: "k"})
			require.NoError(t, err)
			time.Sleep(20 * time.Millisecond)
		}
		var pulls sync.WaitGroup
		pulls.Go(func() {
			for range 120 {
				_, err := s.RunDue(ctx, core.Scope{})
				assert.NoError(t, err)
				time.Sleep(200 * time.Millisecond)
			}
		})
		for i := range 20 {
			_, err := s.Submit(ctx, core.NewTask{Agent: "hot", Kind: "k", Group: map[bool]string{true: "first"}[i < 4]})
			require.NoError(t, err)
			time.Sleep(1100 * time.Millisecond)
		}
		pulls.Wait()
		require.Equal(t, 100, n[false])
		require.Equal(t, 16, n[true])
		hot, cold = sums[true]/16, sums[false]/100
	})
	return hot, cold
}

// By the policy a hot agent waits less than a tenth as long as without, in the slots that are kept for urgent work.
func TestHotAgentsRise(t *testing.T) {
	t.Parallel()
	hotBefore, coldBefore := waits(t, nil)
	hot, cold := waits(t, byHeat{})
	t.Logf("hot %s to %s, cold %s to %s", hotBefore, hot, coldBefore, cold)
	assert.Less(t, hot, hotBefore/10)
	assert.Less(t, cold, coldBefore+time.Second)
}

// While many tasks wait, those of cold agents start later than without the policy, and those of hot ones do not.
func TestColdAgentsSink(t *testing.T) {
	virtual(t, core.Config{Policy: byHeat{}}, func(w *world) {
		waited := map[string]time.Duration{}
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			waited[task.Agent] = time.Since(task.Submitted)
			return nil
		})
		for i := range 20 {
			w.submit(core.NewTask{Agent: fmt.Sprint("later", i), Kind: "k", Delay: time.Hour})
		}
		for range 3 {
			w.submit(core.NewTask{Agent: "hot", Kind: "k", Delay: time.Hour})
		}
		time.Sleep(time.Second) // so that the figures are of now
		w.submit(core.NewTask{Agent: "cold", Kind: "k"}, core.NewTask{Agent: "hot", Kind: "k"})
		w.runUntil(time.Minute)
		assert.Equal(w, map[string]time.Duration{"hot": 0, "cold": 5 * time.Second}, waited)
	})
}

// policy is one of functions.
type policy struct {
	place func(f core.Figures, t core.NewTask) core.Placement
	again func(f core.Figures, e core.Ended) core.Placement
}

func (p policy) Place(f core.Figures, t core.NewTask) core.Placement { return p.place(f, t) }
func (p policy) Again(f core.Figures, e core.Ended) core.Placement   { return p.again(f, e) }

func TestAPolicySeesFigures(t *testing.T) {
	var placed []core.Figures
	var ended []core.Ended
	var again []core.Figures
	var mu sync.Mutex
	virtual(t, core.Config{Policy: policy{
		place: func(f core.Figures, _ core.NewTask) core.Placement {
			placed = append(placed, f)
			return core.Placement{}
		},
		again: func(f core.Figures, e core.Ended) core.Placement {
			mu.Lock()
			defer mu.Unlock()
			again, ended = append(again, f), append(ended, e)
			return core.Placement{}
		},
	}}, func(w *world) {
		core.Handle(w.s, "k", func(_ context.Context, task *core.Task[note]) error {
			time.Sleep(2 * time.Second)
			return map[bool]error{true: errors.New("boom")}[task.ID == "bad"]
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Hour}, core.NewTask{Agent: "a", ID: "bad", Kind: "k", Every: time.Hour})
		for range 20 {
			w.submit(core.NewTask{Agent: "b", Kind: "other", Delay: time.Hour})
		}
		assert.Equal(w, 1, w.store.count("stats"), "once a second at most")
		assert.Equal(w, []float64{1, 2, 1}, []float64{placed[0].Agent.Submitted, placed[1].Agent.Submitted, placed[2].Agent.Submitted})
		time.Sleep(time.Second)
		_, err := w.s.RunDue(w.Context(), core.Scope{})
		require.Error(w, err)
		require.Len(w, ended, 2)
		last := again[1]
		assert.EqualValues(w, 22, last.Store.Submitted)
		assert.Equal(w, "k", last.Kind.Kind)
		assert.EqualValues(w, 2, last.Kind.Live)
		assert.InDelta(w, 2, last.Agent.Runs, 0.1)
		assert.InDelta(w, 1, last.Agent.Failures, 0.1)
		assert.Equal(w, []time.Duration{2 * time.Second, time.Second}, []time.Duration{last.Agent.Took, last.Agent.Lag})
		assert.Equal(w, []time.Duration{2 * time.Second, 2 * time.Second}, []time.Duration{ended[0].Took, ended[1].Took})
		assert.NotEqual(w, ended[0].Failed, ended[1].Failed)
		time.Sleep(10 * time.Minute)
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k"})
		assert.InDelta(w, 1, placed[len(placed)-1].Agent.Submitted, 0.1, "counts fade")
	})
}

// A policy moves the next occurrence: an interval to any time, a fixed time to a later one only.
func TestAPolicyMovesTheNextOccurrence(t *testing.T) {
	var by time.Duration
	virtual(t, core.Config{Policy: policy{
		place: func(core.Figures, core.NewTask) core.Placement { return core.Placement{} },
		again: func(_ core.Figures, e core.Ended) core.Placement { return core.Placement{At: e.Due.Add(by)} },
	}}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		due := func(d time.Duration, task core.NewTask) time.Duration {
			by = d
			task.Agent, task.ID, task.Kind, task.OnConflict = "a", task.Cron+fmt.Sprint(task.Every, task.MinInterval, d), "k", core.OnConflictReplace
			begun := time.Now()
			w.submit(task)
			if task.Cron != "" {
				time.Sleep(time.Hour)
			}
			w.run()
			info := w.task("a", task.ID)
			require.NoError(w, w.s.Delete(w.Context(), "a", task.ID))
			return info.NextRun.Sub(begun)
		}
		every := core.NewTask{Every: time.Hour}
		assert.Equal(w, 3*time.Hour, due(2*time.Hour, every))
		assert.Equal(w, time.Minute, due(-59*time.Minute, every))
		assert.Equal(w, time.Duration(0), due(-5*time.Hour, every), "now, and not before")
		every.MinInterval = time.Minute
		assert.Equal(w, time.Minute, due(-5*time.Hour, every), "the task's own interval counts")
		hourly := core.NewTask{Cron: "0 * * * *"}
		assert.Equal(w, 2*time.Hour+time.Minute, due(time.Minute, hourly).Round(time.Minute))
		assert.Equal(w, 2*time.Hour, due(-time.Minute, hourly).Round(time.Minute))
	})
}

// What a policy says of a submit is checked like what the submitter says, one that panics changes nothing, and the same
// submit is the same whatever the figures were.
func TestAPolicyPlacesTasks(t *testing.T) {
	var p core.Placement
	panics := false
	virtual(t, core.Config{Policy: policy{
		place: func(core.Figures, core.NewTask) core.Placement {
			if panics {
				panic("oh")
			}
			return p
		},
	}}, func(w *world) {
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour}
		p = core.Placement{Level: 2, LimitKey: "slow", Delay: time.Minute}
		w.submit(task)
		got := w.task("a", "1")
		assert.Equal(w, "2 slow 1h1m0s", fmt.Sprint(got.Level, " ", got.LimitKey, " ", got.Due.Sub(w.begun)))
		p = core.Placement{Level: 1}
		again, err := w.s.Submit(w.Context(), task)
		require.NoError(w, err)
		assert.False(w, again[0].Differs)
		task.Payload = note{Text: "other"}
		again, err = w.s.Submit(w.Context(), task)
		require.NoError(w, err)
		assert.True(w, again[0].Differs)
		p = core.Placement{At: w.begun.Add(2 * time.Hour), Delay: time.Second}
		w.submit(core.NewTask{Agent: "a", ID: "2", Kind: "k", Delay: time.Hour}, core.NewTask{Agent: "a", ID: "3", Kind: "k", Every: time.Hour},
			core.NewTask{Agent: "a", ID: "4", Kind: "k", Cron: "0 0 1 1 *"})
		assert.Equal(w, 2*time.Hour+time.Second, w.task("a", "2").Due.Sub(w.begun))
		assert.Equal(w, time.Second, w.task("a", "3").Due.Sub(w.begun))
		p = core.Placement{Level: 9}
		_, err = w.s.Submit(w.Context(), core.NewTask{Agent: "a", ID: "5", Kind: "k"})
		require.ErrorContains(w, err, "level")
		panics = true
		w.submit(core.NewTask{Agent: "a", ID: "6", Kind: "k"})
		assert.Equal(w, core.LevelLow, w.task("a", "6").Level)
	})
}

// A store that does not give its figures keeps nobody from submitting, and is not asked again and again.
func TestFiguresThatCannotBeRead(t *testing.T) {
	virtual(t, core.Config{Policy: byHeat{}}, func(w *world) {
		asked := 0
		w.store.failing(func(verb string, _ int) error {
			if verb == "stats" {
				asked++
				return errors.New("away")
			}
			return nil
		})
		for range 5 {
			w.submit(core.NewTask{Agent: "a", Kind: "k"})
		}
		assert.Equal(w, 1, asked)
	})
}
