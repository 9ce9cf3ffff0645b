package world

// Handlers: each does what the script of its run says, step by step, as the driver lets it.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var errScript = errors.New("the script says so")

// run is a run of a task, from the call of its handler.
type run struct {
	p      *process
	ctx    context.Context //nolint:containedctx // its handler's
	info   *core.RunInfo
	number int // of the definition; zero for an activity task
	script *draw.Script
	begun  time.Duration
	at     time.Duration // when its next step is
	step   int
	next   chan step
	ended  bool // it was let return, or has returned
	// What the handler has returned, and why its context was done then, if it was.
	outcome draw.Outcome
	asked   time.Duration // of the outcome
	over    time.Duration // when it was let return
	cause   error
	result  string
	task    *task
	batch   bool
	later   bool    // it is not the first of its call
	lent    bool    // a worker makes it
	stored  bool    // its outcome is
	busy    bool    // it does a step
	stuck   bool    // it was abandoned
	fresh   bool    // the auditor has not seen it yet
	spent   float64 // tokens that it has reported
	saves   int     // it has begun
	saving  int     // the number of the last of them
}

// step is what a handler does next.
type step byte

const (
	stepProgress step = iota
	stepSubmit
	stepSave
	stepReturn
)

// handle registers the handler of a kind.
// The tasks of a batch run one after the other in one call. If its context ends in between, those that
// have not begun return its error without a run of their own.
func (p *process) handle(kind string) {
	if kind == "batch" {
		core.HandleBatch(p.s, kind, func(ctx context.Context, tasks []*core.Task[draw.Payload]) []error {
			p.w.mu.Lock()
			call := callOf{p: p}
			for _, t := range tasks {
				call.tasks = append(call.tasks, t.RunInfo)
			}
			p.w.batches = append(p.w.batches, call)
			p.w.mu.Unlock()
			outcomes := make([]error, len(tasks))
			for i, t := range tasks {
				if outcomes[i] = ctx.Err(); i == 0 || outcomes[i] == nil {
					outcomes[i] = p.run(ctx, t, len(tasks) > 1, i > 0)
				}
			}
			return outcomes
		})
		return
	}
	core.Handle(p.s, kind, func(ctx context.Context, t *core.Task[draw.Payload]) error { return p.run(ctx, t, false, false) })
}

// run is a handler.
// It does nothing by itself: each step comes from the driver, which knows from the script when it is
// due. A closed channel means that the history is over.
func (p *process) run(ctx context.Context, t *core.Task[draw.Payload], batch, later bool) error {
	w := p.w
	r := &run{p: p, ctx: ctx, info: t.RunInfo, number: t.Payload.Number, next: make(chan step), fresh: true, batch: batch, later: later}
	w.mu.Lock()
	w.runs = append(w.runs, r)
	w.mu.Unlock()
	r.line(t, "begins")
	for do := range r.next {
		switch do {
		case stepProgress:
			r.line(t, "goes on")
			_ = t.SetProgress(r.begun.String()) // it is small
		case stepSubmit:
			_, err := p.s.Submit(ctx, r.script.Submits.NewTask)
			w.told(fmt.Sprintf("a handler of %s submits %s", t.ID, r.script.Submits.ID), err, nil)
			w.mu.Lock()
			r.busy = false
			w.mu.Unlock()
		case stepSave:
			r.save(t, r.saving)
		case stepReturn:
			return r.end(t)
		}
	}
	return nil
}

// uses reports what the script says that the run has used.
func (r *run) uses(t *core.Task[draw.Payload]) {
	if r.script.Tokens > 0 && t.Use(core.Usage{tokens: r.script.Tokens}) == nil {
		r.spent += r.script.Tokens
	}
}

// end returns as the script says.
func (r *run) end(t *core.Task[draw.Payload]) error {
	r.line(t, "ends")
	if r.script.Result {
		_ = t.SetResult(json.RawMessage(r.result)) // it is small
	}
	r.uses(t)
	switch r.outcome {
	case draw.Panic:
		panic("the script says so")
	case draw.Goexit:
		runtime.Goexit()
	default:
	}
	return r.says()
}

// says is what its outcome is to duly. What does not return at all has failed.
func (r *run) says() error {
	switch r.outcome {
	case draw.Fail, draw.Panic, draw.Goexit:
		return errScript
	case draw.SkipRetry:
		return core.SkipRetry(errScript)
	case draw.Cancel:
		return core.Cancel(errScript)
	case draw.Snooze:
		return core.Snooze(r.asked)
	case draw.RetryAfter:
		return core.RetryAfter(clock{r.p}.Now().Add(r.asked), errScript)
	case draw.NextIn:
		return core.NextIn(r.asked)
	case draw.Yield:
		return core.Yield(r.number, r.asked)
	default:
		return r.returned()
	}
}
