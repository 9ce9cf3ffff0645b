package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bench starts itself a second time to send PINGs; in a test that is the test binary.
func TestMain(m *testing.M) {
	if os.Getenv(pingVariable) != "" {
		if err := command(context.Background(), nil, os.Stdout, os.Stderr); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every figure is there, for both sides where both can be measured. That each task ran once is checked by each
// measurement, which fails otherwise.
func TestQuickMeasuresEverything(t *testing.T) {
	t.Parallel()
	var out, progress bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"-quick", "-json"}, &out, &progress), progress.String())

	var got struct {
		Notes   []string
		Figures []figureJSON
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.NotEmpty(t, got.Notes)

	const alone, both = false, true
	want := map[string]map[string]bool{ // measurement -> figure -> is there one of asynq
		"life": {
			"Redis CPU, submit": both, "Redis CPU, drain": both, "Redis CPU": both, "client CPU": both, "Redis commands": both,
			"submit": both, "drain": both, "end to end": both,
		},
		"limits": {"Redis CPU": alone, "client CPU": alone, "drain": alone},
		"steady": {"Redis CPU": both, "client CPU": both, "Redis commands": both, "runs": both},
		"trickle": {
			"Redis CPU": both, "client CPU": both, "Redis commands": both, "due to start, p50": both, "due to start, p99": both,
			"due to start, earliest": both, "occurrences skipped": both,
		},
		"mixed": {"Redis CPU, submit": alone, "Redis CPU": alone, "client CPU": alone, "Redis commands": alone, "runs": alone},
		"longest": {
			"an agent with a history of 125 that is cut": alone, "an agent of 1,000 tasks": alone, "a group of 1,000 tasks": alone,
			"1,000 agents of one task": alone,
		},
		"persist": {
			"Redis CPU, submit": both, "Redis CPU, drain": both, "Redis CPU": both, "client CPU": both, "Redis commands": both,
			"submit": both, "drain": both, "end to end": both,
		},
		"folder": {"client CPU": alone, "end to end": alone, "bytes on disk": alone},
		"payload": {
			"Redis CPU, submit": both, "Redis CPU, drain": both, "Redis CPU": both, "client CPU": both, "Redis commands": both,
			"submit": both, "drain": both, "end to end": both,
		},
		"submit":   {"calls": both, "Redis CPU": both, "client CPU": both, "latency p50": both, "latency p99": both},
		"latency":  {"p50": both, "p99": both, "latest": both, "earliest": both},
		"idle":     {"commands": both, "commands sent": both},
		"memory":   {"waiting task": both, "finished record": both},
		"features": {"Redis CPU": alone, "client CPU": alone},
		"beside":   {"Redis CPU": alone, "client CPU": alone, "Redis commands": alone, "due to start, p99": alone},
		"due":      {"time": alone, "Redis CPU": alone, "commands": alone},
		"catchup": {
			"drain": alone, "Redis CPU": alone, "another client's PING p50": alone, "another client's PING p99": alone,
			"PING p50 before": alone, "PING p99 before": alone,
		},
	}
	groups := map[string]int{
		"longest": 1, "life": 3, "persist": 1, "payload": 1, "submit": 3, "latency": 1, "idle": 2, "memory": 3, "due": 2, "catchup": 1,
		"limits": 1, "features": 16, "beside": 2, "steady": 3, "trickle": 1, "mixed": 1, "folder": 3,
	}

	found := map[string]map[string]int{}
	for _, f := range got.Figures {
		name := f.Measurement + ": " + f.Group + ": " + f.Name
		withAsynq, known := want[f.Measurement][f.Name]
		assert.True(t, known, name)
		require.NotNil(t, f.Duly, name)
		assert.Equal(t, withAsynq, f.Asynq != nil, name)
		others := withAsynq && slices.Contains([]string{"life", "persist", "payload", "submit", "steady"}, f.Measurement)
		assert.Equal(t, others, f.Taskq != nil && f.Gocraft != nil, name)
		assert.Equal(t, f.Target != "", f.Met != nil, name)
		switch {
		case f.Name == "earliest" || f.Name == "due to start, earliest":
			assert.GreaterOrEqual(t, *f.Duly, 0.0, "a task started before it was due")
		case f.Measurement == "idle" || f.Name == "occurrences skipped": // between two looks there is nothing
			assert.GreaterOrEqual(t, *f.Duly, 0.0, name)
		default:
			assert.Positive(t, *f.Duly, name)
		}
		if found[f.Measurement] == nil {
			found[f.Measurement] = map[string]int{}
		}
		found[f.Measurement][f.Name]++
	}
	for measurement, figures := range want {
		for name := range figures {
			assert.Equal(t, groups[measurement], found[measurement][name], measurement+": "+name)
		}
	}
}

