package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commandCounter counts commands instead of instructions, which it can do anywhere.
type commandCounter struct{}

func (commandCounter) name() string                { return "commands" }
func (commandCounter) line(binary string) []string { return []string{binary} }
func (commandCounter) close() error                { return nil }

func (commandCounter) count(ctx context.Context, r *redisServer, work func() error) (float64, error) {
	s, err := r.metered(ctx, work)
	return s.commands, err
}

// Every phase of every shape is played with its calls, and gives a figure. That each claim brings what it should, and that
// nothing is due at a tick, is checked on the way.
func TestShapesArePlayed(t *testing.T) {
	t.Parallel()
	found, err := countShapes(t.Context(), commandCounter{}, shapes(true), io.Discard)
	require.NoError(t, err)
	assert.Regexp(t, `^commands redis-\d+\.\d+\.\d+$`, found.on)
	got := map[string][]string{}
	for _, c := range found.counts {
		assert.Positive(t, c.kilo, c.key())
		got[c.shape] = append(got[c.shape], c.phase)
	}
	assert.Len(t, got, 19)
	assert.Equal(t, []string{phaseSubmit, phaseClaim, phaseSettle, phaseSum}, got["life-20"])
	assert.Equal(t, []string{phaseClaim, phaseSettle, phaseSum}, got["run-1-single"])
	assert.Equal(t, []string{phaseLook, phaseClaim, phaseSum}, got["tick-idle"])
}

// Twice the same work is the same number of instructions, where valgrind can count them.
func TestCallgrindCountsExactly(t *testing.T) {
	t.Parallel()
	c, err := newCallgrind(t.Context())
	if err != nil {
		assert.ErrorIs(t, err, exec.ErrNotFound)
		t.Skip("valgrind is not installed")
	}
	defer func() { assert.NoError(t, c.close()) }()
	binary, err := redisBinary()
	require.NoError(t, err)
	r, err := startServer(t.Context(), "unix", c.line(binary), quietCron()...)
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.stop()) }()
	pings := func(n int) float64 {
		counted, err := c.count(t.Context(), r, func() error {
			for range n {
				if err := r.client.Ping(t.Context()).Err(); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		return counted
	}
	pings(10)
	few, many := pings(100), pings(300)
	assert.InDelta(t, 3, many/few, 0.3, "300 PINGs and 100")
}

// perf's own way of being told to begin and to stop works with any event; this one needs no counter in the processor.
func TestPerfCountsWhileItIsOn(t *testing.T) {
	t.Parallel()
	const event = perfEvent("task-clock:u")
	if err := event.try(t.Context()); err != nil {
		t.Skip("perf does not work here")
	}
	r, err := startRedis(t.Context(), "unix")
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.stop()) }()
	worked := false
	got, err := event.count(t.Context(), r, func() error {
		worked = true
		return r.client.Eval(t.Context(), "local n = 0 for i = 1, 1e6 do n = n + i end return n", nil).Err()
	})
	require.NoError(t, err)
	assert.True(t, worked)
	assert.Positive(t, got)
}

func TestPerfWithoutACounter(t *testing.T) {
	t.Parallel()
	n, err := perfEvent(instructions).value("12345,,instructions:u,100,100.00,,\n")
	require.NoError(t, err)
	assert.InDelta(t, 12345, n, 0)
	_, err = perfEvent(instructions).value("<not supported>,,instructions:u,0,100.00,,\n")
	assert.ErrorContains(t, err, "no figure for instructions:u")
}

