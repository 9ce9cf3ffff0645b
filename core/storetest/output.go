package storetest

// The output of runs.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// printer has a store print: each store has it, though it may leave it out.
type printer struct {
	*bench
	output.Keeper
}

func printerOf(b *bench) *printer {
	keeper, keeps := b.store.(output.Keeper)
	require.True(b, keeps)
	return &printer{b, keeper}
}

// print prints a chunk that is the next of its run, and reports whether it was taken.
func (p *printer) print(c output.Chunk) bool {
	p.Helper()
	errs, err := p.Print(p.Context(), []output.Chunk{c})
	require.NoError(p, err)
	require.Len(p, errs, 1)
	if errs[0] != nil {
		require.ErrorIs(p, errs[0], store.ErrLeaseLost)
	}
	return errs[0] == nil
}

// shown is what is kept of a task, a line for each run.
func (p *printer) shown(agent, id string) []string {
	p.Helper()
	runs, err := p.Printed(p.Context(), agent, id)
	require.NoError(p, err)
	lines := []string{}
	for i := range runs {
		text := runs[i].Text(0)
		lines = append(lines, fmt.Sprintf("%d %d: %s %d %t", runs[i].Fence, runs[i].Attempt, text.Text, text.Left, text.Last))
	}
	return lines
}

// chunkOf is a chunk of task a/1.
func chunkOf(turn int, fence store.Fence, number, at int64, data string) output.Chunk {
	return output.Chunk{
		Agent: "a", ID: "1", Turn: turn, Attempt: turn, Fence: fence, Claimed: 1000, Number: number, Keep: 1, Piece: output.Piece{At: at, Data: []byte(data)},
	}
}

// What a run prints is kept in order, and what has to make room goes.
func testOutput(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	p := printerOf(b)
	assert.Empty(t, p.shown("a", "1"))
	assert.True(t, p.print(chunkOf(1, 10, 1, 0, "one")))
	next := chunkOf(1, 10, 2, 3, "\x00two\xff")
	next.Last = true
	assert.True(t, p.print(next))
	assert.Equal(t, []string{"10 1: one\x00two\ufffd 0 true"}, p.shown("a", "1"))
	assert.False(t, p.print(next), "it was sent twice, and is there once")
	other := chunkOf(1, 10, 1, 0, "of another task")
	other.ID = "1:2{}"
	agent := chunkOf(1, 10, 1, 0, "of another agent")
	agent.Agent = "b:{a}"
	errs, err := p.Print(b.Context(), []output.Chunk{other, agent, next})
	require.NoError(t, err)
	assert.Equal(t, []error{nil, nil, store.ErrLeaseLost}, errs, "each by itself")
	assert.Equal(t, []string{"10 1: of another task 0 false"}, p.shown("a", "1:2{}"))
	assert.Equal(t, []string{"10 1: of another agent 0 false"}, p.shown("b:{a}", "1"))
	third := chunkOf(1, 10, 3, 20, "three")
	third.Keep = 3
	assert.True(t, p.print(third))
	assert.Equal(t, []string{"10 1: [duly: 20 bytes left out]\nthree 20 false"}, p.shown("a", "1"))
	runs, err := p.Printed(b.Context(), "a", "1")
	require.NoError(t, err)
	assert.Equal(t, moment.Millis(1000), runs[0].Claimed)
}

// Of a task the output of the last two runs is kept, and a run that was taken over writes over neither.
func testOutputOfRuns(t *testing.T, b *bench) {
	b.with(Options{})
	p := printerOf(b)
	assert.True(t, p.print(chunkOf(1, 10, 1, 0, "first")))
	assert.True(t, p.print(chunkOf(2, 20, 1, 0, "second")))
	assert.Equal(t, []string{"20 2: second 0 false", "10 1: first 0 false"}, p.shown("a", "1"))
	assert.True(t, p.print(chunkOf(1, 10, 2, 5, ", late")), "it is not known yet that it was taken over, and hides nothing")
	assert.True(t, p.print(chunkOf(3, 30, 1, 0, "third")))
	want := []string{"30 3: third 0 false", "20 2: second 0 false"}
	assert.Equal(t, want, p.shown("a", "1"))
	for number := range int64(3) {
		assert.False(t, p.print(chunkOf(1, 10, 3+number, 11, "very late")))
	}
	assert.Equal(t, want, p.shown("a", "1"))
	assert.True(t, p.print(chunkOf(1, 40, 1, 0, "another occurrence")))
	assert.Equal(t, []string{"40 1: another occurrence 0 false", "20 2: second 0 false"}, p.shown("a", "1"))
}