func TestOneMeasurementAsATable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, command(t.Context(), []string{"-quick", "-only", "due", "-network", "unix"}, &out, io.Discard))
	assert.Contains(t, out.String(), "RunDue, 100 of 2,000 agents have a due task")
	assert.NotContains(t, out.String(), "whole life")
}

func TestMistakesInFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-only", "speed"}, {"-agents", "1,many"}, {"-rounds", "-1"}, {"-tasks", "-5"}, {"-network", "pigeon"}, {"-update"}, {"-instructions", "f", "-quick"}, {"now"}, {"-nope"},
	} {
		var told bytes.Buffer
		err := command(t.Context(), args, io.Discard, &told)
		assert.ErrorAs(t, err, new(usageError), "%v", args)
		assert.NotEmpty(t, told.String(), "%v", args)
	}
}

// ^C ends the bench, and its server with it.
func TestInterruptEndsTheServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server, err := startRedis(ctx, "unix")
	require.NoError(t, err)
	b := &bench{options: options{concurrency: 4}, sizes: sizes{idleAgents: 10, idleSettle: time.Minute}, redis: server, progress: io.Discard}
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = b.dulyIdle(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, server.stop())
	assert.NoDirExists(t, server.dir)
	assert.NotNil(t, server.cmd.ProcessState, "the server has not ended")
}

func TestLedgerFindsWhatDidNotRunOnce(t *testing.T) {
	t.Parallel()
	l := make(ledger, 4)
	for _, n := range []int{0, 1, 1, 3} {
		l.mark(n)
	}
	assert.EqualError(t, l.check(), "of 4 tasks 1 never ran and 1 ran more than once")
	l = make(ledger, 1)
	l.mark(0)
	assert.NoError(t, l.check())
}

func TestPassesHaveToReachEachTask(t *testing.T) {
	t.Parallel()
	at := time.Now()
	passes := func(n, tasks int) *again {
		a := newAgain(tasks)
		for pass := range n {
			for i := range tasks {
				a.begin(i, at.Add(time.Duration(pass)*steadyEvery))
			}
		}
		return a
	}
	require.NoError(t, passes(4, 3).check(4))
	require.Error(t, passes(4, 3).check(5), "a run too few")
	a := passes(4, 3)
	a.begin(0, at.Add(4*steadyEvery))
	require.Error(t, a.check(4), "a run too many")
	a.runs[1].Add(-1)
	require.NoError(t, a.check(4), "one task ran twice in a long pass, another not at all")
	a = passes(3, 3)
	a.begin(0, at.Add(3*steadyEvery))
	a.begin(0, at.Add(4*steadyEvery))
	a.begin(0, at.Add(5*steadyEvery-time.Millisecond))
	assert.EqualError(t, a.check(4), "4 passes over 3 tasks made 12 runs, 1 of them before their interval was over, and 0 tasks had few")
}

