package core

// The recorder: records of a handler while it runs, for a run and for a task that a test made by hand.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// recorder keeps the state of one run, which its handler and the heartbeat share.
type recorder struct {
	mu    sync.Mutex
	state codec.State
	most  int32 // bytes of a result; small, as a run is as large as a size of Go's allocator
	sent  int32 // states that were sent to the store while the run goes on: each has its number
	dirty bool  // progress or a checkpoint that no heartbeat has sent yet
	ended bool  // its outcome is decided; anything later is refused
	used  Usage // what its handler has reported as used
}

// NewTestRun returns a RunInfo that no scheduler made, with the checkpoint of an earlier run, as JSON; nil for none. It is for
// tests, which call a handler by themselves: see package dulytest.
func NewTestRun(checkpoint json.RawMessage) *RunInfo {
	return &RunInfo{made: &recorder{most: model.DefaultMaxResult, state: codec.State{Checkpoint: checkpoint}}}
}

// Recorded returns the result and the progress that the task has now, as JSON: those that its handler has set, or that earlier
// runs of the task left; nil for none.
func (t *RunInfo) Recorded() (result, progress json.RawMessage) {
	r := t.recorder()
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.state.Result), bytes.Clone(r.state.Progress)
}

// making guards RunInfo.made. It is one for all, as a mutex in RunInfo would forbid to copy one, and only tests take it.
var making sync.Mutex

// errNoRunInfo is the error of a task without a RunInfo, as it has nowhere to keep anything.
var errNoRunInfo = errors.New("the task has no RunInfo: make tasks for tests with dulytest.NewTask")

// recorder of the run; one of its own if no scheduler made it. Nil without a RunInfo.
func (t *RunInfo) recorder() *recorder {
	switch {
	case t == nil:
		return nil
	case t.run != nil:
		return &t.run.recorder
	}
	making.Lock()
	if t.made == nil {
		t.made = &recorder{most: model.DefaultMaxResult}
	}
	made := t.made
	making.Unlock()
	return made
}

// record encodes v and keeps it, unless the run has ended.
func (r *recorder) record(what string, v any, keep func(data []byte)) error {
	if r == nil {
		return errNoRunInfo
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	data = bytes.ToValidUTF8(data, []byte("\ufffd")) // a json.RawMessage is taken unchanged
	if len(data) > int(r.most) {
		return check.Invalid(what, "is %d bytes long: the limit is %d", len(data), r.most)
	}
	r.mu.Lock()
	if !r.ended {
		keep(data)
	}
	r.mu.Unlock()
	return nil
}

// progress is the run's state with its number, if it has news that were not sent, or in any case; nil if there are none or the run has ended.
func (r *recorder) progress(always bool) (state []byte, number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty && !always || r.ended {
		return nil, 0
	}
	// The number is taken with the state: of two calls that overtake each other on the way, the store keeps the later state.
	r.dirty = false
	r.sent++
	return r.state.Encode(), int64(r.sent)
}
