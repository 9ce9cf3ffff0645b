package heat_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/heat"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Policy: &heat.Policy{From: 3, Level: core.LevelMedium}})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, id := range []string{"1", "2", "3", "4"} {
		_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", ID: id, Kind: "digest"})
		task, _ := s.Task(ctx, "ada", id)
		fmt.Print(task.Level, " ")
	}
	// Output: 3 3 2 2
}

// A recurring task of an agent that becomes hot rises, and goes back when the agent has cooled down.
func TestTasksRiseAndSinkWithTheirAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{Policy: &heat.Policy{From: 20, Cooled: core.LevelLow, Crowd: 50, Delay: 10 * time.Second}})
		require.NoError(t, err)
		core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return nil })
		pull := func() {
			_, err := s.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		}
		level := func(id string) core.Level {
			task, err := s.Task(t.Context(), "ada", id)
			require.NoError(t, err)
			return task.Level
		}
		submit := func(tasks ...core.NewTask) {
			_, err := s.Submit(t.Context(), tasks...)
			require.NoError(t, err)
		}
		submit(core.NewTask{Agent: "ada", ID: "poll", Kind: "k", Every: time.Minute})
		pull()
		assert.Equal(t, core.LevelLow, level("poll"), "it is not hot yet")
		for i := range 20 {
			submit(core.NewTask{Agent: "ada", ID: fmt.Sprint(i), Kind: "other"})
		}
		assert.Equal(t, core.LevelHigh, level("19"))
		time.Sleep(time.Minute)
		for i := range 40 {
			submit(core.NewTask{Agent: "ada", ID: fmt.Sprint("more", i), Kind: "other"})
		}
		pull()
		assert.Equal(t, core.LevelHigh, level("poll"), "its agent is hot")

		for i := range 60 {
			submit(core.NewTask{Agent: fmt.Sprint("cold", i), ID: "1", Kind: "k"})
		}
		time.Sleep(time.Second) // so that the figures are of now
		submit(core.NewTask{Agent: "late", ID: "1", Kind: "k"})
		late, err := s.Task(t.Context(), "late", "1")
		require.NoError(t, err)
		assert.Equal(t, 10*time.Second, time.Until(late.NextRun).Round(time.Second), "a cold agent waits while many do")
		time.Sleep(time.Hour)
		pull()
		time.Sleep(time.Minute) // what was missed is spread
		pull()
		assert.Equal(t, core.LevelLow, level("poll"), "its agent has cooled down")
	})
}

func TestWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for field, wrong := range map[string]heat.Policy{
		"From":   {},
		"Level":  {From: 1, Level: 4},
		"Cooled": {From: 1, Level: 2, Cooled: 2},
		"Crowd":  {From: 1, Crowd: -1},
		"Delay":  {From: 1, Crowd: 1},
	} {
		var invalid *core.ConfigError
		require.ErrorAs(t, wrong.Validate(), &invalid, field)
		assert.Equal(t, field, invalid.Field)
	}
	for _, from := range []float64{-1, math.NaN(), math.Inf(1)} {
		p := heat.Policy{From: from}
		assert.Error(t, errors.Join(p.Validate()))
	}
	good := heat.Policy{From: 1, Level: 2, Cooled: 3, Crowd: 1, Delay: time.Second}
	assert.NoError(t, good.Validate())
}
