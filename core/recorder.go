package core

// The recorder: what a handler records, saves and uses while it runs, for a run and for a task that a test made by hand.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
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
	return &RunInfo{made: &made{recorder: recorder{most: model.DefaultMaxResult, state: codec.State{Checkpoint: checkpoint}}}}
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

// Output returns what the run prints to, in whole lines or any other pieces: the last 64 KiB are kept with the task, and shown while the run goes
// on, a second later at most, by duly logs, the API and the console. It is for people: nothing is decided by it, and it lives as long as the record
// of the task. Writes never fail and wait for nothing; what is written after the run has ended is dropped. A run that writes costs one call of the
// store a second, with those of all other runs of the process, and one at its end. A task that no scheduler made drops all.
func (t *RunInfo) Output() io.Writer {
	switch {
	case t == nil:
	case t.run != nil:
		r := t.run
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.ended { // what is made now is ended with the run
			return r.pull.s.printing.Of(r, r.chunk)
		}
	case t.made != nil && t.made.output != nil:
		return t.made.output
	}
	return io.Discard
}

// Logger returns a logger that writes lines of text to [RunInfo.Output], of all levels. Keep it: each call makes another.
func (t *RunInfo) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// chunk is what the chunks of its output have in common. Of the runs of an occurrence each has the next turn.
func (r *run) chunk() output.Chunk {
	return output.Chunk{
		Agent: r.claimed.Agent, ID: r.claimed.ID, Turn: r.info.Attempt + r.info.Crashes + r.state.Calls, Fence: r.info.Fence, Attempt: r.info.Attempt,
		Claimed: moment.Of(r.info.Claimed),
	}
}

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
		t.made = &made{recorder: recorder{most: model.DefaultMaxResult}}
	}
	own := &t.made.recorder
	making.Unlock()
	return own
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

// Progress is the run's state with its number, if it has news that were not sent, or in any case; nil if there are none or the run has ended.
func (r *recorder) Progress(always bool) (state []byte, number int64) {
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

// Save stores a checkpoint, as JSON of up to [MaxCheckpoint] bytes, while the run goes on, with the progress that was reported, and extends the
// lease. When it has returned nil the checkpoint outlives the process: the next run of this occurrence finds it with [RunInfo.Checkpoint],
// however this one ends. It is one call of the store, of five seconds at most. The end of ctx does not end it: the save that a run makes when its
// time is up is the one that counts.
//
// What the run has used, as reported to [RunInfo.Use], is charged now, and not again when the run ends. If a budget that it counts in is used up
// then, the handler's context ends after the save, with the cause [ErrBudgetSpent]: the run is put off, uncharged, and goes on in the next period. What a budget counts over several
// partitions is charged when the run ends.
//
// It fails with [ErrLeaseLost] when another process has the task, or may have it: the run is to stop, and must not do what comes next. With any
// other error of the store the checkpoint may be stored or not; the run keeps it, and it is stored with the next heartbeat or with the outcome.
// What cannot be stored, as it is too large or no JSON, is refused before any call: a handler that returns that error fails for good.
func (t *RunInfo) Save(ctx context.Context, checkpoint any) error {
	r := t.recorder()
	if r == nil {
		return errNoRunInfo
	}
	data, err := outcome.EncodeCheckpoint("save", checkpoint)
	if err != nil {
		return err
	}
	r.mu.Lock()
	ended := r.ended
	if !ended {
		r.state.Checkpoint, r.dirty = data, true
	}
	r.mu.Unlock()
	switch {
	case t.run == nil && t.made.store != nil:
		return t.made.store(ctx, data)
	case t.run == nil:
		return nil
	case ended:
		return fmt.Errorf("save: the run has ended: %w", ErrLeaseLost)
	default:
		return t.run.save(ctx)
	}
}

// checkpoint is the last one that was saved; nil for none.
func (r *recorder) checkpoint() []byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Checkpoint
}

