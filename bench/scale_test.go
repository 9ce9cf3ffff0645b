package main

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A small fleet is measured whole: the measurement fails if a run is early or comes twice, if far more or fewer run than should, if
// the audit finds a fault, or if the pages miss an agent.
func TestScaleOfASmallFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes three minutes of a fleet, at their own pace")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "scale.json")
	var out, progress bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"-quick", "-only", "scale", "-keep", file}, &out, &progress), progress.String())
	assert.Contains(t, out.String(), "scale: 20,000 agents with 23,800 tasks waiting, 1 partition")
	found, err := readScale(file)
	require.NoError(t, err)
	assert.Equal(t, 20_000, found.Agents)
	require.Len(t, found.Windows, 3)
	for _, w := range found.Windows {
		assert.Positive(t, w.Runs, w.Name)
		assert.Positive(t, w.Sent, w.Name)
		assert.Positive(t, w.RedisUS, w.Name)
	}
	for _, k := range found.Sorts {
		assert.Greater(t, k.Bytes, 100., k.Name)
	}
	for _, w := range []workFound{found.Audit, found.Pages, found.Stats, found.Open, found.Single, found.Poll, found.Asynq} {
		assert.Positive(t, w.Commands)
		assert.Positive(t, w.RedisMS)
	}
}

func TestAFleetHasAllItsAgentsAndTasks(t *testing.T) {
	t.Parallel()
	f := newFleet(100_000, 20, time.Now())
	agents, waiting := map[string]bool{}, 0
	numbers := make([]bool, len(f.last))
	for _, s := range f.sorts {
		waiting += s.agents * s.waiting
		for i := range s.agents {
			for k := range s.each {
				task := s.task(i, k)
				n := task.Payload.(payload).N
				if numbers[n] {
					require.Fail(t, "two tasks have one number")
				}
				numbers[n] = true
				if k == 0 {
					agents[task.Agent] = true
				}
			}
		}
	}
	assert.Len(t, agents, 100_000)
	assert.Equal(t, 119_000, waiting)
	assert.NotContains(t, numbers, false)
	// 2,000 polls, 6,000 one-offs a day, and 92,000 nightly tasks in four hours.
	assert.InDelta(t, 2000*math.Log(3)/600+6000./86_400, f.perSecond(false), 0.001)
	assert.InDelta(t, f.perSecond(false)+92_000./(4*3600), f.perSecond(true), 0.001)
}

func TestAFleetFindsRunsThatAreWrong(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-time.Minute)
	run := func(f *fleet, due, occurrence time.Time) {
		f.run(&core.Task[payload]{Payload: payload{N: 7}, RunInfo: &core.RunInfo{Due: due, Occurrence: occurrence}})
	}
	f := newFleet(leastFleet, 3, at)
	run(f, at, at)
	run(f, at.Add(time.Second), at.Add(time.Second))
	require.NoError(t, f.check())
	run(f, at.Add(time.Second), at.Add(time.Second))
	require.EqualError(t, f.check(), "of 3 runs 0 came early and 1 a second time")
	run(f, time.Now().Add(time.Hour), at.Add(time.Hour))
	require.EqualError(t, f.check(), "of 4 runs 1 came early and 1 a second time")
}

// A daemon that leaves much of a window undone, or runs too much, has not been measured at the rate that is told.
func TestAWindowHasAboutItsRuns(t *testing.T) {
	t.Parallel()
	for runs, want := range map[float64]bool{5000: true, 5800: true, 3700: false, 6300: false, 0: false} {
		assert.Equal(t, want, near(runs, 5000), "%.0f", runs)
	}
	assert.True(t, near(0, 1))
	assert.Equal(t, time.Duration(0), (&window{start: time.Now().Add(-time.Hour)}).until(0.5, time.Minute), "no delay is below zero")
}