// A service may neither run an occurrence twice nor before it is due; what it leaves out is counted.
func TestFlowFindsWhatRanTwiceOrEarly(t *testing.T) {
	t.Parallel()
	begun := time.Now().Add(-time.Hour)
	at := func(second int) time.Time { return begun.Add(time.Duration(second) * trickleEvery) }
	fresh := func() *flow {
		f := &flow{last: make([]time.Time, 1), on: true}
		for second := 1; second <= 10; second++ {
			f.start(0, at(second), at(second))
		}
		return f
	}
	f := fresh()
	f.start(0, at(13), at(13))
	require.NoError(t, f.check(1, 10*time.Second))
	assert.Equal(t, 2, f.skipped)
	f.start(0, at(13), at(13))
	require.ErrorContains(t, f.check(1, 10*time.Second), "1 a second time")
	f = fresh()
	f.start(0, at(11), time.Now().Add(time.Hour))
	require.ErrorContains(t, f.check(1, 10*time.Second), "1 early")
	require.ErrorContains(t, fresh().check(1, time.Minute), "10 runs where there should be about 60")
}

func TestMixFindsWhatRanTwice(t *testing.T) {
	t.Parallel()
	m := &mix{agents: 1, ended: make(ledger, mixTasks)}
	assert.Equal(t, 4, m.left())
	for n := 1; n < mixTasks; n++ {
		m.ended.mark(n)
	}
	m.ended.mark(1) // a poll
	assert.Zero(t, m.left())
	require.NoError(t, m.check())
	m.ended.mark(4)
	require.Error(t, m.check(), "a one-off ran twice")
	m = &mix{agents: 1, ended: make(ledger, mixTasks)}
	for n := range mixTasks {
		m.ended.mark(n)
	}
	require.Error(t, m.check(), "the nightly task ran")
}

func TestSpreadCallsEachOnceAndStopsAtAnError(t *testing.T) {
	t.Parallel()
	l := make(ledger, 1000)
	require.NoError(t, spread(t.Context(), 7, len(l), func(_ context.Context, i int) error {
		l.mark(i)
		return nil
	}))
	require.NoError(t, l.check())
	failure := errors.New("no")
	assert.ErrorIs(t, spread(t.Context(), 3, 1_000_000_000, func(context.Context, int) error { return failure }), failure)
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	values := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4} {
		assert.InDelta(t, want, quantile(values, q), 1e-9, "%g", q)
	}
	assert.Zero(t, quantile(nil, 0.5))
}

func TestRatioAndTarget(t *testing.T) {
	t.Parallel()
	var s sheet
	add := func(name string, better better, target target, duly, asynq float64) *figure {
		spec := spec{measurement: "m", group: "g", name: name, better: better, target: target}
		s.add(sideDuly, sample{spec, duly})
		s.add(sideAsynq, sample{spec, asynq})
		return s.figures[len(s.figures)-1]
	}
	for _, c := range []struct {
		figure *figure
		ratio  float64
		met    bool
	}{
		{add("cost", lower, atMost(25), 20, 100), 5, true},
		{add("cost missed", lower, atMost(15), 20, 100), 5, false},
		{add("rate", higher, timesAsynq(6), 61, 10), 6.1, true},
		{add("rate missed", higher, timesAsynq(6), 59, 10), 5.9, false},
		{add("below", lower, partOfAsynq(1), 10, 11), 1.1, true},
		{add("above", lower, partOfAsynq(0.5), 10, 11), 1.1, false},
		{add("floor", higher, atLeast(10), 10, 10), 1, true},
	} {
		ratio, known := c.figure.ratio()
		assert.True(t, known, c.figure.name)
		assert.InDelta(t, c.ratio, ratio, 1e-9, c.figure.name)
		met, known := c.figure.met()
		assert.True(t, known, c.figure.name)
		assert.Equal(t, c.met, met, c.figure.name)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 0.031: "0.03", 4.567: "4.57", 45.67: "45.7", 456.7: "457", 1000: "1,000", 1234567.8: "1,234,568", -49.44: "-49.4", -1500: "-1,500",
	} {
		assert.Equal(t, want, compact(v))
	}
}