// save stores the state of the run by the lease that it has: after an outage longer than a lease that is another one, if no other process has begun
// the task meanwhile, and the state is sent again under it.
func (r *run) save(ctx context.Context) error {
	h := &r.pull.heartbeat
	var err error = &store.Error{Verb: "extend", Err: errors.New("the lease is over, and is not taken back yet")} // the store did not answer that
	for range 2 {
		lease, at, held := h.ExtensionOf(r.claimed)
		state, number := r.Progress(true)
		if !held || state == nil {
			return fmt.Errorf("save: %w", ErrLeaseLost)
		}
		lease.Progress = []store.Progress{{Run: at.Run(r.claimed), State: state, Number: number, Used: r.info.Used().Amounts()}}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestStore(r.pull, lease.Lease))
		answer, failed := h.ExtendOne(call, lease, at)
		cancel()
		// guard: save-held
		if failed == nil && !answer.Held {
			continue
		}
		switch {
		case failed != nil:
			err = failed
		case slices.ContainsFunc(answer.Ended, func(e store.Ended) bool { return e.Deleted && e.Index == at.Index }):
			return fmt.Errorf("save: the task was deleted: %w", ErrLeaseLost)
		default:
			return nil
		}
		break
	}
	r.unsaved()
	return fmt.Errorf("save: the checkpoint may not be stored yet: %w", err)
}

// unsaved has the next heartbeat send the state of the run again.
func (r *run) unsaved() {
	r.mu.Lock()
	r.dirty = !r.ended
	r.mu.Unlock()
	r.pull.heartbeat.Progressed()
}

// Use adds to the use of the run. It is charged to budgets with [RunInfo.Save] and when the run ends, with any outcome, and kept in the task's history; a run
// that loses its lease is not charged. It fails with an *[InvalidError], and adds nothing, if a unit is not of letters, digits and _, or is
// "runs", which are counted by themselves, or if an amount is negative or too large; and once the run has ended.
func (t *RunInfo) Use(used Usage) error {
	r := t.recorder()
	if r == nil {
		return errNoRunInfo
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errors.New("use: the run has ended")
	}
	sum := maps.Clone(r.used)
	if sum == nil {
		sum = make(Usage, len(used))
	}
	for unit, amount := range used {
		if err := bounding.ValidUnit("used", unit); err != nil {
			return err
		}
		if unit == bound.UnitRuns {
			return check.Invalid("used", "has the unit runs, which are counted by themselves")
		}
		sum[unit] += amount
		// The comparison is false for NaN.
		if !(amount >= 0 && sum[unit] <= float64(bound.MostAmount/bound.AmountOne)) {
			return check.Invalid("used", "must be between 0 and %s of %s, not %v", bound.MostAmount, unit, amount)
		}
	}
	if len(sum) > bounding.MaxUnits {
		return check.Invalid("used", "has %d units: the limit is %d", len(sum), bounding.MaxUnits)
	}
	r.used = sum
	if t.run == nil && t.made.news != nil {
		t.made.news()
	}
	return nil
}

// Used returns what the run has used so far, as reported to [RunInfo.Use].
func (t *RunInfo) Used() Usage {
	r := t.recorder()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.used)
}

// Outside is a run that another process has lent, for a handler that its worker calls: what the run has beside the fields of its [RunInfo].
type Outside struct {
	RunInfo

	Calls            int // of the task's handler before: [RunInfo.Call] is one more
	Checkpoint, Gate json.RawMessage
	Heard            *Heard // nil if the task has not waited
	Values           Values
	MaxResult        int // as in [Config]; zero for the default
	// News is called when the run has reported progress or use; nil for not at all. It must not block.
	News func()
	// Output takes what the run prints; nil drops it.
	Output io.Writer
	// Store does what [RunInfo.Save] promises, with a checkpoint that may be stored.
	Store func(ctx context.Context, checkpoint json.RawMessage) error
}

// made is what a run has that no scheduler of this process made.
type made struct {
	recorder

	news   func()
	store  func(ctx context.Context, checkpoint json.RawMessage) error
	output io.Writer
}

// Run is the run as its handler gets it.
func (o *Outside) Run() *RunInfo {
	t := o.RunInfo
	t.made = &made{recorder: recorder{most: int32(cmp.Or(min(max(o.MaxResult, 0), mostBytes), model.DefaultMaxResult))}, news: o.News, store: o.Store, output: o.Output} //nolint:gosec // it is bounded
	t.made.state.Calls, t.made.state.Checkpoint = o.Calls, o.Checkpoint
	t.extra = &extra{bound: o.Values, heard: o.Heard}
	if o.Gate != nil {
		t.extra.answer = &GateAnswer{Open: true, Input: o.Gate}
	}
	return &t
}
