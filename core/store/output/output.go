// Package output is what stores keep of the output of runs: the end of what each of the last two runs of a task has printed. It is optional for
// a store, and only displays depend on it: nothing is decided by it, and a run whose output is lost ends as any other.
package output

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Bounds of what is kept.
const (
	Most     = 64 << 10 // bytes of the output of a run: the last ones
	MostRuns = 1000     // runs of an agent that have printed: the last ones
	// MostChunks is how many chunks of a run a store keeps at most: who prints little for long sends all that is kept in one chunk now and then.
	MostChunks = 64
)

// Keeper is implemented by stores that keep output, for as long as they remember finished tasks, counted from the last chunk of a run. Forgetting
// a task forgets its output.
type Keeper interface {
	// Print adds chunks to the output of their runs. A chunk of a run that is older than the last that has printed in its turn, or that does not
	// follow the last chunk of its run, changes nothing: its error is [store.ErrLeaseLost]. Other errors mean that the outcome is unknown.
	Print(ctx context.Context, chunks []Chunk) ([]error, error)
	// Printed returns what is kept of the last two runs of a task that have printed, the later one first.
	Printed(ctx context.Context, agent, id string) ([]Run, error)
}

// Chunk is a piece of the output of a run.
type Chunk struct {
	Agent, ID string
	// Turn counts the runs of an occurrence: an output takes the place of the one whose run was an even number of turns before or after it, so that
	// those of two runs in a row are kept.
	Turn    int
	Fence   store.Fence // of the claim that the run began under
	Attempt int
	Claimed moment.Millis
	Number  int64 // grows with each chunk of the run, from 1 on
	Keep    int64 // earlier chunks of the run are dropped
	Bound   bool  // the store drops the first of more than MostChunks by itself, as who prints may not know of that
	Piece
}

// Piece is the content of a chunk.
type Piece struct {
	At   int64 // how many bytes of the run are in front of it
	Data []byte
	Last bool // the run has ended: nothing follows
}

// Run is what is kept of the output of a run.
type Run struct {
	Fence   store.Fence
	Attempt int
	Claimed moment.Millis
	Pieces  []Piece // in order
}

// Whole reports whether a chunk is the first of its run, or takes the place of all of them.
func (c *Chunk) Whole() bool { return c.Number == 1 || c.Keep >= c.Number }

// Place is which of the two places of its task an output has.
func (c *Chunk) Place() int { return c.Turn & 1 }