// Deleting a task deletes its output, live or finished, and no other.
func testOutputDeleted(t *testing.T, b *bench) {
	b.with(Options{})
	p := printerOf(b)
	for _, finished := range []bool{false, true} {
		b.submit(task("a", "1"))
		c := b.take("a/1")
		assert.True(t, p.print(chunkOf(1, 10, 1, 0, "first")))
		assert.True(t, p.print(chunkOf(2, 20, 1, 0, "second")))
		other := chunkOf(1, 10, 1, 0, "stays")
		other.ID = "10"
		p.print(other)
		if finished {
			b.complete(c)
		}
		assert.Equal(t, store.EffectDone, b.remove("1", ""))
		assert.Empty(t, p.shown("a", "1"))
		assert.Equal(t, []string{"10 1: stays 0 false"}, p.shown("a", "10"))
	}
}

// What is sent from elsewhere comes twice, late, or in small pieces for long.
func testOutputSent(t *testing.T, b *bench) {
	b.with(Options{})
	p := printerOf(b)
	send := func(last bool, at int64, text string) bool {
		c := (&output.Sent{At: at, Text: text}).Chunk(chunkOf(1, 10, 0, 0, ""), last)
		return p.print(c)
	}
	assert.True(t, send(false, 0, "one "))
	assert.True(t, send(false, 4, "two "))
	assert.False(t, send(false, 4, "two "), "its answer was lost")
	assert.False(t, send(false, 0, "one "))
	assert.True(t, send(false, 4, "two three "))
	assert.Equal(t, []string{"10 1: one two three  0 false"}, p.shown("a", "1"))
	assert.True(t, send(true, 14, ""))
	assert.False(t, send(true, 14, ""))
	assert.Equal(t, []string{"10 1: one two three  0 true"}, p.shown("a", "1"))
	begins := int64(14)
	for range output.MostChunks {
		assert.True(t, send(false, begins+1, "x"))
		begins++
	}
	runs, err := p.Printed(b.Context(), "a", "1")
	require.NoError(t, err)
	assert.Len(t, runs[0].Pieces, output.MostChunks, "a store drops the first")
	assert.True(t, send(false, 0, strings.Repeat("x", 100)), "all of it")
	begins = 100
	for range 3 {
		begins++
		assert.True(t, send(false, begins, strings.Repeat("x", output.Most-1)), "it overlaps all before it, and takes their place")
	}
	runs, err = p.Printed(b.Context(), "a", "1")
	require.NoError(t, err)
	assert.Len(t, runs[0].Pieces, 1)
	runs, err = p.Printed(b.Context(), "a", "1")
	require.NoError(t, err)
	assert.Len(t, runs[0].Pieces, 1)
}

// Of an agent the output of so many runs is kept.
func testOutputOfMany(t *testing.T, b *bench) {
	b.with(Options{})
	p := printerOf(b)
	const more = 100
	for i := range output.MostRuns + more {
		c := chunkOf(1, 10, 1, 0, "x")
		c.ID, c.Claimed = fmt.Sprint(i), moment.Millis(1000+i)
		assert.True(t, p.print(c))
	}
	assert.Empty(t, p.shown("a", "0"))
	assert.Empty(t, p.shown("a", fmt.Sprint(more/2)))
	assert.Len(t, p.shown("a", fmt.Sprint(more)), 1)
	assert.Len(t, p.shown("a", fmt.Sprint(output.MostRuns+more-1)), 1)
}