func TestCountsAreComparedWithWhatIsKept(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "instructions.txt")
	on := func(name string, life, run float64) *counts {
		return &counts{on: name, counts: []countOf{{"life-1", phaseSum, life}, {"run-1", phaseSum, run}}}
	}
	compare := func(found *counts, update bool) (string, error) {
		var out bytes.Buffer
		err := compareInstructions(found, file, update, &out)
		return out.String(), err
	}
	text, err := compare(on("tool redis-7.0.15", 100, 50), false)
	require.NoError(t, err)
	assert.Contains(t, text, "nothing was compared")
	assert.NoFileExists(t, file)

	_, err = compare(on("tool redis-8.0.0", 10, 5), true)
	require.NoError(t, err)
	text, err = compare(on("tool redis-7.0.15", 100, 50), true)
	require.NoError(t, err)
	assert.Contains(t, text, "<= 80 NOT MET")
	assert.Contains(t, text, "<= 60 met")

	_, err = compare(on("tool redis-7.0.15", 101.9, 49.1), false)
	require.NoError(t, err, "within 2 %%")
	_, err = compare(on("tool redis-8.0.0", 10, 5), false)
	require.NoError(t, err, "what another server needs is kept beside")
	for _, changed := range []*counts{on("tool redis-7.0.15", 102.1, 50), on("tool redis-7.0.15", 97.9, 50)} {
		text, err = compare(changed, false)
		require.ErrorContains(t, err, "1 count of instructions differ")
		_, table, _ := bytes.Cut([]byte(text), []byte("Changed by more than 2 %"))
		assert.Contains(t, string(table), "life-1")
		assert.NotContains(t, string(table), "run-1")
	}
	phase := on("tool redis-7.0.15", 100, 50)
	phase.counts = append(phase.counts, countOf{"run-1", phaseClaim, 30})
	_, err = compare(phase, true)
	require.NoError(t, err)
	phase.counts[2].kilo = 35.9
	_, err = compare(phase, false)
	require.NoError(t, err, "a phase within 20 %%")
	phase.counts[2].kilo = 36.1
	_, err = compare(phase, false)
	require.Error(t, err)

	_, err = compare(on("tool redis-7.0.15", 100, 50), false)
	require.ErrorContains(t, err, `keeps "run-1 claim", which is no longer counted`)

	more := on("tool redis-7.0.15", 100, 50)
	more.counts = append(more.counts, countOf{"life-7", phaseSum, 1})
	_, err = compare(more, false)
	require.Error(t, err, "a count that is not kept")

	require.NoError(t, os.WriteFile(file, []byte("tool redis-7.0.15 life-1 sum many\n"), 0o600))
	_, err = compare(more, false)
	assert.ErrorContains(t, err, `"many" is not a count`)
}

// A shape that is off is counted again, and the nearest count stays: whole, as its phases belong together.
func TestTheNearestCountStays(t *testing.T) {
	t.Parallel()
	kept := map[string]float64{"a claim": 40, "a sum": 100, "b sum": 100}
	f := &counts{counts: []countOf{{"a", phaseClaim, 43}, {"a", phaseSum, 105}, {"b", phaseSum, 101}}}
	f.nearer(&counts{counts: []countOf{{"a", phaseClaim, 41}, {"a", phaseSum, 101}, {"b", phaseSum, 109}}}, kept)
	assert.Equal(t, []countOf{{"a", phaseClaim, 41}, {"a", phaseSum, 101}, {"b", phaseSum, 101}}, f.counts)
	assert.InDelta(t, 0.5, f.changed("a", kept), 1e-9)
	f.nearer(&counts{counts: []countOf{{"a", phaseClaim, 40}, {"a", phaseSum, 107}}}, kept)
	assert.InDelta(t, 101, f.byName()["a sum"], 0)
}

// What is written is the middle of several counts, shape by shape.
func TestTheMiddleCountIsKept(t *testing.T) {
	t.Parallel()
	try := func(a, b float64) *counts {
		return &counts{on: "tool", counts: []countOf{{"a", phaseClaim, a - 60}, {"a", phaseSum, a}, {"b", phaseSum, b}}}
	}
	assert.Equal(t, try(100, 51), middle([]*counts{try(98, 52), try(103, 50), try(100, 51)}))
}
